//! Writes that were acknowledged from a cache without a battery, apart from the disks until they are destaged.

use std::collections::{BTreeMap, VecDeque};

pub(super) const BLOCK_BYTES: u64 = 4096;

/// A member and a block of its address space.
pub(super) type Place = (u32, u64);

/// Blocks as they will be on disk, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Volatile {
    blocks: BTreeMap<Place, Vec<u8>>,
    order: VecDeque<Place>,
}

impl Volatile {
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES
    }

    pub(super) fn get(&self, place: Place) -> Option<&[u8]> {
        self.blocks.get(&place).map(|block| &block[..])
    }

    pub(super) fn put(&mut self, place: Place, block: Vec<u8>) {
        if self.blocks.insert(place, block).is_none() {
            self.order.push_back(place);
        }
    }

    pub(super) fn oldest(&self) -> Option<Place> {
        self.order.front().copied()
    }

    pub(super) fn take_oldest(&mut self) {
        if let Some(place) = self.order.pop_front() {
            self.blocks.remove(&place);
        }
    }

    /// Forgets a block that nothing is read from any more.
    pub(super) fn remove(&mut self, place: Place) {
        if self.blocks.remove(&place).is_some() {
            self.order.retain(|other| *other != place);
        }
    }

    /// Forgets all; says how many bytes that were.
    pub(super) fn drop_all(&mut self) -> u64 {
        let bytes = self.bytes();
        self.blocks.clear();
        self.order.clear();
        bytes
    }
}
