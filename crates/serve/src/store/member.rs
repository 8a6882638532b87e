//! One member's bytes: rows of chunks on its disks, with the parity that the policy computes.
//!
//! A *cell* is a chunk of a row: the data columns in order, then parity. At all times the cells that disks hold agree with each
//! other, and the others follow from them or are lost.

use std::ops::Range;

use assay_array::{ArrayError, Code, Geometry, Place, RaidPolicy};

use super::disk::{BLOCK_BYTES, Disk, DiskState};
use crate::StoreFault;

#[derive(Debug)]
pub(super) struct Member {
    geometry: Geometry,
    has_parity: bool,
    pub(super) disks: Vec<Disk>,
    has_sums: bool,
    /// Blocks found to differ from their sum, and written again.
    pub(super) healed: u64,
}

impl From<ArrayError> for StoreFault {
    fn from(error: ArrayError) -> Self {
        Self::Io(std::io::Error::other(error.to_string()))
    }
}

impl Member {
    pub(super) fn new(geometry: Geometry, disks: Vec<Disk>, has_sums: bool) -> Result<Self, ArrayError> {
        let has_parity = geometry.policy().parity_disks() > 0;
        if has_parity {
            Code::of(&geometry)?;
        }
        Ok(Self { geometry, has_parity, disks, has_sums, healed: 0 })
    }

    pub(super) fn chunk_bytes(&self) -> u64 {
        self.geometry.chunk_bytes()
    }

    pub(super) fn has_sums(&self) -> bool {
        self.has_sums
    }

    /// Takes the room away that zeroes of the member's address space take on disks.
    pub(super) fn punch(&mut self, at_bytes: u64, bytes: u64) {
        let mut done = 0;
        while done < bytes {
            let (place, within, count) = self.piece(at_bytes + done, (bytes - done) as usize);
            let disks = if self.has_parity { place.disk as usize..place.disk as usize + 1 } else { self.copies(place) };
            for disk in disks.filter(|disk| self.disks[*disk].holds(place.row)) {
                self.disks[disk].punch(place.row * self.chunk_bytes() + within, count as u64);
            }
            done += count as u64;
        }
    }

    /// Cells that disks have and that are lost.
    pub(super) fn bad(&self) -> usize {
        self.disks.iter().map(|disk| disk.record.bad.len()).sum()
    }

    /// Data of a row of all sets.
    pub(super) fn row_bytes(&self) -> u64 {
        self.geometry.chunk_bytes() * u64::from(self.geometry.columns()) * u64::from(self.geometry.sets())
    }

    /// Reads bytes of the member's address space.
    pub(super) fn read(&mut self, at_bytes: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let mut done = 0;
        while done < bytes.len() {
            let (place, within, count) = self.piece(at_bytes + done as u64, bytes.len() - done);
            self.read_piece(place, within, &mut bytes[done..done + count])?;
            done += count;
        }
        Ok(())
    }

    /// Writes bytes of the member's address space, and the parity that follows from them.
    pub(super) fn write(&mut self, at_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        let mut done = 0;
        while done < bytes.len() {
            let (place, within, count) = self.piece(at_bytes + done as u64, bytes.len() - done);
            let piece = &bytes[done..done + count];
            let whole = self.outward(within..within + count as u64);
            if whole.end - whole.start == count as u64 {
                self.write_piece(place, within, piece)?;
            } else {
                let mut blocks = vec![0; (whole.end - whole.start) as usize];
                self.read_piece(place, whole.start, &mut blocks)?;
                blocks[(within - whole.start) as usize..][..count].copy_from_slice(piece);
                self.write_piece(place, whole.start, &blocks)?;
            }
            done += count;
        }
        Ok(())
    }

    fn piece(&self, at_bytes: u64, most: usize) -> (Place, u64, usize) {
        let within = at_bytes % self.chunk_bytes();
        let count = (self.chunk_bytes() - within).min(most as u64);
        (self.geometry.place(at_bytes / self.chunk_bytes()), within, count as usize)
    }

