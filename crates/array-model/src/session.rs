//! Activities on a modelled array: workers, ticks and telemetry on its virtual clock.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use assay_load::{
    Activity, Feed, IoCollector, LoadError, Op, Outcome, Pattern, Pulse, VirtualDriver, WORKERS_MAX, Worker,
    WorkerPlan, WorkersPlan, plan_workers, validate_feeds,
};
use serde::Deserialize;

use crate::{HostReading, LogReading, MemberReading, Model, Modelled};

/// Several activities on the volumes of a model at once.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPlan {
    pub activities: Vec<Activity>,
    pub seed: u64,
    /// Length of a tick.
    pub interval_ns: u64,
    /// Whether the caches shall hold at the start what they would hold after such I/O for a long time.
    pub warm: bool,
}

impl SessionPlan {
    /// Refuses a plan that the model cannot carry out.
    ///
    /// # Errors
    /// The first thing that cannot.
    pub fn validate(&self, model: &impl Modelled) -> Result<(), LoadError> {
        let invalid = |field, message: String| Err(LoadError::InvalidValue { field, message });
        if self.interval_ns == 0 {
            return invalid("interval_ns", "must be above 0".into());
        }
        let mut workers = 0_usize;
        for activity in &self.activities {
            activity.validate(1)?;
            let mut sizes = activity.volumes.iter().map(|volume| model.volume_bytes(*volume));
            if sizes.any(|bytes| bytes.is_none_or(|bytes| activity.access.region.end_bytes > bytes)) {
                return invalid("region", format!("{}: its region is not within its volumes", activity.name));
            }
            workers = workers.saturating_add(activity.volumes.len().saturating_mul(activity.workers as usize));
        }
        if workers == 0 || workers > WORKERS_MAX {
            return invalid("workers", format!("{workers} in total is outside 1 to {WORKERS_MAX}"));
        }
        Ok(())
    }
}

/// Most accesses that warming draws.
const WARMING_MAX: u64 = 1 << 22;
/// Share of newly dirty bytes below which a change of the dirty level counts as rest.
const BALANCE_SHARE: f64 = 0.10;
/// Over how long that is judged.
const BALANCE_NS: u64 = 2_000_000_000;
/// Telemetry is taken no more often than this.
const READING_NS: u64 = 1_000_000_000;

/// Work of the members in the interval that ended at `at_ns`.
#[derive(Debug, Clone)]
pub struct Reading {
    pub at_ns: u64,
    pub interval_ns: u64,
    /// Sums since the model was made, at the beginning and at the end.
    pub before: Vec<MemberReading>,
    pub after: Vec<MemberReading>,
    /// The same of the hosts.
    pub hosts_before: Vec<HostReading>,
    pub hosts_after: Vec<HostReading>,
    /// The same of a log-structured pool, where there is one.
    pub log: Option<[LogReading; 2]>,
}

/// Workers at work on a model. Time passes only in [`Self::run_ticks`] and [`Self::finish`].
pub struct ModelSession {
    driver: VirtualDriver<Model>,
    collector: IoCollector,
    stop: Arc<AtomicBool>,
    /// The model's time when the session began; its own starts at 0.
    interval_ns: u64,
    ticks_run: u64,
    workers_count: usize,
    telemetry: Telemetry,
}

/// Telemetry of a model while I/O goes on, whoever issues it.
pub struct Telemetry {
    readings: Vec<Reading>,
    last: Last,
    balance: Balance,
}

/// A model as it was looked at last.
struct Last {
    at_ns: u64,
    members: Vec<MemberReading>,
    hosts: Vec<HostReading>,
    log: Option<LogReading>,
}

/// Whether as much goes to disk as is written.
struct Balance {
    since_ns: u64,
    dirty_bytes: u64,
    destaged_bytes: u64,
    settled: bool,
}

impl ModelSession {
    /// Workers at time 0 of a model that has not been used, or goes on where another session left it.
    ///
    /// # Errors
    /// An activity cannot be carried out.
    pub fn start(model: impl Into<Model>, plan: &SessionPlan) -> Result<Self, LoadError> {
        Self::start_fed(model, plan, &[])
    }

