//! An array that is served: a model, and the bytes that it moves.

use assay_load::Simulated;
use serde_json::{Map, Value};

use crate::{Cached, ServeError, SnapshotReading, StoreFault, command::Command};

/// An event of an array, and the array's state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) what: String,
    pub(crate) state: &'static str,
}

/// An array of one structure. The server gives it time and I/Os, and takes its news.
pub(crate) trait Array: Send {
    fn model(&mut self) -> &mut dyn Simulated;

    fn next_event_ns(&self) -> Option<u64>;

    /// Reads bytes of a volume, as they were last acknowledged.
    fn read(&mut self, volume: u16, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), StoreFault>;

    /// Writes bytes of a volume; once this returns, the write may be acknowledged.
    fn write(&mut self, volume: u16, offset_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault>;

    fn store(&self) -> &dyn Cached;

    fn store_mut(&mut self) -> &mut dyn Cached;

    /// Bytes that caches of the model hold, and so must the cache of the store.
    fn held_bytes(&self) -> u64;

    /// Writes to disks the blocks of the store's cache that the model has destaged.
    fn destage(&mut self) -> Result<(), StoreFault> {
        let held_bytes = self.held_bytes();
        self.store_mut().destage_to(held_bytes)
    }

    /// Bytes that the store takes.
    fn store_bytes(&self) -> u64;

    fn set_attribute(&mut self, volume: usize, name: &str, value: Option<&[u8]>) -> Result<(), ServeError>;

    /// The array's present state, in a word.
    fn state(&self) -> &'static str;

    /// Whether the model has moved bytes that the store has not.
    fn is_behind(&self) -> bool;

    /// Moves some of the bytes that the model has moved since the last call.
    fn go_on(&mut self, now_ns: u64, has_power: bool);

    /// Members of the group; 1 where there is none.
    fn members(&self) -> usize {
        1
    }

    /// Size of a volume.
    fn volume_bytes(&self, volume: usize) -> u64;

    /// Gives a volume more bytes than it has; those before stay as they are.
    ///
    /// # Errors
    /// The array's volumes cannot grow, or not so far, or a file of the store fails.
    fn grow(&mut self, _volume: u16, _bytes: u64) -> Result<(), ServeError> {
        Err(ServeError::refused("the volumes of this array keep the size with which they were made"))
    }

    /// Carries out a command that only some structures know.
    fn obey(&mut self, command: &Command, has_power: bool) -> Result<String, ServeError>;

    fn snapshot(&mut self, name: &str) -> Result<(), ServeError>;

    fn revert(&mut self, name: &str) -> Result<(), ServeError>;

    fn snapshots(&self) -> Vec<SnapshotReading>;

    /// Events that no client has been told yet.
    fn news(&mut self) -> &mut Vec<News>;

    /// Notes an event, with the array's state after it.
    fn happens(&mut self, what: impl Into<String>)
    where
        Self: Sized,
    {
        let state = self.state();
        self.news().push(News { what: what.into(), state });
    }

    /// Events since the last call.
    fn take_news(&mut self) -> Vec<News> {
        std::mem::take(self.news())
    }

    /// Counters of the array's parts.
    fn counted(&self) -> Map<String, Value>;

    /// Facts of the array's picture besides the counters.
    fn standing(&self) -> Map<String, Value>;

    /// Writes the state that the next start needs.
    fn close(self: Box<Self>) -> Result<(), ServeError>;
}

/// An object of JSON, as one part of a picture.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("parts of pictures are objects"),
    }
}
