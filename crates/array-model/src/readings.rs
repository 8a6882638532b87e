//! Readings: counters of members, disks, ports, hosts and logs as their users see them.

use crate::{disk::DiskCounters, links::PortCounters};

/// Work of one member since it was made, and its present state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberReading {
    pub reads: u64,
    pub read_hits: u64,
    /// Whether writes are acknowledged from the cache.
    pub write_back: bool,
    pub written_bytes: u64,
    pub destaged_bytes: u64,
    pub writes_waited: u64,
    pub rebuilt_bytes: u64,
    /// Bytes that reading ahead found scattered; destaging writes them in one piece.
    pub reallocated_bytes: u64,
    /// Bytes read from places with little live data, to reclaim them.
    pub cleaned_bytes: u64,
    /// Live bytes written again to reclaim their old places.
    pub moved_bytes: u64,
    /// Live share of a member that reclaims space or keeps snapshots.
    pub live_share: Option<f64>,
    /// Pieces on disks that reading ahead took together, and their bytes; write-anywhere layouts only.
    pub ahead_pieces: u64,
    pub ahead_bytes: u64,
    pub cpu_busy_ns: u64,
    pub cores: u32,
    pub dirty_bytes: u64,
    pub held_bytes: u64,
    pub disks: Vec<DiskReading>,
    pub ports: Vec<PortReading>,
    /// Limits of a cloud's volume or machine.
    pub gate: Option<GateReading>,
    /// Bytes that such a volume loaded from its snapshot because they were touched.
    pub loaded_bytes: u64,
}

/// Limits that I/Os pass one after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GateReading {
    pub name: String,
    /// I/Os, as the provider counts them.
    pub operations: LimitReading,
    /// Bytes.
    pub transfer: LimitReading,
}

/// One limit: what passed it, how long more was asked for, and the share of its credits that is left.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LimitReading {
    pub passed: u64,
    pub exceeded_ns: u64,
    /// None where nothing bursts.
    pub balance_share: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskReading {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub busy_ns: u64,
    /// Commands present, integrated over time.
    pub queue_ns: u64,
    /// Of flash: bytes programmed, whatever for, and blocks erased.
    pub programmed_bytes: u64,
    pub erases: u64,
    /// Time in which heat slowed the drive down; none of drives that it does not.
    pub throttled_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortReading {
    pub in_bytes: u64,
    pub out_bytes: u64,
    pub in_busy_ns: u64,
    pub out_busy_ns: u64,
    /// Packets of the port that loses some; 0 at other ports.
    pub packets: u64,
    pub packets_again: u64,
}

/// Work of a host since the model was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostReading {
    pub ports: Vec<PortReading>,
    /// Reads of a host with caches of its own, and the level that delivered the last line of each; the others came from
    /// data nodes.
    pub reads: u64,
    pub memory_hits: u64,
    pub flash_hits: u64,
    pub remote_hits: u64,
    pub cpu_busy_ns: u64,
    pub cores: u32,
    pub flash_busy_ns: u64,
    pub flash_channels: u32,
}

/// State of a log-structured pool.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LogReading {
    /// Writes so far, and blocks that cleaning moved, in writes of that size.
    pub appends: u64,
    pub moves: u64,
    /// Live share of the space in which reclamation works, and the share of live data that snapshots alone hold.
    pub live_share: f64,
    pub held_share: f64,
    pub snapshots: u32,
}

impl From<DiskCounters> for DiskReading {
    fn from(counters: DiskCounters) -> Self {
        let DiskCounters {
            reads,
            writes,
            read_bytes,
            write_bytes,
            busy_ns,
            queue_ns,
            programmed_bytes,
            erases,
            throttled_ns,
        } = counters;
        Self { reads, writes, read_bytes, write_bytes, busy_ns, queue_ns, programmed_bytes, erases, throttled_ns }
    }
}

impl From<PortCounters> for PortReading {
    fn from(counters: PortCounters) -> Self {
        let PortCounters { in_bytes, out_bytes, in_busy_ns, out_busy_ns, packets, packets_again } = counters;
        Self { in_bytes, out_bytes, in_busy_ns, out_busy_ns, packets, packets_again }
    }
}