    /// The same, with I/Os of traces for the workers that replay some, one feed for each of these in their order.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_fed(model: impl Into<Model>, plan: &SessionPlan, feeds: &[Feed]) -> Result<Self, LoadError> {
        let mut model = model.into();
        plan.validate(&model)?;
        validate_feeds(&plan.activities, feeds)?;
        if plan.warm {
            warm(&mut model, plan);
        }
        let workers_plan = WorkersPlan {
            activities: &plan.activities,
            seed: plan.seed,
            interval_ns: plan.interval_ns,
            // The model always answers.
            io_timeout_ns: u64::MAX,
            spare_intervals: 1,
            // Nor does a virtual clock ever stand still.
            pulse: &Pulse::default(),
            processors: 0,
            feeds,
        };
        feeds.iter().for_each(Feed::be_patient);
        let stop = Arc::new(AtomicBool::new(false));
        let (sources, workers) = plan_workers(&workers_plan, &stop);
        let workers: Vec<Worker> = workers
            .into_iter()
            .map(|(volume, worker)| Worker::new(WorkerPlan { volume: volume as u16, ..worker }))
            .collect();
        model.begin_session();
        let telemetry = Telemetry::new(&model);
        Ok(Self {
            workers_count: workers.len(),
            driver: VirtualDriver::new(model, workers),
            collector: IoCollector::new(sources),
            stop,
            interval_ns: plan.interval_ns,
            ticks_run: 0,
            telemetry,
        })
    }

    /// Lets `ticks` ticks pass.
    pub fn run_ticks(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.ticks_run += 1;
            let to_ns = self.ticks_run * self.interval_ns;
            self.driver.run_to(to_ns);
            self.collector.collect();
            self.telemetry.read(self.driver.model(), to_ns);
        }
    }

    /// Bytes per second over `ticks` ticks, after a warm-up that goes on until the caches rest, by `settling_ticks` at most.
    pub fn bytes_per_s(mut self, warmup_ticks: u64, settling_ticks: u64, ticks: u64) -> f64 {
        self.run_ticks(warmup_ticks);
        let most = warmup_ticks + settling_ticks;
        while !self.settled() && self.ticks_run < most {
            self.run_ticks(1);
        }
        let from_tick = self.ticks_run;
        self.collector.measure_from(from_tick);
        self.run_ticks(ticks);
        let totals = self.collector.totals(from_tick, from_tick + ticks);
        let bytes: u64 = totals.values().map(|tally| tally.read.bytes + tally.write.bytes).sum();
        bytes as f64 / ((ticks * self.interval_ns) as f64 / 1e9)
    }

    /// Stops issuing I/O and lets outstanding I/O end.
    pub fn finish(&mut self) {
        self.stop();
        while self.driver.outcomes().is_none() {
            self.run_ticks(1);
        }
        self.collector.collect();
    }

    /// Stops issuing.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// I/Os that were due and never issued, and the age of the oldest, once all workers have ended.
    pub fn unfinished(&self) -> Option<(u64, u64)> {
        let outcomes = self.driver.outcomes()?;
        Some(outcomes.iter().fold((0, 0), |(count, oldest_ns), outcome| match outcome {
            Outcome::Stopped { unfinished_count, oldest_unfinished_ns } => {
                (count + unfinished_count, oldest_ns.max(*oldest_unfinished_ns))
            }
            _ => (count, oldest_ns),
        }))
    }

    /// Whether the caches have come to rest: as much went to disk lately as was written.
    pub fn settled(&self) -> bool {
        self.telemetry.settled()
    }

    /// Readings of the members since the last call.
    pub fn take_readings(&mut self) -> Vec<Reading> {
        self.telemetry.take()
    }

    pub fn collector(&mut self) -> &mut IoCollector {
        &mut self.collector
    }

    pub fn now_ns(&self) -> u64 {
        self.driver.now_ns()
    }

    pub fn workers_count(&self) -> usize {
        self.workers_count
    }

    /// The model, as the session leaves it.
    pub fn into_model(self) -> Model {
        self.driver.into_model()
    }
}

impl Telemetry {
    /// From a model whose clock is at 0.
    pub fn new(model: &impl Modelled) -> Self {
        let last = Last { at_ns: 0, members: model.readings(), hosts: model.host_readings(), log: model.log_reading() };
        let (dirty_bytes, destaged_bytes) = sums(&last.members);
        let balance = Balance { since_ns: 0, dirty_bytes, destaged_bytes, settled: false };
        Self { readings: Vec::new(), last, balance }
    }

