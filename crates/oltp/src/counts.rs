//! Counts of users, tick by tick. Each thread has an interval of its own and hands it over when its tick is over; no
//! lock, and after the first ticks no allocation.

use assay_device::thread_cpu_ns;
use assay_load::{Bins, Collector, Counter, Exchange, LatencyHistogram, Tally};
use assay_sql::Cause;

/// Ticks that a thread can be ahead of the collector before they grow longer.
pub(crate) const SPARE_INTERVALS: usize = 64;

/// Collector of all threads' counts.
pub(crate) type TransactionCollector = Collector<(), TransactionTally>;

/// One kind of transaction on one database.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counted {
    /// Latency of committed transactions and of transactions that the user rolled back.
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

/// Failed transactions by cause.
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
            Cause::RolledBack | Cause::NoSpace | Cause::Duplicate | Cause::System | Cause::Other => &mut self.other,
        } += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.deadlock += other.deadlock;
        self.serialization += other.serialization;
        self.connection += other.connection;
        self.other += other.other;
    }
}

/// Users' counts of transactions.
#[derive(Debug, Default, Clone)]
pub(crate) struct TransactionTally {
    /// By database, and there by transaction; empty where nothing was counted yet.
    pub(crate) counted: Vec<Counted>,
    pub(crate) failures: Failures,
    /// Open loop: from the first statement to the end, beside latencies that count from the intended start.
    pub(crate) service: LatencyHistogram,
    /// Lateness of planned transactions that lacked nothing to begin.
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

impl TransactionTally {
    /// Makes room for `places` places of transactions on databases.
    pub(crate) fn make_room(&mut self, places: usize) {
        if self.counted.len() < places {
            self.counted.resize_with(places, Counted::default);
        }
    }
}

/// A tally whose histograms are lists of bins.
#[derive(Debug)]
pub(crate) struct Compact {
    counted: Vec<(usize, Bins, [u64; 4])>,
    failures: Failures,
    service: Bins,
    lag: Bins,
    waits: u64,
    late: u64,
    standstill_count: u64,
    cpu_ns: u64,
    fullest_cpu_ns: u64,
}

impl Tally for TransactionTally {
    type Compact = Compact;
    type Summary = Self;

    fn merge(&mut self, other: &Self) {
        self.make_room(other.counted.len());
        self.counted.iter_mut().zip(&other.counted).for_each(|(mine, other)| mine.merge(other));
        self.failures.merge(&other.failures);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        self.waits += other.waits;
        self.late += other.late;
        self.standstill_count += other.standstill_count;
        self.cpu_ns += other.cpu_ns;
        self.fullest_cpu_ns = self.fullest_cpu_ns.max(other.fullest_cpu_ns);
    }

    fn clear(&mut self) {
        self.counted.iter_mut().for_each(Counted::clear);
        self.failures = Failures::default();
        self.service.clear();
        self.lag.clear();
        (self.waits, self.late, self.standstill_count) = (0, 0, 0);
        (self.cpu_ns, self.fullest_cpu_ns) = (0, 0);
    }

    fn compact(&self) -> Compact {
        let places = self.counted.iter().enumerate().filter(|(_, counted)| !counted.is_empty());
        let compact = places.map(|(place, counted)| {
            let counts = [counted.committed, counted.rolled_back, counted.retried, counted.failed];
            (place, Bins::of(&counted.latency), counts)
        });
        Compact {
            counted: compact.collect(),
            failures: self.failures,
            service: Bins::of(&self.service),
            lag: Bins::of(&self.lag),
            waits: self.waits,
            late: self.late,
            standstill_count: self.standstill_count,
            cpu_ns: self.cpu_ns,
            fullest_cpu_ns: self.fullest_cpu_ns,
        }
    }

