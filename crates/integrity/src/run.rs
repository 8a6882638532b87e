//! A run on real storage: the verifier on a thread of its own, and what the outside may know of it.

use std::{
    any::Any,
    fs::File,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use assay_device::{Backend, DeviceError, Engine, Heartbeat, SessionClock, VolumeFile, claim, open_data_queue};
use assay_load::{DataQueue, IoTally, LoadError, Op, Pulse, Standstills, Sync, Tally};
use serde::Deserialize;
use thiserror::Error;

use crate::{
    FaultCounts, FilePlan, FileStanding, Finding, Phase, VerifyPlan,
    expected::PageState,
    failure::Failure,
    faulty::{FaultyClock, FaultyFile, FaultyOptions, FaultyQueue, FileMedium},
    in_flight::InFlight,
    journal::{Journal, JournalError},
    observer::Observer,
    observer::{RunView, Standing},
    stamp::PageId,
    verify::Verifier,
};

/// How long opening the files may take.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// Plan of a run and its surroundings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPlan {
    pub plan: VerifyPlan,
    pub backend: Backend,
    /// Faults to inject into I/O to the files.
    pub faulty: Option<FaultyOptions>,
    /// Where acknowledgements are recorded.
    pub journal: Option<PathBuf>,
    /// Note of the caller, which the journal keeps unread: the drives before a crash.
    #[serde(default)]
    pub note: Option<String>,
}

/// Error that keeps a run from starting.
#[derive(Debug, Error)]
pub enum RunError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Failure(#[from] Failure),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl From<LoadError> for RunError {
    fn from(error: LoadError) -> Self {
        Self::Device(error.into())
    }
}

/// One file in one tick.
pub struct FileTick {
    pub tick: u64,
    pub file: usize,
    pub interval: IoTally,
}

/// A phase that ended.
pub struct PhaseDone {
    pub phase: Phase,
    pub cycle: u32,
    pub from_ns: u64,
    pub to_ns: u64,
    pub pages_verified: u64,
    pub pages_written: u64,
    pub files: Vec<IoTally>,
}

/// Faults of the faulty device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truth {
    pub injected: FaultCounts,
    pub observable: FaultCounts,
    pub masked: FaultCounts,
}

/// Report of a run so far.
#[derive(Default)]
pub struct Report {
    pub standing: Option<Standing>,
    pub phase_from_ns: u64,
    pub files: Vec<FileStanding>,
    pub long_outstanding: Vec<InFlight>,
    pub truth: Option<Truth>,
    pub phases: Vec<PhaseDone>,
    /// New since the report was last taken.
    pub ticks: Vec<FileTick>,
    pub findings: Vec<Finding>,
    pub end: Option<Result<(), Failure>>,
}

/// A run.
pub struct Run {
    pub plan: VerifyPlan,
    clock: SessionClock,
    report: Arc<Mutex<Report>>,
    stop: Arc<AtomicBool>,
    engine: Engine,
    ended: mpsc::Receiver<()>,
    /// When the run last said something.
    heard: Arc<Mutex<Instant>>,
    pulse: Pulse,
    _heartbeat: Heartbeat,
    /// Block devices are this run's alone until it has ended.
    _claims: Vec<File>,
}