    /// Looks at the model, whose clock is at `now_ns`.
    pub fn read(&mut self, model: &impl Modelled, now_ns: u64) {
        let ends_reading = now_ns - self.last.at_ns >= READING_NS;
        let judges = now_ns - self.balance.since_ns >= BALANCE_NS;
        if !ends_reading && !judges {
            return;
        }
        let after = model.readings();
        if judges {
            let (dirty_bytes, destaged_bytes) = sums(&after);
            // Not what was written: a page that is written again before it goes to disk is dirty once.
            let dirtied = (dirty_bytes + destaged_bytes) - (self.balance.dirty_bytes + self.balance.destaged_bytes);
            let change = dirty_bytes.abs_diff(self.balance.dirty_bytes);
            let settled = change as f64 <= BALANCE_SHARE * dirtied as f64;
            self.balance = Balance { since_ns: now_ns, dirty_bytes, destaged_bytes, settled };
        }
        if ends_reading {
            let (hosts_after, log_after) = (model.host_readings(), model.log_reading());
            let last = Last { at_ns: now_ns, members: after.clone(), hosts: hosts_after.clone(), log: log_after };
            let before = std::mem::replace(&mut self.last, last);
            self.readings.push(Reading {
                at_ns: now_ns,
                interval_ns: now_ns - before.at_ns,
                before: before.members,
                after,
                hosts_before: before.hosts,
                hosts_after,
                log: before.log.zip(log_after).map(|(before, after)| [before, after]),
            });
        }
    }

    /// Whether the caches have come to rest: as much went to disk lately as was written.
    pub fn settled(&self) -> bool {
        self.balance.settled
    }

    /// Readings of the members since the last call.
    pub fn take(&mut self) -> Vec<Reading> {
        std::mem::take(&mut self.readings)
    }
}

fn sums(members: &[MemberReading]) -> (u64, u64) {
    let dirty_bytes = members.iter().map(|member| member.dirty_bytes).sum();
    (dirty_bytes, members.iter().map(|member| member.destaged_bytes).sum())
}

/// Lets the caches hold what they would hold after the random part of the plan's I/O for a long time; streams leave nothing
/// there that a later read comes back to, save where a cache keeps all that was ever written.
///
/// This is functional warming (Wunderlich and others, "SMARTS", 2003): the accesses are those of the workload, without their time.
pub fn warm(model: &mut impl Modelled, plan: &SessionPlan) {
    draw_accesses(model, plan);
    let region = |activity: &Activity| activity.access.region.start_bytes..activity.access.region.end_bytes;
    let regions = plan
        .activities
        .iter()
        .flat_map(|activity| activity.volumes.iter().map(move |volume| (*volume as u16, region(activity))));
    model.fill(&regions.collect::<Vec<_>>());
}

fn draw_accesses(model: &mut impl Modelled, plan: &SessionPlan) {
    let mut patterns: Vec<(u16, Pattern)> = Vec::new();
    let (mut reads, mut writes) = (false, false);
    let drawn = |activity: &&Activity| activity.access.random_share > 0.0 && !activity.load.is_replay();
    for activity in plan.activities.iter().filter(drawn) {
        let mut access = activity.access.clone();
        access.random_share = 1.0;
        reads |= access.read_share > 0.0;
        writes |= access.read_share < 1.0;
        for &volume in &activity.volumes {
            let seed = plan.seed ^ (0x5741_524d_u64 << 32) ^ patterns.len() as u64;
            patterns.push((volume as u16, Pattern::new(&access, seed, 0, 1)));
        }
    }
    if patterns.is_empty() {
        return;
    }
    for draw in 0..WARMING_MAX {
        let turn = (draw % patterns.len() as u64) as usize;
        let (volume, pattern) = &mut patterns[turn];
        let next = pattern.draw();
        model.warm(
            if next.op == Op::Write { Op::Write } else { Op::Read },
            *volume,
            next.offset_bytes,
            next.length_bytes,
        );
        if draw % 256 == 0 && model.is_warm(reads, writes) {
            return;
        }
    }
}
