//! A session's life: it connects when it did, runs its statements in their order, each at its time or as soon as the one before has ended.

use std::{collections::HashMap, io, rc::Rc, sync::atomic::Ordering, time::Duration};

use assay_loading::DatabaseError;
use assay_sql::{AnyDriver, Asked, Cause, DbError, Driver, Kind, Protocol, Setup, StatementId, Values};

use super::thread::Thread;
use crate::{
    script::session_statements,
    statements::{
        log::entry::Way,
        record::{Record, Text},
        stored::Session,
    },
};

/// Bytes of a session's statements that are read at once.
const READ_BYTES: usize = 8 << 10;
/// Statements that a session keeps prepared; others are parsed each time.
const PREPARED_MAX: usize = 1000;
/// A wait that ends later than this after its time was not kept.
const LATE_NS: u64 = 10_000_000;
/// Sessions one after the other that could not connect: the server is away.
const LOST_MAX: u32 = 50;
/// Time between two empty statements of a session, which time the way to the server and back.
const TRIP_EVERY_NS: u64 = 1_000_000_000;
/// SQLSTATE of a write that a session refuses which only reads.
const READ_ONLY: &str = "25006";

/// Runs a session to its end.
pub(super) async fn live(thread: Rc<Thread>, session: Session, begins: bool) {
    let connected = {
        let _turn = thread.connecting.acquire().await.expect("the semaphore is never closed");
        if thread.stopping() { None } else { Some(connect(&thread).await) }
    };
    if begins {
        thread.has_begun();
    }
    let driver = match connected {
        None => return thread.left_over(&session, None),
        Some(Ok(driver)) => driver,
        Some(Err(error)) => return lost(&thread, &error, session.count),
    };
    thread.replay.lost_in_turn.store(0, Ordering::Relaxed);
    thread.shared.connected.fetch_add(1, Ordering::Relaxed);
    if !thread.begins().await {
        return;
    }
    let mut user = SessionUser {
        thread: &thread,
        driver,
        values: Values::default(),
        prepared: HashMap::new(),
        ended_ns: 0,
        trip_due_ns: 0,
    };
    user.ended_ns = thread.now_ns();
    match user.run(&session).await {
        Ok(()) => user.driver.close().await,
        Err(error) => thread.shared.fail(DatabaseError::Other(format!("the sorted log cannot be read: {error}"))),
    }
    thread.shared.connected.fetch_sub(1, Ordering::Relaxed);
}

async fn connect(thread: &Thread) -> Result<AnyDriver, DbError> {
    let plan = &thread.shared.plan;
    let connection = &plan.databases[0].connection;
    let within = Duration::from_secs_f64(plan.connect_s);
    let setup = Setup { isolation: plan.isolation, statements: &[], pipeline: false, bulk: false, within };
    let mut driver = AnyDriver::connect(connection, setup).await?;
    for text in session_statements(connection.kind) {
        driver.execute(&text).await?;
    }
    if !thread.replay.plan.writes {
        let only_reads = match driver.kind() {
            Kind::Postgresql => "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            _ => "SET SESSION TRANSACTION READ ONLY",
        };
        driver.execute(only_reads).await?;
    }
    driver.leave_open();
    Ok(driver)
}

/// A statement that leaves a server next to nothing to do.
fn empty_statement(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgresql => "",
        Kind::Mariadb | Kind::Mysql => "DO 0",
        Kind::Mssql => "SET NOCOUNT ON",
    }
}

/// A session cannot connect or lost its connection.
fn lost(thread: &Thread, error: &DbError, statements: u64) {
    {
        let mut told = thread.told();
        told.sessions_lost += 1;
        told.lost += statements;
        told.lost_example.get_or_insert_with(|| error.text.clone());
    }
    let in_turn = thread.replay.lost_in_turn.fetch_add(1, Ordering::Relaxed) + 1;
    let place = thread.shared.plan.databases[0].connection.place();
    let is_first = thread.shared.connected.load(Ordering::Relaxed) == 0 && thread.told().sessions_done == 0;
    if error.cause != Cause::Connection && is_first {
        thread.shared.fail(DatabaseError::Connect(format!("{place}: {}", error.text)));
    } else if in_turn >= LOST_MAX || (is_first && thread.replay.log.sessions.len() == 1) {
        thread.shared.fail(DatabaseError::Lost(format!("{place}: sessions cannot connect: {}", error.text)));
    }
}

struct SessionUser<'a> {
    thread: &'a Thread,
    driver: AnyDriver,
    values: Values,
    /// Shared texts that this session has prepared, with their numbers and names.
    prepared: HashMap<u32, (StatementId, String)>,
    /// When the last statement ended.
    ended_ns: u64,
    trip_due_ns: u64,
}

