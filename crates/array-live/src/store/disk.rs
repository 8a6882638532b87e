//! One modelled disk's bytes: a sparse file, and beside it a sum of each block where the array keeps sums.

use std::{io, ops::Range};

use serde::{Deserialize, Serialize};

use super::{
    files::Supply,
    kept::{Era, Kept, Unfit},
    ranges::Ranges,
};
use crate::{ServeError, folder::Folder};

/// Bytes under one sum.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// State of a slot for a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskState {
    Present,
    /// Pulled out: its bytes are gone.
    Absent,
    /// A new disk, of which so many rows from the first are written.
    Rebuilding {
        rows: u64,
    },
}

/// What of a disk outlives the server, beside its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskRecord {
    pub(crate) state: DiskState,
    /// Blocks that could not be computed again, and were not written since.
    pub(crate) bad: Ranges,
    /// Which rebuild of all rebuilds the disk is in, or was in last.
    #[serde(default)]
    pub(crate) rebuild: u64,
}

impl DiskRecord {
    pub(crate) fn whole() -> Self {
        Self { state: DiskState::Present, bad: Ranges::default(), rebuild: 0 }
    }

    pub(crate) fn absent() -> Self {
        Self { state: DiskState::Absent, ..Self::whole() }
    }

    /// Whether the disk holds all that belongs on it.
    pub(crate) fn is_whole(&self) -> bool {
        self.state == DiskState::Present && self.bad.is_empty()
    }
}

/// How large a disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskSize {
    pub(crate) bytes: u64,
    pub(crate) chunk_bytes: u64,
    pub(crate) has_sums: bool,
}

impl DiskSize {
    fn sums_bytes(&self) -> u64 {
        self.bytes / BLOCK_BYTES * 4
    }
}

/// The file with the sums of a disk, whose other file has this name.
fn sums_name(name: &str) -> String {
    format!("{}.sums", name.strip_suffix(".img").unwrap_or(name))
}

#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) record: DiskRecord,
    file: Kept,
    sums: Option<Kept>,
    bytes: u64,
    chunk_bytes: u64,
}

/// The blocks that a range touches.
pub(crate) fn blocks(at_bytes: &Range<u64>) -> Range<u64> {
    at_bytes.start / BLOCK_BYTES..at_bytes.end.div_ceil(BLOCK_BYTES)
}

impl Disk {
    /// Makes a disk of rows of chunks, which holds zeroes.
    ///
    /// # Errors
    /// A file of it cannot be made.
    pub(crate) fn make(
        folder: &Folder,
        name: &str,
        size: DiskSize,
        era: &Era,
        supply: &Supply,
    ) -> Result<Self, ServeError> {
        let make = |name: &str, bytes| Kept::make(folder, name, era, bytes, supply);
        let sums = size.has_sums.then(|| make(&sums_name(name), size.sums_bytes())).transpose()?;
        let (file, DiskSize { bytes, chunk_bytes, .. }) = (make(name, size.bytes)?, size);
        Ok(Self { record: DiskRecord::whole(), file, sums, bytes, chunk_bytes })
    }

    /// Opens the files of a disk. Where the disk should be there and one of its files cannot be used, the disk is gone, and it is
    /// said why.
    ///
    /// # Errors
    /// What is there is no file of a store, or cannot be opened.
    pub(crate) fn open(
        folder: &Folder,
        name: &str,
        size: DiskSize,
        record: DiskRecord,
        era: &Era,
        supply: &Supply,
    ) -> Result<(Self, Option<(String, Unfit)>), ServeError> {
        let DiskSize { bytes, chunk_bytes, has_sums } = size;
        if record.state != DiskState::Absent {
            let found = Kept::find_with(folder, name, era, bytes, supply)?;
            let sums = || Kept::find_with(folder, &sums_name(name), era, size.sums_bytes(), supply);
            match (found, has_sums.then(sums).transpose()?.transpose()) {
                (Ok(file), Ok(sums)) => return Ok((Self { record, file, sums, bytes, chunk_bytes }, None)),
                (Err(unfit), _) => {
                    return Ok((Self::gone(folder, name, size, era, supply)?, Some((name.to_owned(), unfit))));
                }
                (_, Err(unfit)) => {
                    return Ok((Self::gone(folder, name, size, era, supply)?, Some((sums_name(name), unfit))));
                }
            }
        }
        Ok((Self { record, ..Self::gone(folder, name, size, era, supply)? }, None))
    }

    /// A slot without a disk: its files hold nothing that is used until they are wiped.
    fn gone(folder: &Folder, name: &str, size: DiskSize, era: &Era, supply: &Supply) -> Result<Self, ServeError> {
        let blank = |name: &str, bytes| Kept::blank(folder, name, era, bytes, supply);
        let sums = size.has_sums.then(|| blank(&sums_name(name), size.sums_bytes())).transpose()?;
        let (file, DiskSize { bytes, chunk_bytes, .. }) = (blank(name, size.bytes)?, size);
        Ok(Self { record: DiskRecord::absent(), file, sums, bytes, chunk_bytes })
    }

    /// The files of the disk are of a generation from now on; those of an empty slot are once a disk takes it.
    pub(crate) fn raise(&mut self, generation: u64) -> io::Result<()> {
        let is_there = self.record.state != DiskState::Absent;
        for file in std::iter::once(&mut self.file).chain(&mut self.sums) {
            if is_there {
                file.raise(generation)?;
            } else {
                file.set_generation(generation);
            }
        }
        Ok(())
    }

