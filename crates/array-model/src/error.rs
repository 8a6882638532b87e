use thiserror::Error;

/// Why an array cannot be modelled.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ArrayError {
    /// A parameter has a value that no array has, or that contradicts another one.
    #[error("{parameter}: {message}")]
    InvalidParameter { parameter: String, message: String },
    /// The volumes need more than the array has.
    #[error("{0}")]
    TooLarge(String),
}

impl ArrayError {
    pub(crate) fn invalid(parameter: impl Into<String>, message: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter: parameter.into(), message: message.into() }
    }
}
