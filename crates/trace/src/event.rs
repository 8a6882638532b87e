//! Events of the block layer, decoded by the layout that the kernel states in `events/block/NAME/format`.

use std::collections::HashMap;

use serde::Deserialize;

use crate::error::TraceError;

/// Properties of an I/O: the bits of `assay.traces.ios.IoFlag`.
pub(crate) mod flags {
    pub(crate) const READ: u16 = 1;
    pub(crate) const WRITE: u16 = 2;
    pub(crate) const DISCARD: u16 = 4;
    pub(crate) const FLUSH: u16 = 8;
    pub(crate) const FUA: u16 = 16;
    pub(crate) const SYNC: u16 = 32;
    pub(crate) const METADATA: u16 = 64;
    pub(crate) const AHEAD: u16 = 128;
    pub(crate) const FAILED: u16 = 256;
}

/// The head of a page.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct PageLayout {
    pub bytes: usize,
    pub commit_at: usize,
    pub commit_bytes: usize,
    pub data_at: usize,
}

/// Which moment of an I/O's life an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A bio is asked for (`block_bio_queue`).
    Queue,
    /// A request is handed to the driver (`block_rq_issue`).
    Issue,
    /// The driver hands a request back, which is issued again later (`block_rq_requeue`).
    Requeue,
    /// A request, or the first part of it, is done (`block_rq_complete`).
    Complete,
}

/// Where the fields of an event lie.
#[derive(Debug, Clone, Deserialize)]
pub struct EventLayout {
    pub id: u16,
    pub kind: EventKind,
    pub dev: usize,
    pub sector: usize,
    pub sectors: usize,
    /// Place and length of a text, as of `comm`.
    pub rwbs: (usize, usize),
    pub comm: Option<(usize, usize)>,
    pub error: Option<usize>,
}

/// Layout of a kernel's pages and events, and the devices that are traced.
#[derive(Debug, Clone, Deserialize)]
pub struct Layout {
    pub page: PageLayout,
    pub events: Vec<EventLayout>,
    /// Numbers of devices as the kernel's events have them, partitions included, each with the number of its disk here.
    pub devices: Vec<(u32, u16)>,
}

/// Flags of an event's letters, and whether they ask for a flush before the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) flags: u16,
    pub(crate) flushes_first: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) kind: EventKind,
    pub(crate) device: u16,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) asked: Asked,
    pub(crate) process: u16,
}

/// Names of processes are numbered; further ones than these stay unknown.
const PROCESSES_MAX: usize = 4096;

/// Decodes events of the devices that are looked at.
pub(crate) struct Decoder {
    layout: Layout,
    by_id: Vec<Option<u8>>,
    devices: HashMap<u32, u16>,
    numbers: HashMap<Vec<u8>, u16>,
    names: Vec<String>,
}

impl Decoder {
    pub(crate) fn new(layout: Layout) -> Result<Self, TraceError> {
        let page = &layout.page;
        if !(64..=1 << 20).contains(&page.bytes) || page.data_at > page.bytes || ![4, 8].contains(&page.commit_bytes) {
            return Err(TraceError::Layout { what: "pages" });
        }
        let size = layout.events.iter().map(|event| usize::from(event.id) + 1).max();
        let mut by_id = vec![None; size.unwrap_or_default()];
        for (number, event) in layout.events.iter().enumerate() {
            by_id[usize::from(event.id)] =
                Some(u8::try_from(number).map_err(|_| TraceError::Layout { what: "events" })?);
        }
        let devices = layout.devices.iter().copied().collect();
        let unknown = HashMap::from([(Vec::new(), 0)]);
        Ok(Self { layout, by_id, devices, numbers: unknown, names: vec![String::new()] })
    }

    pub(crate) fn page_layout(&self) -> PageLayout {
        self.layout.page
    }

