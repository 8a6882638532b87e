//! How workers count: each into an interval of its own, which it hands over at every tick.

use std::{mem, sync::Arc};

use crossbeam_queue::ArrayQueue;

/// Counts of a worker between two ticks.
pub trait Tally: Default {
    /// The same with histograms as lists of bins, for keeping many.
    type Compact;
    /// Summary of a tick, for series.
    type Summary;

    /// Adds the counts of another worker in the same tick.
    fn merge(&mut self, other: &Self);

    fn clear(&mut self);

    fn compact(&self) -> Self::Compact;

    /// Adds the counts of another tick.
    fn add(&mut self, compact: &Self::Compact);

    /// Takes the summary of the tick for series; the counts are of no use afterwards, until they are cleared.
    fn summary(&mut self) -> Self::Summary;
}

/// Work of one worker between two ticks of the session.
#[derive(Debug, Default, Clone)]
pub struct Interval<T> {
    pub tick: u64,
    /// The tick the worker is in now: ticks in between passed while it waited, and hold nothing. `u64::MAX` at its end.
    pub next_tick: u64,
    pub tally: T,
}

/// A worker's end of an [`Exchange`].
pub struct Counter<T> {
    exchange: Exchange<T>,
    interval: Box<Interval<T>>,
    interval_ns: u64,
    next_tick_ns: u64,
}

impl<T: Tally> Counter<T> {
    /// A counter whose first tick begins at zero.
    pub fn new(exchange: Exchange<T>, interval_ns: u64) -> Self {
        assert!(interval_ns > 0, "ticks have a length");
        Self { exchange, interval: Box::default(), interval_ns, next_tick_ns: interval_ns }
    }

    /// Present counts.
    #[inline]
    pub fn tally(&mut self) -> &mut T {
        &mut self.interval.tally
    }

    /// When the interval being filled is over.
    #[inline]
    pub fn next_tick_ns(&self) -> u64 {
        self.next_tick_ns
    }

    /// Whether the interval being filled is over.
    #[inline]
    pub fn tick_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_tick_ns
    }

    /// Hands the interval over and begins the one `now_ns` lies in.
    pub fn tick(&mut self, now_ns: u64) {
        let tick = now_ns / self.interval_ns;
        self.next_tick_ns = (tick + 1) * self.interval_ns;
        self.interval.next_tick = tick;
        if self.exchange.swap(&mut self.interval) {
            self.interval.tick = tick;
        }
    }

    /// Hands over the counts since the last tick, at the worker's end; the tick is not whole.
    pub fn finish(&mut self) {
        let mut last = mem::take(&mut self.interval);
        last.next_tick = u64::MAX;
        self.next_tick_ns = u64::MAX;
        self.exchange.deliver(last);
    }
}

/// Hands full intervals from a worker to the collector and empty ones back, without locks or allocation.
///
/// When the collector is late the worker finds no empty interval and keeps counting into the one it has, which then
/// spans several ticks: nothing is lost, only the time resolution.
pub struct Exchange<T> {
    full: Arc<ArrayQueue<Box<Interval<T>>>>,
    empty: Arc<ArrayQueue<Box<Interval<T>>>>,
}

impl<T> Clone for Exchange<T> {
    fn clone(&self) -> Self {
        Self { full: Arc::clone(&self.full), empty: Arc::clone(&self.empty) }
    }
}

impl<T: Tally> Exchange<T> {
    /// An exchange with this many intervals besides the one being filled.
    pub fn new(spare: usize) -> Self {
        let exchange = Self { full: Arc::new(ArrayQueue::new(spare + 1)), empty: Arc::new(ArrayQueue::new(spare + 1)) };
        for _ in 0..spare {
            exchange.give_back(Box::default());
        }
        exchange
    }

    /// Swaps a full interval for an empty one; keeps the full one when there is none.
    fn swap(&self, interval: &mut Box<Interval<T>>) -> bool {
        let Some(mut other) = self.empty.pop() else { return false };
        mem::swap(interval, &mut other);
        self.deliver(other);
        true
    }

    /// Hands over the last interval of a worker.
    fn deliver(&self, full: Box<Interval<T>>) {
        // There are never more intervals than places.
        let delivered = self.full.push(full);
        debug_assert!(delivered.is_ok());
    }

    /// Takes the next full interval.
    pub fn take(&self) -> Option<Box<Interval<T>>> {
        self.full.pop()
    }

    /// Returns an interval to be filled again.
    pub fn give_back(&self, mut interval: Box<Interval<T>>) {
        interval.tally.clear();
        let returned = self.empty.push(interval);
        debug_assert!(returned.is_ok());
    }
}
