//! The threads of a replay. Sessions are dealt to them in turn, in the order in which they connect; those that the log found connected
//! connect before its time begins.

use std::{
    rc::Rc,
    sync::{Arc, atomic::AtomicU32},
    thread,
    time::Instant,
};

use assay_load::Exchange;
use assay_loading::{Alive, DatabaseError, OnPanic};
use assay_sql::{Isolation, Kind};
use serde_json::Value;
use tokio::task::{LocalSet, spawn_local};

use super::{
    plan::ReplayPlan,
    session,
    thread::{Replay, Thread},
    told::Report,
};
use crate::{
    counts::{SPARE_INTERVALS, ThreadCounter},
    plan::{RunLoad, RunPlan},
    run::{OltpRun, Parts},
    shared::Shared,
    statements::{kinds::COUNTED, lex::Dialect, stored::StoredLog},
};

/// Sessions that wait for one thread at once.
const SESSIONS_PER_THREAD: u64 = 64;

/// Starts sessions when they connect.
async fn conduct(thread: Rc<Thread>, threads: usize) {
    let replay = thread.replay.clone();
    for session in replay.log.sessions.iter().skip(thread.number).step_by(threads) {
        let before = replay.begins_before(session);
        if !before {
            let comes = thread.begins().await && thread.alarms.until(replay.due_ns(session.connects_ns)).await;
            if !comes || thread.stopping() {
                return;
            }
        }
        let failing = thread.shared.clone();
        let life = session::live(thread.clone(), *session, before);
        spawn_local(async move {
            let _guard = OnPanic(|error| failing.fail(error));
            life.await;
        });
    }
}

fn run_thread(shared: Arc<Shared>, replay: Arc<Replay>, counter: ThreadCounter, number: usize, threads: usize) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return shared.fail(DatabaseError::Other(format!("no runtime: {error}"))),
    };
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let thread = match Thread::new(shared.clone(), replay, counter, number) {
            Ok(thread) => Rc::new(thread),
            Err(error) => return shared.fail(DatabaseError::Other(format!("no timer: {error}"))),
        };
        let ringing = thread.clone();
        let rings = spawn_local(async move { ringing.alarms.ring(|| ringing.now_ns(), || ringing.stopping()).await });
        spawn_local(conduct(thread.clone(), threads));
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
        let replay = Arc::new(Replay::new(plan, log, threads));
        if replay.begins_at_once() {
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

    /// Reports the outcomes of the statements.
    pub fn told(&self) -> Report {
        self.replay.told().report(&self.replay.log.fingerprints)
    }
}

/// The plan of a run with the settings of this replay.
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
