//! Plan of RAID in software, as Linux md does it.

use serde::{Deserialize, Serialize};

/// Additions of RAID in software to the data: a bitmap, a log, and stripes in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePlan {
    /// Bytes of the array for each bit of the write-intent bitmap; 0: there is none.
    pub bitmap_bytes: u64,
    /// Time after the last write to a region until its bit is clear again.
    pub bitmap_clear_ns: u64,
    pub log: RaidLog,
    /// Pages of a stripe that are at work at the same time; 0: any number.
    pub stripes: u32,
}

/// A log that keeps stripes whole through a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RaidLog {
    None,
    /// Partial parity, on the disk of the stripe's parity.
    Ppl,
    /// Data and parity on a drive of their own, before they are written in place.
    Journal,
    /// Data on a drive of their own, from which writes are acknowledged; in place later, from memory.
    JournalWriteBack,
}

impl RaidLog {
    /// Whether the log has a drive of its own.
    pub(crate) fn has_drive(self) -> bool {
        matches!(self, Self::Journal | Self::JournalWriteBack)
    }
}
