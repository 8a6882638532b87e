//! The change under way, for when the server is killed in the middle of it.
//!
//! A write changes several files: data, copies or parity, and sums. All of it is noted before the first of them is touched,
//! and the note is cleared after the last. Who opens a store makes a noted change again, as a whole: no parity is ever
//! computed from what a write has left half done, and what a lost disk held stays computable.

use std::{io, ops::Range};

use super::{
    files::Supply,
    kept::{Era, Kept, Unfit},
};
use crate::{ServeError, StoreFault, folder::Folder};

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

    /// Whether the change marks disks besides their bytes.
    pub(super) fn has_marks(&self) -> bool {
        self.steps.iter().any(|(step, ..)| matches!(step, Step::Good | Step::Bad))
    }

    /// Whether it can be made on disks of so many bytes each. Where sums are kept, whole blocks of them are written.
    pub(super) fn fits(&self, disks: usize, disk_bytes: u64, block_bytes: u64) -> bool {
        let (mut left, mut put_last) = (self.bytes.len() as u64, None);
        let fit = self.steps.iter().all(|(step, disk, range)| {
            let bytes = range.end.checked_sub(range.start);
            let writes = matches!(step, Step::Put | Step::Copy);
            let is_inside = (*disk as usize) < disks && range.end <= disk_bytes && bytes.is_some();
            let is_whole =
                !writes || (range.start.is_multiple_of(block_bytes) && range.end.is_multiple_of(block_bytes));
            let has_bytes = match step {
                Step::Put => {
                    put_last = bytes;
                    let after = bytes.and_then(|bytes| left.checked_sub(bytes));
                    left = after.unwrap_or(left);
                    after.is_some()
                }
                Step::Copy => put_last.is_some() && put_last == bytes,
                Step::Good | Step::Bad => true,
            };
            is_inside && is_whole && has_bytes
        });
        fit && left == 0
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

/// Bytes of a note's head: a mark, the sum of the rest of the head, that of what follows, member, steps, moves, bytes, number.
const NOTE_HEAD_BYTES: usize = 48;
const STEP_BYTES: usize = 24;
const MOVE_BYTES: usize = 16;
/// The number again, at the end.
const TAIL_BYTES: usize = 8;
const MARK: [u8; 4] = *b"not4";
/// Least bytes of a note: half of a note still has a whole head.
const NOTE_LEAST_BYTES: usize = 2 * NOTE_HEAD_BYTES;
/// Bytes kept allocated for a note: a full file system must not keep a change from being noted.
const ROOM_BYTES: u64 = 1 << 20;
const NAME: &str = "journal";

#[derive(Debug)]
pub(super) struct Journal {
    file: Kept,
    /// A change is noted that was not made as a whole.
    pub(super) is_pending: bool,
    /// Of the last note.
    number: u64,
    buffer: Vec<u8>,
}

impl Journal {
    /// Opens the journal, or makes one where the last server closed the store: then there is nothing in it.
    pub(super) fn open(folder: &Folder, era: &Era, is_closed: bool, supply: &Supply) -> Result<Self, ServeError> {
        let file = match Kept::find(folder, NAME, era, supply)? {
            _ if era.is_new() => Kept::make(folder, NAME, era, ROOM_BYTES, supply)?,
            Ok(file) => file,
            Err(Unfit::Newer) => return Err(super::record::refuse_newer(folder, NAME)),
            Err(_) if is_closed => Kept::make(folder, NAME, era, ROOM_BYTES, supply)?,
            Err(why) => return Err(lost(folder, &why)),
        };
        file.reserve(ROOM_BYTES);
        let mut journal = Self { file, is_pending: false, number: 0, buffer: Vec::new() };
        match journal.noted() {
            Ok(noted) => journal.is_pending = noted.is_some(),
            // What an earlier server wrote of a change that was made.
            Err(Noted::Damaged(_)) if is_closed => {
                let cleared = journal.file.wipe(ROOM_BYTES);
                cleared.map_err(|error| folder.failed(NAME, error))?;
            }
            Err(Noted::Damaged(what)) => return Err(lost(folder, &Unfit::Damaged(what))),
            Err(Noted::Io(error)) => return Err(folder.failed(NAME, error)),
        }
        Ok(journal)
    }

    pub(super) fn file(&self) -> &Kept {
        &self.file
    }

    pub(super) fn raise(&mut self, generation: u64) -> io::Result<()> {
        self.file.raise(generation)
    }

    /// Notes a change before it is made.
    pub(super) fn note(&mut self, member: u32, change: &Change) -> io::Result<()> {
        debug_assert!(!self.is_pending, "a change is made before the next is noted");
        let number = self.number.wrapping_add(1);
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.extend([0; 12]);
        buffer.extend(member.to_le_bytes());
        buffer.extend((change.steps.len() as u64).to_le_bytes());
        buffer.extend((change.moves.len() as u64).to_le_bytes());
        buffer.extend((change.bytes.len() as u64).to_le_bytes());
        buffer.extend(number.to_le_bytes());
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
        buffer.resize(buffer.len().max(NOTE_LEAST_BYTES - TAIL_BYTES), 0);
        let sum = crc32c::crc32c(&buffer[NOTE_HEAD_BYTES..]);
        buffer[8..12].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32c::crc32c(&buffer[8..NOTE_HEAD_BYTES]);
        buffer[..4].copy_from_slice(&MARK);
        buffer[4..8].copy_from_slice(&sum.to_le_bytes());
        buffer.extend(number.to_le_bytes());
        let bytes = buffer.len() as u64;
        // One that fails may be there as a whole, where the rest was so before.
        self.is_pending = true;
        // The file tells by its length when it was cut.
        self.file.grow(bytes.div_ceil(ROOM_BYTES) * ROOM_BYTES)?;
        self.file.write_all_at(&self.buffer, 0)?;
        self.number = number;
        Ok(())
    }

    /// The change has been made.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file.write_all_at(&[0; 8], 0)?;
        self.is_pending = false;
        Ok(())
    }

    /// The change that is noted, and its member. A note that was cut short itself is none: nothing was changed yet. What is
    /// neither whole nor cut short is damaged.
    pub(super) fn noted(&mut self) -> Result<Option<(u32, Change)>, Noted> {
        let mut head = [0; NOTE_HEAD_BYTES];
        self.file.read_exact_at(&mut head, 0)?;
        // What clears a note leaves its number. Half of what clears it is enough.
        self.number = self.number.max(long(&head, 40));
        if head[..4] == [0; 4] {
            return Ok(None);
        }
        if head[..4] != MARK || crc32c::crc32c(&head[8..]) != short(&head, 4) {
            return Err(Noted::Damaged("the head of a note"));
        }
        let (member, steps, moves) = (short(&head, 12), long(&head, 16), long(&head, 24));
        let (bytes, number) = (long(&head, 32), long(&head, 40));
        let listed = u128::from(steps) * STEP_BYTES as u128 + u128::from(moves) * MOVE_BYTES as u128;
        let noted = (NOTE_HEAD_BYTES as u128 + listed + u128::from(bytes)).max((NOTE_LEAST_BYTES - TAIL_BYTES) as u128);
        if noted + TAIL_BYTES as u128 > u128::from(self.file.room_bytes()) {
            return Err(Noted::Damaged("the length of a note"));
        }
        let mut record = vec![0; noted as usize + TAIL_BYTES];
        self.file.read_exact_at(&mut record, 0)?;
        let tail = long(&record, noted as usize);
        let record = &record[..noted as usize];
        if crc32c::crc32c(&record[NOTE_HEAD_BYTES..]) != short(&head, 8) {
            // The end of one before it, or of none, lies where that of this one is to be.
            return if tail == number { Err(Noted::Damaged("a note")) } else { Ok(None) };
        }
        let (listed_steps, rest) = record[NOTE_HEAD_BYTES..].split_at(steps as usize * STEP_BYTES);
        let (listed_moves, rest) = rest.split_at(moves as usize * MOVE_BYTES);
        let steps = listed_steps.chunks_exact(STEP_BYTES).map(|step| {
            let kind = match short(step, 0) {
                0 => Step::Put,
                1 => Step::Good,
                2 => Step::Bad,
                _ => Step::Copy,
            };
            (kind, short(step, 4), long(step, 8)..long(step, 16))
        });
        let moves = listed_moves.chunks_exact(MOVE_BYTES).map(|each| (long(each, 0), long(each, 8)));
        let change = Change { steps: steps.collect(), bytes: rest[..bytes as usize].to_vec(), moves: moves.collect() };
        Ok(Some((member, change)))
    }
}

/// Reason why the noted change is not known.
#[derive(Debug)]
pub(super) enum Noted {
    Damaged(&'static str),
    Io(io::Error),
}

impl From<io::Error> for Noted {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Noted> for StoreFault {
    fn from(noted: Noted) -> Self {
        Self::Io(match noted {
            Noted::Damaged(what) => io::Error::other(format!("the journal is damaged: {what}")),
            Noted::Io(error) => error,
        })
    }
}

/// Refuses a store without its journal: a write of a killed server may be half made, and parity would give wrong bytes.
fn lost(folder: &Folder, why: &Unfit) -> ServeError {
    folder.refused(
        NAME,
        format!("{why}, and the last server was killed: a write may be half made; put the file back from a copy"),
    )
}

/// A change that is none of a member.
pub(super) fn refuse_change(folder: &Folder) -> ServeError {
    lost(folder, &Unfit::Damaged("what is noted is no change of this array"))
}

fn short(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
