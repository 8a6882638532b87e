//! The journal: a file to which each change is added. It stands for the memory of a data node, which survives a power
//! cut.
//!
//! A checkpoint holds the state of the store after the changes up to its number. It replaces the checkpoint before it
//! as a whole. When the store is opened, the changes of the journal after the checkpoint are made again. A change
//! counts once all of it is written. After the last one the file has zeroes: a change that was cut short is followed by nothing
//! else, and what is neither whole nor cut short is damaged.

use std::io;

use super::{
    change::Change,
    wire::{Reading, Writing},
};
use crate::{
    ServeError,
    folder::Folder,
    store::{
        files::{Supply, replace},
        kept::{Era, Kept},
    },
};

/// Bytes in front of each change: its length, the sum of length and number, its number, its own sum.
const HEAD_BYTES: usize = 20;
/// After it.
const TAIL: [u8; 4] = *b"end.";
/// Half of a change that is written has a whole head.
const LEAST_BYTES: usize = 2 * HEAD_BYTES;
/// The file gets room for changes in such steps.
const AHEAD_BYTES: u64 = 1 << 20;
/// A checkpoint is due once the journal is this long, or twice as long as the last checkpoint if that is longer.
const JOURNAL_BYTES: u64 = 64 << 20;
const CHECKPOINT_MOST_BYTES: u64 = 16 << 30;
pub(super) const JOURNAL: &str = "journal";
pub(super) const CHECKPOINT: &str = "checkpoint";
pub(super) const CHECKPOINT_BESIDE: &str = "checkpoint.new";

#[derive(Debug)]
pub(super) struct Journal {
    folder: Folder,
    era: Era,
    file: Kept,
    supply: Supply,
    bytes: u64,
    checkpoint_bytes: u64,
    /// Number of the next change.
    number: u64,
    /// Number of the first change that the file is to have.
    base: u64,
    /// Bytes of a change that was cut short, or changes that a checkpoint holds, may follow in the file.
    has_rest: bool,
    /// Length of the journal at which a checkpoint is due.
    due_bytes: u64,
    least_bytes: u64,
    buffer: Writing,
}

/// Contents of a journal at its opening: the last checkpoint, and the changes after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) state: Option<Vec<u8>>,
    pub(super) changes: Vec<Change>,
}

impl Journal {
    /// Opens the journal and the checkpoint of a folder.
    pub(super) fn open(folder: Folder, era: Era, supply: &Supply) -> Result<(Self, Held), ServeError> {
        let file = if era.is_new() {
            folder.remove(CHECKPOINT)?;
            Kept::make(&folder, JOURNAL, &era, 0, supply)?
        } else {
            Kept::find(&folder, JOURNAL, &era, supply)?.map_err(|why| damaged(&folder, JOURNAL, &why.to_string()))?
        };
        let (number, state, checkpoint_bytes) = read_checkpoint(&folder, &era)?;
        if number < file.base() {
            let why = if state.is_some() { "is an older copy" } else { "is missing" };
            return Err(damaged(&folder, CHECKPOINT, why));
        }
        let mut written = vec![0; file.room_bytes() as usize];
        file.read_exact_at(&mut written, 0).map_err(|error| folder.failed(JOURNAL, error))?;
        let has_rest = file.has_more().map_err(|error| folder.failed(JOURNAL, error))?;
        let noted = read_changes(&folder, &written, file.base(), number)?;
        let journal = Self {
            base: file.base(),
            folder,
            era,
            file,
            supply: supply.clone(),
            bytes: noted.bytes as u64,
            checkpoint_bytes,
            number: noted.number,
            has_rest: has_rest || noted.is_torn,
            due_bytes: JOURNAL_BYTES.max(2 * checkpoint_bytes),
            least_bytes: JOURNAL_BYTES,
            buffer: Writing::default(),
        };
        Ok((journal, Held { state, changes: noted.changes }))
    }

    pub(super) fn raise(&mut self, generation: u64) -> io::Result<()> {
        self.file.raise(generation)
    }

    /// Cuts off bytes after the last whole change.
    fn cut_rest(&mut self) -> io::Result<()> {
        if self.has_rest {
            self.file.cut_to(self.bytes, self.base)?;
            self.has_rest = false;
        }
        Ok(())
    }

    /// Writes a change down. If that fails, the journal is as it was before.
    pub(super) fn note(&mut self, change: &Change) -> io::Result<()> {
        self.cut_rest()?;
        self.buffer.0.clear();
        self.buffer.0.extend([0; HEAD_BYTES]);
        change.write(&mut self.buffer);
        let record = &mut self.buffer.0;
        let payload_bytes = (record.len() - HEAD_BYTES) as u32;
        record.resize(record.len().max(LEAST_BYTES - TAIL.len()), 0);
        record[..4].copy_from_slice(&payload_bytes.to_le_bytes());
        record[8..16].copy_from_slice(&self.number.to_le_bytes());
        let sum = crc32c::crc32c(&record[HEAD_BYTES..]);
        record[16..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        let sum = head_sum(record);
        record[4..8].copy_from_slice(&sum.to_le_bytes());
        record.extend(TAIL);
        let bytes = self.bytes + record.len() as u64;
        if bytes > self.file.room_bytes() {
            self.file.grow(bytes.div_ceil(AHEAD_BYTES) * AHEAD_BYTES)?;
        }
        if let Err(error) = self.file.write_all_at(record, self.bytes) {
            self.has_rest = true;
            return Err(error);
        }
        self.bytes = bytes;
        self.number += 1;
        Ok(())
    }

    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.bytes >= self.due_bytes
    }

