//! What users count, tick by tick. Each thread has an interval of its own and hands it over when its tick is over; no lock, and
//! after the first ticks no allocation.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use assay_device::thread_cpu_ns;
use assay_load::{Bins, LatencyHistogram};
use assay_sql::Cause;
use crossbeam_queue::SegQueue;

/// More ticks than this are folded together from the oldest on.
const TICKS_KEPT: usize = 600;

/// One kind of transaction on one database.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counted {
    /// Of committed transactions and those that the user rolled back.
    pub(crate) latency: LatencyHistogram,
    pub(crate) committed: u64,
    pub(crate) rolled_back: u64,
    pub(crate) retried: u64,
    pub(crate) failed: u64,
}

impl Counted {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.retried += other.retried;
        self.failed += other.failed;
    }

    fn clear(&mut self) {
        self.latency.clear();
        (self.committed, self.rolled_back, self.retried, self.failed) = (0, 0, 0, 0);
    }

    fn is_empty(&self) -> bool {
        self.latency.is_empty() && self.retried + self.failed == 0
    }
}

/// Failed transactions by what they failed of.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Failures {
    pub(crate) deadlock: u64,
    pub(crate) serialization: u64,
    pub(crate) connection: u64,
    pub(crate) other: u64,
}

impl Failures {
    pub(crate) fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Deadlock => &mut self.deadlock,
            Cause::Serialization => &mut self.serialization,
            Cause::Connection => &mut self.connection,
            Cause::RolledBack | Cause::NoSpace | Cause::Duplicate | Cause::Other => &mut self.other,
        } += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.deadlock += other.deadlock;
        self.serialization += other.serialization;
        self.connection += other.connection;
        self.other += other.other;
    }
}

/// What one thread did in a tick, or all of them in a window.
#[derive(Debug, Default, Clone)]
pub(crate) struct Interval {
    pub(crate) tick: u64,
    /// By database, and there by transaction.
    pub(crate) counted: Vec<Counted>,
    pub(crate) failures: Failures,
    /// Open loop: from the first statement to the end, beside latencies that count from the intended start.
    pub(crate) service: LatencyHistogram,
    /// How late what was planned began, although nothing it needs was missing.
    pub(crate) lag: LatencyHistogram,
    /// Waits of which `late` ended noticeably late.
    pub(crate) waits: u64,
    pub(crate) late: u64,
    /// Transactions during which this process stood still; they are in no histogram.
    pub(crate) standstill_count: u64,
    pub(crate) cpu_ns: u64,
    /// CPU time of whichever thread used most.
    pub(crate) fullest_cpu_ns: u64,
}

impl Interval {
    fn new(places: usize) -> Self {
        Self { counted: vec![Default::default(); places], ..Self::default() }
    }

    /// Adds what other threads did in the same time, or this one before or after.
    fn merge(&mut self, other: &Self) {
        self.counted.resize_with(self.counted.len().max(other.counted.len()), Default::default);
        for (mine, others) in self.counted.iter_mut().zip(&other.counted) {
            mine.merge(others);
        }
        self.failures.merge(&other.failures);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        self.waits += other.waits;
        self.late += other.late;
        self.standstill_count += other.standstill_count;
        self.cpu_ns += other.cpu_ns;
    }

    fn clear(&mut self) {
        self.counted.iter_mut().for_each(Counted::clear);
        self.failures = Failures::default();
        self.service.clear();
        self.lag.clear();
        (self.waits, self.late, self.standstill_count) = (0, 0, 0);
        (self.cpu_ns, self.fullest_cpu_ns) = (0, 0);
    }
}

/// Full intervals of one thread on their way to the collector, and empty ones on their way back.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    full: SegQueue<(Box<Interval>, u64)>,
    empty: SegQueue<Box<Interval>>,
}

/// A thread's end of the exchange.
pub(crate) struct Counter {
    exchange: Arc<Exchange>,
    current: Box<Interval>,
    interval_ns: u64,
    cpu_before_ns: u64,
}

impl Counter {
    pub(crate) fn new(exchange: Arc<Exchange>, places: usize, interval_ns: u64) -> Self {
        let current = Box::new(Interval::new(places));
        Self { exchange, current, interval_ns, cpu_before_ns: thread_cpu_ns() }
    }

