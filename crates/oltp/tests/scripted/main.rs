//! Runs and loads against a server that does what the test says: silence, last words, cut connections, deadlocks, impostors.

mod disk_gone;
mod scram;
mod server;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use assay_loading::{DatabaseError, Load, LoadPlan, LoadState, LoadStatus};
use assay_oltp::{DATASETS, OltpRun, RunPlan, RunStatus, State, Window, workload_of};
use scram::Proof;
use serde_json::{Value, json};
use server::{Gate, Reply, Request, Server};

/// How long anything may take; nothing takes that long unless it hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const PASSWORD: &str = "4711-sesame";

/// Failures of a window by kind.
const DEADLOCK: usize = 0;
const CONNECTION: usize = 2;

fn connection(server: &Server) -> Value {
    json!({"kind": "postgresql", "socket": server.socket(), "user": "tester", "password": PASSWORD, "database": "tpcc"})
}

/// A plan of one user that thinks for some milliseconds, with changes.
fn run_json(server: &Server, changes: &Value) -> Value {
    let mut plan = json!({
        "databases": [{"name": "one", "connection": connection(server), "warehouses": 2}], "users": 1, "threads": 1,
        "load": {"kind": "closed"}, "mix": [10, 10, 1, 1, 1], "deck": false, "nurand_items": false, "home": "warehouse",
        "think_scale": 0.0003, "procedures": true, "pipeline": true, "isolation": "default", "retries": 3,
        "reconnect_s": 30.0, "seed": 1, "interval_ns": 10_000_000,
    });
    let changed = changes.as_object().unwrap().clone();
    plan.as_object_mut().unwrap().extend(changed);
    plan
}

fn run(server: &Server, changes: &Value) -> OltpRun {
    start_run(&run_json(server, changes))
}

fn start_run(plan: &Value) -> OltpRun {
    let plan = plan.to_string();
    (workload_of(&plan).unwrap().start_run)(&plan).unwrap()
}

fn start_load(plan: &Value) -> Load {
    (DATASETS[0].start_load)(&plan.to_string()).unwrap()
}

