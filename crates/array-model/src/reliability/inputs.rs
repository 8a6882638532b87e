//! Known facts of disks, and their possible values.

use serde::{Deserialize, Serialize};

use crate::ArrayError;

/// Known facts of the disks, and the time they have to serve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// Mean time between failures of one disk.
    pub mtbf_h: f64,
    pub disk_bytes: u64,
    pub unreadable: Unreadable,
    /// Service life that the probability of loss is for.
    pub service_h: f64,
    #[serde(default)]
    pub rebuild: RebuildTime,
}

impl Inputs {
    pub(super) fn validate(&self) -> Result<(), ArrayError> {
        above_zero("mtbf", self.mtbf_h)?;
        above_zero("service", self.service_h)?;
        if self.disk_bytes == 0 {
            return Err(ArrayError::invalid("disk.capacity", "0 bytes"));
        }
        self.unreadable.validate()
    }
}

/// How rebuilds scatter around their mean time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RebuildTime {
    /// They do not.
    #[default]
    Fixed,
    /// As the Markov chains behind the closed forms have it.
    Exponential,
}

/// Data that turn out to be unreadable when they are needed to rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Unreadable {
    /// Every bit read is lost with this probability; a data sheet's "sectors per bits read" is taken as this.
    BitErrors { rate: f64 },
    /// Defects arise on each disk at this rate, and a scrub finds and repairs them once in a period.
    LatentDefects { rate_per_h: f64, scrub_h: f64 },
}

impl Unreadable {
    fn validate(&self) -> Result<(), ArrayError> {
        match *self {
            Self::BitErrors { rate } if (0.0..1.0).contains(&rate) => Ok(()),
            Self::BitErrors { rate } => Err(ArrayError::invalid("ber", format!("{rate} is not from 0 to below 1"))),
            Self::LatentDefects { rate_per_h, scrub_h } => {
                if !(0.0..=MOST).contains(&rate_per_h) {
                    return Err(ArrayError::invalid("latent_rate", format!("{rate_per_h} is not a rate per hour")));
                }
                above_zero("scrub", scrub_h)
            }
        }
    }

    /// Probability that something on `disks` whole disks cannot be read.
    ///
    /// Bit errors: `1 - (1 - rate)^(8 disks bytes)`. Latent defects: `1 - (1 - p)^disks` with
    /// `p = 1 - exp(-rate scrub / 2)`: at a random moment half a scrub period has passed since a disk was clean.
    pub fn probability(&self, disks: u32, disk_bytes: u64) -> f64 {
        let disks = f64::from(disks);
        match *self {
            Self::BitErrors { rate } => -libm::expm1(8.0 * disks * disk_bytes as f64 * libm::log1p(-rate)),
            Self::LatentDefects { rate_per_h, scrub_h } => -libm::expm1(-disks * rate_per_h * scrub_h / 2.0),
        }
    }
}

/// Longest time and highest rate accepted: far beyond any disk, near enough that nothing overflows.
const MOST: f64 = 1e12;

/// Refuses a number that is not above 0.
pub(super) fn above_zero(parameter: &str, value: f64) -> Result<(), ArrayError> {
    if value > 0.0 && value <= MOST {
        Ok(())
    } else {
        Err(ArrayError::invalid(parameter, format!("{value} is not above 0 and at most 1e12")))
    }
}
