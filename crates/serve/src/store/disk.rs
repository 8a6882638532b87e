//! One modelled disk's bytes: a sparse file, and beside it a sum of each block where the array keeps sums.

use std::{io, ops::Range, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{
    files::{Kept, Supply},
    ranges::Ranges,
};
use crate::ServeError;

/// Bytes under one sum.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// What a slot for a disk holds.
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
}

impl DiskRecord {
    /// Whether the disk holds all that belongs on it.
    pub(crate) fn is_whole(&self) -> bool {
        self.state == DiskState::Present && self.bad.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) record: DiskRecord,
    file: Kept,
    sums: Option<Kept>,
    bytes: u64,
    chunk_bytes: u64,
}

fn open(path: &std::path::Path, bytes: u64, supply: &Supply) -> Result<Kept, ServeError> {
    let file = Kept::open(path, supply)?;
    file.set_len(bytes).map_err(|error| ServeError::at(path, error))?;
    Ok(file)
}

/// The blocks that a range touches.
pub(crate) fn blocks(at_bytes: &Range<u64>) -> Range<u64> {
    at_bytes.start / BLOCK_BYTES..at_bytes.end.div_ceil(BLOCK_BYTES)
}

impl Disk {
    /// A disk of rows of chunks.
    pub(crate) fn open(
        path: PathBuf,
        bytes: u64,
        chunk_bytes: u64,
        with_sums: bool,
        record: DiskRecord,
        supply: &Supply,
    ) -> Result<Self, ServeError> {
        let sums = || open(&path.with_extension("sums"), bytes / BLOCK_BYTES * 4, supply);
        let sums = with_sums.then(sums).transpose()?;
        Ok(Self { record, file: open(&path, bytes, supply)?, sums, bytes, chunk_bytes })
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
        use std::os::fd::AsRawFd;
        // SAFETY: lseek takes no memory, and all other access to the file says where.
        let at = unsafe { libc::lseek(self.file.file().as_raw_fd(), from_bytes as i64, libc::SEEK_DATA) };
        u64::try_from(at).ok()
    }

    /// Bytes that the file takes where it lies.
    pub(crate) fn used_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.file().metadata().map_or(0, |about| about.blocks() * 512)
    }

    /// Gives room back where zeroes lie, as far as the file system does that.
    pub(crate) fn punch(&self, at_bytes: u64, bytes: u64) {
        use std::os::fd::AsRawFd;
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: fallocate takes no memory.
        unsafe { libc::fallocate(self.file.file().as_raw_fd(), mode, at_bytes as i64, bytes as i64) };
    }

    /// All bytes are gone.
    pub(crate) fn wipe(&mut self) -> io::Result<()> {
        for (file, bytes) in [(Some(&self.file), self.bytes), (self.sums.as_ref(), self.bytes / BLOCK_BYTES * 4)] {
            if let Some(file) = file {
                file.set_len(0)?;
                file.set_len(bytes)?;
            }
        }
        Ok(())
    }
}

/// A sum that is never that of a block without one.
fn sum(block: &[u8]) -> [u8; 4] {
    crc32c::crc32c(block).max(1).to_le_bytes()
}
