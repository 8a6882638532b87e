use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use assay_array_model::SessionPlan;
use assay_load::{Access, Activity as Asked, BlockShare, Load, Region, Skew, Standstills, Sync};
use assay_mailbox::{Activity, BadPage, DatabaseFacts, MailboxPlan, Phase, PhaseDone, Session, SessionReport, State};
use pyo3::prelude::*;
use serde::Serialize;

use crate::{
    errors::{raise, to_python},
    model::ModelledArray,
    rows::Telemetry,
    summary::{self, Names, TickLine, to_json},
};

/// Databases of a mail server at work on real volumes or on a modelled array (crates/mailbox). Plans come in and figures go out as
/// JSON text.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct MailboxRun {
    inner: Mutex<Session>,
    names: Names,
    interval_s: f64,
    is_virtual: bool,
}

#[pymethods]
impl MailboxRun {
    /// Starts a plan; on a modelled array where one is given, whose caches are warm if it says so.
    #[new]
    #[pyo3(signature = (plan_json, array=None, warm=false))]
    fn new(py: Python<'_>, plan_json: &str, array: Option<&ModelledArray>, warm: bool) -> PyResult<Self> {
        let plan: MailboxPlan =
            serde_json::from_str(plan_json).map_err(|error| raise("UsageError", format!("mailbox plan: {error}")))?;
        let names = Names {
            activities: Activity::ALL.iter().map(|one| (one.name().to_owned(), one.role().to_owned())).collect(),
            volumes: plan
                .databases
                .iter()
                .flat_map(|database| Activity::ALL.map(|one| stream(&database.name, one)))
                .collect(),
            replays: false,
        };
        let interval_s = plan.interval_ns as f64 / 1e9;
        let started = py.detach(|| match array {
            None => Session::start(plan),
            Some(array) => {
                let model = array.fresh_or_warmed(&accesses(&plan, warm));
                Session::start_on(model, plan)
            }
        });
        let session = started.map_err(|error| to_python(&error))?;
        Ok(Self { inner: Mutex::new(session), names, interval_s, is_virtual: array.is_some() })
    }

    /// Lets a tick pass on a model; how the run stands, and what is new since the last poll.
    fn poll(&self, py: Python<'_>) -> String {
        py.detach(|| self.with(report))
    }

    /// Forgets the ticks before this one.
    fn measure_from(&self, tick: u64) {
        self.with(|session| session.collector().measure_from(tick));
    }

    /// The measured part of a point over the complete ticks `from_tick..to_tick`.
    fn point(&self, py: Python<'_>, from_tick: u64, to_tick: u64, fullest_worker: f64) -> String {
        py.detach(|| {
            self.with(|session| {
                let window = summary::Window { from_tick, to_tick, interval_s: self.interval_s };
                let standstills = if self.is_virtual {
                    Standstills::default()
                } else {
                    session.standstills(window.begin_ns(), window.end_ns())
                };
                window.point(session.collector(), &self.names, 1, fullest_worker, standstills)
            })
        })
    }

    /// Sets the I/Os per second of all databases together; earlier lateness is forgotten.
    fn set_rate(&self, rate: f64) {
        self.with(|session| session.set_rate(rate));
    }

    /// Ends the load; the databases' changes are written then, and verified.
    fn stop(&self) {
        self.with(|session| session.stop());
    }

    /// Ends the run as soon as outstanding I/O has ended.
    fn abort(&self) {
        self.with(|session| session.abort());
    }

    /// Waits for the end, `timeout_s` at most.
    fn wait(&self, py: Python<'_>, timeout_s: f64) {
        py.detach(|| self.with(|session| session.wait(Duration::from_secs_f64(timeout_s))));
    }

    /// Backend and features in force.
    fn engine(&self) -> String {
        if self.is_virtual {
            return summary::no_engine(Some("model"));
        }
        self.with(|session| summary::engine(session.engine()))
    }
}

impl MailboxRun {
    fn with<T>(&self, action: impl FnOnce(&mut Session) -> T) -> T {
        action(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Name of a database's I/O for a purpose in figures.
fn stream(database: &str, activity: Activity) -> String {
    if activity == Activity::Database { database.to_owned() } else { format!("{database} {}", activity.name()) }
}

/// The random I/O of the databases, by which caches are warmed.
fn accesses(plan: &MailboxPlan, warm: bool) -> SessionPlan {
    let activities = plan.databases.iter().map(|database| Asked {
        name: database.name.clone(),
        role: "data".into(),
        volumes: vec![usize::from(database.data.volume)],
        workers: 1,
        access: Access {
            blocks: vec![BlockShare { bytes: plan.page_bytes, weight: 1.0 }],
            read_share: 0.6,
            random_share: 1.0,
            skew: Skew::Uniform,
            region: Region {
                start_bytes: database.data.start_bytes,
                end_bytes: database.data.start_bytes + database.data.size_bytes,
            },
            align_bytes: u64::from(plan.page_bytes),
            streams: 1,
            stride_bytes: None,
            duplicate_share: 0.0,
        },
        load: Load::Closed { queue_depth: 1 },
        direct: true,
        sync: Sync::None,
        sync_every: 1,
        compressible_share: 0.0,
        limit_bytes: None,
    });
    SessionPlan { activities: activities.collect(), seed: plan.seed, interval_ns: plan.interval_ns, warm }
}

/// How a run stands.
#[derive(Serialize)]
struct RunReport<'a> {
    state: &'static str,
    detail: Option<String>,
    complete_ticks: u64,
    now_ns: u64,
    ticks: Vec<TickLine>,
    phase: Option<Phase>,
    phases: &'a [PhaseDone],
    done: u64,
    of: u64,
    pages_verified: u64,
    bad_pages: u64,
    log_files_replayed: u64,
    bad: &'a [BadPage],
    databases: &'a [DatabaseFacts],
    settled: bool,
    telemetry: Vec<Telemetry>,
}

fn report(session: &mut Session) -> String {
    let (state, detail) = match session.poll() {
        State::Running => ("running", None),
        State::Ended => ("ended", None),
        State::NotAnswering(why) => ("not-answering", Some(why)),
        State::Failed(why) => ("failed", Some(why)),
    };
    let ticks = session.collector().fresh_ticks();
    let complete_ticks = session.collector().complete_ticks();
    session.look(|report: &mut SessionReport| {
        let telemetry = std::mem::take(&mut report.readings).iter().map(Telemetry::of).collect();
        to_json(&RunReport {
            state,
            detail,
            complete_ticks,
            now_ns: report.now_ns,
            ticks: ticks.iter().map(TickLine::of).collect(),
            phase: report.phase,
            phases: &report.phases,
            done: report.progress.0,
            of: report.progress.1,
            pages_verified: report.counts.pages_verified,
            bad_pages: report.counts.bad_pages,
            log_files_replayed: report.counts.log_files_replayed,
            bad: &report.bad,
            databases: &report.databases,
            settled: report.settled,
            telemetry,
        })
    })
}
