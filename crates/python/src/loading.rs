use std::{
    ffi::{c_int, c_void},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_loading::{
    Batch, ChunkKey, Column, ColumnBatches, DatabaseError, Load, LoadState, LoadStatus, Registered, Values, named_by,
};
use pyo3::{ffi, prelude::*};
use serde::Serialize;

use crate::{errors::raise, summary::to_json};

/// Most rows of a batch: offsets of texts have 31 bits.
const BATCH_ROWS_MAX: u64 = 1_000_000;

/// The data sets of all workloads. A plan that names none is for the first.
fn datasets() -> Vec<Registered> {
    assay_oltp::DATASETS.into_iter().chain(assay_dss::DATASETS).collect()
}

fn dataset(kind: &str) -> PyResult<Registered> {
    let found = datasets().into_iter().find(|known| known.kind == kind);
    found.ok_or_else(|| raise("UsageError", format!("{kind:?}: no data set")))
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    let refused = || raise("UsageError", format!("timeout_s {seconds}: accepted: 0 and above"));
    Duration::try_from_secs_f64(seconds).map_err(|_| refused())
}

/// The Python exception for an error, one class for each variant.
pub(crate) fn to_python(error: &DatabaseError) -> PyErr {
    let class = match error {
        DatabaseError::InvalidPlan(_) => "UsageError",
        DatabaseError::Connect(_) => "OpenFailed",
        DatabaseError::NoSpace(_) => "OutOfSpace",
        DatabaseError::Lost(_) => "NotAnswering",
        DatabaseError::Other(_) => "IoFailed",
    };
    raise(class, error.to_string())
}

/// Why a load or a run cannot go on.
#[derive(Serialize)]
pub(crate) struct Failed {
    kind: &'static str,
    text: String,
}

impl Failed {
    pub(crate) fn of(error: &DatabaseError) -> Self {
        Self { kind: error.kind(), text: error.to_string() }
    }
}

/// Rows being loaded in bulk into tables that are there. Plans come in and figures go out as JSON text.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct RowsLoad(Mutex<Load>);

#[pymethods]
impl RowsLoad {
    /// Starts loading.
    #[new]
    fn new(py: Python<'_>, plan_json: &str) -> PyResult<Self> {
        let start = || (named_by(plan_json, &datasets(), |known| known.kind)?.start_load)(plan_json);
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

    /// Stops, waits for the present chunks, `timeout_s` at most, and returns as `poll` does.
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> PyResult<String> {
        let within = duration(timeout_s)?;
        Ok(py.detach(|| load_report(&locked(&self.0).finish(within))))
    }
}

#[derive(Serialize)]
struct LoadReport {
    state: &'static str,
    error: Option<Failed>,
    rows: u64,
    bytes: u64,
    rows_total: u64,
    chunks_done: u64,
    chunks_total: u64,
    chunks_skipped: u64,
    elapsed_ns: u64,
    cpu_ns: u64,
    reconnects: u64,
}

fn load_report(status: &LoadStatus) -> String {
    let state = match status.state {
        LoadState::Running => "running",
        LoadState::Done => "done",
        LoadState::Stopped => "stopped",
        LoadState::Failed => "failed",
    };
    to_json(&LoadReport {
        state,
        error: status.error.as_ref().map(Failed::of),
        rows: status.rows,
        bytes: status.bytes,
        rows_total: status.rows_total,
        chunks_done: status.chunks_done,
        chunks_total: status.chunks_total,
        chunks_skipped: status.chunks_skipped,
        elapsed_ns: status.elapsed_ns,
        cpu_ns: status.cpu_ns,
        reconnects: status.reconnects,
    })
}

/// The rows of a chunk as columns.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct ChunkRows(Mutex<Box<dyn ColumnBatches>>);

/// Name, type, digits after the point, values, offsets of texts, and a bit for each row that is not null.
type PythonColumn = (&'static str, &'static str, u8, ColumnBuffer, Option<ColumnBuffer>, Option<ColumnBuffer>);

#[pymethods]
impl ChunkRows {
    /// The rows of a chunk, by the kind of its data set, scale, seed and key.
    #[new]
    fn new(py: Python<'_>, kind: &str, scale: u32, seed: u64, chunk: ChunkKey) -> PyResult<Self> {
        let dataset = dataset(kind)?;
        let opened = py.detach(|| (dataset.columns)(scale, "{}", seed, &chunk)).map_err(|error| to_python(&error))?;
        Ok(Self(Mutex::new(opened)))
    }

    /// Table, count and columns of the next rows, which are of one table; None at the end.
    fn next_batch(&self, py: Python<'_>, rows_max: u64) -> PyResult<Option<(&'static str, u64, Vec<PythonColumn>)>> {
        if !(1..=BATCH_ROWS_MAX).contains(&rows_max) {
            return Err(raise("UsageError", format!("rows_max {rows_max}: accepted: 1 to {BATCH_ROWS_MAX}")));
        }
        let batch = py.detach(|| locked(&self.0).next_batch(rows_max));
        let of_batch =
            |Batch { table, rows, columns }| (table, rows, columns.into_iter().map(of_column).collect::<Vec<_>>());
        Ok(batch.map(of_batch))
    }
}

fn of_column(Column { name, values, valid }: Column) -> PythonColumn {
    let valid = valid.map(|bits| ColumnBuffer(Memory::Bytes(bits)));
    let (kind, digits, values, offsets) = match values {
        Values::Int(values) => ("int64", 0, Memory::Long(values), None),
        Values::Decimal { scale, digits } => ("decimal64", scale, Memory::Long(digits), None),
        Values::Text { offsets, bytes } => ("string", 0, Memory::Bytes(bytes), Some(Memory::Short(offsets))),
        Values::Date(days) => ("date32", 0, Memory::Short(days), None),
        Values::Time(times) => ("timestamp", 0, Memory::Long(times), None),
    };
    (name, kind, digits, ColumnBuffer(values), offsets.map(ColumnBuffer), valid)
}

enum Memory {
    Bytes(Vec<u8>),
    Short(Vec<i32>),
    Long(Vec<i64>),
}

/// Memory of a column, read through Python's buffer protocol.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct ColumnBuffer(Memory);

impl ColumnBuffer {
    pub(crate) fn of_short(values: Vec<i32>) -> Self {
        Self(Memory::Short(values))
    }

    pub(crate) fn of_long(values: Vec<i64>) -> Self {
        Self(Memory::Long(values))
    }

    fn place(&self) -> (*const c_void, usize) {
        match &self.0 {
            Memory::Bytes(values) => (values.as_ptr().cast(), size_of_val(values.as_slice())),
            Memory::Short(values) => (values.as_ptr().cast(), size_of_val(values.as_slice())),
            Memory::Long(values) => (values.as_ptr().cast(), size_of_val(values.as_slice())),
        }
    }
}

#[pymethods]
impl ColumnBuffer {
    /// # Safety
    /// Python calls it with a view that it may fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (start, bytes) = slf.get().place();
        // SAFETY: the view keeps a reference to this object, which is frozen and owns the memory until it is dropped; a read-only
        // view is asked for, so that nothing writes to it.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start.cast_mut(), bytes as ffi::Py_ssize_t, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// Rows of each table of a database.
pub(crate) fn row_counts(kind: &str, scale: u32, shape: &str) -> PyResult<Vec<(&'static str, u64)>> {
    (dataset(kind)?.row_counts)(scale, shape).map_err(|error| to_python(&error))
}

/// The chunks of a database in the order in which they are loaded.
pub(crate) fn chunks_of(kind: &str, scale: u32, shape: &str) -> PyResult<Vec<(&'static str, u32, u32)>> {
    (dataset(kind)?.chunks)(scale, shape).map_err(|error| to_python(&error))
}
