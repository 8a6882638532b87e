use std::{sync::Mutex, sync::PoisonError, time::Duration};

use assay_device::{Session as DeviceSession, SessionPlan, Status};
use pyo3::prelude::*;

use crate::{
    errors::{raise, to_python},
    feeds::{self, TraceFeeds},
    summary::{self, Detail, Names, SessionReport, TickLine, to_json},
};

/// Workers at work on real volumes. Plans come in and figures go out as JSON text.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct Session {
    inner: Mutex<DeviceSession>,
    names: Names,
    interval_s: f64,
}

#[pymethods]
impl Session {
    /// Starts the plan's activities, with the traces that activities replay, in their order.
    #[new]
    #[pyo3(signature = (plan_json, traces=vec![]))]
    fn new(py: Python<'_>, plan_json: &str, traces: Vec<PyRef<'_, TraceFeeds>>) -> PyResult<Self> {
        let plan: SessionPlan =
            serde_json::from_str(plan_json).map_err(|error| raise("UsageError", format!("session plan: {error}")))?;
        let names = Names {
            activities: plan.activities.iter().map(|activity| (activity.name.clone(), activity.role.clone())).collect(),
            volumes: plan.volumes.iter().map(|volume| volume.name.clone()).collect(),
            replays: plan.activities.iter().any(|activity| activity.load.is_replay()),
        };
        let feeds = feeds::each(&traces);
        let session = py.detach(|| DeviceSession::start_fed(&plan, &feeds)).map_err(|error| to_python(&error))?;
        Ok(Self { inner: Mutex::new(session), names, interval_s: plan.interval_ns as f64 / 1e9 })
    }

    /// How the session stands and the ticks that became complete since the last poll.
    fn poll(&self, py: Python<'_>) -> String {
        py.detach(|| {
            self.with(|session| {
                let status = session.poll();
                self.report(session, &status)
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
                let standstills = session.standstills(window.begin_ns(), window.end_ns());
                let workers = session.workers_count();
                window.point(session.collector(), &self.names, workers, fullest_worker, standstills)
            })
        })
    }

    /// Stops issuing.
    fn stop(&self) {
        self.with(|session| session.stop());
    }

    /// Stops and waits for outstanding I/O, `timeout_s` at most; returns as `poll` does.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> String {
        py.detach(|| {
            self.with(|session| {
                let status = session.finish(Duration::from_secs_f64(timeout_s));
                self.report(session, &status)
            })
        })
    }

    /// I/Os that ended after the stop.
    fn drained(&self) -> String {
        self.with(|session| summary::drained(session.collector()))
    }

    /// Backend and features in force.
    fn engine(&self) -> String {
        self.with(|session| summary::engine(&session.engine()))
    }

    /// Cost of one reading of the clock.
    fn clock_cost_ns(&self) -> f64 {
        self.with(|session| session.clock_cost_ns())
    }
}

impl Session {
    fn with<T>(&self, action: impl FnOnce(&mut DeviceSession) -> T) -> T {
        action(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn report(&self, session: &mut DeviceSession, status: &Status) -> String {
        let ticks = session.collector().fresh_ticks();
        let (state, detail) = match status {
            Status::Running => ("running", None),
            Status::Ended { unfinished_count, oldest_unfinished_ns } => {
                let (unfinished, oldest_unfinished_ns) = (*unfinished_count, *oldest_unfinished_ns);
                ("ended", Some(Detail::Unfinished { unfinished, oldest_unfinished_ns }))
            }
            Status::NotAnswering(message) => ("not-answering", Some(Detail::Message(message.clone()))),
            Status::Failed(message) => ("failed", Some(Detail::Message(message.clone()))),
        };
        to_json(&SessionReport {
            state,
            detail,
            complete_ticks: session.collector().complete_ticks(),
            now_ns: session.now_ns(),
            ticks: ticks.iter().map(TickLine::of).collect(),
        })
    }
}
