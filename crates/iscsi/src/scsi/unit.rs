//! A disk as all of its initiators share it: its size, its reservations, what each has not been told yet.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    config::Disk,
    scsi::{
        Access, BLOCK_BYTES, LIST_MOST_BYTES, Task, access_of, be16, be32, block_task,
        copying::{self, Copies, CopyState},
        inquiry,
        reservations::{Failure, Nexus, Reservations},
        sense::{
            CAPACITY_CHANGED, INVALID_FIELD, INVALID_PARAMETER, LIST_LENGTH, MEDIUM_CHANGED, NO_UNIT, NOTHING,
            OUT_OF_RANGE, POWERED_ON, Sense, UNIT_RESET, UNKNOWN_COMMAND,
        },
        table,
    },
};

/// Attentions that wait for one initiator; the oldest are dropped.
const ATTENTIONS_MOST: usize = 16;

/// A disk that initiators share.
pub(crate) struct Unit {
    pub(crate) disk: Disk,
    blocks: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reservations: Reservations,
    attentions: HashMap<Nexus, VecDeque<Sense>>,
    copies: Copies,
}

impl State {
    fn tell(&mut self, nexus: &Nexus, sense: Sense) {
        if let Some(waiting) = self.attentions.get_mut(nexus) {
            if waiting.len() >= ATTENTIONS_MOST {
                waiting.pop_front();
            }
            waiting.push_back(sense);
        }
    }

    fn tell_all(&mut self, sense: Sense) {
        let all: Vec<Nexus> = self.attentions.keys().cloned().collect();
        all.iter().for_each(|nexus| self.tell(nexus, sense));
    }
}

