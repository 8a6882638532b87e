//! State that all threads of a run share. Users touch it when something is out of the ordinary, and never wait for it
//! otherwise.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Instant,
};

use assay_load::Pulse;
use assay_loading::DatabaseError;
use assay_sql::Statement;
use tokio::sync::watch;

use crate::{counts::ThreadCounter, plan::RunPlan};

/// A server that goes down has ended all its connections by then.
const GOES_DOWN_WITHIN_NS: u64 = 1_000_000_000;
/// More gaps are not kept.
const GAPS_MAX: usize = 1000;

/// Time without a database: its cause, begin and end, in nanoseconds since the start.
#[derive(Debug, Clone)]
pub struct Gap {
    pub from_ns: u64,
    pub to_ns: Option<u64>,
    pub database: usize,
    pub reason: String,
}

/// A run as its threads see it.
pub(crate) struct Shared {
    pub(crate) plan: RunPlan,
    /// Statements that connections prepare, by database.
    pub(crate) statements: Vec<Vec<Statement>>,
    /// Of each database what its sessions begin with.
    pub(crate) sessions: Vec<Vec<String>>,
    stop: AtomicBool,
    stopped_at: OnceLock<Instant>,
    pub(crate) connected: AtomicU32,
    pub(crate) reconnecting: AtomicU32,
    /// When all were connected.
    pub(crate) epoch: watch::Sender<Option<Instant>>,
    pub(crate) connections: u32,
    /// Clerks of each thread on each database.
    pub(crate) clerks: u32,
    failure: Mutex<Option<DatabaseError>>,
    example: Mutex<Option<String>>,
    codes: Mutex<BTreeMap<String, u64>>,
    /// Users that ended at an error.
    pub(crate) ended_users: AtomicU32,
    away: Vec<AtomicBool>,
    gaps: Mutex<Vec<Gap>>,
    /// Signs of life of this process.
    pub(crate) pulse: Pulse,
    /// Open loop: of each thread the arrivals that no user had taken at the end, and how long the oldest was due.
    pub(crate) backlog: Mutex<Vec<(u64, u64)>>,
}

impl Shared {
    pub(crate) fn new(
        plan: RunPlan,
        statements: Vec<Vec<Statement>>,
        sessions: Vec<Vec<String>>,
        connections: u32,
        clerks: u32,
    ) -> Self {
        let away = plan.databases.iter().map(|_| AtomicBool::new(false)).collect();
        Self {
            plan,
            statements,
            sessions,
            stop: AtomicBool::new(false),
            stopped_at: OnceLock::new(),
            connected: AtomicU32::new(0),
            reconnecting: AtomicU32::new(0),
            epoch: watch::Sender::new(None),
            connections,
            clerks,
            failure: Mutex::new(None),
            example: Mutex::new(None),
            codes: Mutex::default(),
            ended_users: AtomicU32::new(0),
            away,
            gaps: Mutex::new(Vec::new()),
            pulse: Pulse::default(),
            backlog: Mutex::new(Vec::new()),
        }
    }

    /// Lets no more transactions begin.
    pub(crate) fn stop(&self) {
        self.stopped_at.get_or_init(Instant::now);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until the time of the run begins; false if it never does. The first of a thread to wake begins its counts.
    pub(crate) async fn begins(&self, known: &Cell<Instant>, counter: &RefCell<ThreadCounter>) -> bool {
        let mut began = self.epoch.subscribe();
        let Ok(epoch) = began.wait_for(Option::is_some).await.map(|epoch| epoch.expect("was waited for")) else {
            return false;
        };
        if known.replace(epoch) != epoch {
            counter.borrow_mut().begin();
        }
        true
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// When the run was stopped, or now.
    pub(crate) fn stopped_at(&self) -> Instant {
        self.stopped_at.get().copied().unwrap_or_else(Instant::now)
    }

    /// Ends the run for a reason, the first that is given.
    pub(crate) fn fail(&self, error: DatabaseError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop();
    }

    pub(crate) fn failure(&self) -> Option<DatabaseError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn keep_example(&self, text: &str) {
        self.example.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| text.to_owned());
    }

    /// Counts an error by its code; one without came from the script itself.
    pub(crate) fn count_code(&self, code: &str) {
        let code = if code.is_empty() { "script" } else { code };
        *self.codes.lock().unwrap_or_else(PoisonError::into_inner).entry(code.into()).or_default() += 1;
    }

    pub(crate) fn codes(&self) -> BTreeMap<String, u64> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn example(&self) -> Option<String> {
        self.example.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that a connection is lost. One from before the last gap was lost in it, and its user only asks now.
    pub(crate) fn lost(&self, database: usize, made_ns: u64, at_ns: u64, reason: &str) {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        let last = gaps.iter().rev().find(|gap| gap.database == database);
        if last.is_none_or(|gap| gap.to_ns.is_some() && made_ns > gap.from_ns) {
            if gaps.len() == GAPS_MAX {
                return;
            }
            gaps.push(Gap { from_ns: at_ns, to_ns: None, database, reason: reason.to_owned() });
            self.away[database].store(true, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn is_away(&self, database: usize) -> bool {
        self.away[database].load(Ordering::Relaxed)
    }

    /// Notes that a database answered that was thought away. A connection made since ends the gap. One from before does not at once,
    /// because a server that goes down answers some for a while; later it means that a connection was lost, and not the server.
    pub(crate) fn answered(&self, database: usize, made_ns: u64, started_ns: u64, at_ns: u64) {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = gaps.iter().rposition(|gap| gap.database == database && gap.to_ns.is_none()) else { return };
        if made_ns > gaps[open].from_ns {
            gaps[open].to_ns = Some(at_ns);
        } else if started_ns > gaps[open].from_ns + GOES_DOWN_WITHIN_NS {
            gaps.remove(open);
        } else {
            return;
        }
        self.away[database].store(false, Ordering::Relaxed);
    }

    pub(crate) fn gaps(&self) -> Vec<Gap> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
