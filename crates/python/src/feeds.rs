use assay_load::{Feed, Feeds, TracedIo, TracedOp};
use pyo3::{prelude::*, types::PyBytes};

use crate::errors::raise;

/// Bytes of an I/O as Python hands it over: time, place, length and link as numbers of 8, 8, 4 and 4 bytes, the operation
/// in one, and seven unused.
const ROW_BYTES: usize = 32;

/// I/Os of one trace on their way to the workers that replay it.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct TraceFeeds {
    feeds: Feeds,
}

#[pymethods]
impl TraceFeeds {
    /// Feeds of a worker for each volume, by the volume's end.
    #[new]
    fn new(end_bytes: Vec<u64>, longest_bytes: u32) -> Self {
        Self { feeds: Feeds::new(end_bytes, longest_bytes) }
    }

    /// Adds the next I/Os of each worker and waits until more are wanted; returns whether any still are.
    fn push(&self, py: Python<'_>, rows: Vec<Bound<'_, PyBytes>>, fed_until_ns: u64) -> PyResult<bool> {
        let chunks: Result<Vec<_>, _> =
            rows.iter().map(|rows| rows.as_bytes().chunks(ROW_BYTES).map(io_of).collect()).collect();
        let chunks = chunks.map_err(|reason: &str| raise("UsageError", reason.to_owned()))?;
        py.detach(|| self.feeds.push(chunks, fed_until_ns)).map_err(|error| raise("UsageError", error.to_string()))
    }

    /// Ends the feeding.
    fn close(&self) {
        self.feeds.close();
    }
}

/// The feeds of all traces, in the order of the workers.
pub(crate) fn each(traces: &[PyRef<'_, TraceFeeds>]) -> Vec<Feed> {
    traces.iter().flat_map(|trace| trace.feeds.each()).collect()
}

fn io_of(row: &[u8]) -> Result<TracedIo, &'static str> {
    let row: &[u8; ROW_BYTES] = row.try_into().map_err(|_| "an I/O of a trace is not whole")?;
    let number =
        |at: usize, bytes: usize| row[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let op = match row[24] {
        0 => TracedOp::Read,
        1 => TracedOp::Write,
        2 => TracedOp::DurableWrite,
        3 => TracedOp::Flush,
        _ => return Err("an I/O of a trace has no known operation"),
    };
    Ok(TracedIo {
        at_ns: number(0, 8),
        offset_bytes: number(8, 8),
        length_bytes: number(16, 4) as u32,
        link: number(20, 4) as u32,
        op,
    })
}
