use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_oltp::{
    LoadState, LoadStatus, OltpError, OltpLoad as Load, OltpRun as Run, Registered, RunStatus, State, Window, workload,
    workload_of,
};
use assay_sql::Kind;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    errors::raise,
    summary::{gaps, latency, to_base64},
};

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn duration(seconds: f64) -> PyResult<Duration> {
    let refused = || raise("UsageError", format!("timeout_s {seconds}: accepted: 0 and above"));
    Duration::try_from_secs_f64(seconds).map_err(|_| refused())
}

/// The Python exception for an error, one class for each variant.
fn to_python(error: &OltpError) -> PyErr {
    let class = match error {
        OltpError::InvalidPlan(_) => "UsageError",
        OltpError::Connect(_) => "OpenFailed",
        OltpError::NoSpace(_) => "OutOfSpace",
        OltpError::Lost(_) => "NotAnswering",
        OltpError::Database(_) => "IoFailed",
    };
    raise(class, error.to_string())
}

fn error(error: Option<&OltpError>) -> Value {
    error.map_or(Value::Null, |error| json!({"kind": error.kind(), "text": error.to_string()}))
}

/// Rows being loaded in bulk into tables that are there. Plans come in and figures go out as JSON text.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct OltpLoad(Mutex<Load>);

#[pymethods]
impl OltpLoad {
    /// Starts loading.
    #[new]
    fn new(py: Python<'_>, plan_json: &str) -> PyResult<Self> {
        let start = || (workload_of(plan_json)?.start_load)(plan_json);
        let load = py.detach(start).map_err(|error| to_python(&error))?;
        Ok(Self(Mutex::new(load)))
    }

    /// How the load stands.
    fn poll(&self, py: Python<'_>) -> String {
        py.detach(|| load_report(&locked(&self.0).poll()))
    }

    /// Begins no more chunks.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| locked(&self.0).stop());
    }

    /// Stops, waits for the chunks that are under way, `timeout_s` at most, and returns what `poll` does.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> PyResult<String> {
        let within = duration(timeout_s)?;
        Ok(py.detach(|| load_report(&locked(&self.0).finish(within))))
    }
}

fn load_report(status: &LoadStatus) -> String {
    let state = match status.state {
        LoadState::Running => "running",
        LoadState::Done => "done",
        LoadState::Stopped => "stopped",
        LoadState::Failed => "failed",
    };
    json!({
        "state": state,
        "error": error(status.error.as_ref()),
        "rows": status.rows,
        "bytes": status.bytes,
        "rows_total": status.rows_total,
        "chunks_done": status.chunks_done,
        "chunks_total": status.chunks_total,
        "chunks_skipped": status.chunks_skipped,
        "elapsed_ns": status.elapsed_ns,
        "cpu_ns": status.cpu_ns,
        "reconnects": status.reconnects,
    })
    .to_string()
}

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

    /// What was counted in the complete ticks `from_tick..to_tick`.
    fn point(&self, py: Python<'_>, from_tick: u64, to_tick: u64) -> String {
        py.detach(|| {
            let run = locked(&self.0);
            let window = run.window(from_tick, to_tick);
            let interval_s = run.interval_ns() as f64 / 1e9;
            let seconds = to_tick.saturating_sub(from_tick) as f64 * interval_s;
            figures(&window, run.names(), seconds).to_string()
        })
    }

    /// Lets no more transactions begin.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| locked(&self.0).stop());
    }

    /// Stops, waits for what is under way, `timeout_s` at most, and returns what `poll` does.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> PyResult<String> {
        let within = duration(timeout_s)?;
        Ok(py.detach(|| run_report(&locked(&self.0).finish(within))))
    }
}

