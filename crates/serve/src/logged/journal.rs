//! The journal: a file to which each change is added. It stands for the memory of a data node, which survives a power
//! cut.
//!
//! A checkpoint holds the state of the store after the changes up to its number. It replaces the checkpoint before it
//! as a whole. When the store is opened, the changes of the journal after the checkpoint are made again. A change
//! counts once all of it is written.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    change::Change,
    wire::{Reading, Writing},
};
use crate::{
    ServeError,
    store::files::{Kept, Supply, replace},
};

/// Bytes in front of each change: its length and its checksum, 4 bytes each, and its number, 8 bytes.
const HEAD_BYTES: usize = 16;
/// A checkpoint is due once the journal is this long, or twice as long as the last checkpoint if that is longer.
const JOURNAL_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct Journal {
    file: Kept,
    checkpoint: PathBuf,
    supply: Supply,
    bytes: u64,
    /// Number of the next change.
    number: u64,
    /// Bytes of a change that was cut short may follow in the file.
    has_rest: bool,
    /// Length of the journal at which a checkpoint is due.
    due_bytes: u64,
    least_bytes: u64,
    buffer: Writing,
}

/// What a journal held when it was opened: the last checkpoint, and the changes after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) state: Option<Vec<u8>>,
    pub(super) changes: Vec<Change>,
}

impl Journal {
    /// Opens what is in a folder.
    pub(super) fn open(folder: &Path, supply: &Supply) -> Result<(Self, Held), ServeError> {
        let (path, checkpoint) = (folder.join("journal"), folder.join("checkpoint"));
        let damaged = |path: &Path| ServeError::refused(format!("{}: is damaged", path.display()));
        let body = match fs::read(&checkpoint) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(ServeError::at(&checkpoint, error)),
        };
        let mut journal = Self {
            file: Kept::open(&path, supply)?,
            checkpoint,
            supply: supply.clone(),
            bytes: 0,
            number: 0,
            has_rest: true,
            due_bytes: JOURNAL_BYTES,
            least_bytes: JOURNAL_BYTES,
            buffer: Writing::default(),
        };
        let mut state = None;
        if let Some(body) = body {
            let mut from = Reading(&body);
            let head = from.word().zip(from.long());
            let (sum, number) = head.ok_or_else(|| damaged(&journal.checkpoint))?;
            if crc32c::crc32c(&body[4..]) != sum {
                return Err(damaged(&journal.checkpoint));
            }
            journal.number = number;
            journal.due_bytes = JOURNAL_BYTES.max(2 * body.len() as u64);
            state = Some(from.0.to_vec());
        }
        let written = fs::read(&path).map_err(|error| ServeError::at(&path, error))?;
        let mut changes = Vec::new();
        let mut from = Reading(&written);
        while let Some((number, payload)) = next(&mut from) {
            // A server that was killed right after a checkpoint leaves changes that the checkpoint holds already.
            if number == journal.number {
                let change = Change::read(&mut Reading(payload));
                changes.push(change.ok_or_else(|| damaged(&path))?);
                journal.number += 1;
            } else if number > journal.number {
                return Err(damaged(&path));
            }
            journal.bytes = (written.len() - from.0.len()) as u64;
        }
        Ok((journal, Held { state, changes }))
    }

    /// Writes a change down. If that fails, the journal is as it was before.
    pub(super) fn note(&mut self, change: &Change) -> io::Result<()> {
        if self.has_rest {
            self.file.set_len(self.bytes)?;
            self.has_rest = false;
        }
        self.buffer.0.clear();
        self.buffer.0.extend([0; HEAD_BYTES]);
        change.write(&mut self.buffer);
        let record = &mut self.buffer.0;
        let payload_bytes = (record.len() - HEAD_BYTES) as u32;
        record[..4].copy_from_slice(&payload_bytes.to_le_bytes());
        record[8..HEAD_BYTES].copy_from_slice(&self.number.to_le_bytes());
        let sum = crc32c::crc32c(&record[8..]);
        record[4..8].copy_from_slice(&sum.to_le_bytes());
        if let Err(error) = self.file.write_all_at(record, self.bytes) {
            self.has_rest = true;
            return Err(error);
        }
        self.bytes += record.len() as u64;
        self.number += 1;
        Ok(())
    }

    pub(super) fn is_checkpoint_due(&self) -> bool {
        self.bytes >= self.due_bytes
    }

    /// Has a checkpoint made as soon as the journal has so many bytes.
    pub(super) fn set_due(&mut self, bytes: u64) {
        (self.least_bytes, self.due_bytes) = (bytes, bytes);
    }

    /// Writes the state of the store as a checkpoint, and empties the journal.
    pub(super) fn checkpoint(&mut self, write: impl FnOnce(&mut Writing)) -> io::Result<()> {
        // If this fails, the next attempt comes when the journal is a quarter longer.
        self.due_bytes = self.bytes + self.bytes / 4;
        let mut body = Writing::default();
        body.word(0);
        body.long(self.number);
        write(&mut body);
        let sum = crc32c::crc32c(&body.0[4..]);
        body.0[..4].copy_from_slice(&sum.to_le_bytes());
        replace(&self.checkpoint, &body.0, &self.supply)?;
        self.file.set_len(0)?;
        (self.bytes, self.has_rest) = (0, false);
        self.due_bytes = self.least_bytes.max(2 * body.0.len() as u64);
        Ok(())
    }

    /// Bytes that journal and checkpoint take.
    pub(super) fn used_bytes(&self) -> u64 {
        self.bytes + fs::metadata(&self.checkpoint).map_or(0, |about| about.len())
    }

    pub(super) fn file(&self) -> &Kept {
        &self.file
    }
}