    /// Whole blocks around a range, where sums are kept.
    fn outward(&self, range: Range<u64>) -> Range<u64> {
        if !self.has_sums {
            return range;
        }
        range.start / BLOCK_BYTES * BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES) * BLOCK_BYTES
    }

    /// Disks of a row's cells.
    fn cells(&self, set: u32, row: u64) -> Vec<usize> {
        let data = (0..self.geometry.columns()).map(|column| self.geometry.data_disk(set, row, column));
        let parity = (0..self.geometry.policy().parity_disks()).map(|which| self.geometry.parity_disk(set, row, which));
        data.chain(parity).map(|disk| disk as usize).collect()
    }

    /// The part of a row that has to be looked at to compute some bytes of it: all of it where diagonals go across.
    fn span(&self, range: Range<u64>) -> Range<u64> {
        if self.geometry.policy() == RaidPolicy::Dp { 0..self.chunk_bytes() } else { range }
    }

    /// The code of parts of rows. All but diagonals are the same at every byte.
    fn code_of(&self, bytes: u64) -> Result<Code, ArrayError> {
        Code::new(self.geometry.policy(), self.geometry.columns(), bytes)
    }

    /// Bytes of a cell if its disk holds them and they agree with their sums.
    fn sound(&self, disk: usize, row: u64, within: u64, bytes: &mut [u8]) -> Result<bool, StoreFault> {
        let disk = &self.disks[disk];
        Ok(disk.holds(row) && disk.read(row * self.chunk_bytes() + within, bytes)?)
    }

    fn put(&mut self, disk: usize, row: u64, within: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        let at_bytes = row * self.chunk_bytes() + within;
        Ok(self.disks[disk].write(at_bytes, bytes)?)
    }

    fn read_piece(&mut self, place: Place, within: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let whole = self.outward(within..within + bytes.len() as u64);
        if whole.end - whole.start > bytes.len() as u64 {
            let mut blocks = vec![0; (whole.end - whole.start) as usize];
            self.read_piece(place, whole.start, &mut blocks)?;
            bytes.copy_from_slice(&blocks[(within - whole.start) as usize..][..bytes.len()]);
            return Ok(());
        }
        if !self.has_parity {
            return self.read_copies(place, within, bytes);
        }
        self.read_cell(place, place.column as usize, within, bytes)
    }

    fn copies(&self, place: Place) -> Range<usize> {
        let first = place.disk as usize;
        first..first + self.geometry.policy().copies() as usize
    }

    fn read_copies(&mut self, place: Place, within: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let copies = self.copies(place);
        for disk in copies.clone() {
            if !self.sound(disk, place.row, within, bytes)? {
                continue;
            }
            for other in copies.start..disk {
                if self.disks[other].holds(place.row) {
                    self.healed += 1;
                    self.put(other, place.row, within, bytes)?;
                }
            }
            return Ok(());
        }
        Err(StoreFault::Lost)
    }

    /// Reads a part of a cell, from its disk or computed from the others.
    fn read_cell(&mut self, place: Place, cell: usize, within: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let cells = self.cells(place.set, place.row);
        if self.sound(cells[cell], place.row, within, bytes)? {
            return Ok(());
        }
        let span = self.span(within..within + bytes.len() as u64);
        let (all, unsound) = self.computed(&cells, place.row, span.clone(), cell)?;
        bytes.copy_from_slice(&all[cell][(within - span.start) as usize..][..bytes.len()]);
        for cell in unsound {
            if self.disks[cells[cell]].holds(place.row) {
                self.healed += 1;
                self.put(cells[cell], place.row, span.start, &all[cell])?;
            }
        }
        Ok(())
    }

    /// A part of all cells of a row, with those computed that are not held or do not agree with their sums; these are named.
    /// One that is given up from the start is not looked at.
    fn computed(
        &self,
        cells: &[usize],
        row: u64,
        span: Range<u64>,
        given_up: usize,
    ) -> Result<(Vec<Vec<u8>>, Vec<usize>), StoreFault> {
        let bytes = span.end - span.start;
        let mut all = vec![vec![0; bytes as usize]; cells.len()];
        let mut lost = vec![given_up];
        for (cell, chunk) in all.iter_mut().enumerate().filter(|(cell, _)| *cell != given_up) {
            if !self.sound(cells[cell], row, span.start, chunk)? {
                lost.push(cell);
            }
        }
        let code = self.code_of(bytes)?;
        if lost.len() > code.parity_chunks() {
            return Err(StoreFault::Lost);
        }
        let numbers: Vec<u32> = lost.iter().map(|cell| *cell as u32).collect();
        code.rebuild(&mut all.iter_mut().map(|chunk| &mut chunk[..]).collect::<Vec<_>>(), &numbers)?;
        Ok((all, lost))
    }

    fn write_piece(&mut self, place: Place, within: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        let is_whole = bytes.len() as u64 == self.chunk_bytes();
        if !self.has_parity {
            return self.write_copies(place, within, bytes, is_whole);
        }
        let cells = self.cells(place.set, place.row);
        let (row, column) = (place.row, place.column as usize);
        let missing = cells.iter().filter(|disk| !self.disks[**disk].holds(row)).count();
        let parity = self.geometry.policy().parity_disks() as usize;
        if missing > parity && !self.disks[cells[column]].holds(row) {
            if is_whole && self.disks[cells[column]].takes(row) {
                return self.write_again(&cells, row, column, bytes);
            }
            return Err(StoreFault::Lost);
        }
        let mut old = vec![0; bytes.len()];
        self.read_cell(place, column, within, &mut old)?;
        let span = self.span(within..within + bytes.len() as u64);
        let span_bytes = span.end - span.start;
        let mut sums = vec![vec![0; span_bytes as usize]; parity];
        let columns = cells.len() - parity;
        for (which, sum) in sums.iter_mut().enumerate() {
            if self.disks[cells[columns + which]].holds(row) {
                self.read_cell(place, columns + which, span.start, sum)?;
            }
        }
        let code = self.code_of(span_bytes)?;
        let mut parts: Vec<&mut [u8]> = sums.iter_mut().map(|sum| &mut sum[..]).collect();
        code.update(&mut parts, place.column, within - span.start, &old, bytes)?;
        for (which, sum) in sums.iter().enumerate() {
            if self.disks[cells[columns + which]].holds(row) {
                self.put(cells[columns + which], row, span.start, sum)?;
            }
        }
        if self.disks[cells[column]].holds(row) {
            self.put(cells[column], row, within, bytes)?;
        }
        Ok(())
    }

    fn write_copies(&mut self, place: Place, within: u64, bytes: &[u8], is_whole: bool) -> Result<(), StoreFault> {
        let mut written = false;
        for disk in self.copies(place) {
            if self.disks[disk].holds(place.row) || (is_whole && self.disks[disk].takes(place.row)) {
                self.put(disk, place.row, within, bytes)?;
                self.disks[disk].record.bad.remove(&place.row);
                written = true;
            }
        }
        if written { Ok(()) } else { Err(StoreFault::Lost) }
    }

    /// Writes a whole chunk in place of a lost one. The row's parity is good again once no other chunk of it is lost.
    fn write_again(&mut self, cells: &[usize], row: u64, column: usize, bytes: &[u8]) -> Result<(), StoreFault> {
        self.put(cells[column], row, 0, bytes)?;
        self.disks[cells[column]].record.bad.remove(&row);
        let columns = self.geometry.columns() as usize;
        let is_complete = cells[..columns].iter().all(|disk| self.disks[*disk].holds(row));
        if is_complete {
            return self.write_parity(cells, row);
        }
        for disk in &cells[columns..] {
            self.disks[*disk].record.bad.insert(row);
        }
        Ok(())
    }

    fn write_parity(&mut self, cells: &[usize], row: u64) -> Result<(), StoreFault> {
        let columns = self.geometry.columns() as usize;
        let mut data = vec![vec![0; self.chunk_bytes() as usize]; columns];
        for (disk, chunk) in cells.iter().zip(&mut data) {
            self.disks[*disk].read(row * self.geometry.chunk_bytes(), chunk)?;
        }
        let mut sums = vec![vec![0; self.chunk_bytes() as usize]; cells.len() - columns];
        let parts: Vec<&[u8]> = data.iter().map(|chunk| &chunk[..]).collect();
        self.code_of(self.chunk_bytes())?
            .encode(&parts, &mut sums.iter_mut().map(|sum| &mut sum[..]).collect::<Vec<_>>())?;
        for (disk, sum) in cells[columns..].iter().zip(&sums) {
            if self.disks[*disk].takes(row) {
                self.put(*disk, row, 0, sum)?;
            }
            self.disks[*disk].record.bad.remove(&row);
        }
        Ok(())
    }

    /// Makes the row that a write was under way in agree with itself again: its parity follows its data.
    pub(super) fn settle(&mut self, chunk: u64) -> Result<(), StoreFault> {
        let place = self.geometry.place(chunk);
        if !self.has_parity {
            let mut bytes = vec![0; self.chunk_bytes() as usize];
            return match self.read_copies(place, 0, &mut bytes) {
                Ok(()) => self.write_copies(place, 0, &bytes, true),
                Err(StoreFault::Lost) => Ok(()),
                Err(fault) => Err(fault),
            };
        }
        let cells = self.cells(place.set, place.row);
        let columns = self.geometry.columns() as usize;
        if cells[..columns].iter().all(|disk| self.disks[*disk].holds(place.row)) {
            return self.write_parity(&cells, place.row);
        }
        Ok(())
    }

    /// Writes the next row of a disk that is being rebuilt, computed from the others, or notes that it is lost.
    pub(super) fn rebuild_row(&mut self, disk: u32) -> Result<(), StoreFault> {
        let index = disk as usize;
        let DiskState::Rebuilding { rows: row } = self.disks[index].record.state else { return Ok(()) };
        let set = disk / self.geometry.set_disks();
        let computed = if self.has_parity {
            let cells = self.cells(set, row);
            let cell =
                cells.iter().position(|other| *other == index).expect("a disk has a cell in every row of its set");
            self.computed(&cells, row, 0..self.chunk_bytes(), cell).map(|(mut all, _)| all.swap_remove(cell))
        } else {
            let mut bytes = vec![0; self.chunk_bytes() as usize];
            let partner = index ^ 1;
            let sound = self.geometry.policy().copies() == 2 && self.sound(partner, row, 0, &mut bytes)?;
            if sound { Ok(bytes) } else { Err(StoreFault::Lost) }
        };
        match computed {
            Ok(bytes) => {
                // What was never written takes no room on the new disk either.
                if bytes.iter().any(|byte| *byte != 0) {
                    self.put(index, row, 0, &bytes)?;
                }
                self.disks[index].record.bad.remove(&row);
            }
            Err(StoreFault::Lost) => {
                self.disks[index].record.bad.insert(row);
            }
            Err(fault) => return Err(fault),
        }
        self.disks[index].record.state = DiskState::Rebuilding { rows: row + 1 };
        Ok(())
    }

    /// Chunks of data that are lost with the disks that are gone now.
    pub(super) fn lost_chunks(&self, rows: u64) -> u64 {
        if self.disks.iter().all(|disk| disk.record.is_whole()) {
            return 0;
        }
        let (parity, columns) = (self.geometry.policy().parity_disks() as usize, self.geometry.columns() as usize);
        let mut lost = 0;
        for row in 0..rows {
            for set in 0..self.geometry.sets() {
                let cells = self.cells(set, row);
                let gone = |disk: &usize| !self.disks[*disk].holds(row);
                if self.has_parity {
                    if cells.iter().filter(|disk| gone(disk)).count() > parity {
                        lost += cells[..columns].iter().filter(|disk| gone(disk)).count() as u64;
                    }
                } else {
                    let copies = self.geometry.policy().copies() as usize;
                    lost +=
                        cells.iter().filter(|disk| (**disk..**disk + copies).all(|copy| gone(&copy))).count() as u64;
                }
            }
        }
        lost
    }
}
