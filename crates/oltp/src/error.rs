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
