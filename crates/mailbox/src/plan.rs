//! Plan of a run.

use std::{os::fd::RawFd, path::PathBuf};

use assay_device::Backend;
use serde::Deserialize;

/// Which test is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// Mailboxes at a rate, until the run is stopped.
    Performance,
    /// Every database is read from its begin to its end.
    Backup,
    /// The log of a server that broke off is replayed.
    Recovery,
}

/// A file or device; none of a modelled array has a path.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumePlan {
    pub name: String,
    pub path: Option<PathBuf>,
    /// Descriptor by which the caller holds it.
    #[serde(default)]
    pub held: Option<RawFd>,
}

/// A part of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    pub volume: u16,
    pub start_bytes: u64,
    pub size_bytes: u64,
}

/// A database and its log.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabasePlan {
    pub name: String,
    /// A passive copy has no users: it replays the log of a database elsewhere.
    pub passive: bool,
    pub data: Extent,
    pub log: Extent,
}

/// Shares of the operations; the rest are seeks.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    pub insert: f64,
    pub replace: f64,
    pub delete: f64,
}

/// A run of mailboxes on databases.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailboxPlan {
    pub volumes: Vec<VolumePlan>,
    pub databases: Vec<DatabasePlan>,
    pub test: Test,
    pub page_bytes: u32,
    /// Pages of all databases that are held in memory.
    pub cache_bytes: u64,
    pub mix: Mix,
    /// Share of the commits that do not wait for the log.
    pub lazy_share: f64,
    /// Bytes of log between its end and the oldest page that is not written yet.
    pub checkpoint_depth_bytes: u64,
    pub passive_depth_bytes: u64,
    pub log_file_bytes: u64,
    /// The largest write of a log.
    pub log_write_max_bytes: u32,
    pub maintenance_bytes_per_s: f64,
    /// How often closed files of the log are read to be sent to other servers.
    pub shipped_copies: u32,
    /// Databases that are read for a backup while mailboxes are at work.
    pub backup_streams: u32,
    /// Files of each log that a recovery replays.
    pub recovery_files: u32,
    /// I/Os of all databases per second.
    pub rate: f64,
    /// Places for I/Os under way that take a page.
    pub depth: u32,
    pub seed: u64,
    /// Stamped on every page.
    pub run_id: u64,
    /// Length of a tick.
    pub interval_ns: u64,
    pub io_timeout_ns: u64,
    pub backend: Backend,
    pub direct: bool,
    /// Writes are durable when they end, as a database engine asks.
    pub write_through: bool,
}

/// Bytes of a read of maintenance, backup and recovery.
pub(crate) const SCAN_BYTES: u32 = 256 << 10;
/// Bytes of an I/O that fills or verifies a database.
pub(crate) const BULK_BYTES: u32 = 1 << 20;

impl MailboxPlan {
    pub(crate) fn actives(&self) -> usize {
        self.databases.iter().filter(|database| !database.passive).count()
    }

    /// Whether I/Os move bytes, as on all but a modelled array.
    pub(crate) fn holds_bytes(&self) -> bool {
        self.volumes.iter().all(|volume| volume.path.is_some())
    }
}

/// Purpose of I/O, by which figures are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// Reads and writes of mailboxes: the transactional I/O.
    Database,
    Log,
    Maintenance,
    /// Reads of closed log files that are sent to other servers.
    Shipping,
    /// All that a passive copy does to follow its log.
    Replay,
    Backup,
    Recovery,
    /// Filling a database before a run and verifying it after: not counted.
    Whole,
}

impl Activity {
    pub const ALL: [Self; 8] = [
        Self::Database,
        Self::Log,
        Self::Maintenance,
        Self::Shipping,
        Self::Replay,
        Self::Backup,
        Self::Recovery,
        Self::Whole,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Log => "log",
            Self::Maintenance => "maintenance",
            Self::Shipping => "shipping",
            Self::Replay => "replay",
            Self::Backup => "backup",
            Self::Recovery => "recovery",
            Self::Whole => "whole",
        }
    }

    /// The role under which limits bound it.
    pub fn role(self) -> &'static str {
        match self {
            Self::Database => "data",
            _ => self.name(),
        }
    }
}
