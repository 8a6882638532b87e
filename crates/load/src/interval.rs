use std::{mem, sync::Arc};

use crossbeam_queue::ArrayQueue;

use crate::LatencyHistogram;

/// I/Os that ended in an interval, of one kind.
#[derive(Debug, Default, Clone)]
pub struct Counted {
    pub latency: LatencyHistogram,
    pub bytes: u64,
}

impl Counted {
    #[inline]
    pub fn record(&mut self, latency_ns: u64, bytes: u32) {
        self.latency.record(latency_ns);
        self.bytes += u64::from(bytes);
    }

    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.bytes += other.bytes;
    }

    pub fn clear(&mut self) {
        self.latency.clear();
        self.bytes = 0;
    }
}

/// I/Os that failed, by what the kernel said.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Errors {
    pub io: u64,
    pub no_space: u64,
    /// Fewer bytes were moved than asked.
    pub short: u64,
    pub other: u64,
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl Errors {
    pub fn count(&self) -> u64 {
        self.io + self.no_space + self.short + self.other
    }

    /// Counts a failed I/O by its result: a negative `errno`, or too few bytes.
    pub fn record(&mut self, result: i32) {
        match -result {
            EIO => self.io += 1,
            ENOSPC => self.no_space += 1,
            errno if errno > 0 => self.other += 1,
            _ => self.short += 1,
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.io += other.io;
        self.no_space += other.no_space;
        self.short += other.short;
        self.other += other.other;
    }
}

/// What one worker did between two ticks of the session. I/Os count where they end.
#[derive(Debug, Default, Clone)]
pub struct Interval {
    pub tick: u64,
    /// The tick the worker is in now: ticks in between passed while it waited, and hold nothing.
    pub next_tick: u64,
    pub read: Counted,
    /// Reads that ended while a checkpoint burst was going on.
    pub read_in_burst: Counted,
    pub write: Counted,
    pub flush: Counted,
    /// Open loop: from submission to end, beside `read` and `write`, which count from the intended start.
    pub service: LatencyHistogram,
    /// Open loop: how late I/Os were submitted although a slot was free; counted where they are submitted.
    pub lag: LatencyHistogram,
    pub errors: Errors,
    /// I/Os during which the generator stood still; they are in no histogram.
    pub standstill_ios: u64,
    pub cpu_ns: u64,
    pub burst_ns: u64,
    pub bursts_count: u64,
}

impl Interval {
    pub fn merge(&mut self, other: &Self) {
        self.read.merge(&other.read);
        self.read_in_burst.merge(&other.read_in_burst);
        self.write.merge(&other.write);
        self.flush.merge(&other.flush);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        self.errors.merge(&other.errors);
        self.standstill_ios += other.standstill_ios;
        self.cpu_ns += other.cpu_ns;
        self.burst_ns += other.burst_ns;
        self.bursts_count += other.bursts_count;
    }

    pub fn clear(&mut self) {
        self.read.clear();
        self.read_in_burst.clear();
        self.write.clear();
        self.flush.clear();
        self.service.clear();
        self.lag.clear();
        self.errors = Errors::default();
        self.standstill_ios = 0;
        self.cpu_ns = 0;
        self.burst_ns = 0;
        self.bursts_count = 0;
    }
}

/// Hands full intervals from a worker to the collector and empty ones back, without locks or allocation.
///
/// When the collector is late the worker finds no empty interval and keeps counting into the one it has, which then
/// spans several ticks: nothing is lost, only the time resolution.
#[derive(Clone)]
pub struct Exchange {
    full: Arc<ArrayQueue<Box<Interval>>>,
    empty: Arc<ArrayQueue<Box<Interval>>>,
}

impl Exchange {
    /// An exchange with this many intervals besides the one being filled.
    pub fn new(spare: usize) -> Self {
        let exchange = Self { full: Arc::new(ArrayQueue::new(spare + 1)), empty: Arc::new(ArrayQueue::new(spare + 1)) };
        for _ in 0..spare {
            exchange.give_back(Box::default());
        }
        exchange
    }

    /// Swaps a full interval for an empty one; keeps the full one when there is none.
    pub(crate) fn swap(&self, interval: &mut Box<Interval>) -> bool {
        let Some(mut other) = self.empty.pop() else { return false };
        mem::swap(interval, &mut other);
        self.deliver(other);
        true
    }

    /// Hands over the last interval of a worker.
    pub(crate) fn deliver(&self, full: Box<Interval>) {
        // There are never more intervals than places.
        let delivered = self.full.push(full);
        debug_assert!(delivered.is_ok());
    }

    /// Takes the next full interval.
    pub fn take(&self) -> Option<Box<Interval>> {
        self.full.pop()
    }

    /// Returns an interval to be filled again.
    pub fn give_back(&self, mut interval: Box<Interval>) {
        interval.clear();
        let returned = self.empty.push(interval);
        debug_assert!(returned.is_ok());
    }
}
