use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use rand::{SeedableRng, rngs::SmallRng};
use rand_distr::{Distribution, Exp1};

use crate::Load;

/// Says whether a checkpoint burst is going on, to the workers whose reads are told apart by it, and divides its time
/// among the workers in it, so that what they count adds up to the time in which any of them was in a burst.
#[derive(Debug, Default, Clone)]
pub struct BurstGate(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    inside: AtomicU32,
    /// Burst time up to here has been counted by some worker.
    counted_to_ns: AtomicU64,
}

impl BurstGate {
    /// Whether any worker is in a burst.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.0.inside.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn enter(&self, now_ns: u64) {
        if self.0.inside.fetch_add(1, Ordering::Relaxed) == 0 {
            self.0.counted_to_ns.fetch_max(now_ns, Ordering::Relaxed);
        }
    }

    /// Burst time up to now that no worker has counted yet; to be asked inside a burst only.
    pub(crate) fn uncounted_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.0.counted_to_ns.fetch_max(now_ns, Ordering::Relaxed))
    }

    pub(crate) fn leave(&self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Intended start times of one worker's I/Os.
pub struct Arrivals {
    kind: Kind,
    next_ns: u64,
}

enum Kind {
    Constant { gap_ns: f64, index: u64, first_ns: f64 },
    Poisson { gap_ns: f64, rng: SmallRng, exact_ns: f64, wave: Option<Wave> },
    Bursts { interval_ns: u64, gap_ns: f64, per_burst: u64, burst: u64, index: u64 },
}

/// A rate that is higher in the first part of each period: even time, in which arrivals have the mean rate, becomes time.
#[derive(Clone, Copy)]
struct Wave {
    period_ns: f64,
    /// The part of a period in which the rate is high, and the part of the arrivals that come in it.
    time_share: f64,
    arrivals_share: f64,
}

impl Wave {
    fn at_ns(&self, even_ns: f64) -> f64 {
        let periods = (even_ns / self.period_ns).floor();
        let within = even_ns / self.period_ns - periods;
        let part = if within < self.arrivals_share {
            within * self.time_share / self.arrivals_share
        } else {
            self.time_share + (within - self.arrivals_share) * (1.0 - self.time_share) / (1.0 - self.arrivals_share)
        };
        (periods + part) * self.period_ns
    }
}

impl Arrivals {
    /// Arrivals of worker `worker` of `workers` that share the load; `None` for a closed loop and for a trace.
    pub fn new(load: &Load, mean_block_bytes: f64, seed: u64, worker: u32, workers: u32) -> Option<Self> {
        let workers_f = f64::from(workers);
        let mut arrivals = match *load {
            Load::Closed { .. } | Load::Spread { .. } | Load::Replay { .. } => return None,
            Load::Open { rate, poisson: false, .. } => {
                let gap_ns = 1e9 * workers_f / rate;
                // Workers take turns, so that together they keep constant gaps.
                let first_ns = gap_ns * f64::from(worker) / workers_f;
                Self { kind: Kind::Constant { gap_ns, index: 0, first_ns }, next_ns: first_ns as u64 }
            }
            Load::Open { rate, poisson: true, .. } => Self::poisson(1e9 * workers_f / rate, seed, None),
            Load::Waves { rate, peak_factor, peak_share, period_ns, .. } => {
                let arrivals_share = (peak_factor * peak_share).min(1.0);
                let wave = Wave { period_ns: period_ns as f64, time_share: peak_share, arrivals_share };
                Self::poisson(1e9 * workers_f / rate, seed, Some(wave))
            }
            Load::Bursts { interval_ns, bytes, spread_share, .. } => {
                let per_burst = ((bytes as f64 / mean_block_bytes / workers_f).round() as u64).max(1);
                let gap_ns = interval_ns as f64 * spread_share / per_burst as f64;
                Self { kind: Kind::Bursts { interval_ns, gap_ns, per_burst, burst: 0, index: 0 }, next_ns: 0 }
            }
        };
        if matches!(arrivals.kind, Kind::Poisson { .. }) {
            arrivals.advance();
        }
        Some(arrivals)
    }

    fn poisson(gap_ns: f64, seed: u64, wave: Option<Wave>) -> Self {
        Self { kind: Kind::Poisson { gap_ns, rng: SmallRng::seed_from_u64(seed), exact_ns: 0.0, wave }, next_ns: 0 }
    }

    /// Intended start of the next I/O.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Whether the next I/O is the first of a burst.
    #[inline]
    pub fn starts_burst(&self) -> bool {
        matches!(self.kind, Kind::Bursts { index: 0, .. })
    }

    /// Takes the next arrival; returns its intended start.
    #[inline]
    pub fn advance(&mut self) -> u64 {
        let taken_ns = self.next_ns;
        match &mut self.kind {
            Kind::Constant { gap_ns, index, first_ns } => {
                *index += 1;
                // Multiplied, not accumulated: the schedule does not drift with rounding.
                self.next_ns = (*first_ns + *index as f64 * *gap_ns) as u64;
            }
            Kind::Poisson { gap_ns, rng, exact_ns, wave } => {
                let gap: f64 = Exp1.sample(rng);
                *exact_ns += gap * *gap_ns;
                self.next_ns = wave.map_or(*exact_ns, |wave| wave.at_ns(*exact_ns)) as u64;
            }
            Kind::Bursts { interval_ns, gap_ns, per_burst, burst, index } => {
                *index += 1;
                if *index == *per_burst {
                    *index = 0;
                    *burst += 1;
                }
                self.next_ns = *burst * *interval_ns + (*index as f64 * *gap_ns) as u64;
            }
        }
        taken_ns
    }

    /// Arrivals that were due before `until_ns` and not taken, up to a bound that keeps the count quick.
    pub fn count_due(&mut self, until_ns: u64) -> u64 {
        const COUNT_MAX: u64 = 10_000_000;
        let mut count = 0;
        while self.next_ns < until_ns && count < COUNT_MAX {
            self.advance();
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn constant_arrivals_of_all_workers_interleave_to_one_rate(rate in 1_f64..1e6, workers in 1_u32..8) {
            let load = Load::Open { rate, poisson: false, queue_depth: 1 };
            let mut times: Vec<u64> = (0..workers)
                .flat_map(|worker| {
                    let mut arrivals = Arrivals::new(&load, 8192.0, 1, worker, workers).unwrap();
                    (0..50).map(|_| arrivals.advance()).collect::<Vec<_>>()
                })
                .collect();
            times.sort_unstable();
            for pair in times.windows(2) {
                let gap_ns = (pair[1] - pair[0]) as f64;
                prop_assert!((gap_ns - 1e9 / rate).abs() <= 2.0, "{gap_ns}");
            }
        }

        #[test]
        fn arrivals_never_go_backwards(rate in 1_f64..1e7, poisson: bool, seed: u64) {
            let load = Load::Open { rate, poisson, queue_depth: 1 };
            let mut arrivals = Arrivals::new(&load, 8192.0, seed, 0, 1).unwrap();
            let mut last_ns = 0;
            for _ in 0..200 {
                let now_ns = arrivals.advance();
                prop_assert!(now_ns >= last_ns);
                last_ns = now_ns;
            }
        }
    }

    #[test]
    fn workers_in_a_burst_share_its_time_among_them() {
        let gate = BurstGate::default();
        gate.enter(10);
        gate.enter(20);
        let mut counted_ns = gate.uncounted_ns(30);
        assert_eq!(counted_ns, 20);
        counted_ns += gate.uncounted_ns(35) + gate.uncounted_ns(35);
        gate.leave();
        assert!(gate.is_open());
        counted_ns += gate.uncounted_ns(50);
        gate.leave();
        assert!(!gate.is_open());
        assert_eq!(counted_ns, 40);
        gate.enter(1000);
        assert_eq!(gate.uncounted_ns(1005), 5, "the time between bursts counts for no arrival");
    }

    #[test]
    fn counting_what_is_due_has_a_bound() {
        let load = Load::Open { rate: 1e9, poisson: false, queue_depth: 1 };
        let mut arrivals = Arrivals::new(&load, 8192.0, 1, 0, 1).unwrap();
        assert_eq!(arrivals.count_due(1000), 1000);
        assert_eq!(arrivals.count_due(u64::MAX), 10_000_000);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process() {
        let load = Load::Open { rate: 1000.0, poisson: true, queue_depth: 1 };
        let mut arrivals = Arrivals::new(&load, 8192.0, 5, 0, 1).unwrap();
        let mut last_ns = 0;
        let gaps: Vec<f64> = (0..100_000)
            .map(|_| {
                let at_ns = arrivals.advance();
                let gap = (at_ns - last_ns) as f64;
                last_ns = at_ns;
                gap
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
    }

    #[test]
    fn waves_keep_the_mean_rate_and_have_their_share_in_the_peak() {
        let load =
            Load::Waves { rate: 1000.0, peak_factor: 6.0, peak_share: 0.1, period_ns: 1_000_000_000, queue_depth: 1 };
        let mut arrivals = Arrivals::new(&load, 8192.0, 5, 0, 1).unwrap();
        let times: Vec<u64> = (0..100_000).map(|_| arrivals.advance()).collect();
        assert!(times.is_sorted());
        assert!((*times.last().unwrap() as f64 / 1e11 - 1.0).abs() < 0.02);
        let peak = times.iter().filter(|&time_ns| time_ns % 1_000_000_000 < 100_000_000).count() as f64 / 1e5;
        assert!((peak - 0.6).abs() < 0.01, "{peak}");
    }

    #[test]
    fn a_burst_writes_its_bytes_within_its_spread() {
        let load = Load::Bursts { interval_ns: 1_000_000_000, bytes: 80 * 8192, spread_share: 0.5, queue_depth: 4 };
        let mut arrivals = Arrivals::new(&load, 8192.0, 1, 0, 1).unwrap();
        for burst in 0..3_u64 {
            assert!(arrivals.starts_burst());
            let times: Vec<u64> = (0..80).map(|_| arrivals.advance()).collect();
            assert_eq!(times[0], burst * 1_000_000_000);
            assert!(times[79] < burst * 1_000_000_000 + 500_000_000);
        }
    }
}
