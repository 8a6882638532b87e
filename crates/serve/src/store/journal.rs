//! The change under way, for when the server is killed in the middle of it.
//!
//! A write changes several files: data, copies or parity, and sums. All of it is noted before the first of them is touched,
//! and the note is cleared after the last. Who opens a store makes a noted change again, as a whole: no parity is ever
//! computed from what a write has left half done, and what a lost disk held stays computable.

use std::{io, ops::Range, os::fd::AsRawFd, path::Path};

use super::files::{Kept, Supply};
use crate::ServeError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Bytes of a disk are written.
    Put,
    /// Blocks of a disk hold again what belongs there.
    Good,
    /// Blocks of a disk hold nothing that could be computed with.
    Bad,
    /// The bytes that were put last are written to another disk, too.
    Copy,
}

/// What one write does to the disks of a member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Disk, and place and length in bytes.
    steps: Vec<(Step, u32, Range<u64>)>,
    bytes: Vec<u8>,
    /// Blocks that lie at another place then, by number.
    moves: Vec<(u64, u64)>,
}

impl Change {
    pub(super) fn put(&mut self, disk: usize, at_bytes: u64, bytes: &[u8]) {
        self.steps.push((Step::Put, disk as u32, at_bytes..at_bytes + bytes.len() as u64));
        self.bytes.extend_from_slice(bytes);
    }

    /// Puts the bytes that were put last onto another disk.
    pub(super) fn copy(&mut self, disk: usize, at_bytes: Range<u64>) {
        self.steps.push((Step::Copy, disk as u32, at_bytes));
    }

    pub(super) fn good(&mut self, disk: usize, at_bytes: Range<u64>) {
        self.steps.push((Step::Good, disk as u32, at_bytes));
    }

    pub(super) fn bad(&mut self, disk: usize, at_bytes: Range<u64>) {
        self.steps.push((Step::Bad, disk as u32, at_bytes));
    }

    pub(super) fn moved(&mut self, block: u64, place: u64) {
        self.moves.push((block, place));
    }

    /// Blocks that lie at another place once the steps are made.
    pub(super) fn moves(&self) -> &[(u64, u64)] {
        &self.moves
    }

    /// Whether what is known of disks changes, beside their bytes.
    pub(super) fn has_marks(&self) -> bool {
        self.steps.iter().any(|(step, ..)| matches!(step, Step::Good | Step::Bad))
    }

    /// Steps in order, with the bytes that were put last.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Step, usize, Range<u64>, &[u8])> {
        let (mut bytes, mut left) = self.bytes.split_at(0);
        self.steps.iter().map(move |(step, disk, range)| {
            if *step == Step::Put {
                (bytes, left) = left.split_at((range.end - range.start) as usize);
            }
            (*step, *disk as usize, range.clone(), bytes)
        })
    }
}

/// Bytes of the record's head: a mark, the sum of the rest, member, steps, bytes, moves.
const HEAD_BYTES: usize = 32;
const STEP_BYTES: usize = 24;
const MOVE_BYTES: usize = 16;
const MARK: [u8; 4] = *b"not3";
/// A note finds room even where there is none left for what it notes.
const ROOM_BYTES: i64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Journal {
    file: Kept,
    /// A change is noted that was not made as a whole.
    pub(super) is_pending: bool,
    buffer: Vec<u8>,
}

impl Journal {
    pub(super) fn open(path: &Path, supply: &Supply) -> Result<Self, ServeError> {
        let file = Kept::open(path, supply)?;
        // SAFETY: the descriptor is open; no memory is involved.
        let _ = unsafe { libc::posix_fallocate(file.file().as_raw_fd(), 0, ROOM_BYTES) };
        let mut journal = Self { file, is_pending: false, buffer: Vec::new() };
        journal.is_pending = journal.noted().map_err(|error| ServeError::at(path, error))?.is_some();
        Ok(journal)
    }

    pub(super) fn file(&self) -> &Kept {
        &self.file
    }

    /// Notes a change before it is made.
    pub(super) fn note(&mut self, member: u32, change: &Change) -> io::Result<()> {
        debug_assert!(!self.is_pending, "a change is made before the next is noted");
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.extend([0; 8]);
        buffer.extend(member.to_le_bytes());
        buffer.extend((change.steps.len() as u32).to_le_bytes());
        buffer.extend((change.bytes.len() as u64).to_le_bytes());
        buffer.extend((change.moves.len() as u64).to_le_bytes());
        for (step, disk, range) in &change.steps {
            buffer.extend((*step as u32).to_le_bytes());
            buffer.extend(disk.to_le_bytes());
            buffer.extend(range.start.to_le_bytes());
            buffer.extend(range.end.to_le_bytes());
        }
        for (block, place) in &change.moves {
            buffer.extend(block.to_le_bytes());
            buffer.extend(place.to_le_bytes());
        }
        buffer.extend(&change.bytes);
        let sum = crc32c::crc32c(&buffer[8..]);
        buffer[..4].copy_from_slice(&MARK);
        buffer[4..8].copy_from_slice(&sum.to_le_bytes());
        // One that fails may be there as a whole, where the rest was so before.
        self.is_pending = true;
        self.file.write_all_at(buffer, 0)
    }

    /// The change has been made.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.write_all_at(&[0; 8], 0)?;
        self.is_pending = false;
        Ok(())
    }

    /// The change that is noted, and its member. A note that was cut short itself is none: nothing was changed yet.
    pub(super) fn noted(&self) -> io::Result<Option<(u32, Change)>> {
        let mut head = [0; HEAD_BYTES];
        match self.file.read_exact_at(&mut head, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let short = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (steps, bytes, moves) = (short(&head, 12) as usize, long(&head, 16), long(&head, 24) as usize);
        let listed_bytes = (steps * STEP_BYTES).saturating_add(moves.saturating_mul(MOVE_BYTES));
        let record_bytes = ((HEAD_BYTES as u64).saturating_add(listed_bytes as u64)).saturating_add(bytes);
        if head[..4] != MARK || record_bytes > self.file.file().metadata()?.len() {
            return Ok(None);
        }
        let mut record = vec![0; record_bytes as usize];
        self.file.read_exact_at(&mut record, 0)?;
        if crc32c::crc32c(&record[8..]) != short(&head, 4) {
            return Ok(None);
        }
        let (listed, bytes) = record[HEAD_BYTES..].split_at(listed_bytes);
        let (listed, moves) = listed.split_at(steps * STEP_BYTES);
        let steps = listed.chunks_exact(STEP_BYTES).map(|step| {
            let kind = match short(step, 0) {
                0 => Step::Put,
                1 => Step::Good,
                2 => Step::Bad,
                _ => Step::Copy,
            };
            (kind, short(step, 4), long(step, 8)..long(step, 16))
        });
        let moves = moves.chunks_exact(MOVE_BYTES).map(|each| (long(each, 0), long(each, 8)));
        let change = Change { steps: steps.collect(), bytes: bytes.to_vec(), moves: moves.collect() };
        Ok(Some((short(&head, 8), change)))
    }
}
