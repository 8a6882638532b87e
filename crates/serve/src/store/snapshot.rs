//! A snapshot: what blocks held before they were first written after it.
//!
//! Its file is a log of grains: member, blocks that were lost, and grain as numbers of 4, 4 and 8 bytes, then the bytes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::files::{Kept, Supply};
use crate::ServeError;

pub(super) const GRAIN_BYTES: u64 = 64 << 10;
pub(super) const BLOCK_BYTES: u64 = 4 << 10;
const ENTRY_BYTES: u64 = 16 + GRAIN_BYTES;

/// A snapshot and what it keeps.
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
    pub(super) fn open(path: &Path, name: &str, supply: &Supply) -> Result<Self, ServeError> {
        let failed = |error| ServeError::at(path, error);
        let file = Kept::open(path, supply)?;
        let entries = file.file().metadata().map_err(failed)?.len() / ENTRY_BYTES;
        let mut kept = BTreeMap::new();
        for entry in 0..entries {
            let mut key = [0; 16];
            file.read_exact_at(&mut key, entry * ENTRY_BYTES).map_err(failed)?;
            let number = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight bytes"));
            kept.insert((number(0) as u32, number(8)), entry * ENTRY_BYTES + 16);
        }
        Ok(Self { name: name.to_owned(), file, kept })
    }

    pub(super) fn has(&self, member: u32, grain: u64) -> bool {
        self.kept.contains_key(&(member, grain))
    }

    /// Keeps the bytes of a grain. Bits say which blocks of it were lost: there is nothing to go back to.
    pub(super) fn keep(&mut self, member: u32, grain: u64, bytes: &[u8], lost: u16) -> std::io::Result<()> {
        let at_bytes = self.kept.len() as u64 * ENTRY_BYTES;
        let mut entry = Vec::with_capacity(ENTRY_BYTES as usize);
        entry.extend(member.to_le_bytes());
        entry.extend(u32::from(lost).to_le_bytes());
        entry.extend(grain.to_le_bytes());
        entry.extend(bytes);
        self.file.write_all_at(&entry, at_bytes)?;
        self.kept.insert((member, grain), at_bytes + 16);
        Ok(())
    }

    pub(super) fn grains(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.kept.keys().copied()
    }

    /// The bytes of a grain, and which blocks of it were lost.
    pub(super) fn read(&self, member: u32, grain: u64) -> std::io::Result<(Vec<u8>, u16)> {
        let (mut bytes, mut lost) = (vec![0; GRAIN_BYTES as usize], [0; 4]);
        let at_bytes = self.kept[&(member, grain)];
        self.file.read_exact_at(&mut bytes, at_bytes)?;
        self.file.read_exact_at(&mut lost, at_bytes - 12)?;
        Ok((bytes, u32::from_le_bytes(lost) as u16))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.kept.len() as u64 * GRAIN_BYTES
    }

    pub(super) fn forget(&mut self) -> std::io::Result<()> {
        self.kept.clear();
        self.file.set_len(0)
    }
}

pub(super) fn snapshot_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("snapshot-{name}.log"))
}
