//! I/Os of the users of a served array.

use std::time::Instant;

/// Kind of an I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
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
