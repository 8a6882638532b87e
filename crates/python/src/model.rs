use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_array_model::{CloudPlan, HostFlashPlan, Model, ModelPlan, ModelSession as ArraySession, SessionPlan};
use assay_load::Standstills;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    errors::raise,
    feeds::{self, TraceFeeds},
    rows::Telemetry,
    summary::{self, Detail, Names, SessionReport, TickLine, to_json},
};

/// Caches that were warmed once, for the points of a search and for arrays with the same warmth.
#[pyclass(module = "assay._core", frozen)]
#[derive(Clone, Default)]
pub(crate) struct WarmCaches {
    held: Arc<Mutex<Option<Warm>>>,
}

#[derive(Clone)]
struct Warm {
    warmth: String,
    accesses: String,
    array: Arc<Model>,
}

#[pymethods]
impl WarmCaches {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

/// A modelled array. Sessions run on a fresh copy of it, or go on with the state that the last one left.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct ModelledArray {
    fresh: Model,
    seed: u64,
    warmth: String,
    warm: WarmCaches,
    live: Live,
}

type Live = Arc<Mutex<State>>;

/// The array that sessions go on with.
enum State {
    /// None has yet; whether scattered blocks shall be written again is kept for the first.
    Fresh {
        read_realloc: Option<bool>,
    },
    Idle(Box<Model>),
    InUse,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn usage(message: impl std::fmt::Display) -> PyErr {
    raise("UsageError", message.to_string())
}

#[pymethods]
impl ModelledArray {
    /// Builds the array of a plan, with the caches of `warm` if they fit.
    #[new]
    #[pyo3(signature = (plan_json, warm=None))]
    fn new(py: Python<'_>, plan_json: &str, warm: Option<&WarmCaches>) -> PyResult<Self> {
        let plan = plan_of(plan_json).map_err(|error| usage(format!("model: {error}")))?;
        let fresh = py.detach(|| Model::new(&plan)).map_err(|error| usage(format!("model: {error}")))?;
        Ok(Self {
            fresh,
            seed: plan.seed(),
            warmth: plan.warmth(),
            warm: warm.cloned().unwrap_or_default(),
            live: Arc::new(Mutex::new(State::Fresh { read_realloc: None })),
        })
    }

    /// Starts activities on a fresh array, or with `goes_on` on the one that the last session that went on left; with the
    /// traces that activities replay, in their order.
    #[pyo3(signature = (plan_json, goes_on=false, traces=vec![]))]
    fn session(
        &self,
        py: Python<'_>,
        plan_json: &str,
        goes_on: bool,
        traces: Vec<PyRef<'_, TraceFeeds>>,
    ) -> PyResult<ModelSession> {
        let feeds = feeds::each(&traces);
        let plan = session_plan_of(plan_json)?;
        let names = Names {
            activities: plan.load.activities.iter().map(|each| (each.name.clone(), each.role.clone())).collect(),
            volumes: plan.volumes,
            replays: plan.load.activities.iter().any(|each| each.load.is_replay()),
        };
        plan.load.validate(&self.fresh).map_err(usage)?;
        let state = if goes_on {
            std::mem::replace(&mut *locked(&self.live), State::InUse)
        } else {
            State::Fresh { read_realloc: None }
        };
        let started = py.detach(|| {
            let model = match state {
                State::InUse => return Err("the array is in use by another session".to_owned()),
                // A cache that was in use is as warm as it should be.
                State::Idle(model) => *model,
                State::Fresh { read_realloc } => {
                    let mut model = self.fresh_or_warmed(&plan.load);
                    if let Some(on) = read_realloc {
                        model.set_read_realloc(on);
                    }
                    model
                }
            };
            let plan = SessionPlan { warm: false, ..plan.load.clone() };
            ArraySession::start_fed(model, &plan, &feeds).map_err(|error| error.to_string())
        });
        let session = started.map_err(usage)?;
        Ok(ModelSession {
            inner: Mutex::new(Some(session)),
            names,
            interval_s: plan.load.interval_ns as f64 / 1e9,
            live: goes_on.then(|| Arc::clone(&self.live)),
        })
    }

