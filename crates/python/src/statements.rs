use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use assay_loading::{DatabaseError, parse};
use assay_oltp::{LogIntake, StatementReplay as Replay, StoredLog};
use pyo3::prelude::*;

use crate::{
    loading::{duration, locked, to_python},
    oltp::{figures, run_report},
    summary::to_json,
};

enum Log {
    Reading(Box<LogIntake>),
    Ready(Arc<StoredLog>),
    /// It could not be sorted.
    Lost,
}

fn not_ready() -> PyErr {
    to_python(&DatabaseError::Other("the log was not read to its end".into()))
}

/// Logs of statements, read one after the other and sorted by sessions.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct StatementLog(Mutex<Log>);

#[pymethods]
impl StatementLog {
    /// Begins with no log. Options are JSON text: `writes`, `prefix`, `database` and `folder`.
    #[new]
    fn new(options_json: &str) -> PyResult<Self> {
        let options = parse(options_json).map_err(|error| to_python(&error))?;
        Ok(Self(Mutex::new(Log::Reading(Box::new(LogIntake::new(options))))))
    }

    /// Opens the next log; gives its format.
    fn open(&self, py: Python<'_>, path: PathBuf) -> PyResult<&'static str> {
        py.detach(|| match &mut *locked(&self.0) {
            Log::Reading(intake) => intake.open(&path).map_err(|error| to_python(&error)),
            Log::Ready(_) | Log::Lost => Err(not_ready()),
        })
    }

    /// Reads about as many bytes of the log that was opened last; false at its end.
    fn read_some(&self, py: Python<'_>, bytes: u64) -> PyResult<bool> {
        py.detach(|| match &mut *locked(&self.0) {
            Log::Reading(intake) => intake.read_some(bytes).map_err(|error| to_python(&error)),
            Log::Ready(_) | Log::Lost => Err(not_ready()),
        })
    }

    /// Sorts the statements read so far; gives the figures of the log as JSON text.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut log = locked(&self.0);
            let Log::Reading(intake) = std::mem::replace(&mut *log, Log::Lost) else { return Err(not_ready()) };
            let stored = Arc::new(intake.finish().map_err(|error| to_python(&error))?);
            let survey = to_json(&stored.survey);
            *log = Log::Ready(stored);
            Ok(survey)
        })
    }
}

/// The sessions of a log at work on a database.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct StatementReplay(Mutex<Replay>);

#[pymethods]
impl StatementReplay {
    /// Starts threads that run the sessions of a log.
    #[new]
    fn new(py: Python<'_>, log: &StatementLog, plan_json: &str) -> PyResult<Self> {
        let stored = match &*locked(&log.0) {
            Log::Ready(stored) => stored.clone(),
            Log::Reading(_) | Log::Lost => return Err(not_ready()),
        };
        let replay = py.detach(|| Replay::start(stored, plan_json)).map_err(|error| to_python(&error))?;
        Ok(Self(Mutex::new(replay)))
    }

    /// How the replay stands and the ticks that became complete since the last poll.
    fn poll(&self, py: Python<'_>) -> String {
        py.detach(|| run_report(&locked(&self.0).run.poll()))
    }

    /// Forgets the ticks before this one.
    fn measure_from(&self, py: Python<'_>, tick: u64) {
        py.detach(|| locked(&self.0).run.measure_from(tick));
    }

    /// Counts of the complete ticks `from_tick..to_tick`.
    fn point(&self, py: Python<'_>, from_tick: u64, to_tick: u64) -> String {
        py.detach(|| figures(&locked(&self.0).run, from_tick, to_tick))
    }

    /// No acknowledged transactions: a replay keeps none.
    fn acknowledged(&self, py: Python<'_>) -> String {
        py.detach(|| locked(&self.0).run.acknowledged().to_string())
    }

    /// Reports the outcomes of the statements as JSON text.
    fn told(&self, py: Python<'_>) -> String {
        py.detach(|| to_json(&locked(&self.0).told()))
    }

    /// Lets no more statements begin.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| locked(&self.0).run.stop());
    }

    /// Stops, waits for present statements, `timeout_s` at most, and returns as `poll` does.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> PyResult<String> {
        let within = duration(timeout_s)?;
        Ok(py.detach(|| run_report(&locked(&self.0).run.finish(within))))
    }
}
