use std::{
    mem,
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
    Activity, BurstGate, Collector, Exchange, GroupKey, Outcome, Queue, QueueError, Worker, WorkerPlan, run_worker,
};
use serde::{Deserialize, Serialize};

use crate::{BufferPool, DeviceError, NullOptions, NullQueue, SessionClock, ThreadQueue, UringQueue, VolumeFile};

/// Intervals a worker can be ahead of the collector before they grow longer.
const SPARE_INTERVALS: usize = 8;
/// How long the workers' own watch may take before the session's watch steps in.
const WATCH_MARGIN_NS: u64 = 3_000_000_000;

/// What a volume is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum VolumeKind {
    /// A file or a block device.
    File {
        path: PathBuf,
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

/// Which queue serves files and devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// io_uring, or threads where it is forbidden.
    Auto,
    IoUring,
    Threads,
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

/// How the I/O was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Engine {
    pub backend: &'static str,
    pub features: Vec<String>,
    pub degraded: Vec<String>,
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

/// Workers at work, one thread each, and the collector of what they count.
pub struct Session {
    clock: SessionClock,
    collector: Collector,
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
}

impl Session {
    /// Opens the volumes, prepares the buffers and starts all workers at once.
    ///
    /// # Errors
    /// Whatever keeps a worker from starting; the others are not started then.
    pub fn start(plan: &SessionPlan) -> Result<Self, DeviceError> {
        let uring = match plan.backend {
            Backend::Threads => None,
            Backend::IoUring => Some(UringQueue::available()?),
            Backend::Auto => UringQueue::available().ok(),
        };
        let mut engine = Engine::default();
        if let (Backend::Auto, Err(error)) = (plan.backend, UringQueue::available()) {
            engine.degraded.push(error.to_string());
        }
        let engine = Arc::new(Mutex::new(engine));
        let stop = Arc::new(AtomicBool::new(false));
        let (sources, workers) = plan_workers(plan, &stop)?;
        let (ready_sender, ready) = mpsc::channel();
        let (end_sender, ends) = mpsc::channel();
        let mut starts = Vec::new();
        let workers_count = workers.len();
        for (volume, worker_plan) in workers {
            let (start_sender, start) = mpsc::channel::<SessionClock>();
            starts.push(start_sender);
            let host = Host {
                volume: plan.volumes[volume].clone(),
                plan: worker_plan,
                uring: uring.is_some(),
                engine: Arc::clone(&engine),
            };
            let (ready_sender, end_sender) = (ready_sender.clone(), end_sender.clone());
            thread::Builder::new()
                .name(format!("assay-{}", host.plan.activity.name))
                .spawn(move || host.run(&ready_sender, &start, &end_sender))
                .map_err(|source| DeviceError::Io { what: "starting a worker".into(), source })?;
        }
        let open_timeout = Duration::from_nanos(plan.io_timeout_ns);
        for _ in 0..workers_count {
            ready.recv_timeout(open_timeout).map_err(|_| {
                DeviceError::NotAnswering(format!("opening the volumes took longer than {} s", open_timeout.as_secs()))
            })??;
        }
        let clock = SessionClock::start();
        for start in starts {
            // A worker that is gone reports through its end.
            let _ = start.send(clock.clone());
        }
        Ok(Self {
            clock,
            collector: Collector::new(sources),
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
        })
    }

    /// Takes what the workers delivered and how they stand.
    pub fn poll(&mut self) -> Status {
        while let Ok(end) = self.ends.try_recv() {
            self.note_end(end);
        }
        self.collector.collect();
        self.status()
    }

    /// Tells the workers to stop issuing; what is outstanding still completes.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops and waits for the workers, `timeout` at most.
    pub fn finish(&mut self, timeout: Duration) -> Status {
        self.stop();
        let deadline = Instant::now() + timeout;
        while self.running > 0 && self.trouble.is_none() {
            self.collector.collect();
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
        let heard_ns = (self.collector.complete_ticks() + 1) * self.interval_ns;
        let silent_ns = self.clock.now_ns().saturating_sub(heard_ns);
        if silent_ns > self.io_timeout_ns + WATCH_MARGIN_NS {
            return Status::NotAnswering(format!("a worker has been stuck for {} s", silent_ns / 1_000_000_000));
        }
        Status::Running
    }

    pub fn collector(&mut self) -> &mut Collector {
        &mut self.collector
    }

    /// Nanoseconds since the workers started.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
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

type Sources = Vec<(GroupKey, Exchange)>;

fn plan_workers(
    plan: &SessionPlan,
    stop: &Arc<AtomicBool>,
) -> Result<(Sources, Vec<(usize, WorkerPlan)>), DeviceError> {
    let gate = BurstGate::default();
    let mut sources = Vec::new();
    let mut workers = Vec::new();
    for (activity_index, activity) in plan.activities.iter().enumerate() {
        let workers_total = activity.workers * activity.volumes.len() as u32;
        for (position, &volume) in activity.volumes.iter().enumerate() {
            activity.access.validate(plan.volumes[volume].sector_bytes)?;
            for worker_on_volume in 0..activity.workers {
                let exchange = Exchange::new(SPARE_INTERVALS);
                sources.push((GroupKey { activity: activity_index, volume }, exchange.clone()));
                let worker = position as u32 * activity.workers + worker_on_volume;
                let number = workers.len() as u64;
                let worker_plan = WorkerPlan {
                    activity: activity.clone(),
                    volume: 0,
                    worker_on_volume,
                    workers_on_volume: activity.workers,
                    worker,
                    workers: workers_total,
                    seed: plan.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                    interval_ns: plan.interval_ns,
                    io_timeout_ns: plan.io_timeout_ns,
                    gate: gate.clone(),
                    stop: Arc::clone(stop),
                    exchange,
                };
                workers.push((volume, worker_plan));
            }
        }
    }
    Ok((sources, workers))
}

/// One worker's thread.
struct Host {
    volume: VolumePlan,
    plan: WorkerPlan,
    uring: bool,
    engine: Arc<Mutex<Engine>>,
}

impl Host {
    fn run(
        self,
        ready: &mpsc::Sender<Result<(), DeviceError>>,
        start: &mpsc::Receiver<SessionClock>,
        ends: &mpsc::Sender<Result<Outcome, String>>,
    ) {
        // A worker that waits for an arrival must not be woken 50 us late, the default slack of timers.
        // SAFETY: the call changes a setting of this thread only.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let prepared = self.prepare();
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        let _ = ready.send(Ok(()));
        // No clock comes when another worker could not start.
        let Ok(clock) = start.recv() else { return };
        let end = self.drive(prepared, clock).map_err(|error| error.to_string());
        let _ = ends.send(end);
    }

    fn prepare(&self) -> Result<Option<(VolumeFile, BufferPool)>, DeviceError> {
        let VolumeKind::File { path } = &self.volume.volume else { return Ok(None) };
        let activity = &self.plan.activity;
        let writes = activity.access.read_share < 1.0;
        let file = VolumeFile::open(path, writes, activity.direct, activity.sync)?;
        let pool = BufferPool::new(
            self.plan.buffers_count(),
            activity.access.largest_block_bytes(),
            self.plan.write_buffers_start(),
            activity.compressible_share,
            self.plan.seed,
        )?;
        Ok(Some((file, pool)))
    }

    fn drive(&self, prepared: Option<(VolumeFile, BufferPool)>, clock: SessionClock) -> Result<Outcome, DeviceError> {
        let depth = self.plan.activity.load.queue_depth();
        let Some((file, pool)) = prepared else {
            let VolumeKind::Null { options } = self.volume.volume else { unreachable!("only files are prepared") };
            self.note_engine("null", &[], &[]);
            return self.work(NullQueue::new(clock, options));
        };
        if self.uring {
            let queue = UringQueue::new(file, pool, clock, depth)?;
            self.note_engine("io_uring", queue.features(), queue.degraded());
            self.work(queue)
        } else {
            self.note_engine("threads", &[], &[]);
            self.work(ThreadQueue::new(file, pool, clock, depth)?)
        }
    }

    fn work<Q: Queue>(&self, mut queue: Q) -> Result<Outcome, DeviceError> {
        let mut worker = Worker::new(self.plan.clone());
        let outcome: Result<Outcome, QueueError> = run_worker(&mut queue, &mut worker);
        if worker.outstanding() > 0 {
            // The kernel may still write into the buffers: they must stay, and closing would wait for the device.
            mem::forget(queue);
        }
        Ok(outcome?)
    }

    fn note_engine(&self, backend: &'static str, features: &[&'static str], degraded: &[String]) {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        engine.backend = backend;
        engine.features = features.iter().map(ToString::to_string).collect();
        for reason in degraded {
            if !engine.degraded.contains(reason) {
                engine.degraded.push(reason.clone());
            }
        }
    }
}
