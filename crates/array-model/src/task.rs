//! Work of members: accesses of hosts, and tasks of several disk commands.

use crate::cache::PARTS;

/// A host's command at a member, in the member's address space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) command: u32,
    pub(crate) at_bytes: u64,
    pub(crate) bytes: u64,
    /// End of the volume's page: bytes after it belong to another volume.
    pub(crate) page_end_bytes: u64,
}

/// Work that disk commands belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A command of a host waits for reads.
    Read { command: u32 },
    /// A command of a host waits for its write to be on disk.
    WriteThrough { command: u32 },
    /// A command of a host waits until what was written survives a power cut.
    Flush { command: u32 },
    /// Dirty chunks of a lane go to disk.
    Destage { lane: u32 },
    /// A chunk is read ahead.
    Prefetch,
    /// Space is reclaimed.
    Reclaim,
    /// A row of the lost disk is computed and written to the spare.
    Rebuild { row: u64 },
    /// A page of the bitmap goes to the disks.
    Bitmap,
    /// Stripes or writes go to a log.
    Log { line: u32 },
    /// A command of a host waits for the journal, and goes into the cache then.
    Logged { slot: u32 },
    /// A piece of a volume is read to be moved onto a member that joined.
    Move { slot: u16 },
}

/// Parts of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkParts {
    pub(crate) chunk: u64,
    pub(crate) parts: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) work: Work,
    /// Disk commands, and chunks being read ahead, that are still to come.
    pub(crate) remaining: u32,
    /// Whether old data and parity have been read.
    pub(crate) writing: bool,
    /// Whether a log has it.
    pub(crate) logged: bool,
    pub(crate) chunks: Vec<ChunkParts>,
}

/// Contiguous runs of parts: the first part and how many.
pub(crate) fn runs(mut parts: u64) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        if parts == 0 {
            return None;
        }
        let first = parts.trailing_zeros();
        let count = (parts >> first).trailing_ones();
        parts &= if first + count == PARTS { 0 } else { u64::MAX << (first + count) };
        Some((first, count))
    })
}
