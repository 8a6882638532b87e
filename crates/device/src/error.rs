use std::io;

use assay_load::{LoadError, QueueError};
use thiserror::Error;

/// Errors of real storage. Each variant maps to one Python exception.
#[derive(Debug, Error)]
pub enum DeviceError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{path}: cannot be opened: {source}")]
    Open { path: String, source: io::Error },
    #[error("{path}: no space for {needed_bytes} bytes")]
    NoSpace { path: String, needed_bytes: u64 },
    #[error("{what}: not supported here: {why}")]
    NotSupported { what: String, why: String },
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("{0}")]
    NotAnswering(String),
}
