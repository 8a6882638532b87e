//! Moves of blocks, for stores of real bytes: they follow the moves, and bring the map back at the next start.

use super::{Moved, WriteAnywhere};
use crate::ArrayError;

impl WriteAnywhere {
    pub(crate) fn follow(&mut self) {
        self.followed.get_or_insert_default();
    }

    /// Blocks that moved since this was asked last, in the order in which they did.
    pub(crate) fn take_moved(&mut self, moved: &mut Vec<Moved>) {
        if let Some(followed) = &mut self.followed {
            moved.append(followed);
        }
    }

    pub(crate) fn place_of(&self, block: u64) -> u64 {
        self.map.get(block)
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        1 << self.block_shift
    }

    /// Bytes of all places.
    pub(crate) fn places_bytes(&self) -> u64 {
        self.space.places() << self.block_shift
    }

    /// Bytes of the places up to the last row in which something ever lay.
    pub(crate) fn begun_bytes(&self) -> u64 {
        (self.space.begun_rows() * u64::from(self.space.row_blocks())) << self.block_shift
    }

    /// Restores the block map of a fresh array of `used_bytes`: puts each listed block, by its number, at its saved place.
    ///
    /// # Errors
    /// There is no such block, two would lie at one place, or one where there is none.
    pub(crate) fn restore(
        &mut self,
        used_bytes: u64,
        moved: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<(), ArrayError> {
        let blocks = used_bytes.div_ceil(self.block_bytes());
        let mut last_row = None;
        for (block, _) in moved.clone() {
            if block >= blocks {
                return Err(ArrayError::invalid("layout", format!("there is no block {block}")));
            }
            self.space.release(block);
        }
        for (block, place) in moved {
            if !self.space.occupy(place) {
                return Err(ArrayError::invalid("layout", format!("block {block} cannot lie at place {place}")));
            }
            self.map.set(block, place);
            last_row = last_row.max(Some(self.space.row_of(place)));
        }
        if let Some(row) = last_row {
            self.space.begin_after(row);
        }
        Ok(())
    }
}