impl Run {
    /// Opens the files and starts.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    pub fn start(run: RunPlan) -> Result<Self, RunError> {
        if let Some(faulty) = &run.faulty {
            faulty.validate()?;
        }
        let claims = claim_all(&run.plan)?;
        let (clock, started) = (SessionClock::start(), Instant::now());
        let pulse = Pulse::default();
        let report = Arc::new(Mutex::new(Report::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let heard = Arc::new(Mutex::new(Instant::now()));
        let (ready_sender, ready) = mpsc::channel();
        let (end_sender, ended) = mpsc::channel();
        let thread_run = run.clone();
        let shared = Shared {
            report: Arc::clone(&report),
            stop: Arc::clone(&stop),
            heard: Arc::clone(&heard),
            clock: clock.clone(),
            started,
            pulse: pulse.clone(),
        };
        thread::Builder::new()
            .name("assay-verify".into())
            .spawn(move || {
                let _end = end_sender;
                work(thread_run, shared, &ready_sender);
            })
            .map_err(|source| DeviceError::Io { what: "starting the verifier".into(), source })?;
        let beats = clock.clone();
        // The clock of the queue: a faulty device has its own.
        let is_faulty = run.faulty.is_some();
        let now_ns = move || Some(if is_faulty { started.elapsed().as_nanos() as u64 } else { beats.now_ns() });
        let heartbeat = Heartbeat::start(pulse.clone(), now_ns)
            .map_err(|source| DeviceError::Io { what: "starting the heartbeat".into(), source })?;
        let engine = ready.recv_timeout(OPEN_TIMEOUT).map_err(|_| {
            DeviceError::NotAnswering(format!("opening the files took longer than {} s", OPEN_TIMEOUT.as_secs()))
        })??;
        Ok(Self {
            plan: run.plan,
            clock,
            report,
            stop,
            engine,
            ended,
            heard,
            pulse,
            _heartbeat: heartbeat,
            _claims: claims,
        })
    }

    /// Looks at the report, and takes its new parts.
    pub fn look<T>(&self, look: impl FnOnce(&mut Report) -> T) -> T {
        look(&mut lock(&self.report))
    }

    /// Ends the run early.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the run early and waits for its end, `timeout` at most.
    pub fn finish(&self, timeout: Duration) {
        self.stop();
        let _ = self.ended.recv_timeout(timeout);
    }

    /// How long the run has said nothing, if that is longer than it may be: it is stuck inside the kernel.
    pub fn stuck_for(&self) -> Option<Duration> {
        let now_ns = self.now_ns();
        let running = Duration::from_nanos(now_ns.saturating_sub(self.pulse.stood_still_until_ns(now_ns)));
        let silent = lock(&self.heard).elapsed().min(running);
        let most = Duration::from_nanos(self.plan.io_timeout_ns.saturating_add(2 * self.plan.interval_ns));
        (silent > most).then_some(silent)
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Times within a window in which not the storage but this process stood still.
    pub fn standstills(&self, from_ns: u64, to_ns: u64) -> Standstills {
        self.pulse.within(from_ns, to_ns, self.now_ns())
    }

    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Shared {
    report: Arc<Mutex<Report>>,
    stop: Arc<AtomicBool>,
    heard: Arc<Mutex<Instant>>,
    clock: SessionClock,
    started: Instant,
    pulse: Pulse,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread of a run.
fn work(run: RunPlan, shared: Shared, ready: &mpsc::Sender<Result<Engine, RunError>>) {
    let report = Arc::clone(&shared.report);
    let prepared = prepare(&run, shared);
    let (mut verifier, engine) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    // The caller that waited for this has given up.
    if ready.send(Ok(engine)).is_err() {
        return;
    }
    let ran = panic::catch_unwind(AssertUnwindSafe(|| verifier.run()));
    let end = ran.unwrap_or_else(|_| Err(Failure::Queue("the verifier broke off; this is a defect of Assay".into())));
    let last = verifier.observe_end(end.is_ok());
    lock(&report).end = Some(end.and(last));
}

fn prepare(run: &RunPlan, shared: Shared) -> Result<(Verifier, Engine), RunError> {
    let (queue, engine) = open_queue(run, &shared)?;
    let pulse = shared.pulse.clone();
    let journal = run.journal.as_ref().map(|path| Journal::create(path, &run.plan, run.note.as_deref())).transpose()?;
    let meter = Meter {
        tick: 0,
        interval_ns: run.plan.interval_ns.max(1),
        began: (0, crate::Counts::default()),
        ticks: run.plan.files.iter().map(|_| IoTally::default()).collect(),
        phase: run.plan.files.iter().map(|_| IoTally::default()).collect(),
        journal,
        shared,
    };
    let mut verifier = Verifier::new(run.plan.clone(), queue, Box::new(meter))?;
    verifier.watch(pulse);
    Ok((verifier, engine))
}

fn open_queue(run: &RunPlan, shared: &Shared) -> Result<(Box<dyn DataQueue>, Engine), RunError> {
    let (plan, frame) = (&run.plan, run.plan.frame_bytes());
    let (depth, frames) = Verifier::queue_needs(plan);
    if let Some(options) = &run.faulty {
        let files: Vec<FaultyFile> = plan
            .files
            .iter()
            .map(|file| FaultyFile {
                page_bytes: file.page_bytes(),
                base_bytes: file.base_bytes,
                size_bytes: file.size_bytes,
                log: file.log,
                write_through: plan.write_through,
                scattered: plan.scatter_gather && !file.log,
            })
            .collect();
        let opened = plan.files.iter().map(|file| Ok(open(file, false, Sync::None)?.file));
        let opened = opened.collect::<Result<Vec<File>, DeviceError>>()?;
        let io_error = |source| DeviceError::Io { what: "the faulty device".into(), source };
        let medium = FileMedium::new(&files, opened).map_err(io_error)?;
        let queue = FaultyQueue::new(*options, files, medium, FaultyClock::wall(shared.started), depth, frames, frame)?;
        return Ok((Box::new(queue), Engine { backend: "faulty", ..Engine::default() }));
    }
    let sync = if plan.write_through { Sync::Dsync } else { Sync::Fdatasync };
    let volumes = plan.files.iter().map(|file| {
        let scattered = plan.scatter_gather && !file.log;
        Ok(VolumeFile { scattered, ..open(file, file.direct, sync)? })
    });
    let volumes = volumes.collect::<Result<Vec<VolumeFile>, DeviceError>>()?;
    Ok(open_data_queue(volumes, run.backend, frames, frame, shared.clock.clone(), depth)?)
}

fn open(file: &FilePlan, direct: bool, sync: Sync) -> Result<VolumeFile, DeviceError> {
    VolumeFile::open(&file.path, file.held, true, direct, sync)
}

fn claim_all(plan: &VerifyPlan) -> Result<Vec<File>, DeviceError> {
    let mut paths: Vec<&Path> =
        plan.files.iter().filter(|file| file.held.is_none()).map(|file| file.path.as_path()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut claims = Vec::new();
    for path in paths {
        claims.extend(claim(path)?);
    }
    Ok(claims)
}

/// Counts the work of the run and passes it on, once an interval.
struct Meter {
    tick: u64,
    interval_ns: u64,
    /// When the phase began, and the counts then.
    began: (u64, crate::Counts),
    ticks: Vec<IoTally>,
    phase: Vec<IoTally>,
    journal: Option<Journal>,
    shared: Shared,
}

impl Meter {
    fn end_tick(&mut self) {
        let mut report = lock(&self.shared.report);
        for (file, interval) in self.ticks.iter_mut().enumerate() {
            self.phase[file].merge(interval);
            report.ticks.push(FileTick { tick: self.tick, file, interval: interval.clone() });
            interval.clear();
        }
    }

    fn publish(&mut self, view: &mut dyn RunView) {
        // A tick is counted by the clock: one that passed unseen stays empty.
        let tick = view.standing().now_ns / self.interval_ns;
        if tick > self.tick {
            self.end_tick();
            self.tick = tick;
        }
        let mut report = lock(&self.shared.report);
        report.standing = Some(view.standing());
        report.phase_from_ns = self.began.0;
        report.files = view.files();
        report.long_outstanding = view.long_outstanding();
        report.truth = truth(view.queue());
        for finding in view.take_findings() {
            match report.findings.iter_mut().find(|known| known.id == finding.id) {
                Some(known) => *known = finding,
                None => report.findings.push(finding),
            }
        }
        *lock(&self.shared.heard) = Instant::now();
    }
}

fn truth(queue: &dyn DataQueue) -> Option<Truth> {
    let queue: &dyn Any = queue;
    let queue = queue.downcast_ref::<FaultyQueue<FileMedium>>()?;
    Some(Truth { injected: queue.injected(), observable: queue.observable(), masked: queue.masked() })
}

impl Observer for Meter {
    fn io(&mut self, file: usize, op: Op, latency_ns: Option<u64>, bytes: u32, result: i32) {
        let interval = &mut self.ticks[file];
        if result != bytes as i32 {
            interval.errors.record(result);
            return;
        }
        let Some(latency_ns) = latency_ns else {
            interval.standstill_ios += 1;
            return;
        };
        match op {
            Op::Read => interval.read.record(latency_ns, bytes),
            Op::Write => interval.write.record(latency_ns, bytes),
            Op::Flush => interval.flush.record(latency_ns, 0),
        }
    }

    fn acknowledged(&mut self, first: PageId, pages: &[PageState]) {
        if let Some(journal) = &mut self.journal {
            journal.acknowledged(first, pages);
        }
    }

    fn flushing(&mut self, file: u16, number: u32) {
        if let Some(journal) = &mut self.journal {
            journal.flushing(file, number);
        }
    }

    fn flushed(&mut self, file: u16, number: u32) {
        if let Some(journal) = &mut self.journal {
            journal.flushed(file, number);
        }
    }

    fn phase_began(&mut self, view: &mut dyn RunView) {
        let standing = view.standing();
        self.began = (standing.now_ns, standing.counts);
        self.publish(view);
    }

    fn phase_ended(&mut self, view: &mut dyn RunView) {
        self.publish(view);
        // What belongs to the phase must be in its sums, though the tick goes on.
        self.end_tick();
        let standing = view.standing();
        let (from_ns, before) = self.began;
        let files = self.phase.iter_mut().map(std::mem::take).collect();
        lock(&self.shared.report).phases.push(PhaseDone {
            phase: standing.phase,
            cycle: standing.cycle,
            from_ns,
            to_ns: standing.now_ns,
            pages_verified: standing.counts.pages_verified - before.pages_verified,
            pages_written: standing.counts.pages_written - before.pages_written,
            files,
        });
    }

    fn look(&mut self, view: &mut dyn RunView) -> bool {
        self.publish(view);
        let recorded = self.journal.as_mut().is_none_or(|journal| journal.failed().is_none());
        recorded && !self.shared.stop.load(Ordering::Relaxed)
    }

    fn ended(&mut self, view: &mut dyn RunView, well: bool) -> Result<(), Failure> {
        self.publish(view);
        match &mut self.journal {
            Some(journal) => journal.finish(well).map_err(|error| Failure::Journal(error.to_string())),
            None => Ok(()),
        }
    }
}
