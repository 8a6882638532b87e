//! One member's bytes: rows of chunks on its disks, with the parity that the policy computes.
//!
//! A *cell* is a chunk of a row: the data columns in order, then parity. At all times the blocks that disks hold agree with each
//! other, and the others follow from them or are lost. A write is a [`Change`] of all that it touches.

mod change;
mod moving;
mod rebuilding;

use std::ops::Range;

use assay_array_model::{ArrayError, Code, Geometry, Place, RaidPolicy};

use super::{
    disk::{BLOCK_BYTES, Disk},
    journal::Change,
    places::Places,
    snapshot::GRAIN_BYTES,
};
use crate::StoreFault;

#[derive(Debug)]
pub(super) struct Member {
    geometry: Geometry,
    has_parity: bool,
    pub(super) disks: Vec<Disk>,
    has_sums: bool,
    /// Where blocks lie whose writes go anywhere.
    places: Option<Places>,
    /// Blocks found to differ from their sum, and written again.
    pub(super) healed: u64,
}

impl From<ArrayError> for StoreFault {
    fn from(error: ArrayError) -> Self {
        Self::Io(std::io::Error::other(error.to_string()))
    }
}

impl Member {
    pub(super) fn new(
        geometry: Geometry,
        disks: Vec<Disk>,
        has_sums: bool,
        places: Option<Places>,
    ) -> Result<Self, ArrayError> {
        let has_parity = geometry.policy().parity_disks() > 0;
        if has_parity {
            Code::of(&geometry)?;
        }
        Ok(Self { geometry, has_parity, disks, has_sums, places, healed: 0 })
    }

    /// Whether a change can be made here.
    pub(super) fn takes(&self, change: &Change) -> bool {
        let block_bytes = if self.has_sums { BLOCK_BYTES } else { 1 };
        let places = self.geometry_places();
        let moves =
            |(block, place): &(u64, u64)| self.places.as_ref().is_some_and(|kept| kept.has(*block)) && *place < places;
        change.fits(self.disks.len(), self.disk_rows() * self.chunk_bytes(), block_bytes)
            && change.moves().iter().all(moves)
    }

    /// Whether some of a grain of a snapshot lies here.
    pub(super) fn has_grain(&self, grain: u64) -> bool {
        grain.checked_mul(GRAIN_BYTES).is_some_and(|at_bytes| at_bytes < self.bytes())
    }

    /// Places of blocks that move, in the whole address space.
    fn geometry_places(&self) -> u64 {
        self.places.as_ref().map_or(0, |places| self.disk_rows() * self.row_bytes() / places.block_bytes())
    }

    /// The files of the member are of a generation from now on.
    pub(super) fn raise(&mut self, generation: u64) -> std::io::Result<()> {
        self.disks.iter_mut().try_for_each(|disk| disk.raise(generation))?;
        self.places.as_mut().map_or(Ok(()), |places| places.raise(generation))
    }

    fn disk_rows(&self) -> u64 {
        self.disks[0].rows()
    }

    /// Rows that may hold something.
    pub(super) fn rows(&self) -> u64 {
        self.places.as_ref().map_or_else(|| self.disk_rows(), Places::rows)
    }

    /// Bytes of the member's address space.
    pub(super) fn bytes(&self) -> u64 {
        self.places.as_ref().map_or_else(|| self.disk_rows() * self.row_bytes(), Places::volumes_bytes)
    }

    /// Data of a row of all sets.
    fn row_bytes(&self) -> u64 {
        self.geometry.chunk_bytes() * u64::from(self.geometry.columns()) * u64::from(self.geometry.sets())
    }

    /// Place of the bytes at an address, and how many of the bytes lie together there.
    fn together(&self, at_bytes: u64, most: usize) -> (u64, usize) {
        self.places.as_ref().map_or((at_bytes, most), |places| places.piece(at_bytes, most))
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
            let (place, within, count) = self.first_piece(at_bytes + done, (bytes - done) as usize);
            self.punch_piece(place, within, count as u64);
            done += count as u64;
        }
    }

    fn punch_piece(&self, place: Place, within: u64, bytes: u64) {
        let disks = if self.has_parity { place.disk as usize..place.disk as usize + 1 } else { self.copies(place) };
        for disk in disks.filter(|disk| self.disks[*disk].holds(place.row, &(within..within + bytes))) {
            self.disks[disk].punch(place.row * self.chunk_bytes() + within, bytes);
        }
    }

    /// Reads bytes of the member's address space.
    pub(super) fn read(&mut self, at_bytes: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let mut done = 0;
        while done < bytes.len() {
            let (place, within, count) = self.first_piece(at_bytes + done as u64, bytes.len() - done);
            self.read_piece(place, within, &mut bytes[done..done + count])?;
            done += count;
        }
        Ok(())
    }

    /// The first piece of bytes of the address space, wherever they lie.
    fn first_piece(&self, at_bytes: u64, most: usize) -> (Place, u64, usize) {
        let (at_bytes, together) = self.together(at_bytes, most);
        self.piece(at_bytes, together)
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
        let range = within..within + bytes.len() as u64;
        Ok(disk.holds(row, &range) && disk.read(row * self.chunk_bytes() + within, bytes)?)
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
                if self.disks[other].holds(place.row, &(within..within + bytes.len() as u64)) {
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
            if self.disks[cells[cell]].holds(place.row, &span) {
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
        for cell in &lost {
            let disk = &self.disks[cells[*cell]];
            // Others are wrong as well where the sum of what was there says that it was something else.
            if disk.holds(row, &span) && !disk.fits(row * self.chunk_bytes() + span.start, &all[*cell])? {
                return Err(StoreFault::Lost);
            }
        }
        Ok((all, lost))
    }
}