/// A load of the warehouse and of items in part 1 and 2 on each server, all else being there.
fn load_plan(servers: &[&Server], reconnect_s: f64) -> Value {
    let mut done: Vec<Value> = (3..=10).map(|part| json!(["items", 0, part])).collect();
    for kind in ["stock", "customers", "orders"] {
        done.extend((1..=10).map(|part| json!([kind, 1, part])));
    }
    let database =
        |server| json!({"name": "one", "connection": connection(server), "warehouses": 1, "done": done.clone()});
    let databases: Vec<Value> = servers.iter().map(|server| database(server)).collect();
    json!({"databases": databases, "connections": 1, "seed": 1, "reconnect_s": reconnect_s})
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {TIMEOUT:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits for a run that cannot end well.
fn failure(run: &mut OltpRun) -> DatabaseError {
    until("failed", || run.poll().error)
}

/// Waits until a window of all that was counted is as it should be.
fn counted(run: &mut OltpRun, what: &str, enough: impl Fn(&Window) -> bool) -> Window {
    until(what, || {
        assert_eq!(run.poll().error, None);
        let window = run.window(0, u64::MAX);
        enough(&window).then_some(window)
    })
}

fn commits(window: &Window) -> u64 {
    window.by_transaction.iter().map(|(_, sum)| sum.committed).sum()
}

/// Waits until so many more were committed.
fn goes_on(run: &mut OltpRun, more: u64) {
    run.poll();
    let before = commits(&run.window(0, u64::MAX));
    counted(run, "goes on", |window| commits(window) >= before + more);
}

fn finish(run: &mut OltpRun) -> RunStatus {
    let status = run.finish(TIMEOUT);
    assert_eq!((status.state, &status.error), (State::Ended, &None));
    status
}

fn ended(load: &mut Load) -> LoadStatus {
    until("the load ends", || Some(load.poll()).filter(|status| status.state != LoadState::Running))
}

// A server that says nothing.

#[test]
fn a_database_that_never_answers_is_given_up() {
    let silence = Arc::new(Gate::default());
    let silent = silence.clone();
    let server = Server::start(move |_, _| {
        silent.pass();
        Reply::Cut
    });
    let mut plan = load_plan(&[&server], 1.0);
    plan["connect_s"] = json!(0.2);
    let mut load = start_load(&plan);
    let error = failure(&mut run(&server, &json!({"users": 2, "connect_s": 0.2})));
    for error in [error, ended(&mut load).error.unwrap()] {
        assert_eq!(error.kind(), "open");
        assert!(error.to_string().ends_with(": does not answer"), "{error}");
    }
    silence.open();
}

#[test]
fn a_server_that_comes_back_silent_is_given_up_when_reconnecting_may_take_no_longer() {
    let silence = Arc::new(Gate::default());
    let silent = silence.clone();
    let server = Server::start(move |number, request| {
        if number >= 2 && matches!(request, Request::Connect) {
            silent.pass();
        }
        Reply::Fine
    });
    let mut run = run(&server, &json!({"users": 2, "reconnect_s": 1.0}));
    goes_on(&mut run, 10);
    server.cut(|_| true);
    let error = failure(&mut run);
    assert_eq!(error.kind(), "lost");
    let text = error.to_string();
    assert!(text.ends_with("went away and did not come back within 1 s: does not answer"), "{text}");
    silence.open();
}

// Last words.

#[test]
fn a_server_that_dies_of_a_full_disk_has_a_full_disk() {
    let full = ("53100", "could not write to file \"pg_wal/xlogtemp.1\": No space left on device");
    let server = Server::start(move |_, request| match request {
        Request::Execute { .. } => Reply::LastWords(full.0, full.1),
        _ => Reply::Fine,
    });
    let error = failure(&mut run(&server, &json!({})));
    assert_eq!(error.kind(), "space");
    assert!(error.to_string().contains(full.1), "{error}");
}

#[test]
fn a_load_that_fills_the_disk_says_so() {
    let full = |is_now| if is_now { Reply::LastWords("53100", "No space left on device") } else { Reply::Fine };
    // Before the rows, and in the middle of them.
    for server in [
        Server::start(move |_, request| full(matches!(request, Request::Query(sql) if sql.starts_with("COPY")))),
        Server::start(move |_, request| full(matches!(request, Request::CopyData))),
    ] {
        let status = ended(&mut start_load(&load_plan(&[&server], 30.0)));
        assert_eq!(status.error.as_ref().map(DatabaseError::kind), Some("space"), "{:?}", status.error);
    }
}

#[test]
fn a_gap_tells_what_the_server_said_in_an_answer() {
    let calls = AtomicU64::new(0);
    let server = Server::start(move |_, request| match request {
        Request::Execute { .. } if calls.fetch_add(1, Ordering::SeqCst) == 20 => {
            Reply::LastWords("57P01", "terminating connection due to administrator command")
        }
        _ => Reply::Fine,
    });
    let mut run = run(&server, &json!({}));
    let gap = until("a gap", || run.poll().gaps.first().cloned().filter(|gap| gap.to_ns.is_some()));
    assert_eq!(gap.reason, "terminating connection due to administrator command (SQLSTATE 57P01)");
    finish(&mut run);
}

#[test]
fn a_gap_tells_what_the_server_said_while_nothing_was_asked() {
    let server = Server::well();
    let mut run = run(&server, &json!({"users": 20, "think_scale": 0.005}));
    goes_on(&mut run, 10);
    server.cut_with_words("57P01", "terminating connection due to administrator command");
    let gap = until("a gap", || run.poll().gaps.first().cloned().filter(|gap| gap.to_ns.is_some()));
    assert_eq!(gap.reason, "terminating connection due to administrator command (SQLSTATE 57P01)");
    finish(&mut run);
}

// Gaps.

#[test]
fn a_restart_is_one_gap_whenever_its_users_notice() {
    const USERS: u64 = 50;
    let server = Server::well();
    let mut run = run(&server, &json!({"users": USERS, "think_scale": 0.005}));
    goes_on(&mut run, 50);
    server.cut(|_| true);
    let window = counted(&mut run, "all noticed", |window| window.failures[CONNECTION] >= USERS);
    assert_eq!(window.failures, [0, 0, USERS, 0]);
    until("all are back", || (server.accepted() == 2 * USERS).then_some(()));
    goes_on(&mut run, 100);
    let gaps = finish(&mut run).gaps;
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps[0].to_ns.is_some_and(|to_ns| to_ns > gaps[0].from_ns));
    assert_eq!(run.window(0, u64::MAX).failures, [0, 0, USERS, 0]);
}

#[test]
fn a_connection_lost_alone_is_an_error_and_no_gap() {
    const USERS: u64 = 8;
    let held = Arc::new(Gate::default());
    let holding = held.clone();
    let server = Server::start(move |number, request| {
        if number >= USERS && matches!(request, Request::Connect) {
            holding.pass();
        }
        Reply::Fine
    });
    let mut run = run(&server, &json!({"users": USERS}));
    goes_on(&mut run, 50);
    server.cut(|number| number == 3);
    until("the loss is noticed", || (!run.poll().gaps.is_empty()).then_some(()));
    until("the others show that the server is there", || run.poll().gaps.is_empty().then_some(()));
    held.open();
    until("it is back", || (server.accepted() == USERS + 1 && run.poll().reconnecting == 0).then_some(()));
    goes_on(&mut run, 50);
    assert!(finish(&mut run).gaps.is_empty());
    assert_eq!(run.window(0, u64::MAX).failures, [0, 0, 1, 0]);
}

#[test]
fn users_return_to_a_server_few_at_a_time() {
    const USERS: u64 = 60;
    let (now, most) = (AtomicU32::new(0), Arc::new(AtomicU32::new(0)));
    let seen = most.clone();
    let server = Server::start(move |number, request| {
        if number >= USERS && matches!(request, Request::Connect) {
            seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(30));
            now.fetch_sub(1, Ordering::SeqCst);
        }
        Reply::Fine
    });
    let mut run = run(&server, &json!({"users": USERS}));
    goes_on(&mut run, 100);
    server.cut(|_| true);
    until("all are back", || (server.accepted() == 2 * USERS && run.poll().reconnecting == 0).then_some(()));
    finish(&mut run);
    // Between the script's word and the client's last statement prepared no connection is counted.
    assert!((2..=16).contains(&most.load(Ordering::SeqCst)), "{most:?} at once");
}

