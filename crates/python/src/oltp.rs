use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use assay_oltp::{OltpRun as Run, RunStatus, State, TransactionSum, Window, workload, workload_of};
use assay_sql::Kind;
use pyo3::prelude::*;
use serde::Serialize;

use crate::{
    errors::raise,
    loading::{Failed, duration, locked, to_python},
    summary::{Gaps, Latency, to_base64, to_json},
};

/// By transaction, how many were committed and rolled back.
pub(crate) type Counts = BTreeMap<String, (u64, u64)>;

/// Users at work on databases. Plans come in and figures go out as JSON text.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct OltpRun(Mutex<Run>);

#[pymethods]
impl OltpRun {
    /// Starts threads that connect all users and then let them begin together.
    #[new]
    fn new(py: Python<'_>, plan_json: &str) -> PyResult<Self> {
        let start = || (workload_of(plan_json)?.start_run)(plan_json);
        let run = py.detach(start).map_err(|error| to_python(&error))?;
        Ok(Self(Mutex::new(run)))
    }

    /// How the run stands and the ticks that became complete since the last poll.
    fn poll(&self, py: Python<'_>) -> String {
        py.detach(|| run_report(&locked(&self.0).poll()))
    }

    /// Forgets the ticks before this one.
    fn measure_from(&self, py: Python<'_>, tick: u64) {
        py.detach(|| locked(&self.0).measure_from(tick));
    }

    /// Counts of the complete ticks `from_tick..to_tick`.
    fn point(&self, py: Python<'_>, from_tick: u64, to_tick: u64) -> String {
        py.detach(|| figures(&locked(&self.0), from_tick, to_tick))
    }

    /// Recent acknowledged transactions, if the workload keeps them.
    fn acknowledged(&self, py: Python<'_>) -> String {
        py.detach(|| locked(&self.0).acknowledged().to_string())
    }

    /// Lets no more transactions begin.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| locked(&self.0).stop());
    }

    /// Stops, waits for present transactions, `timeout_s` at most, and returns as `poll` does.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> PyResult<String> {
        let within = duration(timeout_s)?;
        Ok(py.detach(|| run_report(&locked(&self.0).finish(within))))
    }
}

#[derive(Serialize)]
struct RunReport<'a> {
    state: &'static str,
    error: Option<Failed>,
    connected: u32,
    reconnecting: u32,
    complete_ticks: u64,
    now_ns: u64,
    started_utc_ns: u64,
    ticks: Vec<TransactionLine>,
    /// Ticks and the CPU time of all threads in them.
    cpu_ns: &'a [(u64, u64)],
    gaps: Vec<Away<'a>>,
    example: Option<&'a str>,
}

/// One kind of transaction on one database in one tick.
#[derive(Serialize)]
struct TransactionLine {
    tick: u64,
    database: usize,
    transaction: String,
    committed: u64,
    rolled_back: u64,
    retried: u64,
    failed: u64,
    mean_ns: Option<f64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

/// When a database was away.
#[derive(Serialize)]
struct Away<'a> {
    from_ns: u64,
    to_ns: Option<u64>,
    database: usize,
    reason: &'a str,
}

/// Counts of a run's complete ticks `from_tick..to_tick`, as JSON text.
pub(crate) fn figures(run: &Run, from_tick: u64, to_tick: u64) -> String {
    let window = run.window(from_tick, to_tick);
    let interval_s = run.interval_ns() as f64 / 1e9;
    let seconds = to_tick.saturating_sub(from_tick) as f64 * interval_s;
    to_json(&Figures::of(&window, run.names(), seconds))
}

/// How a run stands, as JSON text.
pub(crate) fn run_report(status: &RunStatus) -> String {
    let state = match status.state {
        State::Connecting => "connecting",
        State::Running => "running",
        State::Ended => "ended",
        State::Failed => "failed",
    };
    let lines = status.ticks.iter().map(|tick| {
        let latency = &tick.latency;
        let some = |value: u64| (!latency.is_empty()).then_some(value);
        TransactionLine {
            tick: tick.tick,
            database: tick.database,
            transaction: tick.transaction.to_string(),
            committed: tick.committed,
            rolled_back: tick.rolled_back,
            retried: tick.retried,
            failed: tick.failed,
            mean_ns: latency.mean_ns(),
            p50_ns: some(latency.percentile_ns(50.0)),
            p90_ns: some(latency.percentile_ns(90.0)),
            p99_ns: some(latency.percentile_ns(99.0)),
            max_ns: some(latency.max_ns()),
        }
    });
    let away = status.gaps.iter().map(|gap| Away {
        from_ns: gap.from_ns,
        to_ns: gap.to_ns,
        database: gap.database,
        reason: &gap.reason,
    });
    to_json(&RunReport {
        state,
        error: status.error.as_ref().map(Failed::of),
        connected: status.connected,
        reconnecting: status.reconnecting,
        complete_ticks: status.complete_ticks,
        now_ns: status.now_ns,
        started_utc_ns: status.started_utc_ns,
        ticks: lines.collect(),
        cpu_ns: &status.cpu_ns,
        gaps: away.collect(),
        example: status.example.as_deref(),
    })
}

/// Counts of a window.
#[derive(Serialize)]
struct Figures<'a> {
    by_transaction: BTreeMap<&'a str, TransactionFigures>,
    total: TotalFigures,
    databases: Vec<DatabaseFigures<'a>>,
    errors: Errors<'a>,
    client_cpu_ns: u64,
    threads: usize,
    fullest_thread_share: f64,
    gaps: Gaps,
    service_latency_ns: Option<Latency>,
    schedule: Option<Schedule>,
    backlog: Option<Backlog>,
}

