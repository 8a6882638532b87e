//! A replay and one of its threads, as their sessions see them.

use std::{
    cell::{Cell, RefCell},
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use assay_load::Watch;
use tokio::{sync::Semaphore, time::sleep};

use super::{
    alarms::Alarms,
    plan::ReplayPlan,
    told::{BATCHES, Told},
};
use crate::{
    counts::ThreadCounter,
    shared::Shared,
    statements::{
        record::Record,
        stored::{Session, Statements, StoredLog},
    },
};

/// Connections of a thread that are made at the same time.
const CONNECTING_MAX: usize = 16;
const LOOK: Duration = Duration::from_millis(20);
/// How long statements that are under way may take to end.
const STOP_WITHIN: Duration = Duration::from_secs(10);

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
    pub(super) fn new(plan: ReplayPlan, log: Arc<StoredLog>, threads: usize) -> Self {
        let mut replay = Self {
            told: (0..threads).map(|_| Mutex::default()).collect(),
            before: AtomicUsize::new(0),
            lost_in_turn: AtomicU32::new(0),
            plan,
            log,
        };
        *replay.before.get_mut() = replay.log.sessions.iter().filter(|session| replay.begins_before(session)).count();
        replay
    }

    /// Whether the time of the log may begin as soon as the threads run.
    pub(super) fn begins_at_once(&self) -> bool {
        self.before.load(Ordering::Acquire) == 0
    }

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

    pub(super) fn begins_before(&self, session: &Session) -> bool {
        session.connects_ns <= self.log.survey.begin_ns
    }

    /// Findings of all threads together.
    pub(super) fn told(&self) -> Told {
        let mut all = Told::default();
        for told in &self.told {
            all.merge(&told.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all
    }
}

/// A thread of a replay.
pub(super) struct Thread {
    pub(super) shared: Arc<Shared>,
    pub(super) replay: Arc<Replay>,
    pub(super) number: usize,
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
    pub(super) fn new(
        shared: Arc<Shared>,
        replay: Arc<Replay>,
        counter: ThreadCounter,
        number: usize,
    ) -> io::Result<Self> {
        let watch = RefCell::new(Watch::new(shared.pulse.clone()));
        Ok(Self {
            shared,
            replay,
            number,
            counter: RefCell::new(counter),
            watch,
            alarms: Alarms::new()?,
            connecting: Semaphore::new(CONNECTING_MAX),
            busy: Cell::new(0),
            epoch: Cell::new(Instant::now()),
            left: Cell::new((0, 0)),
        })
    }

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
        self.shared.begins(&self.epoch, &self.counter).await
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

    /// Hands intervals over in time until the replay shall end.
    pub(super) async fn watch(&self) {
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

    pub(super) async fn end(&self) {
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
