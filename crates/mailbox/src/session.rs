//! A run on a thread of its own, and what the outside may know of it: real storage at its own pace, a model tick by tick as it is asked.

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

use assay_array::{ArrayModel, Reading};
use assay_device::{DeviceError, Engine as IoEngine, Heartbeat, SessionClock, VolumeFile, claim, open_data_queue};
use assay_load::{Counter, DataQueue, Exchange, GroupKey, IoCollector, Pulse, Standstills, Sync};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseDone {
    pub phase: Phase,
    pub from_ns: u64,
    pub to_ns: Option<u64>,
}

/// What a database is and did so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DatabaseFacts {
    pub pages: u64,
    pub leaves: u64,
    pub cache_pages: usize,
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

/// What is known of a run.
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
        let mut session = Self::run(plan, clock.clone(), None, open)?;
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
    pub fn start_on(model: ArrayModel, plan: MailboxPlan) -> Result<Self, DeviceError> {
        let open = |_: &MailboxPlan| -> Opened {
            Ok((Box::new(ModelQueue::new(model)), IoEngine { backend: "model", ..IoEngine::default() }))
        };
        Self::run(plan, SessionClock::start(), Some(()), open)
    }

    fn run(
        plan: MailboxPlan,
        clock: SessionClock,
        paced: Option<()>,
        open: impl FnOnce(&MailboxPlan) -> Opened + Send + 'static,
    ) -> Result<Self, DeviceError> {
        let (interval_ns, io_timeout_ns) = (plan.interval_ns.max(1), plan.io_timeout_ns);
        let (meters, sources) = meters(&plan);
        let shared = Arc::new(Shared {
            report: Mutex::default(),
            stop: AtomicBool::new(false),
            abort: AtomicBool::new(false),
            rate: AtomicU64::new(plan.rate.to_bits()),
            rates_set: AtomicU64::new(0),
            heard: Mutex::new(Instant::now()),
        });
        let pulse = Pulse::default();
        let (ready_sender, ready) = mpsc::channel();
        let (end_sender, ended) = mpsc::channel();
        let (pace, paced) = match paced {
            None => (None, None),
            Some(()) => {
                let (to_sender, to_receiver) = mpsc::channel();
                let (there_sender, there_receiver) = mpsc::channel();
                (Some((to_sender, there_receiver)), Some((to_receiver, there_sender)))
            }
        };
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

    /// Takes what is new; on a model a tick passes before.
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

    /// Looks at what is known.
    pub fn look<T>(&self, look: impl FnOnce(&mut SessionReport) -> T) -> T {
        look(&mut lock(&self.shared.report))
    }

    /// Sets the I/Os per second of all databases together; what was late before is forgotten.
    pub fn set_rate(&self, rate: f64) {
        self.shared.rate.store(rate.to_bits(), Ordering::Relaxed);
        self.shared.rates_set.fetch_add(1, Ordering::Release);
    }

    /// Ends the load. What the databases hold is written and verified then.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the run as soon as what is under way has ended.
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

/// Counters of what each database does, and where they are read.
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

/// The thread of a run: a tick at a time, at its own pace or as it is asked.
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
                pages_written: database.pages_written,
                log_record_bytes: database.log.next_lsn - 1,
                log_written_bytes: database.log.head_block * BLOCK_BYTES,
                log_files: database.log.head_block / database.log.file_blocks(),
                backlog: database.backlog.len(),
                settled: database.settled,
            })
            .collect();
        report.settled = model_settled && core.databases.iter().all(|one| one.settled || one.plan.passive);
        *lock(&shared.heard) = Instant::now();
    });
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::VecDeque;

    use assay_device::Backend;
    use assay_load::{Completion, Op, Queue, QueueError, Request};

    use super::*;
    use crate::{
        core::Core,
        kernel::Kernel,
        node::{Content, Slot},
        page::{PageName, decode},
        plan::{DatabasePlan, Extent, Mix, Test, VolumePlan},
    };

    const PAGE_BYTES: u32 = 32 << 10;
    const DATA_BYTES: u64 = 8 << 20;
    const LOG_BYTES: u64 = 8 << 20;
    const MS: u64 = 1_000_000;

    /// Databases with a log each, one after the other on one volume.
    pub(crate) fn plan(databases: u64) -> MailboxPlan {
        let database = |number: u64| {
            let start_bytes = number * (DATA_BYTES + LOG_BYTES);
            DatabasePlan {
                name: format!("db{}", number + 1),
                passive: false,
                data: Extent { volume: 0, start_bytes, size_bytes: DATA_BYTES },
                log: Extent { volume: 0, start_bytes: start_bytes + DATA_BYTES, size_bytes: LOG_BYTES },
            }
        };
        MailboxPlan {
            volumes: vec![VolumePlan { name: "v".into(), path: Some("memory".into()), held: None }],
            databases: (0..databases).map(database).collect(),
            test: Test::Performance,
            page_bytes: PAGE_BYTES,
            cache_bytes: databases * 32 * u64::from(PAGE_BYTES),
            mix: Mix { insert: 0.4, replace: 0.05, delete: 0.2 },
            lazy_share: 0.7,
            checkpoint_depth_bytes: 1 << 20,
            passive_depth_bytes: 1 << 20,
            log_file_bytes: 256 << 10,
            log_write_max_bytes: 128 << 10,
            maintenance_bytes_per_s: 1e6,
            shipped_copies: 1,
            backup_streams: 0,
            recovery_files: 8,
            rate: 200.0 * databases as f64,
            depth: 64,
            seed: 1,
            run_id: 7,
            interval_ns: 100 * MS,
            io_timeout_ns: 30_000 * MS,
            backend: Backend::Auto,
            direct: false,
            write_through: true,
        }
    }

    /// A volume in memory on a virtual clock: every I/O takes as long, and moves its bytes at its end.
    struct MemoryQueue {
        bytes: Vec<u8>,
        frames: Vec<u8>,
        now_ns: u64,
        takes_ns: u64,
        under_way: VecDeque<(u64, Request)>,
        /// Places to be damaged, and when.
        damage: Vec<(u64, usize)>,
    }

    impl MemoryQueue {
        fn new(plan: &MailboxPlan, takes_ns: u64) -> Self {
            let ends = plan.databases.iter().flat_map(|one| [one.data, one.log]);
            let size_bytes = ends.map(|extent| extent.start_bytes + extent.size_bytes).max().unwrap();
            let (_, frames) = Engine::queue_needs(plan);
            Self {
                bytes: vec![0; size_bytes as usize],
                frames: vec![0; (frames * PAGE_BYTES) as usize],
                now_ns: 0,
                takes_ns,
                under_way: VecDeque::new(),
                damage: Vec::new(),
            }
        }
    }

    impl Queue for MemoryQueue {
        fn now_ns(&mut self) -> u64 {
            self.now_ns
        }

        fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
            for request in requests {
                assert_eq!(request.offset_bytes % 4096, 0);
                let range =
                    |request: &Request| request.offset_bytes..request.offset_bytes + u64::from(request.length_bytes);
                for (_, other) in &self.under_way {
                    let (one, two) = (range(request), range(other));
                    let overlap = one.start < two.end && two.start < one.end;
                    assert!(!overlap || request.op == Op::Read && other.op == Op::Read, "{request:?} and {other:?}");
                }
                self.under_way.push_back((self.now_ns + self.takes_ns, *request));
            }
            Ok(())
        }

        fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
            let first_ns = self.under_way.front().map_or(u64::MAX, |(at_ns, _)| *at_ns);
            if min > 0 {
                self.now_ns = self.now_ns.max(first_ns.min(until_ns));
            }
            let now_ns = self.now_ns;
            let (bytes, damage) = (&mut self.bytes, &mut self.damage);
            damage.retain(|(at_ns, place)| {
                let comes = *at_ns <= now_ns;
                bytes[*place] ^= u8::from(comes);
                !comes
            });
            while self.under_way.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
                let Some((at_ns, request)) = self.under_way.pop_front() else { break };
                let (at, length) = (request.offset_bytes as usize, request.length_bytes as usize);
                let frame = (request.buffer * PAGE_BYTES) as usize;
                match request.op {
                    Op::Read => self.frames[frame..frame + length].copy_from_slice(&self.bytes[at..at + length]),
                    Op::Write => self.bytes[at..at + length].copy_from_slice(&self.frames[frame..frame + length]),
                    Op::Flush => {}
                }
                completions.push(Completion { tag: request.tag, result: length as i32, at_ns });
            }
            Ok(())
        }
    }

    impl DataQueue for MemoryQueue {
        fn frame_bytes(&self) -> u32 {
            PAGE_BYTES
        }

        fn frame(&mut self, frame: u32) -> &mut [u8] {
            let start = (frame * PAGE_BYTES) as usize;
            &mut self.frames[start..start + PAGE_BYTES as usize]
        }

        fn frame_of_piece(&self, _volume: u16, first: u32, piece: u32, _pieces: u32) -> u32 {
            first + piece
        }

        fn resize(&mut self, _volume: u16, _size_bytes: u64) -> Result<(), i32> {
            Err(-22)
        }
    }

    fn engine(plan: &MailboxPlan, queue: MemoryQueue) -> (Engine, IoCollector) {
        let (meters, sources) = meters(plan);
        (Engine::new(plan.clone(), Box::new(queue), meters), IoCollector::new(sources))
    }

    /// Goes on in ticks until a phase has begun.
    fn run_until(engine: &mut Engine, phase: Phase) -> u64 {
        for tick in 1..100_000 {
            assert!(!engine.run_to(tick * 100 * MS).unwrap(), "the run ended before {phase:?}");
            if engine.kernel.with(|core| core.phase == phase) {
                return tick;
            }
        }
        panic!("{phase:?} does not come");
    }

    fn finish(engine: &mut Engine) {
        engine.kernel.with(Core::stop);
        assert!(engine.run_to(u64::MAX).unwrap());
    }

    /// All records of a database as its storage has them, by key.
    fn stored(kernel: &Kernel, at: usize) -> Vec<Slot> {
        kernel.with(|core| {
            let (shape, start) = (core.databases[at].shape.clone(), core.databases[at].plan.data.start_bytes);
            let queue: &mut dyn Any = core.queue.as_mut();
            let bytes = &queue.downcast_mut::<MemoryQueue>().unwrap().bytes;
            let (mut page, mut slots) = (shape.first_leaf, Vec::new());
            while page != 0 {
                let place = (start + page * u64::from(PAGE_BYTES)) as usize;
                let name = PageName { run_id: 7, database: at as u32, page };
                let node = decode(&bytes[place..place + PAGE_BYTES as usize], name).unwrap();
                slots.extend_from_slice(node.slots());
                page = node.right;
            }
            slots
        })
    }

    /// The same as the cache has them where it is newer.
    fn known(kernel: &Kernel, at: usize) -> Vec<Slot> {
        let mut slots = Vec::new();
        let mut page = kernel.of(at, |database| database.shape.first_leaf);
        while page != 0 {
            let cached = kernel.of(at, |database| database.cache.node(page).cloned());
            let node = cached.unwrap_or_else(|| {
                kernel.with(|core| {
                    let place = core.databases[at].offset_bytes(page, PAGE_BYTES) as usize;
                    let name = core.name(at, page);
                    let queue: &mut dyn Any = core.queue.as_mut();
                    let bytes = &queue.downcast_mut::<MemoryQueue>().unwrap().bytes;
                    decode(&bytes[place..place + PAGE_BYTES as usize], name).unwrap()
                })
            });
            assert!(matches!(node.content, Content::Leaf(_)));
            slots.extend_from_slice(node.slots());
            page = node.right;
        }
        slots
    }

    #[test]
    fn the_rate_is_held_and_every_page_is_right_at_the_end() {
        let plan = plan(2);
        let (mut engine, mut collector) = engine(&plan, MemoryQueue::new(&plan, MS));
        let began = run_until(&mut engine, Phase::Load);
        for tick in 1..=400 {
            engine.run_to((began + tick) * 100 * MS).unwrap();
            collector.collect();
        }
        let totals = collector.totals(began + 100, began + 400);
        let count = |activity: Activity| -> (u64, u64) {
            let own = totals.iter().filter(|(key, _)| key.activity == activity as usize);
            own.fold((0, 0), |(reads, writes), (_, tally)| {
                (reads + tally.read.latency.count(), writes + tally.write.latency.count())
            })
        };
        let (reads, writes) = count(Activity::Database);
        let rate = (reads + writes) as f64 / 30.0;
        assert!((rate / 400.0 - 1.0).abs() < 0.05, "{rate} I/Os per second of 400");
        assert!(reads > writes && writes > 0);
        let (_, log_writes) = count(Activity::Log);
        assert!(log_writes > 0 && log_writes < writes);
        let (maintained, _) = count(Activity::Maintenance);
        assert!((maintained as f64 * f64::from(256 << 10) / 30.0 / 2e6 - 1.0).abs() < 0.05, "{maintained}");
        assert!(count(Activity::Shipping).0 > 0);
        finish(&mut engine);
        let (counts, pages) = engine.kernel.with(|core| {
            let pages = core.databases.iter().map(|database| database.shape.pages).sum::<u64>();
            (core.counts, pages)
        });
        assert_eq!(counts.bad_pages, 0);
        assert!(counts.pages_verified > pages);
        for at in 0..2 {
            let slots = stored(&engine.kernel, at);
            assert!(slots.windows(2).all(|pair| pair[0].key < pair[1].key), "keys rise through all leaves");
            let (operations, initial) = engine.kernel.of(at, |database| {
                let leaf = database.shape.initial(database.shape.first_leaf).slots().len() as u64;
                (database.operations, leaf * database.shape.leaves)
            });
            assert!(operations.inserts > operations.deletes && operations.deletes > 100);
            assert_ne!(slots.len() as u64, initial);
            assert_eq!(slots, known(&engine.kernel, at), "nothing is left in the cache alone");
        }
    }

    #[test]
    fn leaves_split_until_the_database_is_full() {
        let mut plan = plan(1);
        plan.mix = Mix { insert: 1.0, replace: 0.0, delete: 0.0 };
        (plan.rate, plan.maintenance_bytes_per_s) = (3000.0, 0.0);
        let (mut engine, _) = engine(&plan, MemoryQueue::new(&plan, MS / 10));
        let began = run_until(&mut engine, Phase::Load);
        engine.run_to((began + 100) * 100 * MS).unwrap();
        finish(&mut engine);
        let (operations, free) =
            engine.kernel.of(0, |database| (database.operations, database.shape.pages - database.shape.first_free));
        assert_eq!(operations.splits, free);
        assert!(operations.full > 0);
        assert_eq!(engine.kernel.with(|core| core.counts.bad_pages), 0);
        let slots = stored(&engine.kernel, 0);
        assert!(slots.windows(2).all(|pair| pair[0].key < pair[1].key));
    }

    #[test]
    fn slow_storage_shows_in_the_latency_from_the_intended_start() {
        let mut plan = plan(1);
        // A place for one I/O at a time, each of 20 ms: 50 a second, and 200 are asked.
        plan.maintenance_bytes_per_s = 0.0;
        let mut means = Vec::new();
        for takes_ns in [MS, 200 * MS] {
            let (mut engine, mut collector) = engine(&plan, MemoryQueue::new(&plan, takes_ns));
            let began = run_until(&mut engine, Phase::Load);
            for tick in 1..=200 {
                engine.run_to((began + tick) * 100 * MS).unwrap();
                collector.collect();
            }
            let totals = collector.totals(began + 100, began + 200);
            let own = totals.iter().find(|(key, _)| key.activity == Activity::Database as usize);
            let tally = own.unwrap().1;
            means.push((tally.read.latency.mean_ns().unwrap(), tally.service.mean_ns().unwrap()));
        }
        assert!(means[0].0 < 1.1 * MS as f64, "{means:?}");
        assert!(means[1].0 >= means[1].1 && means[1].1 >= 200.0 * MS as f64, "{means:?}");
    }

    #[test]
    fn damaged_pages_are_found_in_the_end_if_not_before() {
        let plan = plan(1);
        let mut queue = MemoryQueue::new(&plan, MS);
        // Free pages, which no operation reads or writes.
        let places = [250, 251, 253].map(|page| page * PAGE_BYTES as usize + 700);
        queue.damage = places.map(|place| (3_000 * MS, place)).to_vec();
        let (mut engine, _) = engine(&plan, queue);
        let began = run_until(&mut engine, Phase::Load);
        assert!(began < 30);
        engine.run_to(3_500 * MS).unwrap();
        finish(&mut engine);
        let found = engine.kernel.with(|core| core.bad.clone());
        let mut pages: Vec<_> = found.iter().map(|bad| bad.page.unwrap()).collect();
        pages.sort_unstable();
        assert_eq!(pages, [250, 251, 253]);
        assert!(found.iter().all(|bad| bad.what.starts_with("checksum is")));
    }

    #[test]
    fn a_recovery_brings_back_what_was_lost() {
        let mut plan = plan(2);
        plan.test = Test::Recovery;
        let (mut engine, _) = engine(&plan, MemoryQueue::new(&plan, MS));
        run_until(&mut engine, Phase::MakeLog);
        let mut before = Vec::new();
        // Small steps, so that the last one before the server breaks off is seen.
        let mut to_ns = engine.kernel.with(|core| core.now_ns);
        while engine.kernel.with(|core| core.phase == Phase::MakeLog) {
            before = (0..2).map(|at| known(&engine.kernel, at)).collect();
            to_ns += MS / 4;
            engine.run_to(to_ns).unwrap();
        }
        assert!(engine.run_to(u64::MAX).unwrap());
        let counts = engine.kernel.with(|core| core.counts);
        assert!(counts.log_files_replayed >= 2, "{counts:?}");
        assert_eq!(counts.bad_pages, 0);
        for (at, before) in before.iter().enumerate() {
            assert_eq!(stored(&engine.kernel, at), *before);
        }
    }

    #[test]
    fn a_log_for_a_recovery_is_made_whatever_storage_takes() {
        for (seed, takes_ns) in [(1, MS / 20), (2, MS / 7), (3, MS), (4, 3 * MS), (5, 30 * MS)] {
            let mut plan = plan(2);
            (plan.test, plan.seed, plan.recovery_files, plan.depth) = (Test::Recovery, seed, 5, 128);
            plan.cache_bytes = (30 << 20) / 8;
            let (mut engine, _) = engine(&plan, MemoryQueue::new(&plan, takes_ns));
            let mut ended = false;
            for tick in 1..20_000 {
                ended = engine.run_to(tick * 100 * MS).unwrap();
                if ended {
                    break;
                }
            }
            let standing = engine.kernel.with(|core| {
                let of = |one: &crate::database::Database| {
                    (
                        one.running,
                        one.writes_under_way,
                        one.log.durable_lsn,
                        one.log.next_lsn,
                        one.log.wanted,
                        one.cache.dirty_count(),
                    )
                };
                (core.phase, core.used_slots(), core.outstanding(), core.databases.iter().map(of).collect::<Vec<_>>())
            });
            assert!(ended, "{seed}: {standing:?}");
        }
    }

    #[test]
    fn a_passive_copy_replays_as_much_log_as_an_active_database_makes() {
        let mut plan = plan(2);
        plan.databases[1].passive = true;
        plan.rate = 400.0;
        let (mut engine, mut collector) = engine(&plan, MemoryQueue::new(&plan, MS));
        let began = run_until(&mut engine, Phase::Load);
        for tick in 1..=400 {
            engine.run_to((began + tick) * 100 * MS).unwrap();
            collector.collect();
        }
        let totals = collector.totals(began, began + 400);
        let replay = totals.iter().find(|(key, _)| key.activity == Activity::Replay as usize).unwrap().1;
        assert!(replay.read.latency.count() > 100 && replay.write.latency.count() > 100);
        finish(&mut engine);
        let (bad, files, made) = engine.kernel.with(|core| {
            let made = [0, 1].map(|at| core.databases[at].log.next_lsn as f64);
            (core.counts.bad_pages, core.counts.log_files_replayed, made)
        });
        assert_eq!(bad, 0);
        assert!(files > 3);
        assert!((made[1] / made[0] - 1.0).abs() < 0.3, "{made:?}");
    }

    #[test]
    fn a_backup_reads_every_page_once() {
        let mut plan = plan(2);
        plan.test = Test::Backup;
        let (mut engine, mut collector) = engine(&plan, MemoryQueue::new(&plan, MS));
        while !engine.run_to(engine.kernel.with(|core| core.now_ns) + 100 * MS).unwrap() {
            collector.collect();
        }
        assert_eq!(engine.kernel.with(|core| core.counts.pages_verified), 2 * DATA_BYTES / u64::from(PAGE_BYTES));
    }

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let plan = plan(2);
        let run = || {
            let (mut engine, _) = engine(&plan, MemoryQueue::new(&plan, MS));
            let began = run_until(&mut engine, Phase::Load);
            engine.run_to((began + 50) * 100 * MS).unwrap();
            engine
                .kernel
                .with(|core| core.databases.iter().map(|one| (one.operations, one.log.next_lsn)).collect::<Vec<_>>())
        };
        assert_eq!(run(), run());
    }
}
