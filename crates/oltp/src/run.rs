//! A run: its threads, and its figures while it goes on.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use assay_device::Heartbeat;
use assay_load::{Exchange, LatencyHistogram, Standstills};
use assay_loading::{Alive, DatabaseError, OnPanic};
use assay_sql::{Statement, statements_of};
use serde_json::Value;

use crate::{
    counts::{Counted, SPARE_INTERVALS, ThreadCounter, TransactionCollector, TransactionTally},
    plan::{RunPlan, UsedDatabase},
    shared::{Gap, Shared},
    users::run_thread,
    workload::{Workload, all_sections},
};

/// Connections for each thread unless the plan says otherwise, with at most one thread per core. One thread keeps up
/// with tens of thousands of transactions per second; several wake up the more often the less work each has.
const CONNECTIONS_PER_THREAD: u32 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Connecting,
    Running,
    Ended,
    Failed,
}

/// One kind of transaction on one database in one tick.
#[derive(Debug, Clone)]
pub struct TransactionTick {
    pub tick: u64,
    pub database: usize,
    pub transaction: Arc<str>,
    pub committed: u64,
    pub rolled_back: u64,
    pub retried: u64,
    pub failed: u64,
    pub latency: LatencyHistogram,
}

/// State of a run, and news since the last call.
#[derive(Debug, Clone)]
pub struct RunStatus {
    pub state: State,
    pub error: Option<DatabaseError>,
    pub connected: u32,
    pub reconnecting: u32,
    pub complete_ticks: u64,
    /// Since the first tick began.
    pub now_ns: u64,
    pub started_utc_ns: u64,
    pub ticks: Vec<TransactionTick>,
    /// CPU time of all threads by tick.
    pub cpu_ns: Vec<(u64, u64)>,
    pub gaps: Vec<Gap>,
    /// The first error of a transaction that was no lost connection and no deadlock.
    pub example: Option<String>,
}

/// Sums of one kind of transaction over a window.
#[derive(Debug, Clone, Default)]
pub struct TransactionSum {
    pub committed: u64,
    pub rolled_back: u64,
    pub retried: u64,
    pub failed: u64,
    pub latency: LatencyHistogram,
}

/// Sums of one database over a window.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatabaseSum {
    /// Commits of the workload's first transaction.
    pub first_committed: u64,
    /// All transactions that ended, committed or rolled back.
    pub count: u64,
}

/// Counts of a window.
#[derive(Debug, Clone)]
pub struct Window {
    /// Of all databases together, by transaction in the order of the workload's.
    pub by_transaction: Vec<(Arc<str>, TransactionSum)>,
    pub databases: Vec<DatabaseSum>,
    /// Deadlocks, serialisation failures, lost connections, others.
    pub failures: [u64; 4],
    pub example: Option<String>,
    /// Errors that trying again does not mend by their codes, and users that they ended, since the run began.
    pub codes: BTreeMap<String, u64>,
    pub ended_users: u32,
    pub service: LatencyHistogram,
    pub lag: LatencyHistogram,
    pub waits: u64,
    pub late: u64,
    /// Times in which not the databases but this process stood still, and transactions that were under way then.
    pub standstills: Standstills,
    pub standstill_count: u64,
    pub cpu_ns: u64,
    /// CPU time of whichever thread was fullest, tick by tick.
    pub fullest_cpu_ns: u64,
    pub threads: usize,
    /// Arrivals that no user had taken at the end, and how long the oldest was due.
    pub backlog: Option<(u64, u64)>,
}

/// Parts of a run: its threads at work, and where they count.
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) exchanges: Vec<Exchange<TransactionTally>>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Threads that have not ended.
    pub(crate) alive: Arc<AtomicU32>,
    /// Names of the transactions that it counts.
    pub(crate) transactions: Vec<Arc<str>>,
    /// Names of the databases.
    pub(crate) names: Vec<String>,
    pub(crate) acknowledged: Box<dyn Fn() -> Value + Send>,
}

/// Users at work. Dropping it stops them.
pub struct OltpRun {
    shared: Arc<Shared>,
    collector: TransactionCollector,
    /// Ticks before this one were told.
    told_ticks: u64,
    threads: Vec<JoinHandle<()>>,
    alive: Arc<AtomicU32>,
    transactions: Vec<Arc<str>>,
    names: Vec<String>,
    interval_ns: u64,
    acknowledged: Box<dyn Fn() -> Value + Send>,
    _heartbeat: Heartbeat,
}

