//! I/Os of the users of a served array.

use std::time::Instant;

/// Changes blocks in their place; gives the place of the byte for which they stay as they are.
pub type Change = Box<dyn FnOnce(&mut [u8]) -> Result<(), u32> + Send>;

/// Kind of an I/O.
pub enum IoKind {
    Read,
    /// Whether it is to be durable before it is acknowledged.
    Write {
        bytes: Vec<u8>,
        durable: bool,
    },
    Flush,
    /// The range is discarded, and reads as zeroes.
    Discard,
    /// Blocks are read, changed and written with nothing in between. The answer has no bytes; if nothing was changed, it
    /// has the place that the change gave, as four bytes with the most significant first.
    Modify(Change),
    /// Answered at once: probes measure how many I/Os go through the array.
    Probe,
}

/// One I/O of a user of a volume.
pub struct Io {
    pub kind: IoKind,
    pub volume: u16,
    pub offset_bytes: u64,
    pub length_bytes: u32,
    /// When it reached the array.
    pub came: Instant,
    pub answer: Box<dyn Answer>,
}

/// Takes the end of an I/O to who waits for it.
pub trait Answer: Send {
    /// The bytes read, none of other I/Os; or what went wrong as a number of the system's.
    fn answer(self: Box<Self>, result: Result<&[u8], i32>);
}

/// A volume as a transport shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub name: String,
    pub bytes: u64,
}
