//! Blocks that move to other places, and their old places.

use std::ops::Range;

use assay_array_model::Moved;

use super::Member;
use crate::{StoreFault, store::journal::Change};

/// Most bytes that move in one change, unless a block has more.
const MOST_BYTES: u64 = 256 << 10;

/// Parts of a range, each of at most `most_bytes`.
fn split(range: Range<u64>, most_bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(most_bytes as usize).map(move |start| start..end.min(start + most_bytes))
}

impl Member {
    /// Blocks that moved, and their places.
    pub(in crate::store) fn moved(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        self.places.iter().flat_map(|places| places.moved())
    }

    /// Whether anything of volumes lies in a chunk.
    pub(super) fn has_data(&self, set: u32, row: u64, column: usize) -> bool {
        self.places.as_ref().is_none_or(|places| places.has_blocks(self.geometry.chunk(set, row, column as u32)))
    }

    /// Moves that can be made as they are: parts whose places no other block has, each small enough for one change.
    pub(in crate::store) fn movable(&self, moved: Moved) -> Vec<Moved> {
        let Some(places) = &self.places else { return Vec::new() };
        let within = |Moved { at_bytes, place_bytes, .. }: Moved, part: Range<u64>| Moved {
            at_bytes: at_bytes + part.start,
            place_bytes: place_bytes + part.start,
            bytes: part.end - part.start,
        };
        let most_bytes = MOST_BYTES.max(places.block_bytes());
        let (mut left, mut movable) = (moved, Vec::new());
        while let Some(part) = places.free_for(left.place_bytes, left.bytes) {
            let end = part.end;
            movable.extend(split(part, most_bytes).map(|part| within(left, part)));
            left = within(left, end..left.bytes);
        }
        movable
    }

    /// The blocks of a part, one by one.
    pub(in crate::store) fn one_by_one(&self, moved: Moved) -> Vec<Moved> {
        let bytes = self.places.as_ref().map_or(moved.bytes, |places| places.block_bytes());
        let one = |done| Moved { at_bytes: moved.at_bytes + done, place_bytes: moved.place_bytes + done, bytes };
        (0..moved.bytes).step_by(bytes as usize).map(one).collect()
    }

    /// Change of a move of blocks, of which the first bytes are written already; and how many are afterwards. Blocks
    /// lie at their new places once all of their bytes do.
    pub(in crate::store) fn change_of_move(
        &mut self,
        moved: Moved,
        bytes: &[u8],
        written: usize,
    ) -> Result<(Change, usize), StoreFault> {
        let (mut change, count) = self.change_at(moved.place_bytes + written as u64, &bytes[written..])?;
        let (row_bytes, disk_rows) = (self.row_bytes(), self.disk_rows());
        let places = self.places.as_mut().expect("only blocks that have places move");
        let block_bytes = places.block_bytes();
        places.touch((moved.place_bytes + moved.bytes - 1) / row_bytes, disk_rows)?;
        for number in written as u64 / block_bytes..(written + count) as u64 / block_bytes {
            change.moved(moved.at_bytes / block_bytes + number, moved.place_bytes / block_bytes + number);
        }
        Ok((change, written + count))
    }

    /// Parts of the address space, as the geometry spreads it, where blocks left something behind; of a chunk that has many of
    /// them, or of any. None is named twice.
    pub(in crate::store) fn untidy(&mut self, any: bool) -> Option<Vec<Range<u64>>> {
        let chunk_bytes = self.geometry.chunk_bytes();
        let places = self.places.as_mut()?;
        let chunk = places.untidy(any)?;
        let (first, most_bytes) = (chunk * chunk_bytes, MOST_BYTES.max(places.block_bytes()));
        let parts = places.empty_parts(chunk).into_iter().map(|part| first + part.start..first + part.end);
        Some(parts.flat_map(|part| split(part, most_bytes)).collect())
    }

    /// Zeroes where nothing of volumes lies. Zeroes already: nothing.
    pub(in crate::store) fn change_of_rest(&mut self, part: &Range<u64>) -> Result<Option<(Change, u64)>, StoreFault> {
        let mut bytes = vec![0; (part.end - part.start) as usize];
        let (place, within, count) = self.piece(part.start, bytes.len());
        self.read_piece(place, within, &mut bytes[..count])?;
        if bytes[..count].iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        bytes.fill(0);
        self.change_at(part.start, &bytes).map(|(change, count)| Some((change, count as u64)))
    }

    /// Punches holes where zeroes lie on disks, and into the parity of a row in which no block is left.
    pub(in crate::store) fn punch_rest(&self, part: &Range<u64>) {
        let (place, within, count) = self.piece(part.start, (part.end - part.start) as usize);
        self.punch_piece(place, within, count as u64);
        let (set, row) = (place.set, place.row);
        let has_data = (0..self.geometry.columns() as usize).any(|column| self.has_data(set, row, column));
        if self.has_parity && !has_data {
            let (chunk_bytes, cells) = (self.chunk_bytes(), self.cells(set, row));
            let mut parity = vec![0; chunk_bytes as usize];
            for disk in &cells[self.geometry.columns() as usize..] {
                let is_zero = self.sound(*disk, row, 0, &mut parity).is_ok_and(|sound| sound)
                    && parity.iter().all(|byte| *byte == 0);
                if is_zero {
                    self.disks[*disk].punch(row * chunk_bytes, chunk_bytes);
                }
            }
        }
    }
}
