//! The phases of a run.

use serde::Serialize;

/// Phases of a run, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    Prepare,
    /// Operations as fast as they end, until caches are as full of changes as they get.
    Warm,
    Load,
    Backup,
    MakeLog,
    Recovery,
    Flush,
    Verify,
}
