use thiserror::Error;

/// Errors of descriptions of load. Each variant maps to one Python exception.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// A value is outside the range of the field.
    #[error("{field}: {message}")]
    InvalidValue { field: &'static str, message: String },
    /// A histogram could not be decoded.
    #[error("histogram: {0}")]
    InvalidHistogram(String),
}

impl LoadError {
    pub(crate) fn value(field: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidValue { field, message: message.into() }
    }
}
