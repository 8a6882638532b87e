//! How far the rebuild of each disk has come.
//!
//! A number that is not right, for whatever reason, counts as none: the rebuild begins again, and loses nothing by it.

use std::io;

use super::{
    files::Supply,
    kept::{Era, Kept, Unfit},
    record::MEMBERS_MOST,
};
use crate::{ServeError, folder::Folder};

const NAME: &str = "progress";
/// Rows in 8 bytes, and a sum of them, the disk and the rebuild.
const ENTRY_BYTES: u64 = 16;

#[derive(Debug)]
pub(super) struct Progress {
    file: Kept,
    /// Most disks of a member.
    disks: u64,
}

impl Progress {
    /// Opens the progress of `members` members and of all that join, with at most `disks` disks each.
    pub(super) fn open(
        folder: &Folder,
        members: usize,
        disks: usize,
        era: &Era,
        supply: &Supply,
    ) -> Result<Self, ServeError> {
        let bytes = (members as u64 + u64::from(MEMBERS_MOST)) * disks as u64 * ENTRY_BYTES;
        let file = match Kept::find_of(folder, NAME, era, bytes, supply)? {
            Ok(file) => file,
            Err(Unfit::Newer) => return Err(super::record::refuse_newer(folder, NAME)),
            Err(_) => Kept::make(folder, NAME, era, bytes, supply)?,
        };
        Ok(Self { file, disks: disks as u64 })
    }

    pub(super) fn raise(&mut self, generation: u64) -> io::Result<()> {
        self.file.raise(generation)
    }

    /// Rows that a rebuild of a disk has written.
    pub(super) fn rows(&self, member: u32, disk: u32, rebuild: u64) -> u64 {
        let mut found = [0; ENTRY_BYTES as usize];
        if self.file.read_exact_at(&mut found, self.place(member, disk)).is_err() {
            return 0;
        }
        let rows = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
        if found == entry(member, disk, rebuild, rows) { rows } else { 0 }
    }

    fn place(&self, member: u32, disk: u32) -> u64 {
        (u64::from(member) * self.disks + u64::from(disk)) * ENTRY_BYTES
    }

    pub(super) fn note(&self, member: u32, disk: u32, rebuild: u64, rows: u64) -> io::Result<()> {
        self.file.write_all_at(&entry(member, disk, rebuild, rows), self.place(member, disk))
    }
}

fn entry(member: u32, disk: u32, rebuild: u64, rows: u64) -> [u8; ENTRY_BYTES as usize] {
    let mut entry = [0; ENTRY_BYTES as usize];
    entry[..8].copy_from_slice(&rows.to_le_bytes());
    let of = [u64::from(member) << 32 | u64::from(disk), rebuild, rows];
    let sum = of.iter().fold(0, |sum, number| crc32c::crc32c_append(sum, &number.to_le_bytes()));
    entry[8..12].copy_from_slice(&sum.to_le_bytes());
    entry
}
