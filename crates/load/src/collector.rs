use std::collections::{BTreeMap, VecDeque};

use crate::interval::{Exchange, Tally};

/// More ticks than this are folded together from the oldest on.
const TICKS_KEPT: usize = 600;

/// One tick of the workers of one key, for series.
#[derive(Debug, Clone)]
pub struct Tick<K, S> {
    pub tick: u64,
    pub key: K,
    pub counted: S,
}

/// Merges the intervals of all workers tick by tick, those of one key together, and answers for any window of complete ticks.
pub struct Collector<K, T: Tally> {
    sources: Vec<Source<K, T>>,
    open: BTreeMap<u64, BTreeMap<K, T>>,
    kept: VecDeque<Kept<K, T::Compact>>,
    fresh: Vec<Tick<K, T::Summary>>,
    complete_ticks: u64,
    drained: BTreeMap<K, T>,
    /// Cleared tallies of ticks that are over: their histograms have room already.
    spare: Vec<T>,
}

struct Source<K, T> {
    key: K,
    exchange: Exchange<T>,
    next_tick: u64,
}

struct Kept<K, C> {
    first_tick: u64,
    last_tick: u64,
    groups: Vec<(K, C)>,
}

impl<K: Copy + Ord, T: Tally> Collector<K, T> {
    /// A collector of one exchange per worker.
    pub fn new(sources: impl IntoIterator<Item = (K, Exchange<T>)>) -> Self {
        let sources = sources.into_iter().map(|(key, exchange)| Source { key, exchange, next_tick: 0 }).collect();
        Self {
            sources,
            open: BTreeMap::new(),
            kept: VecDeque::new(),
            fresh: Vec::new(),
            complete_ticks: 0,
            drained: BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    /// Takes the workers' deliveries; returns the number of complete ticks.
    pub fn collect(&mut self) -> u64 {
        for source in &mut self.sources {
            while let Some(interval) = source.exchange.take() {
                source.next_tick = interval.next_tick;
                let totals = if interval.next_tick == u64::MAX {
                    &mut self.drained
                } else {
                    self.open.entry(interval.tick).or_default()
                };
                let spare = || self.spare.pop().unwrap_or_default();
                totals.entry(source.key).or_insert_with(spare).merge(&interval.tally);
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
            self.kept.push_back(Kept::of(tick, tick, &totals));
            for (key, mut tally) in totals {
                self.fresh.push(Tick { tick, key, counted: tally.summary() });
                tally.clear();
                self.spare.push(tally);
            }
        }
        if self.kept.len() > TICKS_KEPT {
            self.fold_oldest(TICKS_KEPT / 2);
        }
    }

    /// Makes one entry of the oldest ones; windows can then only begin before or after it.
    fn fold_oldest(&mut self, count: usize) {
        let oldest: Vec<_> = self.kept.drain(..count).collect();
        let mut totals = BTreeMap::<K, T>::new();
        oldest.iter().for_each(|kept| kept.add_to(&mut totals));
        self.kept.push_front(Kept::of(oldest[0].first_tick, oldest[count - 1].last_tick, &totals));
    }

    /// Ticks that became complete since the last call.
    pub fn fresh_ticks(&mut self) -> Vec<Tick<K, T::Summary>> {
        std::mem::take(&mut self.fresh)
    }

    /// Forgets the ticks before `tick`: the warm-up, or ticks before a sliding window.
    pub fn measure_from(&mut self, tick: u64) {
        while self.kept.front().is_some_and(|kept| kept.last_tick < tick) {
            self.kept.pop_front();
        }
    }

    /// Sums of the complete ticks in `from_tick..to_tick`.
    pub fn totals(&self, from_tick: u64, to_tick: u64) -> BTreeMap<K, T> {
        let mut totals = BTreeMap::new();
        self.kept
            .iter()
            .filter(|kept| kept.first_tick >= from_tick && kept.last_tick < to_tick)
            .for_each(|kept| kept.add_to(&mut totals));
        totals
    }

    /// I/Os that ended after the workers were told to stop.
    pub fn drained(&self) -> &BTreeMap<K, T> {
        &self.drained
    }

    pub fn complete_ticks(&self) -> u64 {
        self.complete_ticks
    }
}

impl<K: Copy + Ord, C> Kept<K, C> {
    fn of<T: Tally<Compact = C>>(first_tick: u64, last_tick: u64, totals: &BTreeMap<K, T>) -> Self {
        let groups = totals.iter().map(|(key, tally)| (*key, tally.compact())).collect();
        Self { first_tick, last_tick, groups }
    }

    fn add_to<T: Tally<Compact = C>>(&self, totals: &mut BTreeMap<K, T>) {
        for (key, compact) in &self.groups {
            totals.entry(*key).or_default().add(compact);
        }
    }
}
