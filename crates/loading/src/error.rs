use thiserror::Error;

/// Why work on databases cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DatabaseError {
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
    Other(String),
}

impl DatabaseError {
    /// The kind as results name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidPlan(_) => "usage",
            Self::Connect(_) => "open",
            Self::NoSpace(_) => "space",
            Self::Lost(_) => "lost",
            Self::Other(_) => "other",
        }
    }
}
