//! Plan of a run, as Python hands it over.

use assay_loading::{DatabaseError, connect_s, validate_connecting};
use assay_sql::{Connection, Isolation};
use serde::Deserialize;

/// Most users of a run: each has a task of its own, a few kilobytes.
const USERS_MAX: u32 = 100_000;
const WEIGHT_MAX: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum RunLoad {
    Closed,
    /// Transactions per second of all users together.
    Open {
        rate: f64,
        poisson: bool,
    },
}

/// A database to run transactions on.
#[derive(Debug, Clone, Deserialize)]
pub struct UsedDatabase {
    pub name: String,
    pub connection: Connection,
    #[serde(alias = "warehouses")]
    pub scale: u32,
}

/// Plan of a run, except for the fields of the workload alone.
#[derive(Debug, Clone, Deserialize)]
pub struct RunPlan {
    pub databases: Vec<UsedDatabase>,
    pub users: u32,
    /// Connections that the users share; one each unless given.
    #[serde(default)]
    pub connections: Option<u32>,
    #[serde(default)]
    pub threads: Option<u32>,
    pub load: RunLoad,
    /// Weights of the workload's transactions, in their order.
    pub mix: Vec<u32>,
    /// Cards drawn from a deck instead of independent draws.
    pub deck: bool,
    /// Factor of keying and thinking times; 0 for none.
    pub think_scale: f64,
    pub procedures: bool,
    pub pipeline: bool,
    pub isolation: Isolation,
    pub retries: u32,
    /// How long a server may take to accept a connection.
    #[serde(default = "connect_s")]
    pub connect_s: f64,
    pub reconnect_s: f64,
    pub seed: u64,
    pub interval_ns: u64,
}

impl RunPlan {
    /// Refuses an impossible plan of a workload with this number of transactions, whose scale is in this unit.
    ///
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when the plan is impossible.
    pub(crate) fn validate(&self, transactions: usize, unit: &str) -> Result<(), DatabaseError> {
        let refuse = |text: &str| Err(DatabaseError::InvalidPlan(text.into()));
        if self.databases.is_empty() || self.databases.iter().any(|database| database.scale == 0) {
            return refuse(&format!("a run needs a database with a {unit}"));
        }
        if !(1..=USERS_MAX).contains(&self.users) {
            return refuse("users: accepted: 1 to 100000");
        }
        if self.connections.is_some_and(|connections| connections == 0 || connections > self.users) {
            return refuse("connections: accepted: 1 to the number of users");
        }
        if self.mix.len() != transactions {
            return refuse(&format!("mix: one weight for each of {transactions} transactions"));
        }
        if self.mix.iter().all(|weight| *weight == 0) || self.mix.iter().any(|weight| *weight > WEIGHT_MAX) {
            return refuse("mix: weights from 0 to 1000, one of them above 0");
        }
        if let RunLoad::Open { rate, .. } = self.load
            && !(rate > 0.0 && rate <= 1e7)
        {
            return refuse("rate: accepted: above 0, at most 10000000 transactions per second");
        }
        if self.load != RunLoad::Closed && self.think_scale > 0.0 {
            return refuse("a rate and thinking times exclude each other");
        }
        if !(0.0..=1000.0).contains(&self.think_scale) {
            return refuse("think_scale: accepted: 0 to 1000");
        }
        if self.interval_ns < 1_000_000 {
            return refuse("interval_ns: at least a millisecond");
        }
        validate_connecting(self.connect_s, self.reconnect_s, self.threads)
    }
}
