//! How far the rebuild of each disk has come.
//!
//! A number that is not right, for whatever reason, counts as none: the rebuild begins again, and loses nothing by it.

use std::io;

use super::{
    DISKS_MAX,
    files::Supply,
    kept::{Era, Kept, Unfit},
    record::MEMBERS_MOST,
};
use crate::{ServeError, folder::Folder};

const NAME: &str = "progress";
/// Rows in 8 bytes, and a sum of them, the disk and the rebuild.
const ENTRY_BYTES: u64 = 16;

#[derive(Debug)]
pub(super) struct Progress(Kept);

impl Progress {
    pub(super) fn open(folder: &Folder, era: &Era, supply: &Supply) -> Result<Self, ServeError> {
        // The first members and all that join.
        let bytes = (u64::from(MEMBERS_MOST) + DISKS_MAX) * DISKS_MAX * ENTRY_BYTES;
        match Kept::find_of(folder, NAME, era, bytes, supply)? {
            Ok(file) => Ok(Self(file)),
            Err(Unfit::Newer) => Err(super::record::refuse_newer(folder, NAME)),
            Err(_) => Kept::make(folder, NAME, era, bytes, supply).map(Self),
        }
    }

    pub(super) fn raise(&mut self, generation: u64) -> io::Result<()> {
        self.0.raise(generation)
    }

    /// Rows that a rebuild of a disk has written.
    pub(super) fn rows(&self, member: u32, disk: u32, rebuild: u64) -> u64 {
        let mut found = [0; ENTRY_BYTES as usize];
        if self.0.read_exact_at(&mut found, place(member, disk)).is_err() {
            return 0;
        }
        let rows = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
        if found == entry(member, disk, rebuild, rows) { rows } else { 0 }
    }

    pub(super) fn note(&self, member: u32, disk: u32, rebuild: u64, rows: u64) -> io::Result<()> {
        self.0.write_all_at(&entry(member, disk, rebuild, rows), place(member, disk))
    }
}

fn place(member: u32, disk: u32) -> u64 {
    (u64::from(member) * DISKS_MAX + u64::from(disk)) * ENTRY_BYTES
}

fn entry(member: u32, disk: u32, rebuild: u64, rows: u64) -> [u8; ENTRY_BYTES as usize] {
    let mut entry = [0; ENTRY_BYTES as usize];
    entry[..8].copy_from_slice(&rows.to_le_bytes());
    let of = [u64::from(member) << 32 | u64::from(disk), rebuild, rows];
    let sum = of.iter().fold(0, |sum, number| crc32c::crc32c_append(sum, &number.to_le_bytes()));
    entry[8..12].copy_from_slice(&sum.to_le_bytes());
    entry
}
