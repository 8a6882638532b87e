//! Users at work: one task each, all those of a thread on its core. A user chooses a transaction, waits for its time, takes a connection,
//! runs it until it is committed or has failed, and counts it.

use std::{
    rc::Rc,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use assay_loading::{DatabaseError, OnPanic};
use assay_sql::{AnyDriver, Cause, DbError, Driver, ROLLBACK, Slot, Taken};
use tokio::{task::LocalSet, time::sleep};

use crate::{
    counts::ThreadCounter,
    inputs::{Drawn, Inputs},
    local::{Due, LOOK, Local},
    plan::RunPlan,
    shared::Shared,
    talk::{Outcome, Talk},
    workload::{Desk, Done, Workload},
};

/// How long a clerk waits for what is due and another clerk holds up.
const HELD_UP: Duration = Duration::from_millis(1);
/// A user whose every transaction fails for no reason that passes gives up.
const FAILURES_MAX: u32 = 50;
/// Number of the first clerk, beyond the numbers of users: clerks draw from random streams of their own.
const CLERKS_FROM: u32 = 1 << 24;

/// One thread of a run: `number` of `threads`.
pub(crate) fn run_thread<W: Workload>(
    shared: Arc<Shared>,
    workload: Arc<W>,
    counter: ThreadCounter,
    number: u32,
    threads: u32,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return shared.fail(DatabaseError::Other(format!("no runtime: {error}"))),
    };
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let local = match Local::new(shared.clone(), counter, number, threads) {
            Ok(local) => Rc::new(local),
            Err(error) => return shared.fail(error),
        };
        let desks: Rc<Vec<W::Desk>> = Rc::new(desks_of(&*workload, &shared.plan, number));
        for (user, database) in members(shared.plan.users, &shared.plan, number, threads) {
            tasks.spawn_local(guarded(
                shared.clone(),
                work(local.clone(), workload.clone(), desks.clone(), user, database),
            ));
        }
        for database in 0..shared.plan.databases.len() {
            for clerk in 0..shared.clerks {
                let work = serve(
                    local.clone(),
                    workload.clone(),
                    desks.clone(),
                    CLERKS_FROM + clerk * threads + number,
                    database,
                );
                tasks.spawn_local(guarded(shared.clone(), work));
            }
        }
        for (_, database) in members(shared.connections, &shared.plan, number, threads) {
            tasks.spawn_local(guarded(shared.clone(), connect_one(local.clone(), database)));
        }
        local.watch().await;
        local.end().await;
    });
    // Users that wait for their time are dropped with their tasks.
    drop(tasks);
}

/// The desks of a thread, one of each database.
fn desks_of<W: Workload>(workload: &W, plan: &RunPlan, thread: u32) -> Vec<W::Desk> {
    let databases = plan.databases.iter().enumerate();
    databases.map(|(number, used)| workload.desk(plan.seed, number, used.scale, thread)).collect()
}

/// A task whose panic ends the run. The runtime would hide the panic, and the figures would cover fewer users.
async fn guarded(shared: Arc<Shared>, task: impl Future<Output = ()>) {
    let _guard = OnPanic(|error| shared.fail(error));
    task.await;
}

/// Users, or connections, of a thread, each with its number on its database and the database.
fn members(total: u32, plan: &RunPlan, thread: u32, threads: u32) -> impl Iterator<Item = (u32, usize)> + use<> {
    let databases = plan.databases.len() as u32;
    (0..total)
        .filter(move |member| member / databases % threads == thread)
        .map(move |member| (member / databases, (member % databases) as usize))
}

/// Makes one connection of a database at the beginning.
async fn connect_one(local: Rc<Local>, database: usize) {
    let _turn = local.connecting.acquire().await.expect("the semaphore is never closed");
    if local.stopping() {
        return;
    }
    match local.connect(database).await {
        Ok(driver) => {
            local.pools[database].put(Slot::new(driver));
            let connected = local.shared.connected.fetch_add(1, Ordering::Relaxed) + 1;
            if connected == local.shared.connections {
                local.shared.epoch.send_replace(Some(Instant::now()));
            }
        }
        Err(error) => {
            let used = &local.shared.plan.databases[database];
            local.shared.fail(DatabaseError::Connect(format!("{}: {}", used.connection.place(), error.text)));
        }
    }
}

