use assay_device::DeviceError;
use assay_load::LatencyHistogram;
use pyo3::prelude::*;

use crate::{errors::to_python, summary::to_base64};

/// A histogram of latencies, 1 ns to 1 h within 0.1 %.
#[pyclass(module = "assay._core")]
#[derive(Default)]
pub(crate) struct Histogram {
    inner: LatencyHistogram,
}

#[pymethods]
impl Histogram {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[pyo3(signature = (value_ns, count=1))]
    fn record(&mut self, value_ns: u64, count: u64) {
        self.inner.record_n(value_ns, count);
    }

    fn merge(&mut self, other: &Self) {
        self.inner.merge(&other.inner);
    }

    #[getter]
    fn count(&self) -> u64 {
        self.inner.count()
    }

    #[getter]
    fn min(&self) -> u64 {
        self.inner.min_ns()
    }

    #[getter]
    fn max(&self) -> u64 {
        self.inner.max_ns()
    }

    #[getter]
    fn mean(&self) -> f64 {
        self.inner.mean_ns().unwrap_or(f64::NAN)
    }

    fn percentile(&self, percentile: f64) -> u64 {
        self.inner.percentile_ns(percentile)
    }

    fn bins(&self) -> Vec<(u64, u64)> {
        self.inner.bins()
    }

    fn to_base64(&self) -> String {
        to_base64(&self.inner)
    }

    #[staticmethod]
    fn from_base64(text: &str) -> PyResult<Self> {
        let inner = crate::summary::from_base64(text).map_err(|error| to_python(&DeviceError::Load(error)))?;
        Ok(Self { inner })
    }
}
