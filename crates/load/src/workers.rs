use std::sync::{Arc, atomic::AtomicBool};

use crate::{Activity, BurstGate, Exchange, Feed, GroupKey, IoTally, LoadError, Pulse, WorkerPlan};

/// Most workers of a session: more are a mistake.
pub const WORKERS_MAX: usize = 4096;

/// Plan that all workers of a session share.
#[derive(Debug, Clone, Copy)]
pub struct WorkersPlan<'a> {
    pub activities: &'a [Activity],
    pub seed: u64,
    /// Length of a tick.
    pub interval_ns: u64,
    pub io_timeout_ns: u64,
    /// Intervals a worker can be ahead of the collector before they grow longer.
    pub spare_intervals: usize,
    /// Of the process the workers run in.
    pub pulse: &'a Pulse,
    /// Processors that the workers may keep busy.
    pub processors: usize,
    /// I/Os of the traces that workers replay, one feed for each such worker in their order.
    pub feeds: &'a [Feed],
}

/// Sources of a collector's intervals.
pub type Sources = Vec<(GroupKey, Exchange<IoTally>)>;

/// Workers with the volumes they are on.
pub type VolumeWorkers = Vec<(usize, WorkerPlan)>;

/// Refuses feeds that are not one for each worker that replays a trace.
///
/// # Errors
/// [`LoadError::InvalidValue`] with both numbers.
pub fn validate_feeds(activities: &[Activity], feeds: &[Feed]) -> Result<(), LoadError> {
    let replays = activities.iter().filter(|activity| activity.load.is_replay());
    let workers: u32 = replays.map(Activity::workers_total).sum();
    if feeds.len() == workers as usize {
        return Ok(());
    }
    let message = format!("{} feeds are not one for each of {workers} workers that replay a trace", feeds.len());
    Err(LoadError::InvalidValue { field: "trace", message })
}

/// Plans of all workers of all activities, each with the volume it is on, and what the collector gets their intervals from.
///
/// Every worker has a seed of its own, and all share the gate of bursts.
pub fn plan_workers(plan: &WorkersPlan<'_>, stop: &Arc<AtomicBool>) -> (Sources, VolumeWorkers) {
    let gate = BurstGate::default();
    let mut sources = Vec::new();
    let mut workers = Vec::new();
    let mut feeds = plan.feeds.iter();
    let workers_all: u32 = plan.activities.iter().map(Activity::workers_total).sum();
    for (activity_index, activity) in plan.activities.iter().enumerate() {
        let workers_total = activity.workers_total();
        for (position, &volume) in activity.volumes.iter().enumerate() {
            for worker_on_volume in 0..activity.workers {
                let exchange = Exchange::new(plan.spare_intervals);
                sources.push((GroupKey { activity: activity_index, volume }, exchange.clone()));
                let number = workers.len() as u64;
                let worker_plan = WorkerPlan {
                    activity: activity.clone(),
                    volume: 0,
                    worker_on_volume,
                    workers_on_volume: activity.workers,
                    worker: position as u32 * activity.workers + worker_on_volume,
                    workers: workers_total,
                    seed: plan.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                    interval_ns: plan.interval_ns,
                    io_timeout_ns: plan.io_timeout_ns,
                    gate: gate.clone(),
                    pulse: plan.pulse.clone(),
                    stop: Arc::clone(stop),
                    exchange,
                    has_processor: workers_all as usize <= plan.processors,
                    feed: if activity.load.is_replay() { feeds.next().cloned() } else { None },
                };
                workers.push((volume, worker_plan));
            }
        }
    }
    (sources, workers)
}