fn run_report(status: &RunStatus) -> String {
    let state = match status.state {
        State::Connecting => "connecting",
        State::Running => "running",
        State::Ended => "ended",
        State::Failed => "failed",
    };
    let ticks: Vec<Value> = status
        .ticks
        .iter()
        .map(|tick| {
            let latency = &tick.latency;
            let percentile = |percent| (!latency.is_empty()).then(|| latency.percentile_ns(percent));
            json!({
                "tick": tick.tick, "database": tick.database, "transaction": tick.transaction,
                "committed": tick.committed, "rolled_back": tick.rolled_back, "retried": tick.retried,
                "failed": tick.failed, "mean_ns": latency.mean_ns(), "p50_ns": percentile(50.0),
                "p90_ns": percentile(90.0), "p99_ns": percentile(99.0),
                "max_ns": (!latency.is_empty()).then(|| latency.max_ns()),
            })
        })
        .collect();
    let gaps: Vec<Value> = status
        .gaps
        .iter()
        .map(|gap| json!({"from_ns": gap.from_ns, "to_ns": gap.to_ns, "database": gap.database, "reason": gap.reason}))
        .collect();
    json!({
        "state": state,
        "error": error(status.error.as_ref()),
        "connected": status.connected,
        "reconnecting": status.reconnecting,
        "complete_ticks": status.complete_ticks,
        "now_ns": status.now_ns,
        "started_utc_ns": status.started_utc_ns,
        "ticks": ticks,
        "cpu_ns": status.cpu_ns,
        "gaps": gaps,
    })
    .to_string()
}

fn figures(window: &Window, names: &[String], seconds: f64) -> Value {
    let mut by_transaction = Map::new();
    let mut total = assay_load::LatencyHistogram::new();
    for (transaction, sum) in &window.by_transaction {
        total.merge(&sum.latency);
        by_transaction.insert(
            (*transaction).into(),
            json!({
                "count": sum.committed,
                "per_s": sum.committed as f64 / seconds,
                "rolled_back": sum.rolled_back,
                "retried": sum.retried,
                "failed": sum.failed,
                "latency_ns": latency(&sum.latency),
                "histogram": to_base64(&sum.latency),
            }),
        );
    }
    let first_count = format!("{}_count", window.by_transaction[0].0);
    let databases: Vec<Value> = names
        .iter()
        .zip(&window.databases)
        .map(|(name, sum)| json!({"name": name, &first_count: sum.first_committed, "count": sum.count}))
        .collect();
    let [deadlock, serialization, connection, other] = window.failures;
    let waits = window.waits;
    let schedule = (waits > 0).then(|| {
        json!({"lag_p99_ns": window.lag.percentile_ns(99.0), "kept_share": 1.0 - window.late as f64 / waits as f64,
               "waits": waits})
    });
    json!({
        "by_transaction": by_transaction,
        "total": {"count": total.count(), "per_s": total.count() as f64 / seconds, "latency_ns": latency(&total),
                  "histogram": to_base64(&total)},
        "databases": databases,
        "errors": {"count": window.failures.iter().sum::<u64>(),
                   "kinds": {"deadlock": deadlock, "serialization": serialization, "connection": connection, "other": other},
                   "example": window.example},
        "client_cpu_ns": window.cpu_ns,
        "threads": window.threads,
        "fullest_thread_share": window.fullest_cpu_ns as f64 / 1e9 / seconds,
        "gaps": gaps(window.standstills, window.standstill_count),
        "service_latency_ns": latency(&window.service),
        "schedule": schedule,
        "backlog": window.backlog.map(|(count, oldest_ns)| json!({"unfinished": count, "oldest_ns": oldest_ns})),
    })
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

fn registered(kind: &str) -> Registered {
    workload(kind).expect("the module's functions name workloads that there are")
}

/// The named statements of a workload's file of SQL in a dialect.
pub(crate) fn sql(kind: &str, name: &str, file: &str) -> PyResult<Vec<(String, String)>> {
    let found = (registered(kind).sections)(dialect(name)?, file);
    let found = found.ok_or_else(|| raise("UsageError", format!("{file:?}: no file of SQL")))?;
    Ok(found.into_iter().map(|section| (section.name, section.text)).collect())
}

/// Rows by table of a workload's database of a scale.
pub(crate) fn rows(kind: &str, scale: u32) -> Vec<(&'static str, u64)> {
    (registered(kind).row_counts)(scale)
}
