use std::{
    fs::File,
    num::NonZero,
    os::fd::RawFd,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use assay_load::{
    Activity, Feed, IoCollector, LoadError, Outcome, Pulse, Queue, QueueError, Standstills, VolumeWorkers, WORKERS_MAX,
    Worker, WorkerPlan, WorkersPlan, plan_workers, run_worker, validate_feeds,
};
use serde::{Deserialize, Serialize};

use crate::{
    Backend, BufferPool, DeviceError, Engine, Heartbeat, NullOptions, NullQueue, SessionClock, ThreadQueue, UringQueue,
    VolumeFile, file::claim,
};

/// Intervals a worker can be ahead of the collector before they grow longer.
const SPARE_INTERVALS: usize = 8;
/// How long the workers' own watch may take before the session's watch steps in.
const WATCH_MARGIN_NS: u64 = 3_000_000_000;
/// Shorter ticks would cost more than the I/O they count; longer ones would notice a silent device too late.
const INTERVALS_NS: std::ops::RangeInclusive<u64> = 1_000_000..=3_600_000_000_000;
/// A worker is a thread, and a server of a null device a place in memory: more are a mistake.
const SERVERS_MAX: u32 = 65_536;

/// Kind of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum VolumeKind {
    /// A file or a block device.
    File {
        path: PathBuf,
        /// Descriptor by which the caller holds it for the whole run, and a device for itself alone.
        #[serde(default)]
        held: Option<RawFd>,
    },
    Null {
        options: NullOptions,
    },
}

/// One volume of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumePlan {
    pub name: String,
    pub volume: VolumeKind,
    pub sector_bytes: u32,
}

/// Several activities on several volumes at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionPlan {
    pub volumes: Vec<VolumePlan>,
    pub activities: Vec<Activity>,
    pub backend: Backend,
    pub seed: u64,
    /// Length of a tick, the resolution of series and windows.
    pub interval_ns: u64,
    pub io_timeout_ns: u64,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Running,
    /// All workers ended; I/Os that were due and never issued, and the age of the oldest.
    Ended {
        unfinished_count: u64,
        oldest_unfinished_ns: u64,
    },
    NotAnswering(String),
    Failed(String),
}

/// Workers at work, one thread each, and the collector of their counts.
pub struct Session {
    clock: SessionClock,
    collector: IoCollector,
    stop: Arc<AtomicBool>,
    ends: mpsc::Receiver<Result<Outcome, String>>,
    running: usize,
    unfinished_count: u64,
    oldest_unfinished_ns: u64,
    trouble: Option<Status>,
    engine: Arc<Mutex<Engine>>,
    workers_count: usize,
    interval_ns: u64,
    io_timeout_ns: u64,
    /// When a tick last became complete, and when that was last looked at.
    heard_ns: u64,
    polled_ns: u64,
    pulse: Pulse,
    _heartbeat: Heartbeat,
    /// Block devices are this session's alone until its workers have ended.
    claims: Vec<File>,
}

impl Session {
    /// Opens the volumes, prepares the buffers and starts all workers at once.
    ///
    /// # Errors
    /// Whatever keeps a worker from starting; the others are not started then.
    pub fn start(plan: &SessionPlan) -> Result<Self, DeviceError> {
        Self::start_fed(plan, &[])
    }