    /// Bytes per second of a load on a fresh array over `ticks` ticks, and nothing else of it: what an error band asks many
    /// times. The warm-up goes on until the caches rest, by `settling_ticks` at most.
    fn bytes_per_s(
        &self,
        py: Python<'_>,
        plan_json: &str,
        warmup_ticks: u64,
        settling_ticks: u64,
        ticks: u64,
    ) -> PyResult<f64> {
        let load = session_plan_of(plan_json)?.load;
        load.validate(&self.fresh).map_err(usage)?;
        let started = py.detach(|| {
            let session =
                ArraySession::start(self.fresh_or_warmed(&load), &SessionPlan { warm: false, ..load.clone() })?;
            Ok::<_, assay_load::LoadError>(session.bytes_per_s(warmup_ticks, settling_ticks, ticks))
        });
        started.map_err(usage)
    }

    /// Whether blocks found scattered are written again in one piece, from now on.
    fn set_read_realloc(&self, on: bool) -> PyResult<()> {
        match &mut *locked(&self.live) {
            State::Fresh { read_realloc } => *read_realloc = Some(on),
            State::Idle(model) => model.set_read_realloc(on),
            State::InUse => return Err(usage("the array is in use by a session")),
        }
        Ok(())
    }
}

impl ModelledArray {
    /// A copy for a session of its own, its caches warm where the plan asks for it.
    pub(crate) fn fresh_or_warmed(&self, plan: &SessionPlan) -> Model {
        if plan.warm { self.warmed(plan) } else { self.fresh.clone() }
    }

    /// A copy with warm caches. The array's seed draws what warms them, so that repeats begin alike.
    fn warmed(&self, plan: &SessionPlan) -> Model {
        let accesses: Vec<_> = plan.activities.iter().map(|each| (&each.access, &each.volumes)).collect();
        let accesses = format!("{accesses:?}");
        let mut model = self.fresh.clone();
        let mut warm = || assay_array_model::warm(&mut model, &SessionPlan { seed: self.seed, ..plan.clone() });
        let mut held = locked(&self.warm.held);
        match &*held {
            Some(known) if known.warmth == self.warmth && known.accesses == accesses => {
                let array = Arc::clone(&known.array);
                drop(held);
                model.take_caches(&array);
            }
            // The array that came first is asked most: others are its variations.
            Some(known) if known.warmth != self.warmth => {
                drop(held);
                warm();
            }
            _ => {
                warm();
                let array = Arc::new(model.clone());
                *held = Some(Warm { warmth: self.warmth.clone(), accesses, array });
            }
        }
        model
    }
}

/// The plan of an array: `{"host_flash": ...}` has flash in its hosts, `{"cloud": ...}` has volumes of a cloud, anything else is
/// a group of members.
fn plan_of(text: &str) -> Result<ModelPlan, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Cloud {
        cloud: CloudPlan,
    }
    if text.contains("\"cloud\"") {
        return serde_json::from_str(text).map(|Cloud { cloud }| ModelPlan::Cloud(cloud));
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tagged {
        host_flash: Box<HostFlashPlan>,
    }
    if text.contains("\"host_flash\"") {
        return serde_json::from_str(text).map(|Tagged { host_flash }| ModelPlan::HostFlash(host_flash));
    }
    serde_json::from_str(text).map(ModelPlan::Group)
}

fn session_plan_of(text: &str) -> PyResult<NamedPlan> {
    serde_json::from_str(text).map_err(|error| usage(format!("session plan: {error}")))
}

/// A session's plan with the volumes' names.
#[derive(Deserialize)]
struct NamedPlan {
    volumes: Vec<String>,
    load: SessionPlan,
}

/// Workers at work on a modelled array, with the methods of `Session`. A poll lets one tick pass.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct ModelSession {
    inner: Mutex<Option<ArraySession>>,
    names: Names,
    interval_s: f64,
    /// Where the array is left for the next session that goes on.
    live: Option<Live>,
}