// An open loop.

const RATE: f64 = 50.0;

/// Arrivals of an open loop of constant gaps that are due up to now.
fn due_by_now(run: &mut OltpRun) -> u64 {
    (run.poll().now_ns as f64 / 1e9 * RATE) as u64 + 1
}

/// Waits until so many more arrivals are due.
fn more_are_due(run: &mut OltpRun, more: u64) {
    let before = due_by_now(run);
    until("more are due", || (due_by_now(run) >= before + more).then_some(()));
}

#[test]
fn arrivals_after_the_stop_are_no_backlog() {
    const USERS: u64 = 8;
    let (stuck, caught) = (Arc::new(Gate::default()), Arc::new(AtomicBool::new(true)));
    let (holding, catching) = (stuck.clone(), caught.clone());
    let server = Server::start(move |_, request| {
        if matches!(request, Request::Execute { .. }) && !catching.swap(true, Ordering::SeqCst) {
            holding.pass();
        }
        Reply::Fine
    });
    let load = json!({"kind": "open", "rate": RATE, "poisson": false});
    let mut run = run(&server, &json!({"users": USERS, "load": load, "think_scale": 0.0}));
    goes_on(&mut run, 20);
    caught.store(false, Ordering::SeqCst);
    until("one is stuck", || caught.load(Ordering::SeqCst).then_some(()));
    goes_on(&mut run, 20);
    run.stop();
    let due = due_by_now(&mut run);
    more_are_due(&mut run, 50);
    stuck.open();
    finish(&mut run);
    let window = run.window(0, u64::MAX);
    let (count, oldest_ns) = window.backlog.unwrap();
    assert!(commits(&window) + count <= due, "{count} unfinished, the oldest for {oldest_ns} ns");
}

#[test]
fn arrivals_that_wait_for_a_connection_are_backlog() {
    /// The last of them is stuck.
    const BEGUN: u64 = 6;
    let stuck = Arc::new(Gate::default());
    let (holding, calls) = (stuck.clone(), AtomicU64::new(0));
    let server = Server::start(move |_, request| {
        if matches!(request, Request::Execute { .. }) && calls.fetch_add(1, Ordering::SeqCst) >= BEGUN - 1 {
            holding.pass();
        }
        Reply::Fine
    });
    let load = json!({"kind": "open", "rate": RATE, "poisson": false});
    let mut run = run(&server, &json!({"users": 100, "connections": 1, "load": load, "think_scale": 0.0}));
    goes_on(&mut run, BEGUN - 1);
    // Users take all of fifty more, and one of them has the connection.
    more_are_due(&mut run, 50);
    let least = due_by_now(&mut run) - BEGUN;
    run.stop();
    let most = due_by_now(&mut run) - BEGUN;
    stuck.open();
    finish(&mut run);
    let (count, oldest_ns) = run.window(0, u64::MAX).backlog.unwrap();
    assert!((least..=most).contains(&count), "{count} unfinished, not {least} to {most}");
    let gaps = oldest_ns as f64 / 1e9 * RATE;
    assert!((count as f64 - gaps).abs() <= 1.0, "{count} unfinished, the oldest for {gaps} gaps");
}

