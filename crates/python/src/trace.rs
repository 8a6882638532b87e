//! A capture of block I/O for Python.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use assay_trace::{Capture, Layout, TraceError};
use pyo3::prelude::*;

use crate::{
    errors::raise,
    loading::{ColumnBuffer, locked},
};

/// Device, direction, counts by bucket of times in the queue and in the device, sums and longest of both.
type DeviceTimes = (u16, &'static str, [Vec<u64>; 2], [u64; 2], [u64; 2]);

/// Reads the kernel's trace of block I/O from open `trace_pipe_raw` files.
#[pyclass(module = "assay._core", frozen)]
pub(crate) struct BlockCapture(Mutex<Capture>);

#[pymethods]
impl BlockCapture {
    /// A capture of these rings, by the layout of their pages and events as JSON text; with `keeps_ios` it keeps the I/Os,
    /// without it counts their times.
    #[new]
    #[pyo3(signature = (rings, layout_json, *, origin_ns, keeps_ios))]
    fn new(rings: Vec<i32>, layout_json: &str, origin_ns: u64, keeps_ios: bool) -> PyResult<Self> {
        let layout: Layout = serde_json::from_str(layout_json)
            .map_err(|error| raise("UsageError", format!("layout of the kernel's trace: {error}")))?;
        let rings: Result<Vec<_>, _> = rings.into_iter().map(assay_device::duplicate).collect();
        Ok(Self(Mutex::new(Capture::new(rings?, layout, origin_ns, keeps_ios).map_err(to_python)?)))
    }

    /// Reads for a time, or until there are enough I/Os for a batch.
    fn run(&self, py: Python<'_>, duration_ns: u64) -> PyResult<()> {
        let ends_at = Instant::now() + Duration::from_nanos(duration_ns);
        py.detach(|| {
            loop {
                let mut capture = locked(&self.0);
                let wait = capture.look()?;
                let left = ends_at.saturating_duration_since(Instant::now());
                if left.is_zero() || capture.is_full() {
                    return Ok(());
                }
                drop(capture);
                thread::sleep(wait.min(left));
            }
        })
        .map_err(to_python)
    }

    /// Reads the rest once the kernel has stopped tracing.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| locked(&self.0).finish()).map_err(to_python)
    }

    /// Closes the rings.
    fn close(&self) {
        locked(&self.0).close();
    }

    /// The columns of the I/Os since the last call: times as asked, in the queue, in the device, places and sizes of 64 bits;
    /// flags, devices and processes of 32.
    fn columns(&self) -> ([ColumnBuffer; 5], [ColumnBuffer; 3]) {
        let found = locked(&self.0).columns();
        let long = [found.t_ns, found.queue_ns, found.device_ns, found.place_bytes, found.size_bytes];
        (long.map(ColumnBuffer::of_long), [found.flags, found.device, found.process].map(ColumnBuffer::of_short))
    }

    /// Names of processes by their numbers; the first is an unknown one.
    fn processes(&self) -> Vec<String> {
        locked(&self.0).processes().to_vec()
    }

    /// Times of the I/Os that completed since the last call, by device and direction.
    fn latencies(&self) -> Vec<DeviceTimes> {
        let found = locked(&self.0).latencies();
        let told = found.0.into_iter().map(|((device, direction), times)| {
            let counts = [times.queue.to_vec(), times.device.to_vec()];
            let sums = [times.queue_sum_ns, times.device_sum_ns];
            (device, direction, counts, sums, [times.queue_max_ns, times.device_max_ns])
        });
        told.collect()
    }

    /// Counts of events, and of I/Os that could not be joined.
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let counts = locked(&self.0).counts();
        BTreeMap::from([
            ("events", counts.events),
            ("lost", counts.lost),
            ("damaged_pages", counts.damaged_pages),
            ("unmatched", counts.unmatched),
            ("unfinished", counts.unfinished),
            ("held", counts.held),
        ])
    }
}

fn to_python(error: TraceError) -> PyErr {
    let class = match error {
        TraceError::Layout { .. } => "NotSupported",
        TraceError::Read(_) => "IoFailed",
    };
    raise(class, error.to_string())
}
