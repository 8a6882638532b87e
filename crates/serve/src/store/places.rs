//! Where the blocks of a member lie whose writes go anywhere.
//!
//! Each block has a place of its own until it moves. The file is of numbers of 8 bytes. The first one says in how many rows blocks
//! may have lain. One for each block follows: its place plus one, or 0 if it did not move.

use std::{collections::HashMap, io, ops::Range, path::Path};

use super::files::{Kept, Supply};
use crate::ServeError;

const NUMBER_BYTES: u64 = 8;
/// Numbers that are read from the file at once.
const READ_NUMBERS: u64 = 1 << 16;
/// Rows are noted ahead, so that this is rare.
const ROWS_AHEAD: u64 = 64;

#[derive(Debug)]
pub(super) struct Places {
    file: Kept,
    block_bytes: u64,
    /// Blocks of volumes.
    blocks: u64,
    /// Places of a chunk.
    chunk_places: u64,
    /// Of blocks that moved, and the other way round.
    place_of: HashMap<u64, u64>,
    block_at: HashMap<u64, u64>,
    /// By chunk, how many places hold what a block left behind, at most.
    left_behind: HashMap<u64, u64>,
    /// Chunks where that is half of them.
    untidy: Vec<u64>,
    /// Rows in which blocks may have lain. Those after them were never written.
    rows: u64,
}

impl Places {
    /// Opens or makes the file. At first blocks take `first_rows`.
    pub(super) fn open(
        path: &Path,
        block_bytes: u64,
        volumes_bytes: u64,
        chunk_bytes: u64,
        first_rows: u64,
        supply: &Supply,
    ) -> Result<Self, ServeError> {
        let file = Kept::open(path, supply)?;
        let mut places = Self {
            file,
            block_bytes,
            blocks: volumes_bytes.div_ceil(block_bytes),
            chunk_places: chunk_bytes / block_bytes,
            place_of: HashMap::new(),
            block_at: HashMap::new(),
            left_behind: HashMap::new(),
            untidy: Vec::new(),
            rows: first_rows,
        };
        places.read().map_err(|error| ServeError::at(path, error))?;
        Ok(places)
    }

    fn read(&mut self) -> io::Result<()> {
        self.file.set_len((self.blocks + 1) * NUMBER_BYTES)?;
        let mut bytes = vec![0; (READ_NUMBERS * NUMBER_BYTES) as usize];
        for first in (0..=self.blocks).step_by(READ_NUMBERS as usize) {
            let count = READ_NUMBERS.min(self.blocks + 1 - first);
            let piece = &mut bytes[..(count * NUMBER_BYTES) as usize];
            self.file.read_exact_at(piece, first * NUMBER_BYTES)?;
            for (number, bytes) in (first..).zip(piece.chunks_exact(NUMBER_BYTES as usize)) {
                let value = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                match number {
                    0 => self.rows = self.rows.max(value),
                    _ if value > 0 => {
                        self.place_of.insert(number - 1, value - 1);
                        self.block_at.insert(value - 1, number - 1);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    pub(super) fn volumes_bytes(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Blocks that moved, and their places.
    pub(super) fn moved(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        self.place_of.iter().map(|(block, place)| (*block, *place))
    }

    fn place(&self, block: u64) -> u64 {
        self.place_of.get(&block).copied().unwrap_or(block)
    }

    /// The block that lies at a place.
    fn block(&self, place: u64) -> Option<u64> {
        let first = place < self.blocks && !self.place_of.contains_key(&place);
        self.block_at.get(&place).copied().or_else(|| first.then_some(place))
    }

    /// Where a byte lies, and how many of so many lie together from there on.
    pub(super) fn piece(&self, at_bytes: u64, most: usize) -> (u64, usize) {
        let (block, within) = (at_bytes / self.block_bytes, at_bytes % self.block_bytes);
        let place = self.place(block);
        let mut count = 1;
        while count * self.block_bytes < within + most as u64 && self.place(block + count) == place + count {
            count += 1;
        }
        (place * self.block_bytes + within, most.min((count * self.block_bytes - within) as usize))
    }

    /// The first part of blocks that can move to places that follow each other: no other block lies there.
    pub(super) fn free_for(&self, place_bytes: u64, bytes: u64) -> Option<Range<u64>> {
        let first = place_bytes / self.block_bytes;
        let is_free = |number: &u64| self.block(first + number).is_none();
        let from = (0..bytes / self.block_bytes).find(is_free)?;
        let to = (from..bytes / self.block_bytes).find(|number| !is_free(number)).unwrap_or(bytes / self.block_bytes);
        Some(from * self.block_bytes..to * self.block_bytes)
    }

    /// A block lies at another place from now on; a second time this changes nothing.
    pub(super) fn set(&mut self, block: u64, place: u64) -> io::Result<()> {
        let before = self.place(block);
        if before != place {
            self.block_at.remove(&before);
            self.place_of.insert(block, place);
            self.block_at.insert(place, block);
            let chunk = before / self.chunk_places;
            let left_behind = self.left_behind.entry(chunk).or_default();
            *left_behind += 1;
            if *left_behind == self.chunk_places / 2 {
                self.untidy.push(chunk);
            }
        }
        self.file.write_all_at(&(place + 1).to_le_bytes(), (block + 1) * NUMBER_BYTES)
    }

    /// Blocks may lie in a row from now on.
    pub(super) fn touch(&mut self, row: u64, rows_most: u64) -> io::Result<()> {
        if row >= self.rows {
            let rows = (row + ROWS_AHEAD).min(rows_most);
            self.file.write_all_at(&rows.to_le_bytes(), 0)?;
            self.rows = rows;
        }
        Ok(())
    }

    /// Whether any block lies in a chunk.
    pub(super) fn has_blocks(&self, chunk: u64) -> bool {
        let first = chunk * self.chunk_places;
        (first..first + self.chunk_places).any(|place| self.block(place).is_some())
    }

    /// A chunk to be tidied: of half of its places, or of any where all are to be tidied. It is not named again.
    pub(super) fn untidy(&mut self, all: bool) -> Option<u64> {
        let any = || self.left_behind.keys().next().copied();
        let chunk = if all { any() } else { self.untidy.pop() }?;
        self.left_behind.remove(&chunk);
        Some(chunk)
    }

    /// Parts of a chunk where no block lies.
    pub(super) fn empty_parts(&self, chunk: u64) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for number in 0..self.chunk_places {
            if self.block(chunk * self.chunk_places + number).is_some() {
                continue;
            }
            let (start, end) = (number * self.block_bytes, (number + 1) * self.block_bytes);
            match parts.last_mut() {
                Some(part) if part.end == start => part.end = end,
                _ => parts.push(start..end),
            }
        }
        parts
    }
}
