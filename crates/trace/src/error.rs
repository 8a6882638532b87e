use std::io;

use thiserror::Error;

/// Failures of a capture.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The kernel states a layout that has no sense.
    #[error("the kernel's layout of {what} is not understood")]
    Layout { what: &'static str },
    /// The ring of a processor cannot be read.
    #[error("cannot read the trace of a processor: {0}")]
    Read(#[from] io::Error),
}
