use thiserror::Error;

/// What a request does.
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