#[pymethods]
impl ModelSession {
    /// Lets ticks pass until all workers have ended; how the session stands, and the ticks and telemetry since the last poll.
    #[pyo3(signature = (ticks=1))]
    fn poll(&self, py: Python<'_>, ticks: u64) -> String {
        py.detach(|| {
            self.with(|session| {
                for _ in 0..ticks {
                    if session.unfinished().is_some() {
                        break;
                    }
                    session.run_ticks(1);
                }
                report(session)
            })
        })
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
                let workers = session.workers_count();
                window.point(session.collector(), &self.names, workers, fullest_worker, Standstills::default())
            })
        })
    }

    /// Stops issuing.
    fn stop(&self) {
        self.with(|session| session.stop());
    }

    /// Stops and lets outstanding I/O end; returns as `poll` does. Dropping the session leaves the array to the next.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> String {
        let _ = timeout_s;
        py.detach(|| {
            self.with(|session| {
                session.finish();
                report(session)
            })
        })
    }

    /// I/Os that ended after the stop.
    fn drained(&self) -> String {
        self.with(|session| summary::drained(session.collector()))
    }

    /// Backend and features of a model.
    fn engine(&self) -> String {
        summary::no_engine(Some("model"))
    }

    /// A virtual clock costs nothing.
    fn clock_cost_ns(&self) -> Option<f64> {
        None
    }
}

impl ModelSession {
    fn with<T>(&self, action: impl FnOnce(&mut ArraySession) -> T) -> T {
        action(locked(&self.inner).as_mut().expect("a session lives as long as its object"))
    }
}

impl Drop for ModelSession {
    fn drop(&mut self) {
        if let (Some(live), Some(session)) = (&self.live, locked(&self.inner).take()) {
            *locked(live) = State::Idle(Box::new(session.into_model()));
        }
    }
}

/// State of a session: the report of every session, and telemetry.
#[derive(Serialize)]
struct ModelReport {
    #[serde(flatten)]
    session: SessionReport,
    settled: bool,
    telemetry: Vec<Telemetry>,
}

fn report(session: &mut ArraySession) -> String {
    let ticks = session.collector().fresh_ticks();
    let (state, detail) = match session.unfinished() {
        None => ("running", None),
        Some((unfinished, oldest_unfinished_ns)) => {
            ("ended", Some(Detail::Unfinished { unfinished, oldest_unfinished_ns }))
        }
    };
    to_json(&ModelReport {
        session: SessionReport {
            state,
            detail,
            complete_ticks: session.collector().complete_ticks(),
            now_ns: session.now_ns(),
            ticks: ticks.iter().map(TickLine::of).collect(),
        },
        settled: session.settled(),
        telemetry: session.take_readings().iter().map(Telemetry::of).collect(),
    })
}

/// Data bytes that a member's RAID sets hold on disks of `disk_bytes` usable bytes.
pub(crate) fn usable_bytes(raid_json: &str, active_disks: u32, disk_bytes: u64) -> PyResult<u64> {
    let raid = serde_json::from_str(raid_json).map_err(|error| usage(format!("raid: {error}")))?;
    let geometry = assay_array_model::Geometry::new(&raid, active_disks).map_err(usage)?;
    Ok(geometry.usable_bytes(disk_bytes))
}

/// How likely an array loses data.
pub(crate) fn reliability(py: Python<'_>, request_json: &str) -> PyResult<String> {
    let request = serde_json::from_str(request_json).map_err(|error| usage(format!("reliability: {error}")))?;
    let outcome = py.detach(|| assay_array_model::reliability::assess(&request)).map_err(usage)?;
    serde_json::to_string(&outcome).map_err(usage)
}
