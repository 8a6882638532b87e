//! A server that lives on without its disk.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use assay_loading::LoadState;
use serde_json::json;

use crate::{
    counted, ended, failure, finish, goes_on, load_plan, run,
    server::{Reply, Request, Server},
    start_load, until,
};

/// What a PostgreSQL whose disk is gone says to who connects.
const DISK_GONE: Reply =
    Reply::LastWords("58030", "could not open file \"global/pg_filenode.map\": Input/output error");

#[test]
fn a_server_whose_disk_is_gone_is_away_and_comes_back() {
    const USERS: u64 = 4;
    let server = Server::start(|number, request| match request {
        Request::Connect if (USERS..2 * USERS).contains(&number) => DISK_GONE,
        _ => Reply::Fine,
    });
    let mut run = run(&server, &json!({"users": USERS}));
    goes_on(&mut run, 20);
    server.cut(|_| true);
    until("all are back", || (server.accepted() == 3 * USERS && run.poll().reconnecting == 0).then_some(()));
    goes_on(&mut run, 20);
    assert_eq!(finish(&mut run).gaps.len(), 1);
    assert_eq!(run.window(0, u64::MAX).failures, [0, 0, USERS, 0]);
}

#[test]
fn a_server_whose_disk_is_gone_at_the_beginning_or_for_good_ends_the_run() {
    let server = Server::start(|number, request| match request {
        Request::Connect if number > 0 => DISK_GONE,
        _ => Reply::Fine,
    });
    let mut lost = run(&server, &json!({"reconnect_s": 1.0}));
    goes_on(&mut lost, 10);
    server.cut(|_| true);
    let lost = failure(&mut lost);
    let never = failure(&mut run(&server, &json!({})));
    assert_eq!((lost.kind(), never.kind()), ("lost", "open"));
    for error in [lost, never] {
        assert!(error.to_string().ends_with("Input/output error (SQLSTATE 58030)"), "{error}");
    }
}

#[test]
fn a_statement_that_the_disk_failed_is_an_error_of_its_own() {
    let calls = AtomicU64::new(0);
    let server = Server::start(move |_, request| match request {
        Request::Execute { .. } if calls.fetch_add(1, Ordering::SeqCst) == 20 => {
            Reply::Error("58030", "could not read block 7: Input/output error")
        }
        _ => Reply::Fine,
    });
    let mut run = run(&server, &json!({}));
    let window = counted(&mut run, "failed once", |window| window.failures != [0; 4]);
    assert_eq!(window.failures, [0, 0, 0, 1]);
    goes_on(&mut run, 20);
    assert!(finish(&mut run).gaps.is_empty());
    assert_eq!(server.accepted(), 1);
}

#[test]
fn a_load_goes_on_once_a_server_whose_disk_was_gone_has_it_again() {
    let is_cut = AtomicBool::new(false);
    let server = Server::start(move |number, request| match request {
        Request::Connect if number == 1 => DISK_GONE,
        Request::CopyData if !is_cut.swap(true, Ordering::SeqCst) => Reply::Cut,
        _ => Reply::Fine,
    });
    let status = ended(&mut start_load(&load_plan(&[&server], 30.0)));
    assert_eq!((status.state, status.error), (LoadState::Done, None));
    assert_eq!((status.chunks_done, status.reconnects, server.accepted()), (3, 2, 3));
}
