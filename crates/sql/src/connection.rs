//! Where a database is and who asks, as plans say it.

use std::fmt;

use serde::{Deserialize, Deserializer, de::Error};

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
    pub fn place(&self) -> String {
        match (&self.socket, &self.host) {
            (Some(socket), _) => socket.clone(),
            (None, Some(host)) => format!("{host}:{}", self.port),
            (None, None) => format!("localhost:{}", self.port),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    Default,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}
