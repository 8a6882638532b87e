//! State that the users and clerks of one thread share: connections, arrivals of an open loop, the count, and the time.

use std::{
    cell::{Cell, RefCell},
    sync::{Arc, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use assay_load::{Arrivals, Load, Watch};
use assay_loading::DatabaseError;
use assay_sql::{AnyDriver, Cause, DbError, Driver, Pool, Setup, Slot};
use tokio::{
    sync::{Mutex as TurnMutex, Notify, Semaphore},
    time::{sleep, sleep_until, timeout_at},
};

use crate::{counts::ThreadCounter, inputs::Inputs, pacer::Pacer, plan::RunLoad, shared::Shared, workload::Workload};

/// Connections of a thread that are made at the same time.
const CONNECTING_MAX: usize = 16;
/// How often a thread looks whether it shall stop.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// How long transactions that are under way may take to end.
const STOP_WITHIN: Duration = Duration::from_secs(10);
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);
/// A wait that ends later than this after its time was not kept.
const LATE_NS: u64 = 10_000_000;

/// Arrivals of a thread's share of an open loop: a user that is free waits for the next.
pub(crate) struct Turns {
    /// Held by the user that waits for the next arrival.
    pub(crate) turn: TurnMutex<()>,
    pub(crate) arrivals: RefCell<Arrivals>,
    pub(crate) pacer: Pacer,
}

/// State that the users of one thread share.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    pub(crate) counter: RefCell<ThreadCounter>,
    pub(crate) pools: Vec<Pool<AnyDriver>>,
    /// Wakes a clerk of each database when there may be something to do.
    pub(crate) desk_bells: Vec<Notify>,
    pub(crate) turns: Option<Turns>,
    pub(crate) epoch: Cell<Instant>,
    pub(crate) busy: Cell<u32>,
    /// Whether every user has a connection of its own.
    pub(crate) keeps: bool,
    pub(crate) connecting: Semaphore,
    pub(crate) watch: RefCell<Watch>,
}

impl Local {
    pub(crate) fn new(
        shared: Arc<Shared>,
        counter: ThreadCounter,
        number: u32,
        threads: u32,
    ) -> Result<Self, DatabaseError> {
        let plan = &shared.plan;
        let pools = plan.databases.iter().map(|_| Pool::default()).collect();
        let turns = match plan.load {
            RunLoad::Closed => None,
            RunLoad::Open { rate, poisson } => {
                let load = Load::Open { rate, poisson, queue_depth: 1 };
                let seed = plan.seed.wrapping_add(u64::from(number) << 32);
                let arrivals = Arrivals::new(&load, 1.0, seed, number, threads).expect("an open loop has arrivals");
                let pacer = Pacer::new().map_err(|error| DatabaseError::Other(format!("no timer: {error}")))?;
                Some(Turns { turn: TurnMutex::new(()), arrivals: RefCell::new(arrivals), pacer })
            }
        };
        Ok(Self {
            counter: RefCell::new(counter),
            desk_bells: plan.databases.iter().map(|_| Notify::new()).collect(),
            pools,
            turns,
            epoch: Cell::new(Instant::now()),
            busy: Cell::new(0),
            keeps: shared.plan.connections.is_none_or(|connections| connections == shared.plan.users),
            connecting: Semaphore::new(CONNECTING_MAX),
            watch: RefCell::new(Watch::new(shared.pulse.clone())),
            shared,
        })
    }

    /// Waits until all are connected; false if that never comes.
    pub(crate) async fn begins(&self) -> bool {
        self.shared.begins(&self.epoch, &self.counter).await
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.epoch.get().elapsed().as_nanos() as u64
    }

    pub(crate) fn stopping(&self) -> bool {
        self.shared.is_stopped()
    }

    pub(crate) async fn connect(&self, database: usize) -> Result<AnyDriver, DbError> {
        let plan = &self.shared.plan;
        let setup = Setup {
            isolation: plan.isolation,
            statements: &self.shared.statements[database],
            pipeline: plan.procedures || plan.pipeline,
            bulk: false,
            within: Duration::from_secs_f64(plan.connect_s),
        };
        let mut driver = AnyDriver::connect(&plan.databases[database].connection, setup).await?;
        for text in &self.shared.sessions[database] {
            driver.execute(text).await?;
        }
        Ok(driver)
    }

    /// Hands intervals over in time, also while nobody commits, until the run shall end.
    pub(crate) async fn watch(&self) {
        let mut began = self.shared.epoch.subscribe();
        while !self.stopping() {
            let epoch = *began.borrow_and_update();
            if let Some(epoch) = epoch {
                if self.epoch.replace(epoch) != epoch {
                    self.counter.borrow_mut().begin();
                }
                self.counter.borrow_mut().at(self.now_ns());
                let interval_ns = self.shared.plan.interval_ns;
                let left_ns = interval_ns - self.now_ns() % interval_ns;
                sleep(LOOK.min(Duration::from_nanos(left_ns))).await;
            } else {
                sleep(LOOK).await;
            }
        }
    }

