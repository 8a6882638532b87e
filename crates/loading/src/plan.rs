//! Plan of a load, as Python hands it over.

use assay_sql::Connection;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    dataset::{ChunkKey, Dataset},
    error::DatabaseError,
};

const CONNECTIONS_MAX: u32 = 1000;

/// A database to load.
#[derive(Debug, Clone, Deserialize)]
pub struct LoadedDatabase {
    pub name: String,
    pub connection: Connection,
    #[serde(alias = "warehouses")]
    pub scale: u32,
    /// Chunks that are there already.
    #[serde(default)]
    pub done: Vec<ChunkKey>,
    /// Just these chunks instead of all.
    #[serde(default)]
    pub chunks: Option<Vec<ChunkKey>>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct LoadPlan {
    pub databases: Vec<LoadedDatabase>,
    pub connections: u32,
    #[serde(default)]
    pub threads: Option<u32>,
    pub seed: u64,
    /// How long a server may take to accept a connection.
    #[serde(default = "connect_s")]
    pub connect_s: f64,
    pub reconnect_s: f64,
}

impl LoadPlan {
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when it asks for nothing or too much.
    pub(crate) fn validate<D: Dataset>(&self) -> Result<(), DatabaseError> {
        if self.databases.is_empty() || !(1..=CONNECTIONS_MAX).contains(&self.connections) {
            let text = "a load needs a database and 1 to 1000 connections";
            return Err(DatabaseError::InvalidPlan(text.into()));
        }
        self.databases.iter().try_for_each(|database| D::SCALE.check(database.scale))?;
        validate_connecting(self.connect_s, self.reconnect_s, self.threads)
    }
}

/// How long a server may take to accept a connection unless a plan says so, in seconds.
pub fn connect_s() -> f64 {
    15.0
}

/// # Errors
/// [`DatabaseError::InvalidPlan`] when times or threads are impossible.
pub fn validate_connecting(connect_s: f64, reconnect_s: f64, threads: Option<u32>) -> Result<(), DatabaseError> {
    if !(connect_s > 0.0 && connect_s <= 1e6) {
        return Err(DatabaseError::InvalidPlan("connect_s: accepted: above 0, at most 1000000 seconds".into()));
    }
    if !(0.0..=1e6).contains(&reconnect_s) {
        return Err(DatabaseError::InvalidPlan("reconnect_s: accepted: 0 to 1000000 seconds".into()));
    }
    if threads == Some(0) {
        return Err(DatabaseError::InvalidPlan("threads: at least one".into()));
    }
    Ok(())
}

/// A plan from its text. An error names the place of a wrong field, never its value: that may be a password.
///
/// # Errors
/// [`DatabaseError::InvalidPlan`] when the text is no such plan.
pub fn parse<T: DeserializeOwned>(plan: &str) -> Result<T, DatabaseError> {
    serde_json::from_str(plan).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        DatabaseError::InvalidPlan(format!("plan: not understood at {place}"))
    })
}

/// The registered kind that a plan names, else the first.
///
/// # Errors
/// [`DatabaseError::InvalidPlan`] when there is no such kind or no plan.
pub fn named_by<T: Copy>(plan: &str, registered: &[T], kind: fn(&T) -> &'static str) -> Result<T, DatabaseError> {
    #[derive(Deserialize)]
    struct Named {
        workload: Option<String>,
    }
    let Named { workload: named } = parse(plan)?;
    let Some(named) = named else { return Ok(registered[0]) };
    registered.iter().find(|known| kind(known) == named).copied().ok_or_else(|| {
        let kinds: Vec<_> = registered.iter().map(kind).collect();
        DatabaseError::InvalidPlan(format!("workload {named:?}: accepted: {}", kinds.join(", ")))
    })
}
