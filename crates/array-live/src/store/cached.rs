//! Stores behind a cache that a power cut may empty.

use std::collections::BTreeMap;

use super::volatile::{Durability, Place, Volatile};
use crate::StoreFault;

/// A store of bytes that acknowledges writes from its cache.
pub trait Cached {
    #[doc(hidden)]
    fn cache(&self) -> &Volatile;

    #[doc(hidden)]
    fn cache_mut(&mut self) -> &mut Volatile;

    fn durability(&self) -> Durability;

    /// Writes a block of the cache to disks.
    ///
    /// # Errors
    /// The store has no room, or a file of it fails.
    #[doc(hidden)]
    fn write_out(&mut self, place: Place, block: &[u8]) -> Result<(), StoreFault>;

    /// Attributes of a volume, as those of a file.
    fn attributes(&self, volume: usize) -> &BTreeMap<String, Vec<u8>>;

    /// Makes acknowledged writes durable, unless the array lies.
    ///
    /// # Errors
    /// The store has no room, or a file of it fails.
    fn flush(&mut self) -> Result<(), StoreFault> {
        if self.durability() == Durability::Lying { Ok(()) } else { self.destage_to(0) }
    }

    /// Writes the oldest blocks of the cache to disks, until the cache holds at most `most_bytes`.
    ///
    /// # Errors
    /// The store has no room, or a file of it fails.
    fn destage_to(&mut self, most_bytes: u64) -> Result<(), StoreFault> {
        let mut cache = std::mem::take(self.cache_mut());
        let written = cache.destage(most_bytes, |place, block| self.write_out(place, block));
        *self.cache_mut() = cache;
        written
    }

    fn volatile_bytes(&self) -> u64 {
        self.cache().bytes()
    }

    /// Empties the cache as a power cut does; returns how many acknowledged bytes are lost.
    fn cut(&mut self) -> u64 {
        self.cache_mut().drop_all()
    }
}
