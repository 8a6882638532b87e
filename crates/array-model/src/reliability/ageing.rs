//! Reliability when failures and restores are not exponential.
//!
//! J. G. Elerath, M. Pecht, "A Highly Accurate Method for Assessing Reliability of Redundant Arrays of Inexpensive Disks
//! (RAID)", IEEE Trans. Computers 58(3), 2009: disks' lives are Weibull, restores are Weibull after a least time. Cycles
//! of such a group are not alike, so that its whole service life is played.

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use serde::{Deserialize, Serialize};

use super::group::Group;
use super::inputs::above_zero;
use super::simulate::{Mean, Z_95};
use crate::ArrayError;

/// Failures that take about half a minute of one core.
const FAILURES_MAX: f64 = 2e8;

/// Shapes of the distributions; the means are those of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ageing {
    /// Weibull shape of disks' lives: below 1 they fail early, 1 at a constant rate, above 1 they wear out.
    pub failure_shape: f64,
    /// Weibull shape of the restore beyond its least time.
    pub restore_shape: f64,
    /// Least time of a restore as a share of its mean.
    pub restore_least: f64,
}

/// Probability that any group loses data in the service life, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Aged {
    pub loss_probability: f64,
    pub loss_interval_95: [f64; 2],
}

/// A Weibull distribution by its scale.
struct Weibull {
    shape: f64,
    scale: f64,
}

impl Weibull {
    fn of_mean(mean: f64, shape: f64) -> Self {
        Self { shape, scale: mean / libm::tgamma(1.0 + 1.0 / shape) }
    }

    fn draw(&self, rng: &mut SmallRng) -> f64 {
        self.scale * libm::pow(-libm::log1p(-rng.random::<f64>()), 1.0 / self.shape)
    }

    /// Integral of the failure rate over a disk's life up to an age.
    fn cumulative_hazard(&self, age_h: f64) -> f64 {
        libm::pow(age_h / self.scale, self.shape)
    }
}

impl Ageing {
    pub(super) fn validate(&self) -> Result<(), ArrayError> {
        for (parameter, shape) in
            [("ageing.failure_shape", self.failure_shape), ("ageing.restore_shape", self.restore_shape)]
        {
            above_zero(parameter, shape)?;
            if !(0.2..=20.0).contains(&shape) {
                return Err(ArrayError::invalid(parameter, format!("{shape} is not from 0.2 to 20")));
            }
        }
        if !(0.0..1.0).contains(&self.restore_least) {
            let message = format!("{} is not from 0 to below 1", self.restore_least);
            return Err(ArrayError::invalid("ageing.restore_least", message));
        }
        Ok(())
    }

    /// Refuses lives with more failures than can be played in a reasonable time.
    pub(super) fn check_work(group: &Group, service_h: f64, lives: u32) -> Result<(), ArrayError> {
        let failures = f64::from(lives) * f64::from(group.disks) * (service_h * group.failure_rate + 1.0);
        if failures > FAILURES_MAX {
            let message =
                format!("{failures:.0e} failures to play; give a longer MTBF, a shorter life or fewer trials");
            return Err(ArrayError::invalid("ageing", message));
        }
        Ok(())
    }

    /// Plays `lives` service lives of one group, all disks new at the start and each replaced by a new one.
    ///
    /// First failures are drawn. What follows a failure is not drawn but computed from the ages of the other disks, which
    /// sees the rare losses of every life (conditional Monte Carlo). A third failure finds the disks no older than
    /// the first one did.
    pub(super) fn simulate(&self, group: &Group, service_h: f64, lives: u32, seed: u64) -> Aged {
        let mut rng = SmallRng::seed_from_u64(!seed);
        let life = Weibull::of_mean(1.0 / group.failure_rate, self.failure_shape);
        let least_h = self.restore_least * group.rebuild_h;
        let restore = Weibull::of_mean(group.rebuild_h - least_h, self.restore_shape);
        let mut losses = Mean::default();
        let mut born_h = vec![0.0; group.disks as usize];
        let mut dies_h = vec![0.0; group.disks as usize];
        let mut hazards = vec![0.0; group.disks as usize];
        for _ in 0..lives {
            born_h.fill(0.0);
            dies_h.fill_with(|| life.draw(&mut rng));
            let mut log_survival = 0.0;
            while let Some((slot, at_h)) = first(&dies_h).filter(|&(_, at_h)| at_h < service_h) {
                let restore_h = least_h + restore.draw(&mut rng);
                for (other, hazard) in hazards.iter_mut().enumerate() {
                    // A replacement that is still being restored counts as new.
                    let age_h = (at_h - born_h[other]).max(0.0);
                    *hazard = life.cumulative_hazard(age_h + restore_h) - life.cumulative_hazard(age_h);
                }
                hazards[slot] = 0.0;
                log_survival += libm::log1p(-loss_after_failure(group, &hazards).min(1.0));
                born_h[slot] = at_h + restore_h;
                dies_h[slot] = born_h[slot] + life.draw(&mut rng);
            }
            losses.add(-libm::expm1(log_survival));
        }
        let error = if losses.value() > 0.0 { Z_95 * libm::sqrt(losses.relative_variance()) } else { 0.0 };
        let of_any = |factor: f64| {
            let of_one = (losses.value() * factor).min(1.0);
            -libm::expm1(f64::from(group.groups) * libm::log1p(-of_one))
        };
        Aged { loss_probability: of_any(1.0), loss_interval_95: [of_any(libm::exp(-error)), of_any(libm::exp(error))] }
    }
}

/// The disk that fails next, and when.
fn first(dies_h: &[f64]) -> Option<(usize, f64)> {
    dies_h.iter().copied().enumerate().min_by(|one, other| one.1.total_cmp(&other.1))
}

/// Probability that data are lost before a disk is restored, from the others' failure rates integrated over that time.
fn loss_after_failure(group: &Group, hazards: &[f64]) -> f64 {
    let all: f64 = hazards.iter().sum();
    let failure_or_unreadable = |hazard: f64| group.unreadable - (1.0 - group.unreadable) * libm::expm1(-hazard);
    match group.tolerates {
        0 => 1.0,
        1 => failure_or_unreadable(all),
        _ => hazards.iter().map(|hazard| -libm::expm1(-hazard) * failure_or_unreadable(all - hazard)).sum(),
    }
}
