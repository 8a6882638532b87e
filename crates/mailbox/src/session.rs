//! A run on a thread of its own, and its report: real storage at its own pace, a model tick by tick.

use std::{
    any::Any,
    fs::File,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use assay_array_model::{Model, Reading};
use assay_device::{DeviceError, Engine as IoEngine, Heartbeat, SessionClock, VolumeFile, claim, open_data_queue};
use assay_load::{Counter, DataQueue, Exchange, GroupKey, IoCollector, Pulse, Standstills, Sync};
use serde::Serialize;

use crate::{
    core::{Counts, meter_of},
    database::Operations,
    engine::Engine,
    failure::{BadPage, Failure},
    log::BLOCK_BYTES,
    model::ModelQueue,
    phase::Phase,
    plan::{Activity, MailboxPlan},
};

/// How long opening the files may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a run on real storage says how it stands, whatever the length of its ticks.
const PUBLISH_NS: u64 = 100_000_000;
/// Intervals that may wait for the collector before they grow longer.
const SPARE_INTERVALS: usize = 4;

/// A phase, and when it began and ended; the last one may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseDone {
    #[serde(rename = "name")]
    pub phase: Phase,
    pub from_ns: u64,
    pub to_ns: Option<u64>,
}

/// Facts and counts of a database.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DatabaseFacts {
    pub pages: u64,
    pub leaves: u64,
    pub cache_pages: usize,
    #[serde(flatten)]
    pub operations: Operations,
    /// Pages of changes that are not on the storage.
    pub dirty_pages: usize,
    pub pages_written: u64,
    /// Bytes of records, and blocks of the log that were written.
    pub log_record_bytes: u64,
    pub log_written_bytes: u64,
    pub log_files: u64,
    /// Operations that wait for others to end.
    pub backlog: usize,
    #[serde(skip)]
    pub settled: bool,
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Running,
    Ended,
    NotAnswering(String),
    Failed(String),
}

/// Report of a run so far.
#[derive(Default)]
pub struct SessionReport {
    pub now_ns: u64,
    pub phase: Option<Phase>,
    pub phases: Vec<PhaseDone>,
    pub progress: (u64, u64),
    pub counts: Counts,
    pub databases: Vec<DatabaseFacts>,
    /// All that were described so far.
    pub bad: Vec<BadPage>,
    /// Of a model, since the last report.
    pub readings: Vec<Reading>,
    /// Whether caches are as full of changes as they get, those of the databases and of a model.
    pub settled: bool,
    end: Option<Result<(), Failure>>,
}

/// A run.
pub struct Session {
    shared: Arc<Shared>,
    collector: IoCollector,
    engine: IoEngine,
    ended: mpsc::Receiver<()>,
    /// Ends of ticks to which a model may go on, and answers that it got there.
    pace: Option<(mpsc::Sender<u64>, mpsc::Receiver<()>)>,
    interval_ns: u64,
    io_timeout_ns: u64,
    ticks_asked: u64,
    clock: SessionClock,
    pulse: Pulse,
    _heartbeat: Option<Heartbeat>,
    /// Block devices are this run's alone until it has ended.
    _claims: Vec<File>,
}

struct Shared {
    report: Mutex<SessionReport>,
    stop: AtomicBool,
    abort: AtomicBool,
    /// Bits of the rate, and how often it was set.
    rate: AtomicU64,
    rates_set: AtomicU64,
    heard: Mutex<Instant>,
}