/// The next change, if all of it is there.
fn next<'a>(from: &mut Reading<'a>) -> Option<(u64, &'a [u8])> {
    let mut ahead = Reading(from.0);
    let (count, sum) = (ahead.word()? as usize, ahead.word()?);
    let summed = ahead.0.get(..8 + count)?;
    if crc32c::crc32c(summed) != sum {
        return None;
    }
    let number = ahead.long()?;
    from.0 = &ahead.0[count..];
    Some((number, &summed[8..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("assay-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn change(name: &str) -> Change {
        Change::Snapshot { name: name.to_owned() }
    }

    #[test]
    fn what_was_cut_short_anywhere_is_no_change_and_those_before_it_are() {
        let folder = folder("cut");
        let supply = Supply::default();
        let (mut journal, _) = Journal::open(&folder, &supply).unwrap();
        journal.note(&change("one")).unwrap();
        let first_bytes = journal.bytes;
        journal.note(&change("another")).unwrap();
        let whole = fs::read(folder.join("journal")).unwrap();
        for cut in 0..whole.len() {
            fs::write(folder.join("journal"), &whole[..cut]).unwrap();
            let (mut journal, Held { changes, .. }) = Journal::open(&folder, &supply).unwrap();
            let left = if (cut as u64) < first_bytes { 0 } else { 1 };
            assert_eq!(changes, [change("one")][..left], "{cut} bytes");
            // What follows is found, and nothing of what was cut short.
            journal.note(&change("later")).unwrap();
            let (_, Held { changes, .. }) = Journal::open(&folder, &supply).unwrap();
            assert_eq!(changes.last(), Some(&change("later")), "{cut} bytes");
            assert_eq!(changes.len(), left + 1);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn changes_before_a_checkpoint_are_not_done_again_where_the_journal_could_not_be_emptied() {
        let folder = folder("checkpoint");
        let supply = Supply::default();
        let (mut journal, _) = Journal::open(&folder, &supply).unwrap();
        journal.note(&change("one")).unwrap();
        // The checkpoint is written and put in its place; emptying the journal fails.
        supply.end_after(2, true);
        assert!(journal.checkpoint(|body| body.word(7)).is_err());
        journal.note(&change("two")).unwrap();
        let (_, held) = Journal::open(&folder, &supply).unwrap();
        assert_eq!(held, Held { state: Some(7_u32.to_le_bytes().to_vec()), changes: vec![change("two")] });
        fs::remove_dir_all(folder).unwrap();
    }

    /// Half a note can be a whole one, where the other half lay there before.
    #[test]
    fn a_note_that_failed_is_no_change_whatever_lay_in_its_place() {
        let folder = folder("rest");
        let supply = Supply::default();
        let (mut journal, _) = Journal::open(&folder, &supply).unwrap();
        journal.note(&change("one")).unwrap();
        let first_bytes = journal.bytes as usize;
        journal.note(&change("another")).unwrap();
        let mut torn = fs::read(folder.join("journal")).unwrap();
        torn[first_bytes] ^= 1;
        for changes in 0..2 {
            fs::write(folder.join("journal"), &torn).unwrap();
            let (mut journal, Held { changes: found, .. }) = Journal::open(&folder, &supply).unwrap();
            assert_eq!(found, [change("one")]);
            // The rest cannot be taken away; or the note cannot be written.
            supply.end_after(changes, true);
            assert!(journal.note(&change("another")).is_err());
            let (_, Held { changes: found, .. }) = Journal::open(&folder, &supply).unwrap();
            assert_eq!(found, [change("one")], "{changes} changes");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