impl Unit {
    pub(crate) fn new(disk: Disk) -> Self {
        let blocks = AtomicU64::new(disk.bytes / BLOCK_BYTES);
        Self { disk, blocks, state: Mutex::default() }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// The disk has grown; every initiator is told.
    pub(crate) fn grow(&self, bytes: u64) {
        self.blocks.fetch_max(bytes / BLOCK_BYTES, Ordering::Relaxed);
        self.locked().tell_all(CAPACITY_CHANGED);
    }

    /// Tells all initiators that the content of the disk has changed beneath them.
    pub(crate) fn medium_changed(&self) {
        self.locked().tell_all(MEDIUM_CHANGED);
    }

    /// Whether the disk has a name, as page 83h writes names.
    pub(crate) fn is_named(&self, name: &[u8]) -> bool {
        inquiry::is_named(&self.disk, name)
    }

    /// Whether no reservation of another initiator keeps this one from an access.
    pub(crate) fn is_open_to(&self, nexus: &Nexus, access: Access) -> bool {
        let state = self.locked();
        !state.reservations.is_shut_out(nexus) && !state.reservations.conflicts(nexus, access)
    }

    /// Notes how far a copy is that an initiator asked this disk for.
    pub(crate) fn note_copy(&self, nexus: &Nexus, identifier: u8, state: CopyState, segments: u16, bytes: u32) {
        self.locked().copies.note(nexus, identifier, state, segments, bytes);
    }

    /// An initiator has logged in.
    pub(crate) fn open(&self, nexus: &Nexus) {
        self.locked().attentions.insert(nexus.clone(), VecDeque::from([POWERED_ON]));
    }

    /// Its session is over.
    pub(crate) fn close(&self, nexus: &Nexus) {
        let mut state = self.locked();
        state.attentions.remove(nexus);
        state.copies.forget(nexus);
        state.reservations.forget_old(Some(nexus));
    }

    /// An initiator resets the disk: reservations of the older kind end, and all are told, the initiator too.
    pub(crate) fn reset(&self) {
        let mut state = self.locked();
        state.reservations.forget_old(None);
        state.tell_all(UNIT_RESET);
    }

    /// Task of a command.
    pub(crate) fn task(&self, nexus: &Nexus, cdb: &[u8; 16]) -> Task {
        let (code, action) = (cdb[0], u16::from(cdb[1] & 0x1f));
        let mut state = self.locked();
        let waiting = state.attentions.get_mut(nexus).and_then(|waiting| match code {
            0x12 | 0xa0 => None,
            _ => waiting.pop_front(),
        });
        if code == 0x03 {
            return Task::Answer(cut(waiting.unwrap_or(NOTHING).bytes().to_vec(), usize::from(cdb[4])));
        }
        if let Some(sense) = waiting {
            return Task::Failed(sense);
        }
        if !table::is_known(code, action) {
            let has_actions = table::COMMANDS.iter().any(|known| known.code == code);
            return Task::Failed(if has_actions { INVALID_FIELD } else { UNKNOWN_COMMAND });
        }
        // NACA asks for what no initiator uses.
        if table::length(code).is_some_and(|length| cdb[length - 1] & 0x04 != 0) {
            return Task::Failed(INVALID_FIELD);
        }
        let is_shut_out = !matches!(code, 0x12 | 0xa0 | 0x17) && state.reservations.is_shut_out(nexus);
        if is_shut_out || state.reservations.conflicts(nexus, access_of(code)) {
            return Task::Conflict;
        }
        match code {
            0x16 if !state.reservations.reserve_old(nexus) => Task::Conflict,
            0x17 => {
                state.reservations.release_old(nexus);
                Task::Done
            }
            0x84 if action == 0 => match state.copies.status(nexus, cdb[2]) {
                Some(bytes) => Task::Answer(cut(bytes, be32(cdb, 10) as usize)),
                None => Task::Failed(INVALID_FIELD),
            },
            0x5e => match state.reservations.report(cdb[1] & 0x1f) {
                Ok(bytes) => Task::Answer(cut(bytes, be16(cdb, 7))),
                Err(sense) => Task::Failed(sense),
            },
            _ => {
                drop(state);
                self.own(cdb)
            }
        }
    }

    /// Task of a command that has to do with no other initiator.
    fn own(&self, cdb: &[u8; 16]) -> Task {
        let blocks = self.blocks();
        if let Some(task) = block_task(cdb, blocks) {
            return task.unwrap_or_else(Task::Failed);
        }
        let answer = match cdb[0] {
            0x12 => self.inquiry(cdb),
            0x15 | 0x55 => {
                let list_bytes = if cdb[0] == 0x15 { usize::from(cdb[4]) } else { be16(cdb, 7) };
                return if cdb[1] & 0x01 != 0 { Task::Failed(INVALID_FIELD) } else { Task::Select { list_bytes } };
            }
            0x1a => inquiry::mode_sense(cdb, blocks).map(|bytes| cut(bytes, usize::from(cdb[4]))),
            0x5a => inquiry::mode_sense(cdb, blocks).map(|bytes| cut(bytes, be16(cdb, 7))),
            // A block may be named only with PMI, which is of old.
            0x25 if cdb[8] & 1 == 0 && be32(cdb, 2) != 0 => None,
            0x25 => Some(inquiry::capacity_10(blocks)),
            0x9e if cdb[1] & 0x1f == 0x10 => Some(cut(inquiry::capacity_16(blocks), be32(cdb, 10) as usize)),
            0x9e if super::be64(cdb, 2) >= blocks => return Task::Failed(OUT_OF_RANGE),
            0x9e => Some(self.mapped(cdb, blocks)),
            // The grown list and the first one, both empty: an array hides the defects of its disks.
            0x37 => Some(cut(vec![0, cdb[2] & 0x1f, 0, 0], be16(cdb, 7))),
            0xb7 => Some(cut(vec![0, cdb[1] & 0x1f, 0, 0, 0, 0, 0, 0], be32(cdb, 6) as usize)),
            0xa0 => luns(cdb),
            0xa3 if cdb[1] & 0x1f == 0x0a => Some(cut(inquiry::port_groups(cdb[1] >> 5 == 1), be32(cdb, 6) as usize)),
            0xa3 => table::report(cdb).map(|bytes| cut(bytes, be32(cdb, 6) as usize)),
            0x42 => {
                let list_bytes = be16(cdb, 7);
                return if cdb[1] & 1 != 0 || list_bytes > LIST_MOST_BYTES {
                    Task::Failed(INVALID_FIELD)
                } else {
                    Task::Unmap { list_bytes }
                };
            }
            0x83 => {
                let list_bytes = be32(cdb, 10) as usize;
                return if list_bytes > copying::LIST_MOST_BYTES {
                    Task::Failed(LIST_LENGTH)
                } else {
                    Task::Copy { list_bytes }
                };
            }
            0x84 => Some(cut(copying::parameters(), be32(cdb, 10) as usize)),
            0x5f => {
                let list_bytes = be32(cdb, 5) as usize;
                return if list_bytes > LIST_MOST_BYTES {
                    Task::Failed(INVALID_PARAMETER)
                } else {
                    Task::Reserve { list_bytes }
                };
            }
            _ => return Task::Done,
        };
        answer.map_or(Task::Failed(INVALID_FIELD), Task::Answer)
    }

    fn inquiry(&self, cdb: &[u8; 16]) -> Option<Vec<u8>> {
        let (is_vital, page) = (cdb[1] & 1 != 0, cdb[2]);
        let found = match (is_vital, page) {
            (false, 0) => Some(inquiry::standard(&self.disk)),
            (false, _) => None,
            (true, page) => inquiry::vital(&self.disk, page),
        };
        found.map(|bytes| cut(bytes, be16(cdb, 3)))
    }

    /// GET LBA STATUS: every block is said to be mapped, which it may be.
    fn mapped(&self, cdb: &[u8; 16], blocks: u64) -> Vec<u8> {
        let first = super::be64(cdb, 2);
        let mut bytes = vec![0, 0, 0, 20, 0, 0, 0, 0];
        bytes.extend(first.to_be_bytes());
        bytes.extend(u32::try_from(blocks - first).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend([0; 4]);
        cut(bytes, be32(cdb, 10) as usize)
    }

    /// Carries out PERSISTENT RESERVE OUT.
    pub(crate) fn reserve(&self, nexus: &Nexus, cdb: &[u8; 16], list: &[u8]) -> Task {
        let mut state = self.locked();
        match state.reservations.change(nexus, cdb, list) {
            Ok(told) => {
                told.iter().for_each(|(nexus, sense)| state.tell(nexus, *sense));
                Task::Done
            }
            Err(Failure::Conflict) => Task::Conflict,
            Err(Failure::Check(sense)) => Task::Failed(sense),
        }
    }
}

/// Task of a command to a unit that does not exist.
pub(crate) fn absent(cdb: &[u8; 16]) -> Task {
    match cdb[0] {
        0x12 if cdb[1] & 1 == 0 && cdb[2] == 0 => {
            let mut bytes = vec![0; 36];
            // No device can be there.
            (bytes[0], bytes[2], bytes[3], bytes[4]) = (0x7f, 6, 2, 31);
            Task::Answer(cut(bytes, be16(cdb, 3)))
        }
        0xa0 => luns(cdb).map_or(Task::Failed(INVALID_FIELD), Task::Answer),
        0x03 => Task::Answer(cut(NO_UNIT.bytes().to_vec(), usize::from(cdb[4]))),
        _ => Task::Failed(NO_UNIT),
    }
}

/// REPORT LUNS: the one unit 0; there are none well known.
fn luns(cdb: &[u8; 16]) -> Option<Vec<u8>> {
    let bytes = match cdb[2] {
        0 | 2 => vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        1 => vec![0; 8],
        _ => return None,
    };
    Some(cut(bytes, be32(cdb, 6) as usize))
}

fn cut(mut bytes: Vec<u8>, most: usize) -> Vec<u8> {
    bytes.truncate(most);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit() -> Unit {
        Unit::new(Disk {
            target: "iqn.2026-11.test:data".into(),
            volume: 0,
            bytes: 1 << 20,
            serial: "0123456789".into(),
            product: "ps6100xv".into(),
        })
    }

    fn nexus(name: &str) -> Nexus {
        Nexus { initiator: name.into(), session: [0; 6] }
    }

    fn cdb(bytes: &[u8]) -> [u8; 16] {
        let mut cdb = [0; 16];
        cdb[..bytes.len()].copy_from_slice(bytes);
        cdb
    }

    #[test]
    fn an_initiator_is_told_once_that_it_is_new_and_may_ask_what_is_there_before() {
        let (unit, one) = (unit(), nexus("one"));
        unit.open(&one);
        assert!(matches!(unit.task(&one, &cdb(&[0x12, 0, 0, 0, 96])), Task::Answer(_)));
        assert_eq!(unit.task(&one, &cdb(&[0])), Task::Failed(POWERED_ON));
        assert_eq!(unit.task(&one, &cdb(&[0])), Task::Done);
    }

    #[test]
    fn growth_and_resets_are_told_to_the_others() {
        let (unit, one, other) = (unit(), nexus("one"), nexus("other"));
        for nexus in [&one, &other] {
            unit.open(nexus);
            unit.task(nexus, &cdb(&[0]));
        }
        unit.grow(2 << 20);
        assert_eq!(unit.task(&one, &cdb(&[0])), Task::Failed(CAPACITY_CHANGED));
        assert_eq!(unit.blocks(), 4096);
        unit.reset();
        assert_eq!(unit.task(&one, &cdb(&[0])), Task::Failed(UNIT_RESET));
        assert_eq!(unit.task(&other, &cdb(&[0])), Task::Failed(CAPACITY_CHANGED));
        assert_eq!(unit.task(&other, &cdb(&[0])), Task::Failed(UNIT_RESET));
    }

    #[test]
    fn answers_are_no_longer_than_asked_for() {
        let (unit, one) = (unit(), nexus("one"));
        let Task::Answer(bytes) = unit.task(&one, &cdb(&[0x12, 0, 0, 0, 5])) else { panic!() };
        assert_eq!(bytes.len(), 5);
        let Task::Answer(bytes) = unit.task(&one, &cdb(&[0x12, 1, 0x80, 0, 255])) else { panic!() };
        assert_eq!(&bytes[4..], b"0123456789");
    }

    proptest! {
        #[test]
        fn no_command_of_any_bytes_ends_the_array(bytes: [u8; 16], list in proptest::collection::vec(any::<u8>(), 0..64)) {
            let (unit, one) = (unit(), nexus("one"));
            unit.task(&one, &bytes);
            absent(&bytes);
            unit.reserve(&one, &bytes, &list);
        }
    }
}