#[test]
fn arrivals_while_the_server_holds_an_answer_count_from_their_intended_start() {
    const HOLD: Duration = Duration::from_secs(1);
    const HALF_NS: u64 = 500_000_000;
    let calls = AtomicU64::new(0);
    let server = Server::start(move |_, request| {
        if matches!(request, Request::Execute { .. }) && calls.fetch_add(1, Ordering::SeqCst) == 20 {
            thread::sleep(HOLD);
        }
        Reply::Fine
    });
    let load = json!({"kind": "open", "rate": 100.0, "poisson": false});
    let mut run = run(&server, &json!({"load": load, "think_scale": 0.0}));
    let window = counted(&mut run, "a hundred held up", |window| commits(window) >= 200);
    finish(&mut run);
    let latencies = || window.by_transaction.iter().map(|(_, sum)| &sum.latency);
    assert!(latencies().map(|latency| latency.max_ns()).max() >= Some(950_000_000));
    let above = |bins: Vec<(u64, u64)>| {
        bins.into_iter().filter(|(latency_ns, _)| *latency_ns > HALF_NS).map(|(_, count)| count).sum::<u64>()
    };
    // All of the first half of that second waited for more than the other half; served slowly was one.
    let held: u64 = latencies().map(|latency| above(latency.bins())).sum();
    assert!(held >= 45, "{held} of fifty");
    let slow = above(window.service.bins());
    assert!((1..5).contains(&slow), "{slow} were slow in themselves");
}

// Deadlocks.

/// A server at which the first so many calls are victims of a deadlock.
fn deadlocking(times: u64) -> Server {
    let calls = AtomicU64::new(0);
    Server::start(move |_, request| match request {
        Request::Execute { .. } if calls.fetch_add(1, Ordering::SeqCst) < times => {
            Reply::Error("40P01", "deadlock detected")
        }
        _ => Reply::Fine,
    })
}

fn retried_and_failed(window: &Window) -> (u64, u64) {
    window.by_transaction.iter().fold((0, 0), |sum, (_, of)| (sum.0 + of.retried, sum.1 + of.failed))
}

#[test]
fn deadlocks_are_tried_again_and_counted() {
    for procedures in [true, false] {
        let server = deadlocking(5);
        // Of all transactions a delivery alone ends well where there are no rows.
        let mut run = run(&server, &json!({"retries": 5, "procedures": procedures, "mix": [0, 0, 0, 1, 0]}));
        let window = counted(&mut run, "goes on", |window| commits(window) >= 10);
        assert_eq!((retried_and_failed(&window), window.failures), ((5, 0), [0; 4]), "procedures: {procedures}");
        finish(&mut run);
    }
}

#[test]
fn a_deadlock_that_may_not_be_tried_again_is_a_failure_of_its_kind() {
    for (retries, retried, failed) in [(0, 0, 6), (1, 3, 3), (2, 4, 2)] {
        let server = deadlocking(6);
        let mut run = run(&server, &json!({"retries": retries}));
        let window = counted(&mut run, "goes on", |window| commits(window) >= 10);
        assert_eq!(retried_and_failed(&window), (retried, failed), "{retries} retries");
        assert_eq!((window.failures[DEADLOCK], window.failures.iter().sum()), (failed, failed));
        finish(&mut run);
    }
}

/// What a user asks a server for, up to so many transactions, apart from victims of deadlocks.
fn inputs(seed: u64, count: usize, reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Vec<String> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (asking, calls) = (asked.clone(), AtomicU64::new(0));
    let server = Server::start(move |_, request| {
        let Request::Execute { statement, parameters } = request else { return Reply::Fine };
        let reply = reply(calls.fetch_add(1, Ordering::SeqCst) as usize);
        if !matches!(reply, Reply::Error(..)) {
            asking.lock().unwrap().push(format!("{statement} {parameters:?}"));
        }
        reply
    });
    let mut run = run(&server, &json!({"seed": seed, "retries": 10, "mix": [2, 2, 1, 1, 1]}));
    until("enough", || (run.poll().error.is_none() && asked.lock().unwrap().len() >= count).then_some(()));
    finish(&mut run);
    let mut asked = std::mem::take(&mut *asked.lock().unwrap());
    asked.truncate(count);
    asked
}