    fn add(&mut self, compact: &Compact) {
        for (place, latency, [committed, rolled_back, retried, failed]) in &compact.counted {
            self.make_room(place + 1);
            let counted = &mut self.counted[*place];
            latency.add_to(&mut counted.latency);
            counted.committed += committed;
            counted.rolled_back += rolled_back;
            counted.retried += retried;
            counted.failed += failed;
        }
        self.failures.merge(&compact.failures);
        compact.service.add_to(&mut self.service);
        compact.lag.add_to(&mut self.lag);
        self.waits += compact.waits;
        self.late += compact.late;
        self.standstill_count += compact.standstill_count;
        self.cpu_ns += compact.cpu_ns;
        self.fullest_cpu_ns += compact.fullest_cpu_ns;
    }

    fn summary(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// Where the users of a thread count.
pub(crate) struct ThreadCounter {
    counter: Counter<TransactionTally>,
    /// How many transactions on databases are told apart.
    places: usize,
    cpu_before_ns: u64,
}

impl ThreadCounter {
    pub(crate) fn new(exchange: Exchange<TransactionTally>, places: usize, interval_ns: u64) -> Self {
        let mut counter = Counter::new(exchange, interval_ns);
        counter.tally().make_room(places);
        Self { counter, places, cpu_before_ns: thread_cpu_ns() }
    }

    /// Counts CPU time from here on: what connecting took is no part of it.
    pub(crate) fn begin(&mut self) {
        self.cpu_before_ns = thread_cpu_ns();
    }

    /// The tally of now; an interval that is over is handed over first.
    #[inline]
    pub(crate) fn at(&mut self, now_ns: u64) -> &mut TransactionTally {
        if self.counter.tick_due(now_ns) {
            self.hand_over(|counter| counter.tick(now_ns));
        }
        self.counter.tally()
    }

    #[cold]
    fn hand_over(&mut self, hand: impl FnOnce(&mut Counter<TransactionTally>)) {
        let cpu_ns = thread_cpu_ns();
        let tally = self.counter.tally();
        tally.cpu_ns += cpu_ns - self.cpu_before_ns;
        tally.fullest_cpu_ns = tally.cpu_ns;
        self.cpu_before_ns = cpu_ns;
        hand(&mut self.counter);
        self.counter.tally().make_room(self.places);
    }

    /// Hands over the last counts, at the end.
    pub(crate) fn end(&mut self) {
        self.hand_over(Counter::finish);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(counter: &mut ThreadCounter, at_ns: u64, latency_ns: u64) {
        let counted = &mut counter.at(at_ns).counted[1];
        counted.committed += 1;
        counted.latency.record(latency_ns);
    }

    fn committed(collector: &TransactionCollector, from_tick: u64, to_tick: u64) -> u64 {
        collector.totals(from_tick, to_tick).get(&()).map_or(0, |tally| tally.counted[1].committed)
    }

    #[test]
    fn ticks_are_complete_when_every_thread_is_past_them() {
        let exchanges = [Exchange::new(2), Exchange::new(2)];
        let mut collector = TransactionCollector::new(exchanges.clone().map(|exchange| ((), exchange)));
        let [mut one, mut other] = exchanges.map(|exchange| ThreadCounter::new(exchange, 5, 1000));
        commit(&mut one, 10, 5);
        commit(&mut one, 1010, 5);
        assert_eq!(collector.collect(), 0);
        commit(&mut other, 500, 7);
        commit(&mut other, 1500, 7);
        assert_eq!(collector.collect(), 1);
        assert_eq!(collector.fresh_ticks()[0].counted.counted[1].committed, 2);
        one.at(2000);
        other.at(2000);
        [one, other].iter_mut().for_each(ThreadCounter::end);
        assert_eq!(collector.collect(), 2, "the last tick is not whole");
        assert_eq!((committed(&collector, 0, 1), committed(&collector, 1, 2), committed(&collector, 0, 9)), (2, 2, 4));
    }

    #[test]
    fn a_window_is_the_sum_of_its_ticks_and_of_each_the_fullest_thread() {
        let tally = |cpu_ns| TransactionTally { cpu_ns, fullest_cpu_ns: cpu_ns, ..TransactionTally::default() };
        let mut tick = tally(5);
        tick.merge(&tally(3));
        let mut window = TransactionTally::default();
        window.add(&tick.compact());
        window.add(&tally(4).compact());
        assert_eq!((window.cpu_ns, window.fullest_cpu_ns), (12, 9));
    }
}
