//! Counts of I/Os.

use std::collections::BTreeMap;

use crate::{
    collector::{Collector, Tick},
    histogram::{Bins, LatencyHistogram},
    interval::Tally,
};

/// Key of statistics: the activity and the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    pub activity: usize,
    pub volume: usize,
}

/// Collector of all workers' counts of I/Os.
pub type IoCollector = Collector<GroupKey, IoTally>;

/// Sums over a window of ticks.
pub type Totals = BTreeMap<GroupKey, IoTally>;

/// One tick of one group, for series.
pub type GroupTick = Tick<GroupKey, IoTick>;

/// Summary of a tick, for series.
#[derive(Debug, Clone)]
pub struct IoTick {
    pub read: DirectionTick,
    pub write: DirectionTick,
    pub error_count: u64,
    pub cpu_ns: u64,
}

/// One direction in one tick; latencies are `None` when nothing ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectionTick {
    pub count: u64,
    pub bytes: u64,
    pub mean_ns: Option<f64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

impl DirectionTick {
    pub fn of(counted: &Counted) -> Self {
        let latency = &counted.latency;
        let some = |value: u64| (!latency.is_empty()).then_some(value);
        Self {
            count: latency.count(),
            bytes: counted.bytes,
            mean_ns: latency.mean_ns(),
            p50_ns: some(latency.percentile_ns(50.0)),
            p99_ns: some(latency.percentile_ns(99.0)),
            max_ns: some(latency.max_ns()),
        }
    }
}

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

/// Failed I/Os, by error of the kernel.
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

/// Counts of a worker's I/Os. I/Os count where they end.
#[derive(Debug, Default, Clone)]
pub struct IoTally {
    pub read: Counted,
    /// Reads that ended while a checkpoint burst was going on.
    pub read_in_burst: Counted,
    pub write: Counted,
    pub flush: Counted,
    /// Open loop: from submission to end, beside `read` and `write`, which count from the intended start.
    pub service: LatencyHistogram,
    /// Open loop: how late I/Os were submitted although a slot was free; counted where they are submitted.
    pub lag: LatencyHistogram,
    /// Replay of a trace: I/Os that waited for a free slot, because the device was slower than the trace.
    pub held: u64,
    pub errors: Errors,
    /// I/Os during which the generator stood still; they are in no histogram.
    pub standstill_ios: u64,
    pub cpu_ns: u64,
    pub burst_ns: u64,
    pub bursts_count: u64,
}

/// A tally with its histograms as lists of bins: ticks touch few of the bins.
#[derive(Debug)]
pub struct Compact {
    read: (Bins, u64),
    read_in_burst: (Bins, u64),
    write: (Bins, u64),
    flush: (Bins, u64),
    service: Bins,
    lag: Bins,
    held: u64,
    errors: Errors,
    standstill_ios: u64,
    cpu_ns: u64,
    burst_ns: u64,
    bursts_count: u64,
}

impl Tally for IoTally {
    type Compact = Compact;
    type Summary = IoTick;

    fn merge(&mut self, other: &Self) {
        self.read.merge(&other.read);
        self.read_in_burst.merge(&other.read_in_burst);
        self.write.merge(&other.write);
        self.flush.merge(&other.flush);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        self.held += other.held;
        self.errors.merge(&other.errors);
        self.standstill_ios += other.standstill_ios;
        self.cpu_ns += other.cpu_ns;
        self.burst_ns += other.burst_ns;
        self.bursts_count += other.bursts_count;
    }

    fn clear(&mut self) {
        self.read.clear();
        self.read_in_burst.clear();
        self.write.clear();
        self.flush.clear();
        self.service.clear();
        self.lag.clear();
        self.held = 0;
        self.errors = Errors::default();
        self.standstill_ios = 0;
        self.cpu_ns = 0;
        self.burst_ns = 0;
        self.bursts_count = 0;
    }

    fn compact(&self) -> Compact {
        let counted = |counted: &Counted| (Bins::of(&counted.latency), counted.bytes);
        Compact {
            read: counted(&self.read),
            read_in_burst: counted(&self.read_in_burst),
            write: counted(&self.write),
            flush: counted(&self.flush),
            service: Bins::of(&self.service),
            lag: Bins::of(&self.lag),
            held: self.held,
            errors: self.errors,
            standstill_ios: self.standstill_ios,
            cpu_ns: self.cpu_ns,
            burst_ns: self.burst_ns,
            bursts_count: self.bursts_count,
        }
    }

    fn add(&mut self, compact: &Compact) {
        let add = |(bins, bytes): &(Bins, u64), counted: &mut Counted| {
            bins.add_to(&mut counted.latency);
            counted.bytes += bytes;
        };
        add(&compact.read, &mut self.read);
        add(&compact.read_in_burst, &mut self.read_in_burst);
        add(&compact.write, &mut self.write);
        add(&compact.flush, &mut self.flush);
        compact.service.add_to(&mut self.service);
        compact.lag.add_to(&mut self.lag);
        self.held += compact.held;
        self.errors.merge(&compact.errors);
        self.standstill_ios += compact.standstill_ios;
        self.cpu_ns += compact.cpu_ns;
        self.burst_ns += compact.burst_ns;
        self.bursts_count += compact.bursts_count;
    }

    fn summary(&mut self) -> IoTick {
        self.read.merge(&self.read_in_burst);
        IoTick {
            read: DirectionTick::of(&self.read),
            write: DirectionTick::of(&self.write),
            error_count: self.errors.count(),
            cpu_ns: self.cpu_ns,
        }
    }
}