#[test]
fn what_a_seed_makes_users_ask_for_does_not_depend_on_what_goes_wrong() {
    let undisturbed = inputs(7, 100, |_| Reply::Fine);
    let disturbed = inputs(7, 100, |call| match call {
        call if call % 3 == 1 => Reply::Error("40P01", "deadlock detected"),
        30 => Reply::Cut,
        _ => Reply::Fine,
    });
    assert_eq!(disturbed, undisturbed);
    assert_ne!(inputs(8, 100, |_| Reply::Fine), undisturbed);
    for transaction in ["new_order", "payment", "order_status", "delivery", "stock_level"] {
        let call = format!("call.{transaction} ");
        assert!(undisturbed.iter().any(|asked| asked.starts_with(&call)), "no {call}");
    }
}

// Passwords.

#[test]
fn only_a_server_that_knows_the_password_is_believed() {
    let server = Server::start(|_, request| match request {
        Request::Connect => Reply::Scram(Proof::Right),
        _ => Reply::Fine,
    });
    let mut believed = run(&server, &json!({}));
    goes_on(&mut believed, 10);
    finish(&mut believed);
    for proof in [Proof::Wrong, Proof::Missing] {
        let server = Server::start(move |_, request| match request {
            Request::Connect => Reply::Scram(proof),
            _ => Reply::Fine,
        });
        let error = failure(&mut run(&server, &json!({})));
        assert_eq!(error.kind(), "open");
        assert!(!error.to_string().contains(PASSWORD));
    }
}

#[test]
fn neither_plans_nor_what_is_wrong_in_them_show_a_password() {
    let server = Server::well();
    let plan = run_json(&server, &json!({}));
    let whole: RunPlan = serde_json::from_value(plan.clone()).unwrap();
    let load: LoadPlan = serde_json::from_value(load_plan(&[&server], 1.0)).unwrap();
    assert!(!format!("{whole:?} {load:?}").contains("4711"));
    let path = "/databases/0/connection";
    for (key, value) in [
        ("password", json!(4711)),
        ("password", json!([4711])),
        ("password", json!({PASSWORD: 1})),
        ("kind", json!("oracle")),
        ("port", json!(-1)),
        ("user", Value::Null),
    ] {
        let mut wrong = plan.clone();
        wrong.pointer_mut(path).unwrap()[key] = value;
        let text = wrong.to_string();
        let error = serde_json::from_str::<RunPlan>(&text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("4711"), "{key}: {error}");
        let cut_off = serde_json::from_str::<RunPlan>(&text[..text.find("4711").unwrap_or(0) + 3]).unwrap_err();
        assert!(!cut_off.to_string().contains("471"), "{cut_off}");
    }
}

// Loads.

#[test]
fn a_chunk_whose_commit_was_answered_by_nobody_is_not_loaded_twice() {
    let (commits, entries) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let seen = entries.clone();
    let is_there = AtomicBool::new(false);
    let server = Server::start(move |_, request| match request {
        // The second chunk is committed, and the client does not hear of it.
        Request::Execute { statement: "commit", .. } if commits.fetch_add(1, Ordering::SeqCst) == 1 => {
            is_there.store(true, Ordering::SeqCst);
            Reply::Cut
        }
        Request::Query(sql) if sql.starts_with("INSERT INTO assay_chunk") => {
            seen.fetch_add(1, Ordering::SeqCst);
            let again = is_there.swap(false, Ordering::SeqCst);
            if again { Reply::Error("23505", "duplicate key value") } else { Reply::Fine }
        }
        _ => Reply::Fine,
    });
    let status = ended(&mut start_load(&load_plan(&[&server], 30.0)));
    assert_eq!((status.state, status.error), (LoadState::Done, None));
    assert_eq!((status.chunks_done, status.reconnects, server.accepted()), (3, 1, 2));
    assert_eq!(entries.load(Ordering::SeqCst), 4);
}

#[test]
fn a_chunk_that_is_there_without_a_lost_connection_is_an_error() {
    let server = Server::start(|_, request| match request {
        Request::Query(sql) if sql.starts_with("INSERT") => Reply::Error("23505", "duplicate key value"),
        _ => Reply::Fine,
    });
    let error = ended(&mut start_load(&load_plan(&[&server], 30.0))).error.unwrap();
    assert!(error.kind() == "other" && error.to_string().contains("duplicate key value (SQLSTATE 23505)"));
}

#[test]
fn a_load_keeps_a_connection_to_each_database() {
    let (one, other) = (Server::well(), Server::well());
    let status = ended(&mut start_load(&load_plan(&[&one, &other], 30.0)));
    assert_eq!((status.state, status.chunks_done), (LoadState::Done, 6));
    assert_eq!((one.accepted(), other.accepted()), (1, 1));
}
