//! Plan of a replay, as Python hands it over.

use assay_loading::{DatabaseError, connect_s, validate_connecting};
use serde::Deserialize;

use crate::plan::UsedDatabase;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ReplayPlan {
    pub(super) databases: Vec<UsedDatabase>,
    pub(super) threads: Option<u32>,
    /// Times as fast as the log.
    pub(super) speed: f64,
    /// Whether sessions may write.
    pub(super) writes: bool,
    #[serde(default = "connect_s")]
    pub(super) connect_s: f64,
    pub(super) reconnect_s: f64,
    pub(super) seed: u64,
    pub(super) interval_ns: u64,
    /// Statements that are due before are not compared.
    pub(super) warmup_ns: u64,
}

impl ReplayPlan {
    pub(super) fn validate(&self) -> Result<(), DatabaseError> {
        let refuse = |text: &str| Err(DatabaseError::InvalidPlan(text.into()));
        if self.databases.len() != 1 {
            return refuse("a log is replayed on one database");
        }
        if !(self.speed > 0.0 && self.speed <= 1e6) {
            return refuse("speed: accepted: above 0, at most 1000000");
        }
        if self.interval_ns < 1_000_000 {
            return refuse("interval_ns: at least a millisecond");
        }
        validate_connecting(self.connect_s, self.reconnect_s, self.threads)
    }
}
