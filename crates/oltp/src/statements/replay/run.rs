//! The threads of a replay. Sessions are dealt to them in turn, in the order in which they connect; those that the log found connected
//! connect before its time begins.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use assay_load::{Exchange, Watch};
use assay_loading::{Alive, DatabaseError, OnPanic};
use assay_sql::{Isolation, Kind};
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    task::{LocalSet, spawn_local},
    time::sleep,
};

use super::{
    alarms::Alarms,
    plan::ReplayPlan,
    session,
    told::{BATCHES, Report, Told},
};
use crate::{
    counts::{SPARE_INTERVALS, ThreadCounter},
    plan::{RunLoad, RunPlan},
    run::{OltpRun, Parts},
    shared::Shared,
    statements::{
        kinds::COUNTED,
        lex::Dialect,
        record::Record,
        stored::{Session, Statements, StoredLog},
    },
};

/// Connections of a thread that are made at the same time.
const CONNECTING_MAX: usize = 16;
const LOOK: Duration = Duration::from_millis(20);
/// How long statements that are under way may take to end.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// Sessions that wait for one thread at once.
const SESSIONS_PER_THREAD: u64 = 64;

/// A replay as its threads see it.
pub(super) struct Replay {
    pub(super) plan: ReplayPlan,
    pub(super) log: Arc<StoredLog>,
    told: Vec<Mutex<Told>>,
    /// Sessions that are to connect before the time of the log begins.
    before: AtomicUsize,
    pub(super) lost_in_turn: AtomicU32,
}

impl Replay {
    fn span_ns(&self) -> i64 {
        (self.log.survey.end_ns - self.log.survey.begin_ns).max(1)
    }

    /// When what the log has at a time is due, since the beginning of the replay.
    pub(super) fn due_ns(&self, at_ns: i64) -> u64 {
        let after_ns = at_ns.saturating_sub(self.log.survey.begin_ns).max(0);
        (after_ns as f64 / self.plan.speed) as u64
    }

    /// The part of the log's time that a statement is in.
    pub(super) fn batch(&self, at_ns: i64) -> usize {
        let after_ns = at_ns.saturating_sub(self.log.survey.begin_ns).max(0);
        (after_ns as f64 / self.span_ns() as f64 * BATCHES as f64) as usize
    }

    fn begins_before(&self, session: &Session) -> bool {
        session.connects_ns <= self.log.survey.begin_ns
    }
}

/// A thread of a replay.
pub(super) struct Thread {
    pub(super) shared: Arc<Shared>,
    pub(super) replay: Arc<Replay>,
    number: usize,
    pub(super) counter: RefCell<ThreadCounter>,
    pub(super) watch: RefCell<Watch>,
    pub(super) alarms: Alarms,
    pub(super) connecting: Semaphore,
    pub(super) busy: Cell<u32>,
    epoch: Cell<Instant>,
    /// Statements that were due at the end and had not begun, and when the first was due.
    left: Cell<(u64, u64)>,
}

