//! Writes that were acknowledged from a cache without a battery, apart from the disks until they are destaged.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::StoreFault;

pub(crate) const BLOCK_BYTES: u64 = 4096;

/// A member and a block of its address space.
pub(crate) type Place = (u32, u64);

/// Acknowledged writes that survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// All writes: the cache has a battery, or writes go through it.
    Battery,
    /// Writes before the last flush, and writes destaged since.
    Volatile,
    /// Destaged writes: flushes are acknowledged and not obeyed.
    Lying,
}

/// Blocks as they will be on disk, the oldest first.
#[derive(Debug, Default)]
pub struct Volatile {
    blocks: BTreeMap<Place, Vec<u8>>,
    order: VecDeque<Place>,
}

impl Volatile {
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES
    }

    pub(crate) fn get(&self, place: Place) -> Option<&[u8]> {
        self.blocks.get(&place).map(|block| &block[..])
    }

    pub(crate) fn put(&mut self, place: Place, block: Vec<u8>) {
        if self.blocks.insert(place, block).is_none() {
            self.order.push_back(place);
        }
    }

    /// Writes the oldest blocks, until no more than so many bytes are held. A block that cannot be written is lost;
    /// the blocks after it are written all the same.
    ///
    /// # Errors
    /// As the last write that failed.
    pub(crate) fn destage(
        &mut self,
        most_bytes: u64,
        mut write: impl FnMut(Place, &[u8]) -> Result<(), StoreFault>,
    ) -> Result<(), StoreFault> {
        let mut written = Ok(());
        while self.bytes() > most_bytes {
            let place = self.order.pop_front().expect("every block is in order");
            let block = self.blocks.remove(&place).expect("what is in order is held");
            written = write(place, &block).and(written);
        }
        written
    }

    /// Forgets a block that nothing is read from any more.
    pub(crate) fn remove(&mut self, place: Place) {
        if self.blocks.remove(&place).is_some() {
            self.order.retain(|other| *other != place);
        }
    }

    /// Forgets all; says how many bytes that were.
    pub(crate) fn drop_all(&mut self) -> u64 {
        let bytes = self.bytes();
        self.blocks.clear();
        self.order.clear();
        bytes
    }
}