/// A user's life.
async fn work<W: Workload>(local: Rc<Local>, workload: Arc<W>, desks: Rc<Vec<W::Desk>>, number: u32, database: usize) {
    let shared = local.shared.clone();
    let plan = &shared.plan;
    let mut inputs = Inputs::new(plan, &*workload, database, number);
    if !local.begins().await {
        return;
    }
    let mut user = User::new(&local, database);
    let mut drawn = inputs.next();
    // Users that think do not begin all at once.
    let mut next_ns = 0;
    if inputs.thinks() {
        let transaction = drawn.transaction;
        next_ns = ((inputs.keying_ns(transaction) + inputs.thinking_ns(transaction)) as f64 * inputs.share()) as u64;
    }
    while !local.stopping() {
        let intended_ns = if let Some(turns) = &local.turns {
            let Some(intended_ns) = local.arrival(turns).await else { return };
            intended_ns
        } else {
            if inputs.thinks() {
                local.wait_until(next_ns).await;
                if local.stopping() {
                    return;
                }
            }
            local.now_ns()
        };
        if !user.transact(&mut drawn, intended_ns, &mut inputs, &desks[database]).await {
            return;
        }
        if inputs.thinks() {
            let thinking_ns = inputs.thinking_ns(drawn.transaction);
            drawn = inputs.next();
            next_ns = local.now_ns() + thinking_ns + inputs.keying_ns(drawn.transaction);
        } else {
            drawn = inputs.next();
        }
    }
}

/// A clerk's life: work of the desk when it is due.
async fn serve<W: Workload>(local: Rc<Local>, workload: Arc<W>, desks: Rc<Vec<W::Desk>>, number: u32, database: usize) {
    let shared = local.shared.clone();
    let (desk, bell) = (&desks[database], &local.desk_bells[database]);
    let mut inputs = Inputs::new(&shared.plan, &*workload, database, number);
    if !local.begins().await {
        return;
    }
    let mut clerk = User::new(&local, database);
    while !local.stopping() {
        let Some((due_ns, transaction, input)) = desk.give_out(local.now_ns()) else {
            let rest =
                desk.next_ns().map_or(LOOK, |next_ns| Duration::from_nanos(next_ns.saturating_sub(local.now_ns())));
            // What is due and was not given out waits for a clerk, perhaps of another thread.
            let rest = if rest.is_zero() { HELD_UP } else { rest.min(LOOK) };
            let _ = tokio::time::timeout(rest, bell.notified()).await;
            continue;
        };
        // Another clerk looks whether there is more to do.
        bell.notify_one();
        let mut drawn = Drawn { transaction, input };
        let goes_on = clerk.transact(&mut drawn, due_ns, &mut inputs, desk).await;
        desk.ended(&drawn.input);
        if !goes_on {
            return;
        }
    }
}

struct User<'a> {
    local: &'a Local,
    database: usize,
    /// Failures without reason one after the other.
    failures: u32,
    /// The user's connection between transactions, unless users share connections.
    kept: Option<Taken<'a, AnyDriver>>,
}

impl<'a> User<'a> {
    fn new(local: &'a Local, database: usize) -> Self {
        Self { local, database, failures: 0, kept: None }
    }

    /// Runs one transaction to its end and counts it; false when the run is over for this user.
    async fn transact<W: Workload>(
        &mut self,
        drawn: &mut Drawn<W::Input>,
        intended_ns: u64,
        inputs: &mut Inputs<'_, W>,
        desk: &W::Desk,
    ) -> bool {
        let local = self.local;
        let due = Due { local, intended_ns };
        let mut taken = match self.kept.take() {
            Some(taken) => taken,
            None => local.pools[self.database].take().await,
        };
        let Some(slot) = taken.slot.as_mut() else { return false };
        if slot.driver.is_none() && !local.reconnect(slot, self.database, inputs).await {
            return false;
        }
        if local.stopping() {
            return false;
        }
        due.begins();
        local.busy.set(local.busy.get() + 1);
        // A closed loop has no schedule that service times would be compared with.
        let started_ns = if local.turns.is_some() { local.now_ns() } else { intended_ns };
        inputs.workload.begins(&mut drawn.input, local.now_ns());
        let (ended, retried) = self.attempts(slot, &drawn.input, inputs).await;
        local.busy.set(local.busy.get() - 1);
        let (ended, effect) = match ended {
            Ok((outcome, effect)) => (Ok(outcome), Some(effect)),
            Err(error) => (Err(error), None),
        };
        self.count(inputs.kinds(), drawn.transaction, (intended_ns, started_ns), &ended, retried);
        if let (Ok(Outcome::Committed), Some(effect)) = (&ended, effect) {
            desk.take_in(&drawn.input, effect, local.now_ns());
            if W::USERS_PER_CLERK > 0 {
                local.desk_bells[self.database].notify_one();
            }
        }
        let made_ns = slot.made_ns;
        if local.keeps {
            self.kept = Some(taken);
        }
        match ended {
            Ok(_) => {
                self.failures = 0;
                if local.shared.is_away(self.database) {
                    local.shared.answered(self.database, made_ns, started_ns, local.now_ns());
                }
                true
            }
            Err(error) => self.failed::<W>(&error, made_ns).await,
        }
    }

