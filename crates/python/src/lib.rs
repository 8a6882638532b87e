//! The Python module `assay._core`: the only crate that knows Python.

use pyo3::prelude::*;

mod content;
mod crash;
mod crash_states;
mod errors;
mod feeds;
mod finding;
mod histogram;
mod loading;
mod mailbox;
mod model;
mod oltp;
mod rows;
mod serving;
mod session;
mod statements;
mod summary;
mod trace;
mod verification;

/// Assay's load generator.
#[pymodule(gil_used = false)]
mod _core {
    use std::{collections::BTreeMap, os::fd::AsFd, path::PathBuf};

    use assay_device::{Identity, UringQueue};
    use assay_dss::RefreshFunction;
    use pyo3::prelude::*;

    use crate::errors::{raise, to_python};
    #[pymodule_export]
    use crate::{
        crash::CrashCheck,
        crash_states::{CrashMinimiser, CrashStates, CrashVolume},
        feeds::TraceFeeds,
        histogram::Histogram,
        loading::{ChunkRows, ColumnBuffer, RowsLoad},
        mailbox::MailboxRun,
        model::{ModelSession, ModelledArray, WarmCaches},
        oltp::OltpRun,
        serving::ServedArray,
        session::Session,
        statements::{StatementLog, StatementReplay},
        trace::BlockCapture,
        verification::Verification,
    };

    /// How the module was built.
    #[pyfunction]
    fn build_info() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([
            ("version", env!("CARGO_PKG_VERSION")),
            ("profile", env!("ASSAY_PROFILE")),
            ("rustc", env!("ASSAY_RUSTC")),
            ("target", env!("ASSAY_TARGET")),
            ("commit", env!("ASSAY_COMMIT")),
        ])
    }

    /// Gives an open file its size and reserves the space; errors name the path.
    #[pyfunction]
    fn allocate(py: Python<'_>, descriptor: i32, path: PathBuf, size_bytes: u64) -> PyResult<()> {
        let file = assay_device::duplicate(descriptor)?;
        py.detach(|| assay_device::allocate(&file, &path, size_bytes)).map_err(|error| to_python(&error))
    }

    /// Time of birth, generation and disk sequence of an open file or device, as far as they are known.
    #[pyfunction]
    fn file_identity(descriptor: i32) -> PyResult<(Option<i64>, Option<u32>, Option<u64>)> {
        let identity = Identity::of(assay_device::duplicate(descriptor)?.as_fd())?;
        Ok((identity.birth_ns, identity.generation, identity.disk_sequence))
    }

    /// First of some places in an open file, of a page each, whose bytes Assay did not write.
    #[pyfunction]
    fn first_foreign(py: Python<'_>, descriptor: i32, offsets: Vec<u64>) -> PyResult<Option<u64>> {
        let file = assay_device::duplicate(descriptor)?;
        Ok(py.detach(|| crate::content::first_foreign(&file, &offsets))?)
    }

    /// Bytes of memory that the expected state and the buffers of a plan of `Verification` need.
    #[pyfunction]
    fn verify_memory(plan_json: &str) -> PyResult<u64> {
        crate::verification::memory_bytes(plan_json)
    }

    /// Refuses a crash journal that cannot be read or is of another target.
    #[pyfunction]
    fn examine_journal(py: Python<'_>, plan_json: &str) -> PyResult<()> {
        let run: assay_integrity::RunPlan = crate::verification::parse(plan_json)?;
        let examined = py.detach(|| assay_integrity::examine_journal(&run));
        examined.map_err(|error| crate::verification::of_run_error(&error))
    }

    /// Data bytes that RAID sets hold on disks of `disk_bytes` usable bytes.
    #[pyfunction]
    fn array_usable_bytes(raid_json: &str, active_disks: u32, disk_bytes: u64) -> PyResult<u64> {
        crate::model::usable_bytes(raid_json, active_disks, disk_bytes)
    }

    /// How likely an array loses data: a request and its outcome as JSON.
    #[pyfunction]
    fn reliability(py: Python<'_>, request_json: &str) -> PyResult<String> {
        crate::model::reliability(py, request_json)
    }

    /// The named statements of a file of a transactional workload's SQL in a dialect, in order.
    #[pyfunction]
    fn oltp_sql(kind: &str, dialect: &str, file: &str) -> PyResult<Vec<(String, String)>> {
        crate::oltp::sql(kind, dialect, file)
    }

    /// Runs one user for `steps` steps on a clock of numbers: a transaction and the work that follows from it in each
    /// step.
    #[pyfunction]
    fn oltp_serial(py: Python<'_>, plan_json: &str, steps: u64, step_ns: u64) -> PyResult<crate::oltp::Counts> {
        crate::oltp::serial(py, plan_json, steps, step_ns)
    }

    /// Refuses scripts in pgbench's language that cannot run: the fields `scripts`, `defines` and `protocol` of a plan.
    #[pyfunction]
    fn check_scripts(plan_json: &str) -> PyResult<()> {
        crate::oltp::check_scripts(plan_json)
    }

    /// The statements of a file of SQL, in order.
    #[pyfunction]
    fn sql_statements(name: &str, text: &str) -> PyResult<Vec<String>> {
        crate::oltp::sql_statements(name, text)
    }

    /// Rows by table of a data set of a scale and a shape, as JSON text; where they are drawn, as many as are to be expected.
    #[pyfunction]
    #[pyo3(signature = (kind, scale, shape = "{}"))]
    fn row_counts(kind: &str, scale: u32, shape: &str) -> PyResult<BTreeMap<&'static str, u64>> {
        Ok(crate::loading::row_counts(kind, scale, shape)?.into_iter().collect())
    }

    /// The chunks of a data set of a scale and a shape, as JSON text, in the order in which they are loaded.
    #[pyfunction]
    #[pyo3(signature = (kind, scale, shape = "{}"))]
    fn chunks_of(kind: &str, scale: u32, shape: &str) -> PyResult<Vec<(&'static str, u32, u32)>> {
        crate::loading::chunks_of(kind, scale, shape)
    }

    /// The published answer to a query at scale 1.
    #[pyfunction]
    fn tpch_answer(query: i32) -> PyResult<String> {
        assay_dss::tpch_answer(query).ok_or_else(|| raise("UsageError", format!("query {query}: accepted: 1 to 22")))
    }

    /// Sequence, first and last key of the orders that a refresh function inserts (1) or deletes (2) in a set, counted from 1.
    #[pyfunction]
    #[pyo3(signature = (scale, set, function = 2))]
    fn tpch_refresh_keys(scale: u32, set: u32, function: u32) -> PyResult<(u32, i64, i64)> {
        let work = match function {
            1 => Some(RefreshFunction::Insert),
            2 => Some(RefreshFunction::Delete),
            _ => None,
        };
        let keys = work.and_then(|work| assay_dss::tpch_refresh_keys(scale, set, work));
        let refused = || raise("UsageError", format!("refresh function {function}, set {set}, scale {scale}: not one"));
        keys.map(|keys| (keys.sequence, keys.first, keys.last)).ok_or_else(refused)
    }

    /// Why io_uring cannot be used here, or None when it can.
    #[pyfunction]
    fn uring_refusal() -> Option<String> {
        UringQueue::available().err().map(|error| error.to_string())
    }
}
