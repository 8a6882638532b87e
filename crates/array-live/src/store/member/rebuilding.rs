//! A new disk is written row by row, and what cannot be computed is counted.

use std::ops::Range;

use assay_array_model::RaidPolicy;

use super::Member;
use crate::{
    StoreFault,
    store::disk::{BLOCK_BYTES, DiskState, blocks},
};

impl Member {
    /// Writes the next row of a disk that is being rebuilt, computed from the others. Says whether blocks of it are lost.
    pub(in crate::store) fn rebuild_row(&mut self, disk: u32) -> Result<bool, StoreFault> {
        let index = disk as usize;
        let DiskState::Rebuilding { rows: row } = self.disks[index].record.state else { return Ok(false) };
        let whole = 0..self.chunk_bytes();
        let mut has_lost = false;
        match self.belonging(index, row, whole.clone()) {
            Ok(bytes) => self.place(index, row, 0, &bytes)?,
            Err(StoreFault::Lost) if self.geometry.policy() == RaidPolicy::Dp => {
                self.give_up(index, row, whole);
                has_lost = true;
            }
            Err(StoreFault::Lost) => {
                for start in whole.step_by(BLOCK_BYTES as usize) {
                    match self.belonging(index, row, start..start + BLOCK_BYTES) {
                        Ok(bytes) => self.place(index, row, start, &bytes)?,
                        Err(StoreFault::Lost) => {
                            self.give_up(index, row, start..start + BLOCK_BYTES);
                            has_lost = true;
                        }
                        Err(fault) => return Err(fault),
                    }
                }
            }
            Err(fault) => return Err(fault),
        }
        self.disks[index].record.state = DiskState::Rebuilding { rows: row + 1 };
        Ok(has_lost)
    }

    fn give_up(&mut self, disk: usize, row: u64, part: Range<u64>) {
        let first = row * self.chunk_bytes();
        self.disks[disk].record.bad.insert(blocks(&(first + part.start..first + part.end)));
    }

    /// Writes a part of a row. What was never written takes no room on the new disk either.
    fn place(&mut self, disk: usize, row: u64, within: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        let at_bytes = row * self.chunk_bytes() + within;
        let mut held = vec![0; bytes.len()];
        if !self.disks[disk].read(at_bytes, &mut held)? || held != bytes {
            self.put(disk, row, within, bytes)?;
        }
        let blocks = blocks(&(at_bytes..at_bytes + bytes.len() as u64));
        self.disks[disk].record.bad.remove(blocks);
        Ok(())
    }

    /// What belongs into a part of a disk's row, computed from the other disks.
    fn belonging(&self, disk: usize, row: u64, part: Range<u64>) -> Result<Vec<u8>, StoreFault> {
        if self.has_parity {
            let cells = self.cells(disk as u32 / self.geometry.set_disks(), row);
            let cell =
                cells.iter().position(|other| *other == disk).expect("a disk has a cell in every row of its set");
            return self.computed(&cells, row, part, cell).map(|(mut all, _)| all.swap_remove(cell));
        }
        let mut bytes = vec![0; (part.end - part.start) as usize];
        let sound = self.geometry.policy().copies() == 2 && self.sound(disk ^ 1, row, part.start, &mut bytes)?;
        if sound { Ok(bytes) } else { Err(StoreFault::Lost) }
    }

    /// Chunks of data of which something is lost with the disks that are gone now.
    pub(in crate::store) fn lost_chunks(&self) -> u64 {
        if self.disks.iter().all(|disk| disk.record.is_whole()) {
            return 0;
        }
        let columns = self.geometry.columns() as usize;
        let mut lost = 0;
        for row in 0..self.rows() {
            for set in 0..self.geometry.sets() {
                let cells = self.cells(set, row);
                let is_lost =
                    |column: &usize| self.is_lost(&cells, row, cells[*column]) && self.has_data(set, row, *column);
                lost += (0..columns).filter(is_lost).count() as u64;
            }
        }
        lost
    }

    /// Whether something of a chunk is lost.
    fn is_lost(&self, cells: &[usize], row: u64, disk: usize) -> bool {
        if self.disks[disk].holds_row(row) {
            return false;
        }
        let copies = self.geometry.policy().copies() as usize;
        let whole = 0..self.chunk_bytes();
        let lost = |part: &Range<u64>| {
            let gone = |disk: &usize| !self.disks[*disk].holds(row, part);
            if self.has_parity {
                let missing = cells.iter().filter(|disk| gone(disk)).count();
                gone(&disk) && missing > self.geometry.policy().parity_disks() as usize
            } else {
                (disk..disk + copies).all(|copy| gone(&copy))
            }
        };
        // Diagonals go across whole rows; other blocks at one offset are apart from the rest.
        if self.geometry.policy() == RaidPolicy::Dp || !lost(&whole) {
            return lost(&whole);
        }
        whole.step_by(BLOCK_BYTES as usize).any(|start| lost(&(start..start + BLOCK_BYTES)))
    }
}
