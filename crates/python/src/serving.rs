use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_array_live::{Command, ServeError, ServePlan, Served};
use pyo3::prelude::*;

use crate::errors::raise;

/// A modelled array that is served, from its making until it is stopped or dropped.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct ServedArray {
    inner: Mutex<Served>,
}

impl ServedArray {
    fn locked(&self) -> MutexGuard<'_, Served> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn to_python(error: &ServeError) -> PyErr {
    let class = match error {
        ServeError::Refused(_) => "UsageError",
        ServeError::Host { .. } => "IoFailed",
    };
    raise(class, error.to_string())
}

#[pymethods]
impl ServedArray {
    /// Opens the store of a plan, shows its volumes and serves them.
    #[new]
    fn new(py: Python<'_>, plan_json: &str) -> PyResult<Self> {
        let plan: ServePlan =
            serde_json::from_str(plan_json).map_err(|error| raise("UsageError", format!("array: {error}")))?;
        let served = py.detach(|| Served::start(&plan)).map_err(|error| to_python(&error))?;
        Ok(Self { inner: Mutex::new(served) })
    }

    /// Carries out a command and returns its answer, both as JSON.
    fn ask(&self, py: Python<'_>, command_json: &str) -> PyResult<String> {
        let command: Command =
            serde_json::from_str(command_json).map_err(|error| raise("UsageError", format!("array: {error}")))?;
        let answer = py.detach(|| self.locked().ask(command)).map_err(|error| to_python(&error))?;
        Ok(answer.to_string())
    }

    /// Whether it is served still.
    fn is_running(&self) -> bool {
        self.locked().is_running()
    }

    /// Takes the volumes away and closes the store.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.locked().stop()).map_err(|error| to_python(&error))
    }
}
