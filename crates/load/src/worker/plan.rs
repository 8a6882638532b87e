use std::sync::{Arc, atomic::AtomicBool};

use crate::{Activity, BurstGate, Exchange, Feed, IoTally, Load, Pace, Pulse, Request};

/// An arrival this near is waited for by polling: a sleep would come back too late.
const POLL_NS: u64 = 20_000;
/// The same of a timed replay that has a processor to itself: an idle processor of a virtual machine may take
/// milliseconds to wake.
const REPLAY_POLL_NS: u64 = 5_000_000;

/// Everything one worker needs to know.
#[derive(Clone)]
pub struct WorkerPlan {
    pub activity: Activity,
    /// Position of the volume the worker is on, as its queue counts volumes.
    pub volume: u16,
    /// Number of this worker on the same volume, and the number of such workers.
    pub worker_on_volume: u32,
    pub workers_on_volume: u32,
    /// Number of this worker in the activity, and the number of workers; they share a rate.
    pub worker: u32,
    pub workers: u32,
    pub seed: u64,
    pub interval_ns: u64,
    /// An I/O outstanding longer than this means the device stopped answering.
    pub io_timeout_ns: u64,
    pub gate: BurstGate,
    pub pulse: Pulse,
    pub stop: Arc<AtomicBool>,
    pub exchange: Exchange<IoTally>,
    /// A processor is there for this worker alone.
    pub has_processor: bool,
    /// Source of the I/Os of a trace, where the load is a replay.
    pub feed: Option<Feed>,
}

impl WorkerPlan {
    /// How many buffers the worker's requests refer to: for reads, for writes, and one for duplicate writes.
    pub fn buffers_count(&self) -> u32 {
        self.write_buffers_start() + if self.writes() { self.queue_depth() + 1 } else { 0 }
    }

    /// Most I/Os the worker has outstanding.
    pub fn queue_depth(&self) -> u32 {
        self.activity.load.queue_depth(self.workers)
    }

    /// The first buffer of writes. Reads have buffers of their own, so that they never change bytes to be written.
    pub fn write_buffers_start(&self) -> u32 {
        if self.activity.access.read_share > 0.0 { self.queue_depth() } else { 0 }
    }

    /// Distance of an arrival that is waited for by polling.
    pub(super) fn poll_ns(&self) -> u64 {
        match self.activity.load {
            Load::Replay { pace: Pace::Timed, .. } if self.has_processor => REPLAY_POLL_NS,
            _ => POLL_NS,
        }
    }

    fn writes(&self) -> bool {
        self.activity.access.read_share < 1.0
    }
}

/// Next step of the driver.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Submit these, then wait for `min` completions until `until_ns`.
    Go {
        submit: &'a [Request],
        min: usize,
        until_ns: u64,
    },
    Done(Outcome),
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Stopped as asked, with nothing outstanding.
    Stopped { unfinished_count: u64, oldest_unfinished_ns: u64 },
    /// Wrote its `limit_bytes`.
    Finished,
    /// The oldest I/O has been outstanding longer than the time-out.
    NotAnswering { outstanding: u32, oldest_ns: u64 },
}
