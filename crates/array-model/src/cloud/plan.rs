//! Plan of a cloud's volumes, in base units.

use serde::{Deserialize, Serialize};

use crate::{
    ArrayError,
    plan::limits::{check, time},
};

const VOLUMES_MAX: usize = 4096;
const VOLUME_MAX: u64 = 1 << 50;
/// Beyond these a number is no limit of a volume, and sums would not fit.
const RATE_MAX: f64 = 1e12;
const CREDITS_MAX: u64 = 1 << 60;

/// Volumes of one machine, and what the machine itself may do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudPlan {
    /// Seed of latencies.
    pub seed: u64,
    pub volumes: Vec<CloudVolumePlan>,
    /// None: the machine is never the limit.
    pub machine: Option<MachinePlan>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudVolumePlan {
    pub name: String,
    pub bytes: u64,
    /// I/Os.
    pub operations: LimitPlan,
    /// Bytes.
    pub transfer: LimitPlan,
    pub accounting: AccountingPlan,
    pub latency: LatencyPlan,
    /// The volume begins as a copy of a snapshot that is loaded when it is touched.
    pub snapshot: Option<SnapshotPlan>,
}

/// Limits of all volumes of a machine together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachinePlan {
    pub operations: LimitPlan,
    pub transfer: LimitPlan,
}

/// A baseline, and what passes above it while there are credits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitPlan {
    pub per_s: f64,
    /// No burst where it is not above the baseline.
    pub burst_per_s: f64,
    /// Credits of a full bucket: the burst spends them, less what the baseline earns meanwhile.
    pub credits: u64,
    /// Share of them at the beginning.
    pub start_share: f64,
    /// As much as the burst lets pass in this time may pass at once.
    pub window_ns: u64,
}

/// How I/Os are counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountingPlan {
    /// Largest I/O that counts as one; 0: of any size.
    pub unit_bytes: u64,
    /// I/Os that follow each other on the volume while both are outstanding count together, up to a unit.
    pub merges: bool,
    /// Bytes are counted in whole units too.
    pub whole_units: bool,
}

/// Time of an I/O that no limit holds back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyPlan {
    /// Means.
    pub read_ns: u64,
    pub write_ns: u64,
    pub flush_ns: u64,
    /// Share of the mean that varies, exponentially; the rest every I/O takes.
    pub varying_share: f64,
}

/// How a volume loads what it was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotPlan {
    pub block_bytes: u64,
    /// Of the first touch of a block, beyond the latency of the volume.
    pub latency_ns: u64,
    /// Most that touching loads.
    pub bytes_per_s: f64,
    /// Rate of loading in the background, from the beginning of the volume on; 0: blocks are loaded by touch alone.
    pub background_bytes_per_s: f64,
}

impl CloudPlan {
    /// Refuses impossible parameters.
    ///
    /// # Errors
    /// The first parameter that is impossible.
    pub fn validate(&self) -> Result<(), ArrayError> {
        let count = self.volumes.len();
        check((1..=VOLUMES_MAX).contains(&count), "volumes", || format!("{count} is outside 1 to {VOLUMES_MAX}"))?;
        self.volumes.iter().try_for_each(CloudVolumePlan::validate)?;
        let Some(machine) = &self.machine else { return Ok(()) };
        machine.operations.validate("instance.iops")?;
        machine.transfer.validate("instance.throughput")
    }
}

impl CloudVolumePlan {
    fn validate(&self) -> Result<(), ArrayError> {
        check((1..=VOLUME_MAX).contains(&self.bytes), "size", || "is outside 1 byte to 1 PiB".into())?;
        self.operations.validate("iops")?;
        self.transfer.validate("throughput")?;
        let unit = self.accounting.unit_bytes;
        check(unit <= 1 << 30, "accounting.unit", || format!("{unit} bytes is above 1 GiB"))?;
        check(unit > 0 || !(self.accounting.merges || self.accounting.whole_units), "accounting.unit", || {
            "is 0, and I/Os are to be counted in units".into()
        })?;
        let LatencyPlan { read_ns, write_ns, flush_ns, varying_share } = self.latency;
        for (value, name) in [(read_ns, "latency.read"), (write_ns, "latency.write"), (flush_ns, "latency.flush")] {
            time(value, name)?;
        }
        check((0.0..=1.0).contains(&varying_share), "latency.varying", || {
            format!("{varying_share} is outside 0 to 1")
        })?;
        self.snapshot.as_ref().map_or(Ok(()), SnapshotPlan::validate)
    }
}

impl LimitPlan {
    fn validate(&self, name: &str) -> Result<(), ArrayError> {
        let Self { per_s, burst_per_s, credits, start_share, window_ns } = *self;
        check((1.0..=RATE_MAX).contains(&per_s) && (0.0..=RATE_MAX).contains(&burst_per_s), name, || {
            format!("{per_s} to {burst_per_s} a second is outside 1 to {RATE_MAX}")
        })?;
        check(credits <= CREDITS_MAX, name, || format!("{credits} credits are above {CREDITS_MAX}"))?;
        check((0.0..=1.0).contains(&start_share), name, || format!("credits of {start_share} are outside 0 to 1"))?;
        time(window_ns, name)
    }
}

impl SnapshotPlan {
    fn validate(&self) -> Result<(), ArrayError> {
        check(
            self.block_bytes.is_power_of_two() && (4096..=1 << 30).contains(&self.block_bytes),
            "snapshot.block",
            || format!("{} bytes is no power of two from 4 KiB to 1 GiB", self.block_bytes),
        )?;
        time(self.latency_ns, "snapshot.latency")?;
        check((1.0..=RATE_MAX).contains(&self.bytes_per_s), "snapshot.rate", || {
            format!("{} bytes a second is outside 1 to {RATE_MAX}", self.bytes_per_s)
        })?;
        check((0.0..=RATE_MAX).contains(&self.background_bytes_per_s), "snapshot.background", || {
            format!("{} bytes a second is outside 0 to {RATE_MAX}", self.background_bytes_per_s)
        })
    }
}
