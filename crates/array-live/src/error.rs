use std::{io, path::Path};

use assay_array_model::ArrayError;
use thiserror::Error;

/// Why an array cannot be served, or a command to it not be carried out.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The request contradicts itself, the array or the store.
    #[error("{0}")]
    Refused(String),
    /// A file, a mount or a socket of the host failed.
    #[error("{what}: {error}")]
    Host { what: String, error: io::Error },
}

impl ServeError {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    pub(crate) fn host(what: impl Into<String>, error: io::Error) -> Self {
        Self::Host { what: what.into(), error }
    }

    pub(crate) fn at(path: &Path, error: io::Error) -> Self {
        Self::host(path.display().to_string(), error)
    }
}

impl From<ArrayError> for ServeError {
    fn from(error: ArrayError) -> Self {
        Self::Refused(format!("model: {error}"))
    }
}

/// Why bytes could not be read or written.
#[derive(Debug, Error)]
pub enum StoreFault {
    /// More disks are gone than the policy makes up for.
    #[error("the bytes are lost")]
    Lost,
    /// The file system under the store has no room, or the disks of the array have none.
    #[error("the store has no room left")]
    Full,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl StoreFault {
    /// Failure of an I/O, as the user of the volume sees it.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Lost => libc::EIO,
            Self::Full => libc::ENOSPC,
            Self::Io(error) => match error.raw_os_error() {
                Some(libc::ENOSPC) => libc::ENOSPC,
                _ => libc::EIO,
            },
        }
    }
}
