//! What is served: a model and the bytes that it moves, whichever structure both have.

use std::collections::BTreeMap;

use assay_load::Simulated;
use serde_json::{Map, Value};

use crate::{ServeError, SnapshotReading, StoreFault, command::Command};

/// What happened to an array, and how it was from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) what: String,
    pub(crate) state: &'static str,
}

/// An array of one structure. The server gives it time and I/Os, and asks what happened.
pub(crate) trait Array: Send {
    fn model(&mut self) -> &mut dyn Simulated;

    fn next_event_ns(&self) -> Option<u64>;

    /// Reads bytes of a volume, as they were last acknowledged.
    fn read(&mut self, volume: u16, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), StoreFault>;

    /// Writes bytes of a volume; once this returns, the write may be acknowledged.
    fn write(&mut self, volume: u16, offset_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault>;

    fn flush(&mut self) -> Result<(), StoreFault>;

    /// What the model has destaged of a volatile cache is on disks from now on.
    fn destage(&mut self) -> Result<(), StoreFault>;

    /// The power is gone: says how many acknowledged bytes are lost with the cache.
    fn cut(&mut self) -> u64;

    fn volatile_bytes(&self) -> u64;

    /// Bytes that the store takes.
    fn store_bytes(&self) -> u64;

    /// Attributes of a volume, as those of a file.
    fn attributes(&self, volume: usize) -> &BTreeMap<String, Vec<u8>>;

    fn set_attribute(&mut self, volume: usize, name: &str, value: Option<&[u8]>) -> Result<(), ServeError>;

    /// How the array is now, in a word.
    fn state(&self) -> &'static str;

    /// Whether bytes are to be moved that the model has moved already.
    fn is_behind(&self) -> bool;

    /// Moves some of the bytes that the model has moved meanwhile.
    fn go_on(&mut self, now_ns: u64, has_power: bool);

    /// Carries out a command that is for one structure or another.
    fn obey(&mut self, command: &Command, has_power: bool) -> Result<String, ServeError>;

    fn snapshot(&mut self, name: &str) -> Result<(), ServeError>;

    fn revert(&mut self, name: &str) -> Result<(), ServeError>;

    fn snapshots(&self) -> Vec<SnapshotReading>;

    /// What happened and was not told yet.
    fn news(&mut self) -> &mut Vec<News>;

    /// Something happened; how the array is now is told with it.
    fn happens(&mut self, what: impl Into<String>)
    where
        Self: Sized,
    {
        let state = self.state();
        self.news().push(News { what: what.into(), state });
    }

    /// What happened since this was asked last.
    fn take_news(&mut self) -> Vec<News> {
        std::mem::take(self.news())
    }

    /// What was counted so far of its parts.
    fn counted(&self) -> Map<String, Value>;

    /// What its picture says beside that.
    fn standing(&self) -> Map<String, Value>;

    /// Writes down what is to be known at the next start.
    fn close(self: Box<Self>) -> Result<(), ServeError>;
}

/// An object of JSON, as one part of a picture.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("parts of pictures are objects"),
    }
}