impl Thread {
    pub(super) fn stopping(&self) -> bool {
        self.shared.is_stopped()
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.epoch.get().elapsed().as_nanos() as u64
    }

    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        self.replay.told[self.number].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of the sessions that connect before the beginning is ready, or lost.
    pub(super) fn has_begun(&self) {
        if self.replay.before.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.epoch.send_replace(Some(Instant::now()));
        }
    }

    /// Waits until the time of the log begins; false if it never does.
    pub(super) async fn begins(&self) -> bool {
        let mut began = self.shared.epoch.subscribe();
        let Ok(epoch) = began.wait_for(Option::is_some).await.map(|epoch| epoch.expect("was waited for")) else {
            return false;
        };
        if self.epoch.replace(epoch) != epoch {
            self.counter.borrow_mut().begin();
        }
        true
    }

    /// Counts how late a statement began although its session was free.
    pub(super) fn waited(&self, late_ns: u64, bound_ns: u64) {
        let mut counter = self.counter.borrow_mut();
        let tally = counter.at(self.now_ns());
        tally.lag.record(late_ns);
        tally.waits += 1;
        tally.late += u64::from(late_ns > bound_ns);
    }

    /// Counts statements that were due when the replay ended and had not begun; the first of `rest` was read already.
    pub(super) fn left_over(&self, session: &Session, rest: Option<Statements<'_>>) {
        let ended_ns = self.shared.stopped_at().saturating_duration_since(self.epoch.get()).as_nanos() as u64;
        let mut statements = rest.unwrap_or_else(|| self.replay.log.statements(session, 8 << 10));
        let (mut count, mut oldest_ns) = self.left.get();
        let mut add = |due_ns: u64| {
            if due_ns < ended_ns {
                oldest_ns = if count == 0 { due_ns } else { oldest_ns.min(due_ns) };
                count += 1;
            }
            due_ns < ended_ns
        };
        if let Some(start_ns) = statements.last_start_ns()
            && !add(self.replay.due_ns(start_ns))
        {
            return;
        }
        while let Ok(Some(bytes)) = statements.next() {
            let Some(record) = Record::read(bytes) else { break };
            if !add(self.replay.due_ns(record.start_ns)) {
                break;
            }
        }
        self.left.set((count, oldest_ns));
    }

    /// Starts sessions when they connect.
    async fn conduct(self: Rc<Self>, threads: usize) {
        let replay = self.replay.clone();
        for session in replay.log.sessions.iter().skip(self.number).step_by(threads) {
            let before = replay.begins_before(session);
            if !before {
                let comes = self.begins().await && self.alarms.until(replay.due_ns(session.connects_ns)).await;
                if !comes || self.stopping() {
                    return;
                }
            }
            let failing = self.shared.clone();
            let life = session::live(self.clone(), *session, before);
            spawn_local(async move {
                let _guard = OnPanic(|error| failing.fail(error));
                life.await;
            });
        }
    }

    /// Hands intervals over in time until the replay shall end.
    async fn watch(&self) {
        let mut began = self.shared.epoch.subscribe();
        while !self.stopping() {
            let epoch = *began.borrow_and_update();
            if let Some(epoch) = epoch {
                if self.epoch.replace(epoch) != epoch {
                    self.counter.borrow_mut().begin();
                }
                self.counter.borrow_mut().at(self.now_ns());
            }
            sleep(LOOK).await;
        }
    }

    async fn end(&self) {
        let deadline = Instant::now() + STOP_WITHIN;
        // Sessions that are woken count what they leave.
        sleep(Duration::from_millis(5)).await;
        while self.busy.get() > 0 && Instant::now() < deadline {
            sleep(Duration::from_millis(2)).await;
        }
        sleep(Duration::from_millis(2)).await;
        self.counter.borrow_mut().end();
        let (count, oldest_ns) = self.left.get();
        let ended_ns = self.shared.stopped_at().saturating_duration_since(self.epoch.get()).as_nanos() as u64;
        let mut backlog = self.shared.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        backlog.push((count, if count > 0 { ended_ns.saturating_sub(oldest_ns) } else { 0 }));
    }
}

fn run_thread(shared: Arc<Shared>, replay: Arc<Replay>, counter: ThreadCounter, number: usize, threads: usize) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return shared.fail(DatabaseError::Other(format!("no runtime: {error}"))),
    };
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let alarms = match Alarms::new() {
            Ok(alarms) => alarms,
            Err(error) => return shared.fail(DatabaseError::Other(format!("no timer: {error}"))),
        };
        let watch = RefCell::new(Watch::new(shared.pulse.clone()));
        let thread = Rc::new(Thread {
            shared,
            replay,
            number,
            counter: RefCell::new(counter),
            watch,
            alarms,
            connecting: Semaphore::new(CONNECTING_MAX),
            busy: Cell::new(0),
            epoch: Cell::new(Instant::now()),
            left: Cell::new((0, 0)),
        });
        let ringing = thread.clone();
        let rings = spawn_local(async move { ringing.alarms.ring(|| ringing.now_ns(), || ringing.stopping()).await });
        spawn_local(thread.clone().conduct(threads));
        thread.watch().await;
        let _ = rings.await;
        thread.end().await;
    });
    drop(tasks);
}