#[derive(Serialize)]
struct TransactionFigures {
    count: u64,
    per_s: f64,
    rolled_back: u64,
    retried: u64,
    failed: u64,
    latency_ns: Option<Latency>,
    histogram: String,
}

#[derive(Serialize)]
struct TotalFigures {
    count: u64,
    per_s: f64,
    latency_ns: Option<Latency>,
    histogram: String,
}

/// A database's transactions; transactions of the workload's first kind are under `KIND_count`.
#[derive(Serialize)]
struct DatabaseFigures<'a> {
    name: &'a str,
    count: u64,
    #[serde(flatten)]
    first: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Errors<'a> {
    count: u64,
    kinds: ErrorKinds,
    example: Option<&'a str>,
    /// By code, errors that ended users since the run began.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    codes: &'a BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "is_zero")]
    ended_users: u32,
}

#[derive(Serialize)]
struct ErrorKinds {
    deadlock: u64,
    serialization: u64,
    connection: u64,
    other: u64,
}

/// How well waits were kept.
#[derive(Serialize)]
struct Schedule {
    lag_p99_ns: u64,
    kept_share: f64,
    waits: u64,
}

#[derive(Serialize)]
struct Backlog {
    unfinished: u64,
    oldest_ns: u64,
}

impl<'a> Figures<'a> {
    fn of(window: &'a Window, names: &'a [String], seconds: f64) -> Self {
        let mut total = assay_load::LatencyHistogram::new();
        window.by_transaction.iter().for_each(|(_, sum)| total.merge(&sum.latency));
        let of_transaction = |(transaction, sum): &'a (Arc<str>, TransactionSum)| {
            let figures = TransactionFigures {
                count: sum.committed,
                per_s: sum.committed as f64 / seconds,
                rolled_back: sum.rolled_back,
                retried: sum.retried,
                failed: sum.failed,
                latency_ns: Latency::of(&sum.latency),
                histogram: to_base64(&sum.latency),
            };
            (&**transaction, figures)
        };
        let first = format!("{}_count", window.by_transaction[0].0);
        let databases = names.iter().zip(&window.databases).map(|(name, sum)| DatabaseFigures {
            name,
            count: sum.count,
            first: BTreeMap::from([(first.clone(), sum.first_committed)]),
        });
        let [deadlock, serialization, connection, other] = window.failures;
        let waits = window.waits;
        Self {
            by_transaction: window.by_transaction.iter().map(of_transaction).collect(),
            total: TotalFigures {
                count: total.count(),
                per_s: total.count() as f64 / seconds,
                latency_ns: Latency::of(&total),
                histogram: to_base64(&total),
            },
            databases: databases.collect(),
            errors: Errors {
                count: window.failures.iter().sum(),
                kinds: ErrorKinds { deadlock, serialization, connection, other },
                example: window.example.as_deref(),
                codes: &window.codes,
                ended_users: window.ended_users,
            },
            client_cpu_ns: window.cpu_ns,
            threads: window.threads,
            fullest_thread_share: window.fullest_cpu_ns as f64 / 1e9 / seconds,
            gaps: Gaps::of(window.standstills, window.standstill_count),
            service_latency_ns: Latency::of(&window.service),
            schedule: (waits > 0).then(|| Schedule {
                lag_p99_ns: window.lag.percentile_ns(99.0),
                kept_share: 1.0 - window.late as f64 / waits as f64,
                waits,
            }),
            backlog: window.backlog.map(|(unfinished, oldest_ns)| Backlog { unfinished, oldest_ns }),
        }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The dialect of a name.
fn dialect(name: &str) -> PyResult<Kind> {
    match name {
        "postgresql" => Ok(Kind::Postgresql),
        "mariadb" => Ok(Kind::Mariadb),
        "mysql" => Ok(Kind::Mysql),
        "mssql" => Ok(Kind::Mssql),
        _ => Err(raise("UsageError", format!("{name:?}: no dialect; accepted: postgresql, mariadb, mysql, mssql"))),
    }
}

/// Refuses scripts that cannot run.
pub(crate) fn check_scripts(plan_json: &str) -> PyResult<()> {
    assay_oltp::check_scripts(plan_json).map_err(|error| to_python(&error))
}

/// The statements of a file of SQL, in order.
pub(crate) fn sql_statements(name: &str, text: &str) -> PyResult<Vec<String>> {
    assay_oltp::sql_statements(name, text).map_err(|error| to_python(&error))
}

/// Transactions by kind of one user on a clock of numbers: committed, and rolled back by the user.
pub(crate) fn serial(py: Python<'_>, plan_json: &str, steps: u64, step_ns: u64) -> PyResult<Counts> {
    let run = || (workload_of(plan_json)?.run_serial)(plan_json, steps, step_ns);
    let counts = py.detach(run).map_err(|error| to_python(&error))?;
    Ok(counts.into_iter().map(|(name, committed, rolled_back)| (name, (committed, rolled_back))).collect())
}

/// The named statements of a workload's file of SQL in a dialect.
pub(crate) fn sql(kind: &str, name: &str, file: &str) -> PyResult<Vec<(String, String)>> {
    let registered = workload(kind).expect("the module's functions name workloads that there are");
    let found = (registered.sections)(dialect(name)?, file);
    let found = found.ok_or_else(|| raise("UsageError", format!("{file:?}: no file of SQL")))?;
    Ok(found.into_iter().map(|section| (section.name, section.text)).collect())
}
