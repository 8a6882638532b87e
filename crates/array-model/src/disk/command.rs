//! Commands to disks, and counters of their work.

/// One command to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskCommand {
    pub(crate) at_bytes: u64,
    /// 0 in a write: a flush.
    pub(crate) bytes: u32,
    pub(crate) write: bool,
    /// Destaging and rebuilding: no host waits for it.
    pub(crate) background: bool,
    /// Task the command belongs to.
    pub(crate) task: u32,
    pub(crate) queued_ns: u64,
}

/// A command that was begun: when it ends, and which event says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) end_ns: u64,
    /// Place of the command on its disk, given back to the disk at its end.
    pub(crate) slot: u16,
}

/// Work of a disk so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DiskCounters {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    /// Time in which at least one command was being served.
    pub(crate) busy_ns: u64,
    /// Commands present, integrated over time.
    pub(crate) queue_ns: u64,
    /// Of flash: bytes programmed, and blocks erased.
    pub(crate) programmed_bytes: u64,
    pub(crate) erases: u64,
    /// Time in which heat slowed the drive down; none of drives that it does not.
    pub(crate) throttled_ns: Option<u64>,
}
