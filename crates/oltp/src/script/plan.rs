//! Fields of a plan for scripts alone.

use assay_sql::Protocol;
use serde::Deserialize;

/// A script of a plan.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ScriptsPlan {
    pub(super) scripts: Vec<Source>,
    /// Variables that every user begins with.
    #[serde(default)]
    pub(super) defines: Vec<(String, String)>,
    pub(super) protocol: Protocol,
    /// Mean thinking time after a transaction.
    #[serde(default)]
    pub(super) think_s: f64,
}