    /// Tries until it is committed or may not be tried again; with how many attempts more than one were made.
    async fn attempts<W: Workload>(
        &self,
        slot: &mut Slot<AnyDriver>,
        input: &W::Input,
        inputs: &mut Inputs<'_, W>,
    ) -> (Done<W>, u32) {
        let plan = &self.local.shared.plan;
        let mut retried = 0;
        loop {
            let Some(driver) = &mut slot.driver else {
                return (Err(DbError::connection("the connection is lost")), retried);
            };
            let mut talk = Talk::new(driver, &mut slot.batch, &mut slot.results, W::KIND);
            let done = run_once(inputs.workload, &mut talk, &mut inputs.user, input, plan.procedures).await;
            match &done {
                Err(error) if matches!(error.cause, Cause::Deadlock | Cause::Serialization) => {
                    if retried == plan.retries || self.local.stopping() {
                        return (done, retried);
                    }
                    retried += 1;
                    sleep(Duration::from_micros(inputs.pause_us(retried))).await;
                }
                Err(error) if error.cause == Cause::Connection => {
                    slot.driver = None;
                    return (done, retried);
                }
                _ => return (done, retried),
            }
        }
    }

    /// Counts a transaction by its kind.
    fn count(
        &self,
        kinds: usize,
        transaction: usize,
        (intended_ns, started_ns): (u64, u64),
        ended: &Result<Outcome, DbError>,
        retried: u32,
    ) {
        let local = self.local;
        let now_ns = local.now_ns();
        let mut counter = local.counter.borrow_mut();
        let tally = counter.at(now_ns);
        let counted = &mut tally.counted[self.database * kinds + transaction];
        counted.retried += u64::from(retried);
        match ended {
            Ok(outcome) => {
                *(if *outcome == Outcome::Committed { &mut counted.committed } else { &mut counted.rolled_back }) += 1;
                if local.watch.borrow_mut().stood_still(intended_ns, now_ns) {
                    tally.standstill_count += 1;
                    return;
                }
                counted.latency.record(now_ns.saturating_sub(intended_ns));
                if local.turns.is_some() {
                    tally.service.record(now_ns - started_ns);
                }
            }
            Err(error) => {
                counted.failed += 1;
                tally.failures.count(error.cause);
            }
        }
    }

    /// Handles a failure; false when the run cannot go on.
    async fn failed<W: Workload>(&mut self, error: &DbError, made_ns: u64) -> bool {
        let shared = &self.local.shared;
        let place = || shared.plan.databases[self.database].connection.place();
        match error.cause {
            Cause::Connection => shared.lost(self.database, made_ns, self.local.now_ns(), &error.text),
            Cause::NoSpace => {
                shared.fail(DatabaseError::NoSpace(format!("{}: {}", place(), error.text)));
                return false;
            }
            Cause::Deadlock | Cause::Serialization => (),
            Cause::RolledBack | Cause::Duplicate | Cause::System | Cause::Other => {
                shared.keep_example(&error.text);
                if W::ENDS_AT_ERROR {
                    shared.count_code(&error.code);
                    if shared.ended_users.fetch_add(1, Ordering::Relaxed) + 1 == shared.plan.users {
                        let example = shared.example().unwrap_or_default();
                        shared.fail(DatabaseError::Other(format!(
                            "{}: every user ended at an error: {example}",
                            place()
                        )));
                    }
                    return false;
                }
                self.failures += 1;
                if self.failures >= FAILURES_MAX {
                    let text = format!("{}: every transaction fails: {}", place(), error.text);
                    shared.fail(DatabaseError::Other(text));
                    return false;
                }
                sleep(Duration::from_millis(10)).await;
            }
        }
        true
    }
}

/// Runs one transaction once, as statements or with procedures.
pub(crate) async fn run_once<W: Workload, D: Driver>(
    workload: &W,
    talk: &mut Talk<'_, D>,
    user: &mut W::User,
    input: &W::Input,
    procedures: bool,
) -> Done<W> {
    let done = if procedures { workload.call(talk, input).await } else { workload.run(talk, user, input).await };
    if let Err(error) = &done
        && error.cause == Cause::Other
        && talk.driver.has(ROLLBACK)
    {
        // What the transaction itself objected to left it open; after the database's own errors this does nothing.
        talk.abandon().await?;
    }
    done
}
