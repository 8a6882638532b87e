//! A snapshot: old contents of blocks, kept when they are first written after it.
//!
//! Its file is a log of grains, an entry each: member, blocks that were lost, and grain as numbers of 4, 4 and 8 bytes, the sum of
//! the bytes, that of all before it, the bytes, and the number of the entry from one on. The file is longer than its entries, so
//! that it tells when it was cut.

use std::{collections::BTreeMap, io};

use serde::Serialize;

use super::{
    files::Supply,
    kept::{Era, Kept, Unfit},
};
use crate::{ServeError, folder::Folder};

pub(super) const GRAIN_BYTES: u64 = 64 << 10;
pub(super) const BLOCK_BYTES: u64 = 4 << 10;
const KEY_BYTES: usize = 24;
const TAIL_BYTES: u64 = 8;
const ENTRY_BYTES: u64 = KEY_BYTES as u64 + GRAIN_BYTES + TAIL_BYTES;
/// Entries for which the file gets room at once.
const ENTRIES_AHEAD: u64 = 16;

/// A snapshot and the size of the contents it keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotReading {
    pub name: String,
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) name: String,
    file: Kept,
    /// Where the bytes of each grain of a member lie in the file.
    kept: BTreeMap<(u32, u64), u64>,
}

impl Snapshot {
    /// Makes the file of a snapshot that keeps nothing yet.
    pub(super) fn make(folder: &Folder, name: &str, era: &Era, supply: &Supply) -> Result<Self, ServeError> {
        let file = Kept::make(folder, &file_name(name), era, 0, supply)?;
        Ok(Self { name: name.to_owned(), file, kept: BTreeMap::new() })
    }

    /// Opens the file of a snapshot, or says why it cannot be used.
    pub(super) fn open(
        folder: &Folder,
        name: &str,
        era: &Era,
        supply: &Supply,
    ) -> Result<Result<Self, Unfit>, ServeError> {
        let file_name = file_name(name);
        let file = match Kept::find(folder, &file_name, era, supply)? {
            Ok(file) => file,
            Err(Unfit::Newer) => return Err(super::record::refuse_newer(folder, &file_name)),
            Err(why) => return Ok(Err(why)),
        };
        let entries = entries(&file).map_err(|error| folder.failed(&file_name, error))?;
        Ok(entries.ok_or(Unfit::Damaged("an entry")).map(|kept| Self { name: name.to_owned(), file, kept }))
    }

    pub(super) fn raise(&mut self, generation: u64) -> io::Result<()> {
        self.file.raise(generation)
    }

    pub(super) fn has(&self, member: u32, grain: u64) -> bool {
        self.kept.contains_key(&(member, grain))
    }

    /// Keeps the bytes of a grain. Bits say which blocks of it were lost: there is nothing to go back to.
    pub(super) fn keep(&mut self, member: u32, grain: u64, bytes: &[u8], lost: u16) -> io::Result<()> {
        let number = self.kept.len() as u64;
        if (number + 1) * ENTRY_BYTES > self.file.room_bytes() {
            self.file.grow((number + ENTRIES_AHEAD) * ENTRY_BYTES)?;
        }
        let mut entry = Vec::with_capacity(ENTRY_BYTES as usize);
        entry.extend(key(member, lost.into(), grain, crc32c::crc32c(bytes)));
        entry.extend(bytes);
        entry.extend((number + 1).to_le_bytes());
        self.file.write_all_at(&entry, number * ENTRY_BYTES)?;
        self.kept.insert((member, grain), number * ENTRY_BYTES);
        Ok(())
    }

    /// Whether all that it keeps is as it was written.
    pub(super) fn check(&self) -> io::Result<()> {
        self.grains().try_for_each(|(member, grain)| self.read(member, grain).map(drop))
    }

    pub(super) fn grains(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.kept.keys().copied()
    }

    /// The bytes of a grain, and which blocks of it were lost.
    pub(super) fn read(&self, member: u32, grain: u64) -> io::Result<(Vec<u8>, u16)> {
        let (mut bytes, mut found) = (vec![0; GRAIN_BYTES as usize], [0; KEY_BYTES]);
        let at_bytes = self.kept[&(member, grain)];
        self.file.read_exact_at(&mut found, at_bytes)?;
        self.file.read_exact_at(&mut bytes, at_bytes + KEY_BYTES as u64)?;
        let lost = u32::from_le_bytes(found[4..8].try_into().expect("four bytes"));
        if found != key(member, lost, grain, crc32c::crc32c(&bytes)) {
            return Err(io::Error::other(format!("snapshot {}: what it keeps is damaged", self.name)));
        }
        Ok((bytes, lost as u16))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.kept.len() as u64 * GRAIN_BYTES
    }

    pub(super) fn forget(&mut self) -> io::Result<()> {
        self.kept.clear();
        self.file.cut_to(0, 0)
    }
}

/// Head of an entry.
fn key(member: u32, lost: u32, grain: u64, sum: u32) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..4].copy_from_slice(&member.to_le_bytes());
    key[4..8].copy_from_slice(&lost.to_le_bytes());
    key[8..16].copy_from_slice(&grain.to_le_bytes());
    key[16..20].copy_from_slice(&sum.to_le_bytes());
    let sum = crc32c::crc32c(&key[..20]);
    key[20..].copy_from_slice(&sum.to_le_bytes());
    key
}

/// Where each grain lies, or nothing where the log is damaged: its last entry may be cut short, with zeroes after it.
fn entries(file: &Kept) -> io::Result<Option<BTreeMap<(u32, u64), u64>>> {
    let mut kept = BTreeMap::new();
    let mut has_ended = false;
    for number in 0..file.room_bytes() / ENTRY_BYTES {
        let (mut found, mut tail) = ([0; KEY_BYTES], [0; TAIL_BYTES as usize]);
        file.read_exact_at(&mut found, number * ENTRY_BYTES)?;
        file.read_exact_at(&mut tail, (number + 1) * ENTRY_BYTES - TAIL_BYTES)?;
        let word = |at: usize| u32::from_le_bytes(found[at..at + 4].try_into().expect("four bytes"));
        let grain = u64::from_le_bytes(found[8..16].try_into().expect("eight bytes"));
        let is_whole = found == key(word(0), word(4), grain, word(16)) && tail == (number + 1).to_le_bytes();
        if is_whole && !has_ended {
            if kept.insert((word(0), grain), number * ENTRY_BYTES).is_some() {
                return Ok(None);
            }
        } else if tail == [0; TAIL_BYTES as usize] && (found == [0; KEY_BYTES] || !has_ended) {
            has_ended = true;
        } else {
            return Ok(None);
        }
    }
    Ok(Some(kept))
}

pub(super) fn file_name(snapshot: &str) -> String {
    format!("snapshot-{snapshot}.log")
}