impl SessionUser<'_> {
    async fn run(&mut self, session: &Session) -> io::Result<()> {
        let replay = self.thread.replay.clone();
        let mut statements = replay.log.statements(session, READ_BYTES);
        let mut done = 0;
        while let Some(bytes) = statements.next()? {
            let Some(record) = Record::read(bytes) else {
                return Err(io::Error::other("a statement is damaged"));
            };
            let due_ns = replay.due_ns(record.start_ns);
            if !self.wait(due_ns).await {
                self.thread.left_over(session, Some(statements));
                return Ok(());
            }
            let ended = match self.trip().await {
                Ok(()) => self.statement(&record, due_ns).await,
                lost => lost,
            };
            done += 1;
            if let Err(error) = ended {
                lost(self.thread, &error, session.count - done);
                return Ok(());
            }
        }
        self.thread.told().sessions_done += 1;
        Ok(())
    }

    /// Waits for a statement's time; false when the replay ends before.
    async fn wait(&mut self, due_ns: u64) -> bool {
        let thread = self.thread;
        let is_held = self.ended_ns > due_ns;
        if thread.now_ns() < due_ns && !thread.alarms.until(due_ns).await {
            return false;
        }
        if thread.stopping() {
            return false;
        }
        let late_ns = thread.now_ns().saturating_sub(due_ns);
        let mut told = thread.told();
        told.lateness.record(late_ns);
        told.held += u64::from(is_held);
        drop(told);
        if !is_held {
            thread.waited(late_ns, LATE_NS);
        }
        true
    }

    /// Times an empty statement, if it is time for one; an error is a lost connection.
    async fn trip(&mut self) -> Result<(), DbError> {
        let asked_ns = self.thread.now_ns();
        if asked_ns < self.trip_due_ns {
            return Ok(());
        }
        self.trip_due_ns = asked_ns + TRIP_EVERY_NS;
        match self.driver.execute(empty_statement(self.driver.kind())).await {
            Ok(()) => self.thread.told().trips.record(self.thread.now_ns() - asked_ns),
            Err(error) if error.cause == Cause::Connection => return Err(error),
            // A server that refuses it tells nothing of the way.
            Err(_) => (),
        }
        Ok(())
    }

    /// Runs a statement and counts it; an error is a lost connection.
    async fn statement(&mut self, record: &Record<'_>, due_ns: u64) -> Result<(), DbError> {
        let thread = self.thread;
        let log = &thread.replay.log;
        let (text, shared) = match record.text {
            Text::Own(text) => (text, None),
            Text::Shared(number) => (&*log.texts[number as usize], Some(number)),
        };
        self.values.clear();
        for parameter in record.parameters() {
            self.values.push(|out| parameter.inspect(|value| out.extend_from_slice(value)).is_some());
        }
        let room = self.prepared.len() < PREPARED_MAX;
        let kept = match (record.way, shared) {
            (Way::Prepared, Some(number)) if room || self.prepared.contains_key(&number) => {
                let next = self.prepared.len() as u16;
                Some(self.prepared.entry(number).or_insert_with(|| (StatementId(next), format!("assay_{next}"))))
            }
            _ => None,
        };
        let protocol = match (record.way, &kept) {
            (Way::Simple, _) => Protocol::Simple,
            (_, None) => Protocol::Extended,
            (_, Some(_)) => Protocol::Prepared,
        };
        let (id, name) = kept.map_or((StatementId(0), ""), |(id, name)| (*id, name.as_str()));
        let asked = Asked { id, name, text, values: &self.values, protocol };
        let started_ns = thread.now_ns();
        thread.busy.set(thread.busy.get() + 1);
        let ended = self.driver.ask(asked, None).await;
        thread.busy.set(thread.busy.get() - 1);
        self.ended_ns = thread.now_ns();
        self.count(record, (due_ns, started_ns), ended)
    }

    fn count(
        &self,
        record: &Record<'_>,
        (due_ns, started_ns): (u64, u64),
        ended: Result<(), DbError>,
    ) -> Result<(), DbError> {
        let thread = self.thread;
        let (now_ns, replay) = (self.ended_ns, &thread.replay);
        let stood_still = thread.watch.borrow_mut().stood_still(due_ns, now_ns);
        let mut told = thread.told();
        told.done += 1;
        let mut counter = thread.counter.borrow_mut();
        let tally = counter.at(now_ns);
        let counted = &mut tally.counted[usize::from(record.counted)];
        let is_alike = match (&ended, record.code) {
            (Ok(()), None) => {
                counted.committed += 1;
                if due_ns >= replay.plan.warmup_ns && !stood_still {
                    let batch = replay.batch(record.start_ns);
                    told.compare(record.fingerprint, batch, record.duration_ns, now_ns - started_ns);
                }
                true
            }
            (Ok(()), Some(code)) => {
                counted.committed += 1;
                told.differs(record.fingerprint, code, "", "");
                true
            }
            (Err(error), _) if error.code == READ_ONLY && !replay.plan.writes => {
                told.refused_writes += 1;
                return Ok(());
            }
            (Err(error), Some(code)) if error.code == code || code == "?" => {
                counted.rolled_back += 1;
                told.failed_alike += 1;
                true
            }
            (Err(error), code) => {
                counted.failed += 1;
                tally.failures.count(error.cause);
                let shown = if error.code.is_empty() { "connection" } else { &error.code };
                told.differs(record.fingerprint, code.unwrap_or(""), shown, &error.text);
                thread.shared.keep_example(&error.text);
                false
            }
        };
        if is_alike && stood_still {
            tally.standstill_count += 1;
        } else if is_alike {
            tally.counted[usize::from(record.counted)].latency.record(now_ns.saturating_sub(due_ns));
            tally.service.record(now_ns - started_ns);
        }
        match ended {
            Err(error) if error.cause == Cause::Connection => Err(error),
            Err(error) if error.cause == Cause::NoSpace => {
                let place = thread.shared.plan.databases[0].connection.place();
                thread.shared.fail(DatabaseError::NoSpace(format!("{place}: {}", error.text)));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