/// Starts the threads of a run. Each connects its users, and waits for the others before users begin.
fn start_threads<W: Workload>(
    shared: &Arc<Shared>,
    workload: &Arc<W>,
    exchanges: &[Exchange<TransactionTally>],
    alive: &Arc<AtomicU32>,
    places: usize,
    interval_ns: u64,
) -> Result<Vec<JoinHandle<()>>, DatabaseError> {
    let threads = exchanges.len() as u32;
    let mut handles = Vec::new();
    for (number, exchange) in (0..threads).zip(exchanges) {
        let (shared, exchange) = (shared.clone(), exchange.clone());
        let (alive, workload, stopping) = (alive.clone(), workload.clone(), shared.clone());
        let work = move || {
            let _alive = Alive(alive);
            let failing = shared.clone();
            let _guard = OnPanic(|error| failing.fail(error));
            let counter = ThreadCounter::new(exchange, places, interval_ns);
            run_thread(shared, workload, counter, number, threads);
        };
        let spawned = thread::Builder::new().name(format!("assay-users-{number}")).spawn(work);
        handles.push(spawned.map_err(|error| {
            stopping.stop();
            DatabaseError::Other(format!("no thread: {error}"))
        })?);
    }
    Ok(handles)
}

impl OltpRun {
    /// Starts threads that connect all users and then let them begin together.
    ///
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when the plan is impossible, [`DatabaseError::Other`] when threads cannot be started.
    pub(crate) fn start<W: Workload>(plan: RunPlan, mut workload: W) -> Result<Self, DatabaseError> {
        plan.validate(workload.transactions().len(), W::UNIT)?;
        workload.ready(&plan)?;
        let databases = plan.databases.len();
        let connections = plan.connections.unwrap_or(plan.users);
        if (plan.users as usize) < databases || (connections as usize) < databases {
            return Err(DatabaseError::InvalidPlan(format!(
                "{} users on {connections} connections are less than one for each of {databases} databases",
                plan.users
            )));
        }
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let wanted = plan.threads.unwrap_or(connections.div_ceil(CONNECTIONS_PER_THREAD).min(cores));
        // Every thread has a connection to every database.
        let threads = wanted.min(connections / databases as u32).max(1);
        let interval_ns = plan.interval_ns;
        let names = plan.databases.iter().map(|database| database.name.clone()).collect();
        let statements = plan.databases.iter().map(|database| statements::<W>(database, plan.procedures)).collect();
        let transactions: Vec<Arc<str>> =
            workload.transactions().into_iter().map(|transaction| transaction.name.into()).collect();
        let workload = Arc::new(workload);
        let places = databases * transactions.len();
        let places_of_users = databases as u32 * threads;
        let clerks = match W::USERS_PER_CLERK {
            0 => 0,
            each => plan.users.div_ceil(places_of_users * each),
        };
        let sessions = plan.databases.iter().map(|database| sessions::<W>(database)).collect();
        let connections = connections + clerks * places_of_users;
        let shared = Arc::new(Shared::new(plan, statements, sessions, connections, clerks));
        let exchanges: Vec<_> = (0..threads).map(|_| Exchange::new(SPARE_INTERVALS)).collect();
        let alive = Arc::new(AtomicU32::new(threads));
        let handles = start_threads(&shared, &workload, &exchanges, &alive, places, interval_ns)?;
        Self::assembled(Parts {
            shared,
            exchanges,
            threads: handles,
            alive,
            transactions,
            names,
            acknowledged: Box::new(move || workload.acknowledged()),
        })
    }

    /// Makes a run of threads that are at work.
    ///
    /// # Errors
    /// [`DatabaseError::Other`] when no thread can watch over them.
    pub(crate) fn assembled(parts: Parts) -> Result<Self, DatabaseError> {
        let Parts { shared, exchanges, threads, alive, transactions, names, acknowledged } = parts;
        let collector = TransactionCollector::new(exchanges.into_iter().map(|exchange| ((), exchange)));
        let began = shared.epoch.subscribe();
        let now_ns = move || began.borrow().map(|epoch| epoch.elapsed().as_nanos() as u64);
        let heartbeat = Heartbeat::start(shared.pulse.clone(), now_ns).map_err(|error| {
            shared.stop();
            DatabaseError::Other(format!("no thread: {error}"))
        })?;
        let interval_ns = shared.plan.interval_ns;
        Ok(Self {
            shared,
            collector,
            told_ticks: 0,
            threads,
            alive,
            transactions,
            names,
            interval_ns,
            acknowledged,
            _heartbeat: heartbeat,
        })
    }

    /// Names of the databases.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Length of a tick.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// How the run stands.
    pub fn poll(&mut self) -> RunStatus {
        let ended = self.alive.load(Ordering::Acquire) == 0;
        self.collector.collect();
        let (mut ticks, mut cpu_ns) = (Vec::new(), Vec::new());
        let mut fresh = self.collector.fresh_ticks().into_iter().peekable();
        for tick in self.told_ticks..self.collector.complete_ticks() {
            // A tick that no thread was in holds nothing, and is told as well.
            let tally = fresh.next_if(|fresh| fresh.tick == tick).map(|fresh| fresh.counted).unwrap_or_default();
            cpu_ns.push((tick, tally.cpu_ns));
            ticks.extend(self.tick_lines(tick, tally));
        }
        self.told_ticks = self.collector.complete_ticks();
        let error = self.shared.failure();
        let epoch = *self.shared.epoch.borrow();
        let state = match (&error, ended, epoch) {
            (Some(_), _, _) => State::Failed,
            (None, true, _) => State::Ended,
            (None, false, None) => State::Connecting,
            (None, false, Some(_)) => State::Running,
        };
        let now_ns = epoch.map_or(0, |epoch| epoch.elapsed().as_nanos() as u64);
        RunStatus {
            state,
            error,
            connected: self.shared.connected.load(Ordering::Relaxed),
            reconnecting: self.shared.reconnecting.load(Ordering::Relaxed),
            complete_ticks: self.collector.complete_ticks(),
            now_ns,
            started_utc_ns: utc_ns().saturating_sub(now_ns),
            ticks,
            cpu_ns,
            gaps: self.shared.gaps(),
            example: self.shared.example(),
        }
    }