    /// Lets transactions end that are under way, and closes the connections.
    pub(crate) async fn end(&self) {
        self.note_backlog();
        let deadline = Instant::now() + STOP_WITHIN;
        while self.busy.get() > 0 && Instant::now() < deadline {
            sleep(Duration::from_millis(2)).await;
        }
        self.counter.borrow_mut().end();
        for pool in &self.pools {
            for driver in pool.take_idle().into_iter().filter_map(|slot| slot.driver) {
                let _ = tokio::time::timeout(Duration::from_millis(500), driver.close()).await;
            }
        }
    }

    /// Counts arrivals that were due when the run was stopped and that no user had taken.
    pub(crate) fn note_backlog(&self) {
        let Some(turns) = &self.turns else { return };
        let mut arrivals = turns.arrivals.borrow_mut();
        let oldest_ns = arrivals.next_ns();
        self.note_due(arrivals.count_due(self.stopped_ns()), oldest_ns);
    }

    /// When the run was stopped.
    pub(crate) fn stopped_ns(&self) -> u64 {
        self.shared.stopped_at().saturating_duration_since(self.epoch.get()).as_nanos() as u64
    }

    /// Adds arrivals to the backlog, the oldest of which was due then.
    pub(crate) fn note_due(&self, count: u64, oldest_ns: u64) {
        let waited_ns = self.stopped_ns().saturating_sub(oldest_ns);
        self.shared.backlog.lock().unwrap_or_else(PoisonError::into_inner).push((count, waited_ns));
    }

    /// The intended start of the next transaction of an open loop, when it has come; none once the run is stopped.
    pub(crate) async fn arrival(&self, turns: &Turns) -> Option<u64> {
        let _turn = turns.turn.lock().await;
        let due_ns = turns.arrivals.borrow().next_ns();
        let now_ns = self.now_ns();
        if now_ns < due_ns {
            if turns.pacer.wait(Duration::from_nanos(due_ns - now_ns)).await.is_err() {
                sleep(Duration::from_nanos(due_ns - now_ns)).await;
            }
            self.waited(due_ns);
        }
        // The most overdue comes first, and with it a standstill is known to all that were due in it.
        self.watch.borrow_mut().stood_still(due_ns, self.now_ns());
        (!self.stopping()).then(|| turns.arrivals.borrow_mut().advance())
    }

    /// Counts how late a wait ended.
    pub(crate) fn waited(&self, due_ns: u64) {
        let now_ns = self.now_ns();
        let lag_ns = now_ns.saturating_sub(due_ns);
        let mut counter = self.counter.borrow_mut();
        let tally = counter.at(now_ns);
        tally.lag.record(lag_ns);
        tally.waits += 1;
        tally.late += u64::from(lag_ns > LATE_NS);
    }

    /// Waits for a time that is far away by the runtime's timers.
    pub(crate) async fn wait_until(&self, due_ns: u64) {
        sleep_until((self.epoch.get() + Duration::from_nanos(due_ns)).into()).await;
        self.waited(due_ns);
    }

    /// Connects a slot anew, as long as that may take; false when the run ends over it.
    pub(crate) async fn reconnect<W: Workload>(
        &self,
        slot: &mut Slot<AnyDriver>,
        database: usize,
        inputs: &mut Inputs<'_, W>,
    ) -> bool {
        self.shared.reconnecting.fetch_add(1, Ordering::Relaxed);
        let is_back = self.connect_within(slot, database, inputs).await;
        self.shared.reconnecting.fetch_sub(1, Ordering::Relaxed);
        is_back
    }

    pub(crate) async fn connect_within<W: Workload>(
        &self,
        slot: &mut Slot<AnyDriver>,
        database: usize,
        inputs: &mut Inputs<'_, W>,
    ) -> bool {
        let deadline = Instant::now() + Duration::from_secs_f64(self.shared.plan.reconnect_s);
        let mut said = None;
        loop {
            let turn = self.connecting.acquire().await.expect("the semaphore is never closed");
            let connected = timeout_at(deadline.into(), self.connect(database)).await;
            drop(turn);
            let error = match connected {
                Ok(Ok(driver)) => {
                    (slot.driver, slot.made_ns) = (Some(driver), self.now_ns());
                    return true;
                }
                Ok(Err(error)) => error.while_reconnecting(),
                // The attempt that the deadline cut short tells less than the one before.
                Err(_) => said.unwrap_or_else(|| DbError::connection("does not answer")),
            };
            if self.stopping() {
                return false;
            }
            let place = self.shared.plan.databases[database].connection.place();
            if error.cause != Cause::Connection {
                self.shared.fail(DatabaseError::Connect(format!("{place}: {}", error.text)));
                return false;
            }
            if Instant::now() >= deadline {
                let within = self.shared.plan.reconnect_s;
                let text = format!("{place}: went away and did not come back within {within} s: {}", error.text);
                self.shared.fail(DatabaseError::Lost(text));
                return false;
            }
            said = Some(error);
            sleep(RECONNECT_PAUSE.mul_f64(0.5 + inputs.share())).await;
        }
    }
}

/// An arrival whose transaction has not begun: in an open loop it is one of the backlog if the run ends first.
pub(crate) struct Due<'a> {
    pub(crate) local: &'a Local,
    pub(crate) intended_ns: u64,
}

impl Due<'_> {
    pub(crate) fn begins(self) {
        std::mem::forget(self);
    }
}

impl Drop for Due<'_> {
    fn drop(&mut self) {
        if self.local.turns.is_some() {
            self.local.note_due(1, self.intended_ns);
        }
    }
}