    /// Sets the length of the journal at which a checkpoint is made.
    pub(super) fn set_due(&mut self, bytes: u64) {
        (self.least_bytes, self.due_bytes) = (bytes, bytes);
    }

    /// Writes the state of the store as a checkpoint, and empties the journal.
    pub(super) fn checkpoint(&mut self, write: impl FnOnce(&mut Writing)) -> io::Result<()> {
        // If this fails, the next attempt comes when the journal is a quarter longer.
        self.due_bytes = self.bytes + self.bytes / 4;
        let mut body = Writing::default();
        body.word(0);
        body.print(u128::from_le_bytes(self.era.store));
        body.long(self.number);
        write(&mut body);
        let sum = crc32c::crc32c(&body.0[4..]);
        body.0[..4].copy_from_slice(&sum.to_le_bytes());
        let replaced = replace(&self.folder, CHECKPOINT, CHECKPOINT_BESIDE, &body.0, &self.supply);
        replaced.map_err(|error| io::Error::other(error.to_string()))?;
        self.checkpoint_bytes = body.0.len() as u64;
        (self.bytes, self.base, self.has_rest) = (0, self.number, true);
        self.due_bytes = self.least_bytes.max(2 * self.checkpoint_bytes);
        self.cut_rest()
    }

    /// Bytes that journal and checkpoint take.
    pub(super) fn used_bytes(&self) -> u64 {
        self.bytes + self.checkpoint_bytes
    }

    pub(super) fn file(&self) -> &Kept {
        &self.file
    }
}

fn damaged(folder: &Folder, name: &str, why: &str) -> ServeError {
    folder.refused(name, format!("{why}; put it back from a copy"))
}

/// The first change after the checkpoint, the checkpoint's state, and its bytes in the file.
fn read_checkpoint(folder: &Folder, era: &Era) -> Result<(u64, Option<Vec<u8>>, u64), ServeError> {
    let Some(body) = folder.read(CHECKPOINT, CHECKPOINT_MOST_BYTES)? else { return Ok((0, None, 0)) };
    let mut from = Reading(&body);
    let is_whole = from.word() == Some(crc32c::crc32c(body.get(4..).unwrap_or_default()));
    let (store, number) = (from.print(), from.long());
    let (Some(store), Some(number), true) = (store, number, is_whole) else {
        return Err(damaged(folder, CHECKPOINT, "is damaged"));
    };
    if store.to_le_bytes() != era.store {
        return Err(damaged(folder, CHECKPOINT, "is of another store"));
    }
    Ok((number, Some(from.0.to_vec()), body.len() as u64))
}

/// Changes of a journal after its checkpoint.
struct Noted {
    changes: Vec<Change>,
    /// Bytes of whole changes, and the number of the next change.
    bytes: usize,
    number: u64,
    /// A change at the end was written in part.
    is_torn: bool,
}

/// Reads the changes of a journal from its change `base` on, and keeps those from `number` on: a server that was killed right
/// after a checkpoint leaves changes that the checkpoint holds already.
fn read_changes(folder: &Folder, written: &[u8], base: u64, number: u64) -> Result<Noted, ServeError> {
    let mut noted = Noted { changes: Vec::new(), bytes: 0, number, is_torn: false };
    let mut after = base;
    let end = written.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    loop {
        match next(&written[noted.bytes..], end.saturating_sub(noted.bytes)) {
            Next::Change { number, payload, bytes } => {
                if number == noted.number {
                    let change = Change::read(&mut Reading(payload));
                    noted.changes.push(change.ok_or_else(|| damaged(folder, JOURNAL, "is damaged: a change"))?);
                    noted.number += 1;
                } else if number > noted.number {
                    return Err(damaged(folder, JOURNAL, "is damaged: a change is missing"));
                }
                (noted.bytes, after) = (noted.bytes + bytes, number + 1);
            }
            Next::Damaged => return Err(damaged(folder, JOURNAL, "is damaged: a change")),
            Next::None => break,
            Next::Torn => {
                noted.is_torn = true;
                break;
            }
        }
    }
    if after < noted.number {
        return Err(damaged(folder, JOURNAL, "is older than the checkpoint"));
    }
    Ok(noted)
}

/// The next entry of a journal.
enum Next<'a> {
    Change { number: u64, payload: &'a [u8], bytes: usize },
    None,
    Torn,
    Damaged,
}

fn head_sum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..4]), &record[8..HEAD_BYTES])
}

/// The next change of which so many bytes are there before nothing but zeroes follows.
fn next(rest: &[u8], end: usize) -> Next<'_> {
    if end == 0 {
        return Next::None;
    }
    let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
    if end < HEAD_BYTES {
        return Next::Torn;
    }
    if rest.len() < HEAD_BYTES || head_sum(rest) != word(4) {
        return Next::Damaged;
    }
    let count = word(0) as usize;
    let bytes = (HEAD_BYTES + count + TAIL.len()).max(LEAST_BYTES);
    let Some(body) = rest.get(HEAD_BYTES..bytes - TAIL.len()) else { return Next::Damaged };
    if crc32c::crc32c(body) == word(16) {
        let number = u64::from_le_bytes(rest[8..16].try_into().expect("eight bytes"));
        return Next::Change { number, payload: &body[..count], bytes };
    }
    if end < bytes { Next::Torn } else { Next::Damaged }
}

#[cfg(test)]
mod tests;
