//! What to load and what to run, as Python hands it over.

use std::fmt;

use serde::{Deserialize, Deserializer, de::Error};

use crate::OltpError;

/// Most users of a run: each has a task of its own, a few kilobytes.
const USERS_MOST: u32 = 100_000;
/// Ten terabytes.
const WAREHOUSES_MOST: u32 = 100_000;
const WEIGHT_MOST: u32 = 1000;
const LOAD_CONNECTIONS_MOST: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Postgresql,
    Mariadb,
    Mysql,
    Mssql,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tls {
    Disable,
    /// If the server offers it; its certificate is not looked at.
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// A password. Shown as stars.
#[derive(Clone)]
pub struct Password(String);

impl<'de> Deserialize<'de> for Password {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Other errors would show what is there instead of a text.
        String::deserialize(deserializer).map(Self).map_err(|_| D::Error::custom("the password is not a text"))
    }
}

impl Password {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Where a database is and who asks.
#[derive(Debug, Clone, Deserialize)]
pub struct Connection {
    pub kind: Kind,
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub port: u16,
    /// Path of a Unix socket; goes before `host`.
    #[serde(default)]
    pub socket: Option<String>,
    pub user: String,
    #[serde(default)]
    pub password: Option<Password>,
    pub database: String,
    #[serde(default)]
    pub tls: Tls,
    /// File with the authorities to trust, instead of the system's.
    #[serde(default)]
    pub tls_ca: Option<String>,
}

impl Connection {
    /// The server for messages.
    pub(crate) fn place(&self) -> String {
        match (&self.socket, &self.host) {
            (Some(socket), _) => socket.clone(),
            (None, Some(host)) => format!("{host}:{}", self.port),
            (None, None) => format!("localhost:{}", self.port),
        }
    }
}

/// A database to load.
#[derive(Debug, Clone, Deserialize)]
pub struct LoadedDatabase {
    pub name: String,
    pub connection: Connection,
    pub warehouses: u32,
    /// Chunks that are there already: kind, warehouse, part.
    #[serde(default)]
    pub done: Vec<(String, u32, u32)>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct LoadPlan {
    pub databases: Vec<LoadedDatabase>,
    pub connections: u32,
    #[serde(default)]
    pub threads: Option<u32>,
    pub seed: u64,
    pub reconnect_s: f64,
}

impl LoadPlan {
    /// # Errors
    /// [`OltpError::InvalidPlan`] when it asks for nothing or too much.
    pub fn validate(&self) -> Result<(), OltpError> {
        let refuse = |text: &str| Err(OltpError::InvalidPlan(text.into()));
        if self.databases.is_empty() || !(1..=LOAD_CONNECTIONS_MOST).contains(&self.connections) {
            return refuse("a load needs a database and 1 to 1000 connections");
        }
        if self.databases.iter().any(|database| !(1..=WAREHOUSES_MOST).contains(&database.warehouses)) {
            return refuse("warehouses: accepted: 1 to 100000");
        }
        validate_common(self.reconnect_s, self.threads)
    }
}

fn validate_common(reconnect_s: f64, threads: Option<u32>) -> Result<(), OltpError> {
    if !(0.0..=1e6).contains(&reconnect_s) {
        return Err(OltpError::InvalidPlan("reconnect_s: accepted: 0 to 1000000 seconds".into()));
    }
    if threads == Some(0) {
        return Err(OltpError::InvalidPlan("threads: at least one".into()));
    }
    Ok(())
}

/// How users choose the warehouse they work for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// Each keeps one warehouse and draws the district.
    Warehouse,
    /// Each keeps one district, as a terminal of the specification does.
    District,
    /// Each draws the warehouse anew for every transaction.
    All,
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    Default,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A database to run transactions on.
#[derive(Debug, Clone, Deserialize)]
pub struct UsedDatabase {
    pub name: String,
    pub connection: Connection,
    pub warehouses: u32,
}

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
    /// Weights of new-order, payment, order-status, delivery and stock-level.
    pub mix: [u32; 5],
    /// Cards drawn from a deck instead of independent draws.
    pub deck: bool,
    pub nurand_items: bool,
    pub home: Home,
    /// Factor of keying and thinking times; 0 for none.
    pub think_scale: f64,
    pub procedures: bool,
    pub pipeline: bool,
    pub isolation: Isolation,
    pub retries: u32,
    pub reconnect_s: f64,
    pub seed: u64,
    pub interval_ns: u64,
}

impl RunPlan {
    /// # Errors
    /// [`OltpError::InvalidPlan`] when the plan is impossible.
    pub fn validate(&self) -> Result<(), OltpError> {
        let refuse = |text: &str| Err(OltpError::InvalidPlan(text.into()));
        if self.databases.is_empty() || self.databases.iter().any(|database| database.warehouses == 0) {
            return refuse("a run needs a database with a warehouse");
        }
        if !(1..=USERS_MOST).contains(&self.users) {
            return refuse("users: accepted: 1 to 100000");
        }
        if self.connections.is_some_and(|connections| connections == 0 || connections > self.users) {
            return refuse("connections: accepted: 1 to the number of users");
        }
        if self.mix.iter().all(|weight| *weight == 0) || self.mix.iter().any(|weight| *weight > WEIGHT_MOST) {
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
        validate_common(self.reconnect_s, self.threads)
    }
}
