use std::any::Any;

use thiserror::Error;

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Read,
    Write,
    /// Makes everything written before durable (fdatasync or fsync, as the volume was opened).
    Flush,
}

/// One I/O. `buffer` is an index into the buffers the queue was made with; `tag` comes back with the completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub op: Op,
    pub volume: u16,
    pub offset_bytes: u64,
    pub length_bytes: u32,
    pub buffer: u32,
    pub tag: u32,
}

/// The end of one I/O: bytes moved, or a negative `errno`, and when it was seen to be over on the queue's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    pub tag: u32,
    pub result: i32,
    pub at_ns: u64,
}

/// A queue that cannot go on.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{operation}: {message}")]
pub struct QueueError {
    pub operation: &'static str,
    pub message: String,
}

/// Everything under I/O load: a real device, a modelled array, a test device.
///
/// Contract: `submit` may hold requests back until the next `wait`; every submitted request completes exactly once;
/// `wait` appends completions and returns when at least `min` were appended, or the clock reached `until_ns`, whichever
/// is first (it may return earlier with fewer); the clock never goes backwards; completions carry times between the
/// submission and the return of `wait`.
pub trait Queue {
    /// Nanoseconds since the start of the session on this queue's clock.
    fn now_ns(&mut self) -> u64;

    /// Accepts requests, no more outstanding at once than the queue was made for. An outstanding request's buffer
    /// belongs to it alone, except that writes may share the last buffer.
    ///
    /// # Errors
    /// The queue is broken; requests that merely fail complete with a negative result instead.
    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError>;

    /// Waits for completions.
    ///
    /// # Errors
    /// The queue is broken.
    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError>;

    /// CPU time this queue's thread has used, where that has a meaning.
    fn cpu_ns(&self) -> Option<u64> {
        None
    }
}

/// A queue with bytes: the caller fills buffers before writes and examines them after reads.
///
/// Memory is cut into frames of equal size, numbered from 0; `Request::buffer` is the first frame of an I/O, which takes as
/// many as its length needs. A volume may be *scattered*: the frames of an I/O then hold its bytes in descending order, so that
/// the memory it goes to or comes from is in as many pieces as it has frames (`readv`, `writev`).
///
/// Contract, beyond that of [`Queue`]: tags are below the depth the queue was made for, and no two outstanding requests
/// share a tag or a frame. Offsets are those of the volume's file or device, whatever part of it the caller uses.
pub trait DataQueue: Queue + Any {
    /// Size of a frame in bytes.
    fn frame_bytes(&self) -> u32;

    /// Bytes of one frame.
    ///
    /// # Panics
    /// There is no such frame, or an outstanding request owns it.
    fn frame(&mut self, frame: u32) -> &mut [u8];

    /// Frame that holds frame-sized piece `piece` of an I/O of `pieces` pieces whose first frame is `first`.
    fn frame_of_piece(&self, volume: u16, first: u32, piece: u32, pieces: u32) -> u32;

    /// Drops the system's cache of a volume, if there is one, so that reads come from the storage.
    fn forget_cached(&mut self, _volume: u16) {}

    /// Gives a volume's file another size; what is cut off is gone, what is new reads as zeros. No I/O to the bytes in
    /// question is outstanding.
    ///
    /// # Errors
    /// A negative `errno`: `-ENOSPC` when there is no room, `-EINVAL` when the volume is not a file.
    fn resize(&mut self, volume: u16, size_bytes: u64) -> Result<(), i32>;
}
