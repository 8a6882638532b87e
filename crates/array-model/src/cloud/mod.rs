//! Volumes of a cloud: limits of volumes and machines as a provider states them, and nothing below them.
//!
//! An I/O passes the limits of the machine, then those of its volume, and then takes the latency of the volume. A limit holds
//! I/Os back; it refuses none. Limits are token buckets with the providers' own arithmetic.

mod bucket;
mod gate;
mod model;
mod plan;
mod snapshot;

pub use model::CloudModel;
pub use plan::{AccountingPlan, CloudPlan, CloudVolumePlan, LatencyPlan, LimitPlan, MachinePlan, SnapshotPlan};
