//! Monte Carlo check of the closed forms: the same assumptions, played out event by event.
//!
//! A group is as new whenever all its disks are whole, so that its life is a chain of independent cycles, and
//! `MTTDL = E[hours of a cycle] / P(a cycle loses data)`. The hours come from cycles as they are. Loss is too rare to be
//! seen in them, so it comes from other cycles in which failures during rebuilds are made as likely as not, each weighted
//! by how much likelier it was made: A. Goyal, P. Shahabuddin, P. Heidelberger, V. F. Nicola, P. W. Glynn, "A Unified
//! Framework for Simulating Markovian Models of Highly Dependable Systems", IEEE Trans. Computers 41(1), 1992 (failure
//! biasing, a measure of its own for numerator and denominator); for rebuilds that are not exponential V. F. Nicola,
//! M. K. Nakayama, P. Heidelberger, A. Goyal, "Fast Simulation of Highly Dependable Systems with General Failure and
//! Repair Processes", IEEE Trans. Computers 42(12), 1993.

use core::f64::consts::LN_2;

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use serde::{Deserialize, Serialize};

use super::closed::{Closed, loss_probability};
use super::group::Group;
use super::inputs::RebuildTime;

/// Estimates of the simulation, with 95 % intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Mean time until the first of all groups loses data, hours.
    pub mttdl_h: f64,
    pub mttdl_interval_95_h: [f64; 2],
    /// Probability of loss in the service life.
    pub loss_probability: f64,
    pub loss_interval_95: [f64; 2],
    /// Whether the closed form lies in the interval, widened by [`NEGLECTED`].
    pub agrees: bool,
}

/// Share that a closed form may neglect: it takes no time for a rebuild and adds probabilities.
pub(super) const NEGLECTED: f64 = 0.01;

/// Two-sided 95 % of the normal distribution.
pub(super) const Z_95: f64 = 1.959_963_984_540_054;

/// Runs the cycles; `None` without trials.
pub(super) fn simulate(group: &Group, closed: &Closed, service_h: f64, trials: u32, seed: u64) -> Option<Simulated> {
    if trials == 0 {
        return None;
    }
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut hours = Mean::default();
    let mut losses = Mean::default();
    for _ in 0..trials {
        hours.add(cycle(group, &mut rng, false).hours);
        let biased = cycle(group, &mut rng, true);
        losses.add(if biased.lost { biased.weight } else { 0.0 });
    }
    // Both are far from 0 in units of their errors, so that the error of their ratio's logarithm is that of the first
    // order, and the interval never reaches below 0.
    let error = Z_95 * libm::sqrt(hours.relative_variance() + losses.relative_variance());
    let mttdl_h = hours.value() / losses.value() / f64::from(group.groups);
    let mttdl_interval_95_h = [mttdl_h * libm::exp(-error), mttdl_h * libm::exp(error)];
    let [low, high] = mttdl_interval_95_h;
    Some(Simulated {
        mttdl_h,
        mttdl_interval_95_h,
        loss_probability: loss_probability(mttdl_h, service_h),
        loss_interval_95: [loss_probability(high, service_h), loss_probability(low, service_h)],
        agrees: (low * (1.0 - NEGLECTED)..=high * (1.0 + NEGLECTED)).contains(&closed.mttdl_h),
    })
}

/// From all disks whole to all disks whole, or to loss.
struct Cycle {
    hours: f64,
    lost: bool,
    /// How much likelier the cycle is by itself than under the bias; 1 without.
    weight: f64,
}

fn cycle(group: &Group, rng: &mut SmallRng, biased: bool) -> Cycle {
    let mut cycle =
        Cycle { hours: exponential(rng, f64::from(group.disks) * group.failure_rate), lost: false, weight: 1.0 };
    for failed in 1..=group.tolerates {
        if failed == group.tolerates {
            let drawn = if biased && group.unreadable > 0.0 { group.unreadable.max(0.5) } else { group.unreadable };
            cycle.lost = rng.random::<f64>() < drawn;
            if cycle.lost {
                cycle.weight *= group.unreadable / drawn;
                return cycle;
            }
            cycle.weight *= (1.0 - group.unreadable) / (1.0 - drawn);
        }
        let rebuild_h = match group.rebuild {
            RebuildTime::Fixed => group.rebuild_h,
            RebuildTime::Exponential => exponential(rng, 1.0 / group.rebuild_h),
        };
        let rate = f64::from(group.disks - failed) * group.failure_rate;
        // Half of all mean rebuilds see a failure.
        let drawn = if biased { rate.max(LN_2 / group.rebuild_h) } else { rate };
        let next_h = exponential(rng, drawn);
        if next_h >= rebuild_h {
            cycle.hours += rebuild_h;
            cycle.weight *= libm::exp((drawn - rate) * rebuild_h);
            return cycle;
        }
        cycle.hours += next_h;
        cycle.weight *= rate / drawn * libm::exp((drawn - rate) * next_h);
    }
    cycle.lost = true;
    cycle
}

/// Time to the next event of a constant rate.
pub(super) fn exponential(rng: &mut SmallRng, rate: f64) -> f64 {
    -libm::log1p(-rng.random::<f64>()) / rate
}

/// Running mean and variance: B. P. Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products",
/// Technometrics 4(3), 1962.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
    }

    pub(super) fn value(&self) -> f64 {
        self.mean
    }

    /// Variance of the mean as a share of its square.
    pub(super) fn relative_variance(&self) -> f64 {
        self.squares / (self.count - 1.0).max(1.0) / self.count / (self.mean * self.mean)
    }
}