    /// The same, with I/Os of traces for the workers that replay some, one feed for each of these in their order.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_fed(plan: &SessionPlan, feeds: &[Feed]) -> Result<Self, DeviceError> {
        validate(plan)?;
        validate_feeds(&plan.activities, feeds)?;
        let mut engine = Engine::default();
        let uring = engine.choose(plan.backend)?;
        let engine = Arc::new(Mutex::new(engine));
        let stop = Arc::new(AtomicBool::new(false));
        let pulse = Pulse::default();
        let workers_plan = WorkersPlan {
            activities: &plan.activities,
            seed: plan.seed,
            interval_ns: plan.interval_ns,
            io_timeout_ns: plan.io_timeout_ns,
            spare_intervals: SPARE_INTERVALS,
            pulse: &pulse,
            // One is left to all else: the feeding, the collecting, the storage's own work.
            processors: thread::available_parallelism().map_or(1, NonZero::get) - 1,
            feeds,
        };
        let (sources, workers) = plan_workers(&workers_plan, &stop);
        let workers_count = workers.len();
        let (starts, ready, ends) = start_workers(plan, workers, &engine, uring)?;
        let claims = await_ready(&ready, workers_count, Duration::from_nanos(plan.io_timeout_ns))?;
        let clock = SessionClock::start();
        let beats = clock.clone();
        let heartbeat = Heartbeat::start(pulse.clone(), move || Some(beats.now_ns()))
            .map_err(|source| DeviceError::Io { what: "starting the heartbeat".into(), source })?;
        for start in starts {
            // A worker that is gone reports through its end.
            let _ = start.send(clock.clone());
        }
        Ok(Self {
            clock,
            collector: IoCollector::new(sources),
            stop,
            ends,
            running: workers_count,
            unfinished_count: 0,
            oldest_unfinished_ns: 0,
            trouble: None,
            engine,
            workers_count,
            interval_ns: plan.interval_ns,
            io_timeout_ns: plan.io_timeout_ns,
            heard_ns: 0,
            polled_ns: 0,
            pulse,
            _heartbeat: heartbeat,
            claims,
        })
    }

    /// Takes the workers' deliveries and their state.
    pub fn poll(&mut self) -> Status {
        while let Ok(end) = self.ends.try_recv() {
            self.note_end(end);
        }
        self.collect();
        self.status()
    }

    fn collect(&mut self) {
        let now_ns = self.clock.now_ns();
        let unwatched_ns = now_ns - self.polled_ns;
        let before = self.collector.complete_ticks();
        if self.collector.collect() > before {
            self.heard_ns = now_ns;
        } else if unwatched_ns > WATCH_MARGIN_NS {
            // A caller that polls this late, perhaps because the whole process was suspended, cannot say who was silent.
            self.heard_ns += unwatched_ns;
        }
        self.polled_ns = now_ns;
    }

    /// Tells the workers to stop issuing; outstanding I/Os still complete.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops and waits for the workers, `timeout` at most.
    pub fn finish(&mut self, timeout: Duration) -> Status {
        self.stop();
        let deadline = Instant::now() + timeout;
        while self.running > 0 && self.trouble.is_none() {
            self.collect();
            let left = deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(50));
            match self.ends.recv_timeout(left) {
                Ok(end) => self.note_end(end),
                Err(_) if Instant::now() >= deadline => {
                    let message = format!("{} workers did not end within {} s", self.running, timeout.as_secs());
                    self.trouble = Some(Status::NotAnswering(message));
                }
                Err(_) => {}
            }
        }
        self.poll()
    }

    fn note_end(&mut self, end: Result<Outcome, String>) {
        self.running -= 1;
        if self.running == 0 {
            self.claims.clear();
        }
        match end {
            Ok(Outcome::Finished) => {}
            Ok(Outcome::Stopped { unfinished_count, oldest_unfinished_ns }) => {
                self.unfinished_count += unfinished_count;
                self.oldest_unfinished_ns = self.oldest_unfinished_ns.max(oldest_unfinished_ns);
            }
            Ok(Outcome::NotAnswering { outstanding, oldest_ns }) => {
                let age_s = oldest_ns / 1_000_000_000;
                let message = format!("{outstanding} I/Os outstanding, the oldest for {age_s} s");
                self.trouble = Some(Status::NotAnswering(message));
                self.stop();
            }
            Err(message) => {
                self.trouble.get_or_insert(Status::Failed(message));
                self.stop();
            }
        }
    }

    fn status(&self) -> Status {
        if let Some(trouble) = &self.trouble {
            return trouble.clone();
        }
        if self.running == 0 {
            let (unfinished_count, oldest_unfinished_ns) = (self.unfinished_count, self.oldest_unfinished_ns);
            return Status::Ended { unfinished_count, oldest_unfinished_ns };
        }
        // A worker stuck inside the kernel delivers no more ticks and cannot report itself.
        let now_ns = self.clock.now_ns();
        let silent_ns = now_ns.saturating_sub(self.heard_ns.max(self.pulse.stood_still_until_ns(now_ns)));
        if silent_ns > self.io_timeout_ns.saturating_add(self.interval_ns).saturating_add(WATCH_MARGIN_NS) {
            return Status::NotAnswering(format!("a worker has been stuck for {} s", silent_ns / 1_000_000_000));
        }
        Status::Running
    }

    pub fn collector(&mut self) -> &mut IoCollector {
        &mut self.collector
    }

    /// Nanoseconds since the workers started.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Times within a window in which not the storage but this process stood still.
    pub fn standstills(&self, from_ns: u64, to_ns: u64) -> Standstills {
        self.pulse.within(from_ns, to_ns, self.clock.now_ns())
    }

    pub fn clock_cost_ns(&self) -> f64 {
        self.clock.cost_ns()
    }

    pub fn engine(&self) -> Engine {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn workers_count(&self) -> usize {
        self.workers_count
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts of the workers, their readiness with the volume that each claims, and their ends.
type Channels = (
    Vec<mpsc::Sender<SessionClock>>,
    mpsc::Receiver<Result<Option<File>, DeviceError>>,
    mpsc::Receiver<Result<Outcome, String>>,
);

/// Starts a thread for each worker. It opens its volume, and waits for its start.
fn start_workers(
    plan: &SessionPlan,
    workers: VolumeWorkers,
    engine: &Arc<Mutex<Engine>>,
    uring: bool,
) -> Result<Channels, DeviceError> {
    let (ready_sender, ready) = mpsc::channel();
    let (end_sender, ends) = mpsc::channel();
    let mut starts = Vec::new();
    let mut claimed = vec![false; plan.volumes.len()];
    for (volume, worker_plan) in workers {
        let (start_sender, start) = mpsc::channel::<SessionClock>();
        starts.push(start_sender);
        let host = Host {
            volume: plan.volumes[volume].clone(),
            plan: worker_plan,
            claims: !std::mem::replace(&mut claimed[volume], true),
            uring,
            engine: Arc::clone(engine),
        };
        let (ready_sender, end_sender) = (ready_sender.clone(), end_sender.clone());
        thread::Builder::new()
            .name(format!("assay-{}", host.plan.activity.name))
            .spawn(move || host.run(&ready_sender, &start, &end_sender))
            .map_err(|source| DeviceError::Io { what: "starting a worker".into(), source })?;
    }
    Ok((starts, ready, ends))
}

/// Waits until all workers have opened their volumes; returns the volumes they claimed.
fn await_ready(
    ready: &mpsc::Receiver<Result<Option<File>, DeviceError>>,
    workers: usize,
    timeout: Duration,
) -> Result<Vec<File>, DeviceError> {
    let mut claims = Vec::new();
    for _ in 0..workers {
        claims.extend(ready.recv_timeout(timeout).map_err(|_| {
            DeviceError::NotAnswering(format!("opening the volumes took longer than {} s", timeout.as_secs()))
        })??);
    }
    Ok(claims)
}

/// Refuses a plan that no worker can carry out.
fn validate(plan: &SessionPlan) -> Result<(), DeviceError> {
    let invalid = |field, message: String| Err(LoadError::InvalidValue { field, message }.into());
    if !INTERVALS_NS.contains(&plan.interval_ns) {
        return invalid("interval_ns", format!("{} is not between a millisecond and an hour", plan.interval_ns));
    }
    if plan.io_timeout_ns == 0 {
        return invalid("io_timeout_ns", "must be above 0".into());
    }
    let mut workers_count = 0_usize;
    for activity in &plan.activities {
        for &volume in &activity.volumes {
            let Some(volume_plan) = plan.volumes.get(volume) else {
                return invalid("volumes", format!("{}: there is no volume {volume}", activity.name));
            };
            activity.validate(volume_plan.sector_bytes)?;
        }
        workers_count = workers_count.saturating_add(activity.volumes.len().saturating_mul(activity.workers as usize));
    }
    if workers_count == 0 || workers_count > WORKERS_MAX {
        return invalid("workers", format!("{workers_count} in total is outside 1 to {WORKERS_MAX}"));
    }
    for volume in &plan.volumes {
        if let VolumeKind::Null { options } = volume.volume
            && options.servers > SERVERS_MAX
        {
            return invalid("servers", format!("{} is more than {SERVERS_MAX}", options.servers));
        }
    }
    Ok(())
}

/// Parts of a worker on a file or device.
type Prepared = (VolumeFile, BufferPool);

/// One worker's thread.
struct Host {
    volume: VolumePlan,
    plan: WorkerPlan,
    /// This worker claims the volume for all that use it.
    claims: bool,
    uring: bool,
    engine: Arc<Mutex<Engine>>,
}

impl Host {
    fn run(
        self,
        ready: &mpsc::Sender<Result<Option<File>, DeviceError>>,
        start: &mpsc::Receiver<SessionClock>,
        ends: &mpsc::Sender<Result<Outcome, String>>,
    ) {
        // A worker that waits for an arrival must not be woken 50 us late, the default slack of timers.
        // SAFETY: the call changes a setting of this thread only.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let (prepared, claim) = match self.prepare() {
            Ok(prepared) => prepared,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        let _ = ready.send(Ok(claim));
        // No clock comes when another worker could not start.
        let Ok(clock) = start.recv() else { return };
        // A defect in a worker must not leave the session waiting for its end; the queue is safe to drop at any time.
        let driven = panic::catch_unwind(AssertUnwindSafe(|| self.drive(prepared, clock)));
        let end = driven.map_or_else(
            |_| Err("a worker broke off; this is a defect of Assay".to_owned()),
            |driven| driven.map_err(|error| error.to_string()),
        );
        let _ = ends.send(end);
    }

    fn prepare(&self) -> Result<(Option<Prepared>, Option<File>), DeviceError> {
        let VolumeKind::File { path, held } = &self.volume.volume else { return Ok((None, None)) };
        let claim = if self.claims && held.is_none() { claim(path)? } else { None };
        let activity = &self.plan.activity;
        let writes = activity.access.read_share < 1.0;
        let file = VolumeFile::open(path, *held, writes, activity.direct, activity.sync)?;
        let pool = BufferPool::new(
            self.plan.buffers_count(),
            activity.access.largest_block_bytes(),
            self.plan.write_buffers_start(),
            activity.compressible_share,
            self.plan.seed,
        )?;
        Ok((Some((file, pool)), claim))
    }

    fn drive(&self, prepared: Option<Prepared>, clock: SessionClock) -> Result<Outcome, DeviceError> {
        let depth = self.plan.queue_depth();
        let Some((file, pool)) = prepared else {
            let VolumeKind::Null { options } = self.volume.volume else { unreachable!("only files are prepared") };
            self.note_engine("null", &[], &[]);
            return self.work(NullQueue::new(clock, options));
        };
        if self.uring {
            let queue = UringQueue::new(vec![file], pool, clock, depth)?;
            self.note_engine("io_uring", queue.features(), queue.degraded());
            self.work(queue)
        } else {
            self.note_engine("threads", &[], &[]);
            self.work(ThreadQueue::new(vec![file], pool, clock, depth)?)
        }
    }

    fn work<Q: Queue>(&self, mut queue: Q) -> Result<Outcome, DeviceError> {
        let mut worker = Worker::new(self.plan.clone());
        let outcome: Result<Outcome, QueueError> = run_worker(&mut queue, &mut worker);
        Ok(outcome?)
    }

    fn note_engine(&self, backend: &'static str, features: &[&'static str], degraded: &[String]) {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).note(backend, features, degraded);
    }
}
