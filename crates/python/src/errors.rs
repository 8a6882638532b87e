use assay_device::DeviceError;
use assay_load::LoadError;
use pyo3::{prelude::*, sync::PyOnceLock, types::PyModule};

/// The class of `assay.base.errors` for each Rust variant, one to one.
fn class_name(error: &DeviceError) -> &'static str {
    match error {
        DeviceError::Load(LoadError::InvalidValue { .. } | LoadError::InvalidHistogram(_)) => "UsageError",
        DeviceError::Open { .. } => "OpenFailed",
        DeviceError::NoSpace { .. } => "OutOfSpace",
        DeviceError::NotSupported { .. } => "NotSupported",
        DeviceError::Io { .. } | DeviceError::Queue(_) => "IoFailed",
        DeviceError::NotAnswering(_) => "NotAnswering",
    }
}

/// The Python exception for a Rust error.
pub(crate) fn to_python(error: &DeviceError) -> PyErr {
    raise(class_name(error), error.to_string())
}

pub(crate) fn raise(class: &str, message: String) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Python::attach(|py| {
        let module = MODULE.get_or_try_init(py, || py.import("assay.base.errors").map(Bound::unbind));
        match module.and_then(|module| module.bind(py).getattr(class)?.call1((message,))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    })
}