    /// Counts CPU time from here on: what connecting took is no part of it.
    pub(crate) fn begin(&mut self) {
        self.cpu_before_ns = thread_cpu_ns();
    }

    /// The interval of now; one that is over is handed over first.
    #[inline]
    pub(crate) fn at(&mut self, now_ns: u64) -> &mut Interval {
        let tick = now_ns / self.interval_ns;
        if tick != self.current.tick {
            self.hand_over(tick);
        }
        &mut self.current
    }

    #[cold]
    fn hand_over(&mut self, next_tick: u64) {
        let mut next = self.exchange.empty.pop().unwrap_or_else(|| Box::new(Interval::new(self.current.counted.len())));
        next.tick = next_tick;
        let cpu_ns = thread_cpu_ns();
        self.current.cpu_ns = cpu_ns - self.cpu_before_ns;
        self.cpu_before_ns = cpu_ns;
        self.exchange.full.push((std::mem::replace(&mut self.current, next), next_tick));
    }

    /// Hands over what there is, at the end.
    pub(crate) fn end(&mut self) {
        self.hand_over(u64::MAX);
    }
}

/// A [`Counted`] whose histogram is a list of bins, for keeping many.
struct Compact {
    latency: Bins,
    counts: [u64; 4],
}

struct Kept {
    first_tick: u64,
    last_tick: u64,
    counted: Vec<(usize, Compact)>,
    failures: Failures,
    service: Bins,
    lag: Bins,
    waits: u64,
    late: u64,
    standstill_count: u64,
    cpu_ns: u64,
    fullest_cpu_ns: u64,
}

impl Kept {
    fn of(interval: &Interval, first_tick: u64, last_tick: u64) -> Self {
        let places = interval.counted.iter().enumerate();
        let counted = places
            .filter(|(_, counted)| !counted.is_empty())
            .map(|(place, counted)| {
                let counts = [counted.committed, counted.rolled_back, counted.retried, counted.failed];
                (place, Compact { latency: Bins::of(&counted.latency), counts })
            })
            .collect();
        Self {
            first_tick,
            last_tick,
            counted,
            failures: interval.failures,
            service: Bins::of(&interval.service),
            lag: Bins::of(&interval.lag),
            waits: interval.waits,
            late: interval.late,
            standstill_count: interval.standstill_count,
            cpu_ns: interval.cpu_ns,
            fullest_cpu_ns: interval.fullest_cpu_ns,
        }
    }

    fn add_to(&self, sum: &mut Interval) {
        for (place, compact) in &self.counted {
            let counted = &mut sum.counted[*place];
            compact.latency.add_to(&mut counted.latency);
            let [committed, rolled_back, retried, failed] = compact.counts;
            counted.committed += committed;
            counted.rolled_back += rolled_back;
            counted.retried += retried;
            counted.failed += failed;
        }
        sum.failures.merge(&self.failures);
        self.service.add_to(&mut sum.service);
        self.lag.add_to(&mut sum.lag);
        sum.waits += self.waits;
        sum.late += self.late;
        sum.standstill_count += self.standstill_count;
        sum.cpu_ns += self.cpu_ns;
        sum.fullest_cpu_ns += self.fullest_cpu_ns;
    }
}

/// Merges the intervals of all threads tick by tick and answers for any window of complete ticks.
pub(crate) struct Collector {
    places: usize,
    sources: Vec<(Arc<Exchange>, u64)>,
    open: BTreeMap<u64, Interval>,
    kept: VecDeque<Kept>,
    fresh: Vec<Interval>,
    complete_ticks: u64,
}

impl Collector {
    pub(crate) fn new(places: usize, exchanges: &[Arc<Exchange>]) -> Self {
        let sources = exchanges.iter().map(|exchange| (exchange.clone(), 0)).collect();
        Self { places, sources, open: BTreeMap::new(), kept: VecDeque::new(), fresh: Vec::new(), complete_ticks: 0 }
    }