    /// Names of processes by the numbers that events have.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Nothing if it is of another kind or device, or too short.
    pub(crate) fn event(&mut self, time_ns: u64, bytes: &[u8]) -> Option<Event> {
        let id = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        let number = (*self.by_id.get(usize::from(id))?)?;
        let layout = &self.layout.events[usize::from(number)];
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..)?.get(..4)?.try_into().ok()?));
        let device = *self.devices.get(&word(layout.dev)?)?;
        let sector = u64::from_ne_bytes(bytes.get(layout.sector..)?.get(..8)?.try_into().ok()?);
        let (kind, sectors) = (layout.kind, word(layout.sectors)?);
        let mut asked = asked_of(text(bytes, layout.rwbs)?)?;
        if layout.error.and_then(word).is_some_and(|error| error != 0) {
            asked.flags |= flags::FAILED;
        }
        let process = match layout.comm {
            Some(place) => {
                let name = text(bytes, place)?;
                self.number_of(name)
            }
            None => 0,
        };
        Some(Event { time_ns, kind, device, sector, sectors, asked, process })
    }

    fn number_of(&mut self, name: &[u8]) -> u16 {
        // Workers of the kernel have a number each, which says nothing of who asked.
        let name = if name.starts_with(b"kworker/") { &name[..7] } else { name };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.names.len() >= PROCESSES_MAX {
            return 0;
        }
        let number = self.names.len() as u16;
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.to_vec(), number);
        number
    }
}

/// A text up to its end or its room's.
fn text(bytes: &[u8], (at, length): (usize, usize)) -> Option<&[u8]> {
    let room = bytes.get(at..)?.get(..length)?;
    Some(room.split(|letter| *letter == 0).next().unwrap_or(room))
}

/// The letters of `rwbs` decoded (`blk_fill_rwbs`, kernel/trace/blktrace.c); nothing for commands that are no I/O.
///
/// An F before the letter of the operation flushes first, one behind it is FUA. Zeros that are written without data, and
/// secure erasures, count as discards.
pub(crate) fn asked_of(rwbs: &[u8]) -> Option<Asked> {
    let (flushes_first, rest) = match rwbs {
        [b'F', rest @ ..] if !rest.is_empty() && b"WDRFNE".contains(&rest[0]) => (true, rest),
        _ => (false, rwbs),
    };
    let (operation, rest) = rest.split_first()?;
    let (operation, rest) = match (operation, rest) {
        (b'R', _) => (flags::READ, rest),
        (b'W', [b'Z', rest @ ..]) | (b'D', [b'E', rest @ ..]) => (flags::DISCARD, rest),
        (b'W', _) => (flags::WRITE, rest),
        (b'D' | b'E', _) => (flags::DISCARD, rest),
        (b'F', _) => (flags::FLUSH, rest),
        _ => return None,
    };
    let flags = rest.iter().fold(operation, |found, letter| {
        found
            | match letter {
                b'F' => flags::FUA,
                b'S' => flags::SYNC,
                b'M' => flags::METADATA,
                b'A' => flags::AHEAD,
                _ => 0,
            }
    });
    Some(Asked { flags, flushes_first })
}

#[cfg(test)]
mod tests {
    use super::{flags::*, *};

    #[test]
    fn letters_are_read_by_their_place() {
        let found = |letters: &str| asked_of(letters.as_bytes()).map(|asked| (asked.flags, asked.flushes_first));
        assert_eq!(found("R"), Some((READ, false)));
        assert_eq!(found("RA"), Some((READ | AHEAD, false)));
        assert_eq!(found("WFSM"), Some((WRITE | FUA | SYNC | METADATA, false)));
        assert_eq!(found("FWFS"), Some((WRITE | FUA | SYNC, true)));
        assert_eq!(found("FF"), Some((FLUSH, true)));
        assert_eq!(found("F"), Some((FLUSH, false)));
        assert_eq!(found("DE"), Some((DISCARD, false)));
        assert_eq!(found("WZS"), Some((DISCARD | SYNC, false)));
        assert_eq!((found("N"), found(""), found("ZR")), (None, None, None));
    }
}
