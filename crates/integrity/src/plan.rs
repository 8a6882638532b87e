use std::{os::fd::RawFd, path::PathBuf};

use serde::{Deserialize, Serialize};

/// Bytes of a data page, as SQL Server's, unless a plan says otherwise.
pub const PAGE_BYTES: u32 = 8192;

fn usual_page_bytes() -> u32 {
    PAGE_BYTES
}

/// Plan of a run of `assay verify`. The Python side makes it; see `assay.workloads.integrity` for the meaning of the
/// values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifyPlan {
    pub files: Vec<FilePlan>,
    pub seed: u64,
    /// Identity of the run, stamped on every page: two runs never share it.
    pub run_id: u64,
    pub cycles: u32,
    /// Length of the stress phase; 0 leaves it out.
    pub stress_ns: u64,
    /// Buffer pool of the imitated engine.
    pub pool_bytes: u64,
    pub cache_hit_share: f64,
    pub max_outstanding: u32,
    /// The mean I/O duration above which fewer I/Os are issued.
    pub target_io_ns: u64,
    /// Prepare, and the first and last checkpoint, are not throttled.
    pub bursts: bool,
    pub scatter_gather: bool,
    pub write_through: bool,
    /// Reads go to the storage even for pages in the pool.
    pub force_read_ahead: bool,
    /// Pages are read and verified before they are overwritten: no fault goes unseen because something was written over it.
    pub look_first: bool,
    /// Shortest time between the last write of a page and its next change. On small files, users would otherwise spend
    /// their time writing over pages that were never read.
    pub rewrite_after_ns: u64,
    /// Most pages of a write, and of a read of all pages in order (audit).
    pub pages_per_io: u32,
    pub rereads: u32,
    pub reread_pause_ns: u64,
    pub long_io_ns: u64,
    /// Longest time without any completion before the storage counts as not answering.
    pub io_timeout_ns: u64,
    pub stop_on_error: bool,
    pub interval_ns: u64,
    pub random: RandomPlan,
    pub audit: AuditPlan,
    pub read_ahead: ReadAheadPlan,
    pub bulk_update: BulkUpdatePlan,
    pub shrink: ShrinkPlan,
}

impl VerifyPlan {
    /// Bytes of a frame of memory, which holds one page of the largest.
    pub fn frame_bytes(&self) -> u32 {
        self.files.iter().map(FilePlan::page_bytes).max().unwrap_or(PAGE_BYTES).max(PAGE_BYTES)
    }

    /// Bytes of the largest write of data pages.
    pub fn data_write_bytes_max(&self) -> u64 {
        let pages = u64::from(self.pages_per_io);
        self.files.iter().filter(|file| !file.log).map(|file| pages * u64::from(file.page_bytes())).max().unwrap_or(0)
    }
}

/// One file of the imitated database: a file, or a part of a file or device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePlan {
    pub name: String,
    pub path: PathBuf,
    /// Descriptor by which the caller holds it for the whole run, and a device for itself alone; no journal keeps it.
    #[serde(default, skip_serializing)]
    pub held: Option<RawFd>,
    /// Where it begins in `path`.
    pub base_bytes: u64,
    pub size_bytes: u64,
    /// It may grow to this size, and shrinks no further than to a quarter of `size_bytes`; equal to `size_bytes` where it must not.
    pub max_bytes: u64,
    pub increment_bytes: u64,
    pub log: bool,
    /// Bytes of a log block; I/O is aligned to it.
    pub sector_bytes: u32,
    /// Bytes of a page of a data file; journals from before it could be chosen have the usual one.
    #[serde(default = "usual_page_bytes")]
    pub data_page_bytes: u32,
    pub direct: bool,
}

impl FilePlan {
    /// Bytes of a page of a data file, or of a block of a log file.
    pub fn page_bytes(&self) -> u32 {
        if self.log { self.sector_bytes } else { self.data_page_bytes }
    }

    /// Pages or blocks at first.
    pub fn pages(&self) -> u64 {
        self.size_bytes / u64::from(self.page_bytes())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomPlan {
    pub users: u32,
    pub jump_share: f64,
    pub chain_min: u32,
    pub chain_max: u32,
    pub update_share: f64,
    pub log_bytes_min: u32,
    pub log_bytes_max: u32,
    pub rollback_share: f64,
    pub sleep_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditPlan {
    pub users: u32,
    pub pages: u32,
    pub delay_after_cycles: u32,
    pub delay_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadAheadPlan {
    pub users: u32,
    pub pages_min: u32,
    pub pages_max: u32,
    pub delay_after_cycles: u32,
    pub delay_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkUpdatePlan {
    pub users: u32,
    pub pages_min: u32,
    pub pages_max: u32,
    pub delay_after_cycles: u32,
    pub delay_ns: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShrinkPlan {
    /// 0 or 1: files change their size one after the other.
    pub users: u32,
    pub interval_min_ns: u64,
    pub interval_max_ns: u64,
    pub extents_min: u32,
    pub extents_max: u32,
}
