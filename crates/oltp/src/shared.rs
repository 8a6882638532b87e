//! What all threads of a run share. Users touch it when something is out of the ordinary, and never wait for it otherwise.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Instant,
};

use tokio::sync::watch;

use crate::{OltpError, plan::RunPlan};

/// What a database was away from and until when, in nanoseconds since the start.
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
    pub(crate) stop: AtomicBool,
    pub(crate) connected: AtomicU32,
    pub(crate) reconnecting: AtomicU32,
    /// When all were connected.
    pub(crate) epoch: watch::Sender<Option<Instant>>,
    pub(crate) connections: u32,
    failure: Mutex<Option<OltpError>>,
    example: Mutex<Option<String>>,
    away: Vec<AtomicBool>,
    gaps: Mutex<Vec<Gap>>,
    /// Open loop: of each thread the arrivals that nobody had taken at the end, and how long the oldest was due.
    pub(crate) backlog: Mutex<Vec<(u64, u64)>>,
}

impl Shared {
    pub(crate) fn new(plan: RunPlan, connections: u32) -> Self {
        let away = plan.databases.iter().map(|_| AtomicBool::new(false)).collect();
        Self {
            plan,
            stop: AtomicBool::new(false),
            connected: AtomicU32::new(0),
            reconnecting: AtomicU32::new(0),
            epoch: watch::Sender::new(None),
            connections,
            failure: Mutex::new(None),
            example: Mutex::new(None),
            away,
            gaps: Mutex::new(Vec::new()),
            backlog: Mutex::new(Vec::new()),
        }
    }

    /// Ends the run for a reason, the first that is given.
    pub(crate) fn fail(&self, error: OltpError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn failure(&self) -> Option<OltpError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn keep_example(&self, text: &str) {
        self.example.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| text.to_owned());
    }

    pub(crate) fn example(&self) -> Option<String> {
        self.example.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn lost(&self, database: usize, at_ns: u64, reason: &str) {
        if !self.away[database].swap(true, Ordering::Relaxed) {
            let gap = Gap { from_ns: at_ns, to_ns: None, database, reason: reason.to_owned() };
            self.gaps.lock().unwrap_or_else(PoisonError::into_inner).push(gap);
        }
    }

    /// Whether a database that was away has answered for the first time.
    #[inline]
    pub(crate) fn is_back(&self, database: usize) -> bool {
        self.away[database].load(Ordering::Relaxed) && self.away[database].swap(false, Ordering::Relaxed)
    }

    pub(crate) fn end_gap(&self, database: usize, at_ns: u64) {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gap) = gaps.iter_mut().rev().find(|gap| gap.database == database && gap.to_ns.is_none()) {
            gap.to_ns = Some(at_ns);
        }
    }

    pub(crate) fn gaps(&self) -> Vec<Gap> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