    /// Makes room for a disk of `bytes`, where there is a disk. It has its size before until [`Self::set_bytes`].
    pub(crate) fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        if self.record.state == DiskState::Absent {
            return Ok(());
        }
        self.file.grow(bytes)?;
        self.sums.as_mut().map_or(Ok(()), |sums| sums.grow(bytes / BLOCK_BYTES * 4))
    }

    /// The disk has `bytes` from now on.
    pub(crate) fn set_bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    pub(crate) fn rows(&self) -> u64 {
        self.bytes / self.chunk_bytes
    }

    /// Whether the disk holds what belongs into a part of a row.
    pub(crate) fn holds(&self, row: u64, within: &Range<u64>) -> bool {
        self.takes(row) && !self.has_bad(row, within)
    }

    /// Whether the disk holds what belongs into a whole row.
    pub(crate) fn holds_row(&self, row: u64) -> bool {
        self.holds(row, &(0..self.chunk_bytes))
    }

    /// Whether blocks of a part of a row are lost although the row could be written.
    pub(crate) fn has_bad(&self, row: u64, within: &Range<u64>) -> bool {
        let first = row * self.chunk_bytes;
        !self.record.bad.is_empty() && self.record.bad.overlaps(&blocks(&(first + within.start..first + within.end)))
    }

    /// Whether the row could be written: a disk is there, and a rebuild has come past it.
    pub(crate) fn takes(&self, row: u64) -> bool {
        match self.record.state {
            DiskState::Present => true,
            DiskState::Absent => false,
            DiskState::Rebuilding { rows } => row < rows,
        }
    }

    /// Reads bytes; says whether they agree with their sums. Where there are sums, reads are of whole blocks.
    pub(crate) fn read(&self, at_bytes: u64, bytes: &mut [u8]) -> io::Result<bool> {
        self.file.read_exact_at(bytes, at_bytes)?;
        self.fits(at_bytes, bytes)
    }

    /// Whether bytes agree with the sums that are kept of a place.
    pub(crate) fn fits(&self, at_bytes: u64, bytes: &[u8]) -> io::Result<bool> {
        let Some(sums) = &self.sums else { return Ok(true) };
        debug_assert!(at_bytes.is_multiple_of(BLOCK_BYTES) && (bytes.len() as u64).is_multiple_of(BLOCK_BYTES));
        let mut kept = vec![0; bytes.len() / BLOCK_BYTES as usize * 4];
        sums.read_exact_at(&mut kept, at_bytes / BLOCK_BYTES * 4)?;
        let blocks = bytes.chunks_exact(BLOCK_BYTES as usize).zip(kept.chunks_exact(4));
        // A block that was never written has no sum.
        Ok(blocks.into_iter().all(|(block, kept)| kept == [0; 4] || kept == sum(block)))
    }

    pub(crate) fn write(&mut self, at_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at_bytes)?;
        if let Some(sums) = &self.sums {
            debug_assert!(at_bytes.is_multiple_of(BLOCK_BYTES) && (bytes.len() as u64).is_multiple_of(BLOCK_BYTES));
            let kept: Vec<u8> = bytes.chunks_exact(BLOCK_BYTES as usize).flat_map(sum).collect();
            sums.write_all_at(&kept, at_bytes / BLOCK_BYTES * 4)?;
        }
        Ok(())
    }

    /// Changes bytes behind the array's back: sums stay as they are.
    pub(crate) fn corrupt(&mut self, at_bytes: u64, count: u64) -> io::Result<()> {
        let end = self.bytes.min(at_bytes.saturating_add(count));
        let mut bytes = vec![0; end.saturating_sub(at_bytes) as usize];
        self.file.read_exact_at(&mut bytes, at_bytes)?;
        bytes.iter_mut().for_each(|byte| *byte ^= 0xa5);
        self.file.write_all_at(&bytes, at_bytes)
    }

    /// Where the first bytes that were ever written lie, at or after a place.
    pub(crate) fn first_data(&self, from_bytes: u64) -> Option<u64> {
        self.file.first_data(from_bytes).filter(|at_bytes| *at_bytes < self.bytes)
    }

    /// Bytes that the file takes where it lies.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.file.used_bytes()
    }

    /// Gives room back where zeroes lie, as far as the file system does that.
    pub(crate) fn punch(&self, at_bytes: u64, bytes: u64) {
        self.file.punch(at_bytes, bytes);
    }

    /// Removes the disk with all its bytes: its files no longer say that they belong to a disk.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        self.file.empty()?;
        self.sums.as_mut().map_or(Ok(()), Kept::empty)
    }

    /// An empty disk takes the slot.
    pub(crate) fn wipe(&mut self) -> io::Result<()> {
        self.file.wipe(self.bytes)?;
        match &mut self.sums {
            Some(sums) => sums.wipe(self.bytes / BLOCK_BYTES * 4),
            None => Ok(()),
        }
    }
}

/// A sum that no block has: it marks a block without a sum.
fn sum(block: &[u8]) -> [u8; 4] {
    crc32c::crc32c(block).max(1).to_le_bytes()
}