impl Shared {
    fn new(rate: f64) -> Self {
        Self {
            report: Mutex::default(),
            stop: AtomicBool::new(false),
            abort: AtomicBool::new(false),
            rate: AtomicU64::new(rate.to_bits()),
            rates_set: AtomicU64::new(0),
            heard: Mutex::new(Instant::now()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Opened = Result<(Box<dyn DataQueue>, IoEngine), DeviceError>;

impl Session {
    /// Opens the volumes and starts.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    pub fn start(plan: MailboxPlan) -> Result<Self, DeviceError> {
        let mut claims = Vec::new();
        for volume in plan.volumes.iter().filter(|volume| volume.held.is_none()) {
            if let Some(path) = &volume.path {
                claims.extend(claim(path)?);
            }
        }
        let clock = SessionClock::start();
        let own_clock = clock.clone();
        let open = move |plan: &MailboxPlan| open(plan, own_clock);
        let mut session = Self::run(plan, clock.clone(), false, open)?;
        let heartbeat = Heartbeat::start(session.pulse.clone(), move || Some(clock.now_ns()))
            .map_err(|source| DeviceError::Io { what: "starting the heartbeat".into(), source })?;
        session._heartbeat = Some(heartbeat);
        session._claims = claims;
        Ok(session)
    }

    /// Starts on a model. Its time passes in [`Self::poll`].
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start_on(model: Model, plan: MailboxPlan) -> Result<Self, DeviceError> {
        let open = |_: &MailboxPlan| -> Opened {
            Ok((Box::new(ModelQueue::new(model)), IoEngine { backend: "model", ..IoEngine::default() }))
        };
        Self::run(plan, SessionClock::start(), true, open)
    }

    fn run(
        plan: MailboxPlan,
        clock: SessionClock,
        is_paced: bool,
        open: impl FnOnce(&MailboxPlan) -> Opened + Send + 'static,
    ) -> Result<Self, DeviceError> {
        let (interval_ns, io_timeout_ns) = (plan.interval_ns.max(1), plan.io_timeout_ns);
        let (meters, sources) = meters(&plan);
        let shared = Arc::new(Shared::new(plan.rate));
        let pulse = Pulse::default();
        let (ready_sender, ready) = mpsc::channel();
        let (end_sender, ended) = mpsc::channel();
        let (pace, paced) = is_paced
            .then(|| {
                let (to_sender, to_receiver) = mpsc::channel();
                let (there_sender, there_receiver) = mpsc::channel();
                ((to_sender, there_receiver), (to_receiver, there_sender))
            })
            .unzip();
        let (own, own_pulse) = (Arc::clone(&shared), pulse.clone());
        let work = move || {
            let _end = end_sender;
            let (queue, io_engine) = match open(&plan) {
                Ok(opened) => opened,
                Err(error) => {
                    let _ = ready_sender.send(Err(error));
                    return;
                }
            };
            let mut engine = Engine::new(plan, queue, meters);
            engine.watch(own_pulse);
            // The caller that waited for this may have given up.
            if ready_sender.send(Ok(io_engine)).is_ok() {
                work(&mut engine, &own, interval_ns, paced.as_ref());
            }
        };
        thread::Builder::new()
            .name("assay-mailbox".into())
            .spawn(work)
            .map_err(|source| DeviceError::Io { what: "starting the databases' thread".into(), source })?;
        let engine = ready.recv_timeout(OPEN_TIMEOUT).map_err(|_| {
            DeviceError::NotAnswering(format!("opening the volumes took longer than {} s", OPEN_TIMEOUT.as_secs()))
        })??;
        Ok(Self {
            shared,
            collector: IoCollector::new(sources),
            engine,
            ended,
            pace,
            interval_ns,
            io_timeout_ns,
            ticks_asked: 0,
            clock,
            pulse,
            _heartbeat: None,
            _claims: Vec::new(),
        })
    }

    /// Takes the new ticks; on a model a tick passes before.
    pub fn poll(&mut self) -> State {
        if let Some((to, there)) = &self.pace {
            self.ticks_asked += 1;
            if to.send(self.ticks_asked * self.interval_ns).is_ok() {
                let _ = there.recv();
            }
        }
        self.collector.collect();
        match &lock(&self.shared.report).end {
            None => match self.stuck_for() {
                Some(silent) => {
                    State::NotAnswering(format!("the databases have been stuck in an I/O for {} s", silent.as_secs()))
                }
                None => State::Running,
            },
            Some(Ok(())) => State::Ended,
            Some(Err(failure @ Failure::NotAnswering { .. })) => State::NotAnswering(failure.to_string()),
            Some(Err(failure)) => State::Failed(failure.to_string()),
        }
    }

    /// How long nothing was heard, where that is longer than an I/O may take.
    fn stuck_for(&self) -> Option<Duration> {
        if self.pace.is_some() {
            return None;
        }
        let now_ns = self.clock.now_ns();
        let running = Duration::from_nanos(now_ns.saturating_sub(self.pulse.stood_still_until_ns(now_ns)));
        let silent = lock(&self.shared.heard).elapsed().min(running);
        let most = Duration::from_nanos(self.io_timeout_ns.saturating_add(2 * self.interval_ns));
        (silent > most).then_some(silent)
    }

    /// Looks at the report.
    pub fn look<T>(&self, look: impl FnOnce(&mut SessionReport) -> T) -> T {
        look(&mut lock(&self.shared.report))
    }

    /// Sets the I/Os per second of all databases together; earlier lateness is forgotten.
    pub fn set_rate(&self, rate: f64) {
        self.shared.rate.store(rate.to_bits(), Ordering::Relaxed);
        self.shared.rates_set.fetch_add(1, Ordering::Release);
    }

    /// Ends the load. The databases' changes are written and verified then.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the run as soon as outstanding I/O has ended.
    pub fn abort(&self) {
        self.shared.abort.store(true, Ordering::Relaxed);
    }

    /// Waits for the end, `timeout` at most.
    pub fn wait(&self, timeout: Duration) {
        let _ = self.ended.recv_timeout(timeout);
    }

    pub fn collector(&mut self) -> &mut IoCollector {
        &mut self.collector
    }

    pub fn engine(&self) -> &IoEngine {
        &self.engine
    }

    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Times within a window in which not the storage but this process stood still.
    pub fn standstills(&self, from_ns: u64, to_ns: u64) -> Standstills {
        self.pulse.within(from_ns, to_ns, self.clock.now_ns())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abort();
    }
}

type Meters = Vec<Option<Counter<assay_load::IoTally>>>;
type Sources = Vec<(GroupKey, Exchange<assay_load::IoTally>)>;

/// Counters of the databases, and their sources.
fn meters(plan: &MailboxPlan) -> (Meters, Sources) {
    let (mut meters, mut sources) = (Vec::new(), Vec::new());
    for (number, database) in plan.databases.iter().enumerate() {
        for activity in Activity::ALL {
            let volume = meter_of(number, activity);
            assert_eq!(volume, meters.len());
            let is_used = match activity {
                Activity::Whole => false,
                Activity::Replay => database.passive,
                Activity::Database | Activity::Log | Activity::Shipping => !database.passive,
                Activity::Maintenance | Activity::Backup | Activity::Recovery => true,
            };
            let exchange = Exchange::new(SPARE_INTERVALS);
            meters.push(is_used.then(|| Counter::new(exchange.clone(), plan.interval_ns.max(1))));
            if is_used {
                sources.push((GroupKey { activity: activity as usize, volume }, exchange));
            }
        }
    }
    (meters, sources)
}

fn open(plan: &MailboxPlan, clock: SessionClock) -> Opened {
    let sync = if plan.write_through { Sync::Dsync } else { Sync::Fdatasync };
    let volumes = plan.volumes.iter().map(|volume| {
        let path = volume.path.as_deref().unwrap_or_else(|| volume.name.as_ref());
        VolumeFile::open(path, volume.held, true, plan.direct, sync)
    });
    let volumes = volumes.collect::<Result<Vec<_>, _>>()?;
    let (depth, frames) = Engine::queue_needs(plan);
    open_data_queue(volumes, plan.backend, frames, plan.page_bytes, clock, depth)
}

type Paced = (mpsc::Receiver<u64>, mpsc::Sender<()>);

/// The thread of a run: a tick at a time, at its own pace or at each call.
fn work(engine: &mut Engine, shared: &Shared, interval_ns: u64, paced: Option<&Paced>) {
    let step_ns = interval_ns.min(PUBLISH_NS);
    let (mut to_ns, mut rates_set) = (0, 0);
    loop {
        to_ns = match paced {
            None => to_ns + step_ns,
            Some((asked, _)) => match asked.recv() {
                Ok(to_ns) => to_ns,
                // Whoever asked is gone.
                Err(_) => return,
            },
        };
        if shared.stop.load(Ordering::Relaxed) {
            engine.kernel.with(|core| {
                if !core.stopping {
                    core.stop()
                }
            });
        }
        if shared.abort.load(Ordering::Relaxed) {
            engine.kernel.with(|core| {
                if !core.aborting {
                    core.abort();
                }
            });
        }
        let set = shared.rates_set.load(Ordering::Acquire);
        if set != rates_set {
            rates_set = set;
            let rate = f64::from_bits(shared.rate.load(Ordering::Relaxed));
            engine.kernel.with(|core| core.set_rate(rate));
        }
        let ran = panic::catch_unwind(AssertUnwindSafe(|| engine.run_to(to_ns)));
        let ran =
            ran.unwrap_or_else(|_| Err(Failure::Queue("the databases broke off; this is a defect of Assay".into())));
        if paced.is_none() {
            // A tick that took long leaves none behind.
            to_ns = to_ns.max(engine.kernel.with(|core| core.now_ns) / step_ns * step_ns);
        }
        publish(engine, shared);
        let has_ended = !matches!(ran, Ok(false));
        if has_ended {
            engine.drain(engine.kernel.with(|core| core.plan.io_timeout_ns));
            engine.kernel.with(crate::core::Core::finish_meters);
            lock(&shared.report).end = Some(ran.map(|_| ()));
        }
        if let Some((_, there)) = paced {
            let _ = there.send(());
        }
        if has_ended {
            return;
        }
    }
}

fn publish(engine: &Engine, shared: &Shared) {
    engine.kernel.with(|core| {
        let mut report = lock(&shared.report);
        let queue: &mut dyn Any = core.queue.as_mut();
        let model = queue.downcast_mut::<ModelQueue>();
        let model_settled = model.as_ref().is_none_or(|model| model.settled());
        report.readings.extend(model.map_or_else(Vec::new, ModelQueue::read));
        report.now_ns = core.now_ns;
        report.phase = Some(core.phase);
        let ends = core.phases.iter().skip(1).map(|(_, from_ns)| Some(*from_ns)).chain([None]);
        report.phases = core
            .phases
            .iter()
            .zip(ends)
            .map(|((phase, from_ns), to_ns)| PhaseDone { phase: *phase, from_ns: *from_ns, to_ns })
            .collect();
        report.progress = core.progress;
        report.counts = core.counts;
        report.bad.clone_from(&core.bad);
        report.databases = core
            .databases
            .iter()
            .map(|database| DatabaseFacts {
                pages: database.shape.pages,
                leaves: database.shape.leaves,
                cache_pages: database.cache.capacity(),
                operations: database.operations,
                dirty_pages: database.cache.dirty_count(),
                pages_written: database.cleaning.pages_written,
                log_record_bytes: database.log.next_lsn - 1,
                log_written_bytes: database.log.head_block * BLOCK_BYTES,
                log_files: database.log.head_block / database.log.file_blocks(),
                backlog: database.backlog.len(),
                settled: database.cleaning.settled,
            })
            .collect();
        report.settled = model_settled && core.databases.iter().all(|one| one.cleaning.settled || one.plan.passive);
        *lock(&shared.heard) = Instant::now();
    });
}

#[cfg(test)]
pub(crate) mod tests;
