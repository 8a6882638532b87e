//! A page of ftrace's ring: when it begins, whether events were lost before it, and its entries.
//!
//! `events/header_page` and `events/header_event` state the format (kernel/trace/ring_buffer.c). The bytes are foreign
//! input: a length that leads out of the page ends it.

use crate::event::PageLayout;

const COMMIT_MASK: u64 = (1 << 27) - 1;
/// Events were lost before the page; their number may follow the entries.
const LOST: u64 = 1 << 31;
const LOST_STORED: u64 = 1 << 30;
const DELTA_BITS: u32 = 27;
/// Bits of a time that an absolute time stamp leaves out.
const TIME_HIGH_BITS: u64 = 0xf8 << 56;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Entries of a page, one after the other.
pub(crate) struct Page<'a> {
    data: &'a [u8],
    at: usize,
    time_ns: u64,
    /// Events that were lost before the page, at least one where the kernel does not count them.
    pub(crate) lost: u64,
    /// Whether an entry leads out of the page.
    pub(crate) is_damaged: bool,
}

impl<'a> Page<'a> {
    /// Nothing if the bytes are too few for a page's head.
    pub(crate) fn new(bytes: &'a [u8], layout: &PageLayout) -> Option<Self> {
        let time_ns = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
        let commit = match layout.commit_bytes {
            8 => u64::from_ne_bytes(bytes.get(layout.commit_at..)?.get(..8)?.try_into().ok()?),
            _ => u64::from(word(bytes, layout.commit_at)?),
        };
        let room = bytes.get(layout.data_at..)?;
        let used = (commit & COMMIT_MASK) as usize;
        let data = room.get(..used).unwrap_or(room);
        let stored = || Some(u64::from_ne_bytes(room.get(used..)?.get(..8)?.try_into().ok()?));
        let lost = match commit & (LOST | LOST_STORED) {
            0 => 0,
            flags if flags & LOST_STORED != 0 => stored().unwrap_or(1).clamp(1, u64::from(u32::MAX)),
            _ => 1,
        };
        Some(Self { data, at: 0, time_ns, lost, is_damaged: used > room.len() })
    }

    fn damaged(&mut self) -> Option<(u64, &'a [u8])> {
        self.is_damaged = true;
        self.at = self.data.len();
        None
    }
}

impl<'a> Iterator for Page<'a> {
    /// Time and bytes of an event.
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.data.len() {
            let Some(head) = word(self.data, self.at) else { return self.damaged() };
            let (kind, delta) = split(head);
            let next = word(self.data, self.at + 4);
            self.at += 4;
            let (length, skipped) = match (kind, next) {
                (PADDING, _) if delta == 0 => {
                    self.at = self.data.len();
                    return None;
                }
                (PADDING | 0 | TIME_EXTEND | TIME_STAMP, None) => return self.damaged(),
                (PADDING, Some(length)) => (length as usize, usize::MAX),
                (TIME_EXTEND, Some(high)) => {
                    self.time_ns = self.time_ns.wrapping_add(u64::from(high) << DELTA_BITS | u64::from(delta));
                    self.at += 4;
                    continue;
                }
                (TIME_STAMP, Some(high)) => {
                    let low = u64::from(high) << DELTA_BITS | u64::from(delta);
                    self.time_ns = self.time_ns & TIME_HIGH_BITS | low & !TIME_HIGH_BITS;
                    self.at += 4;
                    continue;
                }
                (0, Some(length)) => (length as usize, 4),
                (words, _) => (words as usize * 4, 0),
            };
            self.time_ns = self.time_ns.wrapping_add(u64::from(delta));
            let end = self.at.saturating_add(length.max(4)).div_ceil(4).saturating_mul(4);
            let Some(bytes) = self.data.get(self.at..end) else { return self.damaged() };
            self.at = end;
            if let Some(event) = bytes.get(skipped..) {
                return Some((self.time_ns, event));
            }
        }
        None
    }
}

/// Kind and time of an entry's head: bit fields in the order of the machine.
fn split(head: u32) -> (u32, u32) {
    if cfg!(target_endian = "big") {
        (head >> DELTA_BITS, head & ((1 << DELTA_BITS) - 1))
    } else {
        (head & 31, head >> 5)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) const LAYOUT: PageLayout = PageLayout { bytes: 4096, commit_at: 8, commit_bytes: 8, data_at: 16 };

    pub(crate) fn head_of(kind: u32, delta: u32) -> [u8; 4] {
        let head = if cfg!(target_endian = "big") { kind << DELTA_BITS | delta } else { kind | delta << 5 };
        head.to_ne_bytes()
    }

    /// A page of these entries.
    pub(crate) fn page_of(time_ns: u64, flags: u64, data: &[u8]) -> Vec<u8> {
        let commit = data.len() as u64 | flags;
        let mut page = [&time_ns.to_ne_bytes()[..], &commit.to_ne_bytes(), data].concat();
        page.resize(4096, 0);
        page
    }

    fn events(bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, u64, bool) {
        let mut page = Page::new(bytes, &LAYOUT).expect("a page");
        let found = page.by_ref().map(|(time, event)| (time, event.to_vec())).collect();
        (found, page.lost, page.is_damaged)
    }

    #[test]
    fn times_add_up_over_extensions_and_stamps() {
        let data = [
            &head_of(1, 5)[..],
            b"abcd", // 4 bytes, 5 ns later
            &head_of(TIME_EXTEND, 3),
            &2u32.to_ne_bytes(),
            &head_of(0, 1),
            &12u32.to_ne_bytes(),
            b"efghijkl", // a length of its own, which counts itself
            &head_of(PADDING, 7),
            &8u32.to_ne_bytes(),
            b"gone", // discarded, after 7 ns
            &head_of(TIME_STAMP, 9),
            &1u32.to_ne_bytes(),
            &head_of(1, 0),
            b"mnop",
            &head_of(PADDING, 0),
            b"rest",
        ]
        .concat(); // no more
        let (found, lost, damaged) = events(&page_of(1000, 0, &data));
        let extended = 1005 + (2 << 27) + 3 + 1;
        assert_eq!(found[0], (1005, b"abcd".to_vec()));
        assert_eq!(found[1], (extended, b"efghijkl".to_vec()));
        assert_eq!(found[2], ((1 << 27) + 9, b"mnop".to_vec()));
        assert_eq!((found.len(), lost, damaged), (3, 0, false));
    }

    #[test]
    fn lost_events_are_counted_where_the_kernel_tells_how_many() {
        let entry = [&head_of(1, 0)[..], b"abcd"].concat();
        assert_eq!(events(&page_of(0, LOST, &entry)).1, 1);
        let mut page = page_of(0, LOST | LOST_STORED, &entry);
        page[24..32].copy_from_slice(&77u64.to_ne_bytes());
        assert_eq!(events(&page).1, 77);
    }

    #[test]
    fn an_entry_that_leads_out_of_the_page_ends_it() {
        let data = [&head_of(1, 0)[..], b"abcd", &head_of(28, 0), b"short"].concat();
        let (found, _, damaged) = events(&page_of(0, 0, &data));
        assert_eq!((found.len(), damaged), (1, true));
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
            if let Some(page) = Page::new(&bytes, &LAYOUT) {
                prop_assert!(page.count() <= 1024);
            }
        }
    }
}
