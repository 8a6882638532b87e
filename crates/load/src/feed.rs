//! I/Os of a trace on their way from a reader to the workers that replay them, in bounded memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::LoadError;

/// I/Os that wait for their workers before the reader pauses: 16 MiB.
const WAITING_MAX: usize = 1 << 19;
/// A worker on the wall clock asks for more this long before it runs out.
const AHEAD_NS: u64 = 50_000_000;
/// A worker on the wall clock that ran out looks again after this.
const LOOK_AGAIN_NS: u64 = 200_000;

/// Operation of an I/O of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedOp {
    Read,
    Write,
    /// A write that ends once it is durable.
    DurableWrite,
    Flush,
}

/// An I/O of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedIo {
    /// Its intended start since the replay began; where it follows another I/O, its time after the end of that.
    pub at_ns: u64,
    pub offset_bytes: u64,
    pub length_bytes: u32,
    /// Meaning depends on the [`Pace`](crate::Pace): I/Os outstanding when this one was asked for, or the number of I/Os
    /// from the one that it follows to it, 0 where it follows none.
    pub link: u32,
    pub op: TracedOp,
}

/// Result of a worker's look for more I/Os.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Chunk(Vec<TracedIo>),
    /// None begins before this time.
    Later(u64),
    Over,
}

/// I/Os of one trace for all workers that replay it.
#[derive(Debug, Clone)]
pub struct Feeds(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    end_bytes: Vec<u64>,
    longest_bytes: u32,
}

#[derive(Debug)]
struct State {
    chunks: Vec<VecDeque<Vec<TracedIo>>>,
    waiting: usize,
    /// All I/Os that begin before this are in `chunks`, or were.
    fed_until_ns: u64,
    /// A worker has nothing left.
    hungry: bool,
    closed: bool,
    /// Workers wait for the reader, since their clock stands still meanwhile.
    patient: bool,
}

/// One worker's share of [`Feeds`].
#[derive(Debug, Clone)]
pub struct Feed {
    feeds: Feeds,
    place: usize,
}

impl Feeds {
    /// Feeds of a worker for each end, before which its I/Os lie; none is longer than `longest_bytes`.
    pub fn new(end_bytes: Vec<u64>, longest_bytes: u32) -> Self {
        let state = State {
            chunks: vec![VecDeque::new(); end_bytes.len()],
            waiting: 0,
            fed_until_ns: 0,
            hungry: false,
            closed: false,
            patient: false,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), end_bytes, longest_bytes }))
    }

    /// The feed of each worker.
    pub fn each(&self) -> Vec<Feed> {
        (0..self.state().chunks.len()).map(|place| Feed { feeds: self.clone(), place }).collect()
    }

    /// Adds the next I/Os of each worker in the order of their times, then waits until more are wanted. All I/Os that
    /// come later begin at `fed_until_ns` or after it. Returns whether the workers still want any.
    ///
    /// # Errors
    /// [`LoadError::InvalidValue`] names an I/O outside of its bounds.
    pub fn push(&self, chunks: Vec<Vec<TracedIo>>, fed_until_ns: u64) -> Result<bool, LoadError> {
        if chunks.len() != self.0.end_bytes.len() {
            let message = format!("{} chunks for {} workers", chunks.len(), self.0.end_bytes.len());
            return Err(LoadError::InvalidValue { field: "trace", message });
        }
        for (chunk, end_bytes) in chunks.iter().zip(&self.0.end_bytes) {
            chunk.iter().try_for_each(|io| self.check(io, *end_bytes))?;
        }
        let mut state = self.state();
        for (place, chunk) in chunks.into_iter().enumerate().filter(|(_, chunk)| !chunk.is_empty()) {
            state.waiting += chunk.len();
            state.chunks[place].push_back(chunk);
        }
        state.fed_until_ns = fed_until_ns;
        state.hungry = false;
        self.0.changed.notify_all();
        while state.waiting >= WAITING_MAX && !state.hungry && !state.closed {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(!state.closed)
    }

    fn check(&self, io: &TracedIo, end_bytes: u64) -> Result<(), LoadError> {
        let is_flush = io.op == TracedOp::Flush;
        let fits = io.offset_bytes.checked_add(u64::from(io.length_bytes)).is_some_and(|end| end <= end_bytes);
        if is_flush == (io.length_bytes == 0) && io.length_bytes <= self.0.longest_bytes && fits {
            return Ok(());
        }
        let message = format!("{} bytes at {} are outside of the replay's bounds", io.length_bytes, io.offset_bytes);
        Err(LoadError::InvalidValue { field: "trace", message })
    }

    /// Ends the feeding, by the reader at the trace's end or by the session at its own.
    pub fn close(&self) {
        self.state().closed = true;
        self.0.changed.notify_all();
    }

    /// Lets workers wait for the reader: for those on a virtual clock.
    pub fn be_patient(&self) {
        self.state().patient = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    /// Lets the worker wait for the reader: for one on a virtual clock.
    pub fn be_patient(&self) {
        self.feeds.be_patient();
    }

    /// The next I/Os at `now_ns`. `is_timed` says that I/Os begin at their times and not earlier.
    pub(crate) fn take(&self, now_ns: u64, is_timed: bool) -> Taken {
        let mut state = self.feeds.state();
        loop {
            if let Some(chunk) = state.chunks[self.place].pop_front() {
                state.waiting -= chunk.len();
                if state.waiting < WAITING_MAX {
                    self.feeds.0.changed.notify_all();
                }
                return Taken::Chunk(chunk);
            }
            if state.closed {
                return Taken::Over;
            }
            let ahead_ns = if state.patient { 0 } else { AHEAD_NS };
            if is_timed && state.fed_until_ns > now_ns + ahead_ns {
                return Taken::Later(state.fed_until_ns - ahead_ns);
            }
            state.hungry = true;
            self.feeds.0.changed.notify_all();
            if !state.patient {
                return Taken::Later(now_ns + LOOK_AGAIN_NS);
            }
            state = self.feeds.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// I/Os that wait and begin before `until_ns`, and when the first of them begins.
    pub(crate) fn count_due(&self, until_ns: u64) -> u64 {
        let state = self.feeds.state();
        state.chunks[self.place].iter().flatten().filter(|io| io.at_ns < until_ns).count() as u64
    }
}
