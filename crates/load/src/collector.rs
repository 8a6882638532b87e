use std::collections::{BTreeMap, VecDeque};

use crate::{Counted, Errors, Exchange, Interval, histogram::Bins};

/// More ticks than this are folded together from the oldest on.
const TICKS_KEPT: usize = 600;

/// What statistics are kept apart by: the activity and the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    pub activity: usize,
    pub volume: usize,
}

/// Sums over a window of ticks.
pub type Totals = BTreeMap<GroupKey, Interval>;

/// One tick of one group, for series.
#[derive(Debug, Clone)]
pub struct GroupTick {
    pub tick: u64,
    pub key: GroupKey,
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

/// Merges the intervals of all workers tick by tick and answers for any window of complete ticks.
pub struct Collector {
    sources: Vec<Source>,
    open: BTreeMap<u64, Totals>,
    kept: VecDeque<Kept>,
    fresh: Vec<GroupTick>,
    complete_ticks: u64,
    drained: Totals,
}

struct Source {
    key: GroupKey,
    exchange: Exchange,
    next_tick: u64,
}

struct Kept {
    first_tick: u64,
    last_tick: u64,
    groups: Vec<(GroupKey, Compact)>,
}

/// An interval with its histograms as lists of bins: ticks touch few of the bins.
struct Compact {
    read: (Bins, u64),
    read_in_burst: (Bins, u64),
    write: (Bins, u64),
    flush: (Bins, u64),
    service: Bins,
    lag: Bins,
    errors: Errors,
    standstill_ios: u64,
    cpu_ns: u64,
    burst_ns: u64,
    bursts_count: u64,
}

impl Collector {
    /// A collector of one exchange per worker.
    pub fn new(sources: impl IntoIterator<Item = (GroupKey, Exchange)>) -> Self {
        let sources = sources.into_iter().map(|(key, exchange)| Source { key, exchange, next_tick: 0 }).collect();
        Self {
            sources,
            open: BTreeMap::new(),
            kept: VecDeque::new(),
            fresh: Vec::new(),
            complete_ticks: 0,
            drained: Totals::new(),
        }
    }

    /// Takes what the workers delivered; returns how many ticks are complete.
    pub fn collect(&mut self) -> u64 {
        for source in &mut self.sources {
            while let Some(interval) = source.exchange.take() {
                source.next_tick = interval.next_tick;
                let totals = if interval.next_tick == u64::MAX {
                    &mut self.drained
                } else {
                    self.open.entry(interval.tick).or_default()
                };
                totals.entry(source.key).or_default().merge(&interval);
                if interval.next_tick != u64::MAX {
                    source.exchange.give_back(interval);
                }
            }
        }
        let reached = self.sources.iter().map(|source| source.next_tick).min().unwrap_or(0);
        // Workers that ended have delivered everything; the last tick they were in is the last that is complete.
        let last_open = self.open.keys().next_back().map_or(self.complete_ticks, |tick| tick + 1);
        self.close_ticks(reached.min(last_open.max(self.complete_ticks)));
        self.complete_ticks
    }

    fn close_ticks(&mut self, until_tick: u64) {
        while self.complete_ticks < until_tick {
            let tick = self.complete_ticks;
            self.complete_ticks += 1;
            let totals = self.open.remove(&tick).unwrap_or_default();
            self.fresh.extend(totals.iter().map(|(key, interval)| group_tick(tick, *key, interval)));
            let groups = totals.iter().map(|(key, interval)| (*key, Compact::of(interval))).collect();
            self.kept.push_back(Kept { first_tick: tick, last_tick: tick, groups });
        }
        if self.kept.len() > TICKS_KEPT {
            self.fold_oldest(TICKS_KEPT / 2);
        }
    }

    /// Makes one entry of the oldest ones; windows can then only begin before or after it.
    fn fold_oldest(&mut self, count: usize) {
        let oldest: Vec<Kept> = self.kept.drain(..count).collect();
        let mut totals = Totals::new();
        oldest.iter().for_each(|kept| kept.add_to(&mut totals));
        let groups = totals.iter().map(|(key, interval)| (*key, Compact::of(interval))).collect();
        self.kept.push_front(Kept { first_tick: oldest[0].first_tick, last_tick: oldest[count - 1].last_tick, groups });
    }

    /// Ticks that became complete since the last call.
    pub fn fresh_ticks(&mut self) -> Vec<GroupTick> {
        std::mem::take(&mut self.fresh)
    }

    /// Forgets the ticks before `tick`: warm-up, or what lies before a sliding window.
    pub fn measure_from(&mut self, tick: u64) {
        while self.kept.front().is_some_and(|kept| kept.last_tick < tick) {
            self.kept.pop_front();
        }
    }

    /// Sums of the complete ticks in `from_tick..to_tick`.
    pub fn totals(&self, from_tick: u64, to_tick: u64) -> Totals {
        let mut totals = Totals::new();
        self.kept
            .iter()
            .filter(|kept| kept.first_tick >= from_tick && kept.last_tick < to_tick)
            .for_each(|kept| kept.add_to(&mut totals));
        totals
    }

    /// What ended after the workers were told to stop.
    pub fn drained(&self) -> &Totals {
        &self.drained
    }

    pub fn complete_ticks(&self) -> u64 {
        self.complete_ticks
    }
}

fn group_tick(tick: u64, key: GroupKey, interval: &Interval) -> GroupTick {
    let mut read = interval.read.clone();
    read.merge(&interval.read_in_burst);
    GroupTick {
        tick,
        key,
        read: DirectionTick::of(&read),
        write: DirectionTick::of(&interval.write),
        error_count: interval.errors.count(),
        cpu_ns: interval.cpu_ns,
    }
}

impl Kept {
    fn add_to(&self, totals: &mut Totals) {
        for (key, compact) in &self.groups {
            compact.add_to(totals.entry(*key).or_default());
        }
    }
}

impl Compact {
    fn of(interval: &Interval) -> Self {
        let counted = |counted: &Counted| (Bins::of(&counted.latency), counted.bytes);
        Self {
            read: counted(&interval.read),
            read_in_burst: counted(&interval.read_in_burst),
            write: counted(&interval.write),
            flush: counted(&interval.flush),
            service: Bins::of(&interval.service),
            lag: Bins::of(&interval.lag),
            errors: interval.errors,
            standstill_ios: interval.standstill_ios,
            cpu_ns: interval.cpu_ns,
            burst_ns: interval.burst_ns,
            bursts_count: interval.bursts_count,
        }
    }

    fn add_to(&self, interval: &mut Interval) {
        let add = |(bins, bytes): &(Bins, u64), counted: &mut Counted| {
            bins.add_to(&mut counted.latency);
            counted.bytes += bytes;
        };
        add(&self.read, &mut interval.read);
        add(&self.read_in_burst, &mut interval.read_in_burst);
        add(&self.write, &mut interval.write);
        add(&self.flush, &mut interval.flush);
        self.service.add_to(&mut interval.service);
        self.lag.add_to(&mut interval.lag);
        interval.errors.merge(&self.errors);
        interval.standstill_ios += self.standstill_ios;
        interval.cpu_ns += self.cpu_ns;
        interval.burst_ns += self.burst_ns;
        interval.bursts_count += self.bursts_count;
    }
}
