use thiserror::Error;

/// Why loading or running cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OltpError {
    #[error("{0}")]
    InvalidPlan(String),
    #[error("{0}")]
    Connect(String),
    #[error("{0}")]
    NoSpace(String),
    /// The server went away and did not come back in time.
    #[error("{0}")]
    Lost(String),
    #[error("{0}")]
    Database(String),
}

impl OltpError {
    /// The kind as results name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidPlan(_) => "usage",
            Self::Connect(_) => "open",
            Self::NoSpace(_) => "space",
            Self::Lost(_) => "lost",
            Self::Database(_) => "other",
        }
    }
}

/// What an error of the database means for the transaction that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Deadlock,
    Serialization,
    /// Raised by a procedure because an item does not exist, which one in a hundred new orders asks for.
    UnknownItem,
    Connection,
    NoSpace,
    /// A key that is there already.
    Duplicate,
    Other,
}

/// An error of a database. After one other than [`Cause::Connection`] the connection is outside any transaction.
#[derive(Debug, Clone)]
pub(crate) struct DbError {
    pub(crate) cause: Cause,
    pub(crate) text: String,
}

impl DbError {
    pub(crate) fn new(cause: Cause, text: impl Into<String>) -> Self {
        Self { cause, text: text.into() }
    }

    pub(crate) fn connection(text: impl Into<String>) -> Self {
        Self::new(Cause::Connection, text)
    }

    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::new(Cause::Other, text)
    }
}

impl From<std::io::Error> for DbError {
    fn from(error: std::io::Error) -> Self {
        Self::connection(error.to_string())
    }
}