    /// Takes what the threads handed over; returns how many ticks are complete.
    pub(crate) fn collect(&mut self) -> u64 {
        for (exchange, reached) in &mut self.sources {
            while let Some((mut interval, next_tick)) = exchange.full.pop() {
                *reached = next_tick;
                let sum = self.open.entry(interval.tick).or_insert_with(|| Interval::new(self.places));
                sum.merge(&interval);
                sum.fullest_cpu_ns = sum.fullest_cpu_ns.max(interval.cpu_ns);
                interval.clear();
                exchange.empty.push(interval);
            }
        }
        let reached = self.sources.iter().map(|(_, reached)| *reached).min().unwrap_or(0);
        // Threads that ended have handed over everything; the last tick they were in is not whole.
        let whole = match reached {
            u64::MAX => self.open.keys().next_back().copied().unwrap_or(self.complete_ticks),
            reached => reached,
        };
        while self.complete_ticks < whole {
            let tick = self.complete_ticks;
            self.complete_ticks += 1;
            let mut interval = self.open.remove(&tick).unwrap_or_else(|| Interval::new(self.places));
            interval.tick = tick;
            self.kept.push_back(Kept::of(&interval, tick, tick));
            self.fresh.push(interval);
        }
        if self.kept.len() > TICKS_KEPT {
            self.fold_oldest();
        }
        self.complete_ticks
    }

    /// Makes one entry of the oldest ones; windows can then only begin before or after it.
    fn fold_oldest(&mut self) {
        let oldest: Vec<Kept> = self.kept.drain(..TICKS_KEPT / 2).collect();
        let mut sum = Interval::new(self.places);
        oldest.iter().for_each(|kept| kept.add_to(&mut sum));
        let ends = (oldest[0].first_tick, oldest[oldest.len() - 1].last_tick);
        self.kept.push_front(Kept::of(&sum, ends.0, ends.1));
    }

    /// Ticks that became complete since the last call.
    pub(crate) fn fresh(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.fresh)
    }

    /// Forgets the ticks before `tick`.
    pub(crate) fn measure_from(&mut self, tick: u64) {
        while self.kept.front().is_some_and(|kept| kept.last_tick < tick) {
            self.kept.pop_front();
        }
    }

    /// Sums of the complete ticks in `from_tick..to_tick`.
    pub(crate) fn totals(&self, from_tick: u64, to_tick: u64) -> Interval {
        let mut sum = Interval::new(self.places);
        let chosen = self.kept.iter().filter(|kept| kept.first_tick >= from_tick && kept.last_tick < to_tick);
        chosen.for_each(|kept| kept.add_to(&mut sum));
        sum
    }

    pub(crate) fn complete_ticks(&self) -> u64 {
        self.complete_ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(counter: &mut Counter, at_ns: u64, latency_ns: u64) {
        let counted = &mut counter.at(at_ns).counted[1];
        counted.committed += 1;
        counted.latency.record(latency_ns);
    }

    #[test]
    fn ticks_are_complete_when_every_thread_is_past_them() {
        let exchanges = [Arc::new(Exchange::default()), Arc::new(Exchange::default())];
        let mut collector = Collector::new(5, &exchanges);
        let mut counters: Vec<Counter> =
            exchanges.iter().map(|exchange| Counter::new(exchange.clone(), 5, 1000)).collect();
        commit(&mut counters[0], 10, 5);
        commit(&mut counters[0], 1010, 5);
        assert_eq!(collector.collect(), 0);
        commit(&mut counters[1], 500, 7);
        commit(&mut counters[1], 3500, 7);
        assert_eq!(collector.collect(), 1, "the first thread is in the second tick");
        assert_eq!(collector.fresh()[0].counted[1].committed, 2);
        counters.iter_mut().for_each(Counter::end);
        assert_eq!(collector.collect(), 3, "the last tick is not whole");
        let total = |from, to| collector.totals(from, to).counted[1].committed;
        assert_eq!((total(0, 1), total(1, 2), total(2, 3), total(0, 3)), (2, 1, 0, 3));
    }

    #[test]
    fn memory_is_bounded_and_sums_stay_right() {
        let exchange = Arc::new(Exchange::default());
        let mut collector = Collector::new(5, std::slice::from_ref(&exchange));
        let mut counter = Counter::new(exchange, 5, 1000);
        for tick in 0..5000_u64 {
            commit(&mut counter, tick * 1000, tick + 1);
            collector.collect();
            collector.fresh();
        }
        assert!(collector.kept.len() <= TICKS_KEPT + 1);
        let total = collector.totals(0, 4999);
        let payment = &total.counted[1];
        assert_eq!(
            (payment.committed, payment.latency.count(), payment.latency.sum_ns()),
            (4999, 4999, 4999 * 5000 / 2)
        );
    }
}
