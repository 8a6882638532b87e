//! Where the blocks of a member lie whose writes go anywhere.
//!
//! Each block has a place of its own until it moves. The file is of numbers of 8 bytes. The first one says in how many rows blocks
//! may have lain. One for each block follows: its place plus one, or 0 if it did not move. The upper two bytes of a number are a
//! sum of it and its place in the file.

use std::{collections::HashMap, ops::Range};

use super::{
    files::Supply,
    kept::{Era, Kept, Unfit},
};
use crate::{ServeError, folder::Folder};

const NUMBER_BYTES: u64 = 8;
/// Below the sum.
const VALUE_MOST: u64 = (1 << 48) - 1;
/// Numbers that are read from the file at once.
const READ_NUMBERS: u64 = 1 << 16;
/// Rows are noted ahead, so that this is rare.
const ROWS_AHEAD: u64 = 64;

/// A number as it lies in the file, with its sum.
fn summed(number: u64, value: u64) -> u64 {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &value.to_le_bytes());
    value | u64::from((sum >> 16) as u16 ^ sum as u16) << 48
}

#[derive(Debug)]
pub(super) struct Places {
    file: Kept,
    block_bytes: u64,
    /// Blocks of volumes.
    blocks: u64,
    /// Places of a chunk.
    chunk_places: u64,
    /// Place of each moved block; `block_at` is its inverse.
    place_of: HashMap<u64, u64>,
    block_at: HashMap<u64, u64>,
    /// By chunk, how many places hold what a block left behind, at most.
    left_behind: HashMap<u64, u64>,
    /// Chunks where that is half of them.
    untidy: Vec<u64>,
    /// Rows in which blocks may have lain. Later rows were never written.
    rows: u64,
}

/// Sources of the places of blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    pub(super) block_bytes: u64,
    pub(super) volumes_bytes: u64,
    pub(super) chunk_bytes: u64,
    /// Places that there are.
    pub(super) places: u64,
    /// Rows that blocks take at first, and rows that there are.
    pub(super) first_rows: u64,
    pub(super) rows_most: u64,
}

impl Places {
    /// Opens the file, or makes that of a new store. A change that is noted and not made yet says itself where its blocks lie:
    /// their numbers may be cut short.
    pub(super) fn open(
        folder: &Folder,
        name: &str,
        spread: Spread,
        noted: &HashMap<u64, u64>,
        era: &Era,
        supply: &Supply,
    ) -> Result<Self, ServeError> {
        let blocks = spread.volumes_bytes.div_ceil(spread.block_bytes);
        let file_bytes = (blocks + 1) * NUMBER_BYTES;
        let file = if era.is_new() {
            Kept::make(folder, name, era, file_bytes, supply)?
        } else {
            let damaged = |why: Unfit| match why {
                Unfit::Newer => super::record::refuse_newer(folder, name),
                why => folder.refused(name, format!("says where blocks lie, and {why}; put it back from a copy")),
            };
            Kept::find_of(folder, name, era, file_bytes, supply)?.map_err(damaged)?
        };
        let mut places = Self {
            file,
            block_bytes: spread.block_bytes,
            blocks,
            chunk_places: spread.chunk_bytes / spread.block_bytes,
            place_of: HashMap::new(),
            block_at: HashMap::new(),
            left_behind: HashMap::new(),
            untidy: Vec::new(),
            rows: spread.first_rows,
        };
        places.read(folder, name, spread, noted)?;
        Ok(places)
    }

    fn read(
        &mut self,
        folder: &Folder,
        name: &str,
        spread: Spread,
        noted: &HashMap<u64, u64>,
    ) -> Result<(), ServeError> {
        let mut bytes = vec![0; (READ_NUMBERS * NUMBER_BYTES) as usize];
        for first in (0..=self.blocks).step_by(READ_NUMBERS as usize) {
            let count = READ_NUMBERS.min(self.blocks + 1 - first);
            let piece = &mut bytes[..(count * NUMBER_BYTES) as usize];
            let read = self.file.read_exact_at(piece, first * NUMBER_BYTES);
            read.map_err(|error| folder.failed(name, error))?;
            for (number, bytes) in (first..).zip(piece.chunks_exact(NUMBER_BYTES as usize)) {
                let kept = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                let whole = Some(kept & VALUE_MOST).filter(|value| kept == 0 || kept == summed(number, *value));
                if number == 0 {
                    // Where the number is not whole, blocks may have lain in any row.
                    self.rows = self.rows.max(whole.unwrap_or(spread.rows_most)).min(spread.rows_most);
                    continue;
                }
                let block = number - 1;
                match whole.or_else(|| noted.get(&block).map(|place| place + 1)) {
                    Some(0) => {}
                    Some(value) if value <= spread.places && self.block_at.insert(value - 1, block).is_none() => {
                        self.place_of.insert(block, value - 1);
                    }
                    _ => {
                        let message = format!("is damaged: where block {block} lies; put the file back from a copy");
                        return Err(folder.refused(name, message));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn raise(&mut self, generation: u64) -> std::io::Result<()> {
        self.file.raise(generation)
    }

    /// Whether there is such a block.
    pub(super) fn has(&self, block: u64) -> bool {
        block < self.blocks
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
    pub(super) fn set(&mut self, block: u64, place: u64) -> std::io::Result<()> {
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
        self.file.write_all_at(&summed(block + 1, place + 1).to_le_bytes(), (block + 1) * NUMBER_BYTES)
    }

    /// Blocks may lie in a row from now on.
    pub(super) fn touch(&mut self, row: u64, rows_most: u64) -> std::io::Result<()> {
        if row >= self.rows {
            let rows = (row + ROWS_AHEAD).min(rows_most);
            self.file.write_all_at(&summed(0, rows).to_le_bytes(), 0)?;
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
