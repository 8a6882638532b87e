//! Failures that end a run, and wrong pages.

use serde::Serialize;
use thiserror::Error;

/// Failure that ends a run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    #[error("{database}: {operation} of {bytes} bytes at {offset_bytes} failed: {what}")]
    Io { database: String, operation: &'static str, offset_bytes: u64, bytes: u32, what: String },
    #[error("{outstanding} I/Os outstanding, the oldest for {oldest_s} s")]
    NotAnswering { outstanding: u32, oldest_s: u64 },
    #[error("{0}")]
    Queue(String),
}

/// A page or a piece of a log whose bytes are not those written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadPage {
    pub database: usize,
    /// Page of the database; none for a piece of its log.
    pub page: Option<u64>,
    pub volume: u16,
    pub offset_bytes: u64,
    pub what: String,
    pub activity: &'static str,
}
