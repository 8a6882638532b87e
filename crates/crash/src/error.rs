use std::io;

/// Why a log cannot be read, or a state cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The file is no log of writes, or one of another version.
    #[error("{0}: is no log of writes that this version of Assay reads; record it again")]
    NotALog(String),
    /// A name, a promise or a size that is not accepted.
    #[error("{what}: {value:?} is not accepted; accepted: {accepted}")]
    NotAccepted {
        /// Name of the value.
        what: &'static str,
        /// The value.
        value: String,
        /// Accepted values.
        accepted: &'static str,
    },
    /// A state that the log does not have.
    #[error("state {0}: the log has no such crash point or write; name a state of this run")]
    NoSuchState(String),
    /// The system refused.
    #[error("{what}: {error}")]
    Io {
        /// The request.
        what: String,
        /// Its answer.
        error: io::Error,
    },
}

impl CrashError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }
}