/// A replay at work, and what it tells.
pub struct StatementReplay {
    pub run: OltpRun,
    replay: Arc<Replay>,
}

impl StatementReplay {
    /// Starts the threads of a replay.
    ///
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when the plan is impossible, [`DatabaseError::Other`] when threads cannot be started.
    pub fn start(log: Arc<StoredLog>, plan: &str) -> Result<Self, DatabaseError> {
        let plan: ReplayPlan = assay_loading::parse(plan)?;
        plan.validate()?;
        let is_postgresql = plan.databases[0].connection.kind == Kind::Postgresql;
        if is_postgresql != (log.dialect == Dialect::Postgresql) {
            let of = |is_postgresql| if is_postgresql { "PostgreSQL" } else { "MariaDB or MySQL" };
            let (from, to) = (of(!is_postgresql), of(is_postgresql));
            return Err(DatabaseError::InvalidPlan(format!("a log of {from} cannot be replayed on {to}")));
        }
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let wanted = log.survey.sessions_most.div_ceil(SESSIONS_PER_THREAD).clamp(1, cores);
        let threads = plan.threads.map_or(wanted as usize, |threads| threads as usize).min(log.sessions.len()).max(1);
        let shared = Arc::new(Shared::new(run_plan(&plan), Vec::new(), Vec::new(), 0, 0));
        let replay = Arc::new(Replay {
            told: (0..threads).map(|_| Mutex::default()).collect(),
            before: AtomicUsize::new(0),
            lost_in_turn: AtomicU32::new(0),
            plan,
            log,
        });
        let before = replay.log.sessions.iter().filter(|session| replay.begins_before(session)).count();
        replay.before.store(before, Ordering::Release);
        if before == 0 {
            shared.epoch.send_replace(Some(Instant::now()));
        }
        let interval_ns = replay.plan.interval_ns;
        let exchanges: Vec<_> = (0..threads).map(|_| Exchange::new(SPARE_INTERVALS)).collect();
        let alive = Arc::new(AtomicU32::new(threads as u32));
        let mut handles = Vec::new();
        for (number, exchange) in exchanges.iter().cloned().enumerate() {
            let (shared, replay, alive) = (shared.clone(), replay.clone(), alive.clone());
            let stopping = shared.clone();
            let work = move || {
                let _alive = Alive(alive);
                let failing = shared.clone();
                let _guard = OnPanic(|error| failing.fail(error));
                let counter = ThreadCounter::new(exchange, COUNTED.len(), interval_ns);
                run_thread(shared, replay, counter, number, threads);
            };
            let spawned = thread::Builder::new().name(format!("assay-replay-{number}")).spawn(work);
            handles.push(spawned.map_err(|error| {
                stopping.stop();
                DatabaseError::Other(format!("no thread: {error}"))
            })?);
        }
        let name = replay.plan.databases[0].name.clone();
        let run = OltpRun::assembled(Parts {
            shared,
            exchanges,
            threads: handles,
            alive,
            transactions: COUNTED.into_iter().map(Into::into).collect(),
            names: vec![name],
            acknowledged: Box::new(|| Value::Null),
        })?;
        Ok(Self { run, replay })
    }

    /// What became of the statements.
    pub fn told(&self) -> Report {
        let mut all = Told::default();
        for told in &self.replay.told {
            all.merge(&told.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all.report(&self.replay.log.fingerprints)
    }
}

/// The plan of what replays and users have in common.
fn run_plan(plan: &ReplayPlan) -> RunPlan {
    RunPlan {
        databases: plan.databases.clone(),
        users: 1,
        connections: None,
        threads: plan.threads,
        load: RunLoad::Closed,
        mix: vec![1; COUNTED.len()],
        deck: false,
        think_scale: 0.0,
        procedures: false,
        pipeline: false,
        isolation: Isolation::Default,
        retries: 0,
        connect_s: plan.connect_s,
        reconnect_s: plan.reconnect_s,
        seed: plan.seed,
        interval_ns: plan.interval_ns,
    }
}
