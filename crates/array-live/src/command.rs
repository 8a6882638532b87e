//! Commands to a served array.

use std::net::SocketAddr;

use assay_array_model::Lost;
use serde::Deserialize;

/// Commands to an array that runs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    Status {},
    /// What happened, from this one on.
    Events {
        from: usize,
    },
    /// Counters alone: shorter than the picture, for clients that read them every second.
    Counters {},
    /// What shall happen by itself, at times from now.
    Script {
        events: Vec<PlannedEvent>,
    },
    /// Nothing more happens by itself.
    EndScript {},
    /// A disk is pulled out; a spare takes its place where there is one, unless it must not.
    Pull {
        disk: String,
        #[serde(default = "yes")]
        spare: bool,
    },
    /// A new disk comes, in place of a pulled one or as a spare.
    Insert {
        disk: Option<String>,
    },
    FailController {},
    FailPath {},
    /// What failed of paths and controllers is back.
    MendPaths {},
    /// Answers through a portal come later by so much; 0 takes it back.
    DelayPath {
        portal: usize,
        delay_ns: u64,
    },
    /// Slows a disk, or a port of the hosts, by a factor; 1 takes it back.
    Slow {
        what: String,
        times: u32,
    },
    /// Bytes of a disk change silently.
    Corrupt {
        disk: String,
        bytes: u64,
        #[serde(default)]
        from_bytes: u64,
    },
    /// A member like the others joins the group, and chunks of the volumes move onto it; sessions of iSCSI move to its portal.
    AddMember {
        #[serde(default)]
        address: Option<SocketAddr>,
    },
    /// The sessions of a portal log in elsewhere, and it takes no new ones.
    RetirePath {
        portal: usize,
    },
    /// A volume has so many bytes from now on, which are more than before.
    Grow {
        volume: String,
        bytes: u64,
    },
    CutPower {},
    Restore {},
    Snapshot {
        name: String,
    },
    Revert {
        name: String,
    },
    /// Others than the volumes take what is free of the pool, until so large a share is used.
    Fill {
        percent: u32,
    },
}

/// A command that comes by itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedEvent {
    /// Since the volumes are shown, or since a script began.
    pub at_ns: u64,
    pub command: Command,
}

fn yes() -> bool {
    true
}

impl Command {
    pub(crate) fn is_of_paths(&self) -> bool {
        matches!(self, Self::FailPath {} | Self::MendPaths {} | Self::FailController {})
    }

    pub(crate) fn lost(&self) -> Option<Lost> {
        match self {
            Self::FailController {} => Some(Lost::Controller),
            Self::FailPath {} => Some(Lost::HostPort),
            _ => None,
        }
    }
}