    fn tick_lines(&self, tick: u64, mut tally: TransactionTally) -> impl Iterator<Item = TransactionTick> + use<> {
        let transactions = self.transactions.clone();
        tally.make_room(self.names.len() * transactions.len());
        tally.counted.into_iter().enumerate().map(move |(place, counted)| TransactionTick {
            tick,
            database: place / transactions.len(),
            transaction: transactions[place % transactions.len()].clone(),
            committed: counted.committed,
            rolled_back: counted.rolled_back,
            retried: counted.retried,
            failed: counted.failed,
            latency: counted.latency,
        })
    }

    /// Forgets the ticks before this one.
    pub fn measure_from(&mut self, tick: u64) {
        self.collector.measure_from(tick);
    }

    /// Counts of the complete ticks of a window.
    pub fn window(&self, from_tick: u64, to_tick: u64) -> Window {
        let sum = self.collector.totals(from_tick, to_tick).remove(&()).unwrap_or_default();
        let mut by_transaction: Vec<_> =
            self.transactions.iter().map(|name| (name.clone(), TransactionSum::default())).collect();
        let mut databases = vec![DatabaseSum::default(); self.names.len()];
        for (database, counted) in databases.iter_mut().zip(sum.counted.chunks(self.transactions.len())) {
            for ((_, total), counted) in by_transaction.iter_mut().zip(counted) {
                total.add(counted);
                database.count += counted.committed + counted.rolled_back;
            }
            database.first_committed = counted[0].committed;
        }
        let backlog = self.shared.backlog.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = sum.failures;
        let now_ns = self.shared.epoch.borrow().map_or(0, |epoch| epoch.elapsed().as_nanos() as u64);
        let (from_ns, to_ns) = (from_tick.saturating_mul(self.interval_ns), to_tick.saturating_mul(self.interval_ns));
        Window {
            by_transaction,
            databases,
            failures: [failures.deadlock, failures.serialization, failures.connection, failures.other],
            example: self.shared.example(),
            codes: self.shared.codes(),
            ended_users: self.shared.ended_users.load(Ordering::Relaxed),
            service: sum.service,
            lag: sum.lag,
            waits: sum.waits,
            late: sum.late,
            standstills: self.shared.pulse.within(from_ns, to_ns, now_ns),
            standstill_count: sum.standstill_count,
            cpu_ns: sum.cpu_ns,
            fullest_cpu_ns: sum.fullest_cpu_ns,
            threads: self.threads.len(),
            backlog: backlog.iter().copied().reduce(|one, other| (one.0 + other.0, one.1.max(other.1))),
        }
    }

    /// Recent acknowledged transactions, if the workload keeps them.
    pub fn acknowledged(&self) -> Value {
        (self.acknowledged)()
    }

    /// Lets no more transactions begin.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Stops and waits until all threads ended, so long at most.
    pub fn finish(&mut self, within: Duration) -> RunStatus {
        self.stop();
        let deadline = Instant::now() + within;
        while self.alive.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        self.poll()
    }
}

impl Drop for OltpRun {
    fn drop(&mut self) {
        // A thread that waits for a server is left behind; it ends with its connection or with the process.
        self.stop();
    }
}

impl TransactionSum {
    fn add(&mut self, counted: &Counted) {
        self.committed += counted.committed;
        self.rolled_back += counted.rolled_back;
        self.retried += counted.retried;
        self.failed += counted.failed;
        self.latency.merge(&counted.latency);
    }
}

/// Statements at the begin of each session on a database.
pub(crate) fn sessions<W: Workload>(database: &UsedDatabase) -> Vec<String> {
    let sections = W::sections(database.connection.kind, "session").unwrap_or_default();
    sections.into_iter().map(|section| section.text).collect()
}

/// Statements that a database's connections prepare: the workload's own, or calls of procedures.
pub(crate) fn statements<W: Workload>(database: &UsedDatabase, procedures: bool) -> Vec<Statement> {
    let sections = all_sections::<W>(database.connection.kind, "statements").unwrap_or_default();
    statements_of(W::STATEMENTS, &sections, |name| W::prepares(name, procedures))
}

fn utc_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
