//! Which disk holds which chunk: the same arithmetic for the model and for real bytes.

use crate::{ArrayError, RaidPlan, RaidPolicy};

/// Where a data chunk lies. Rows are counted on each disk in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub set: u32,
    pub row: u64,
    /// Position among the data chunks of the row, before rotation.
    pub column: u32,
    /// Disk of the member; with mirrors the first of the pair.
    pub disk: u32,
}

/// Sets of disks, rows of chunks across each, parity rotated from row to row (left-symmetric, as Linux md lays out
/// RAID 5 and 6); RAID-DP keeps its two parity disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    policy: RaidPolicy,
    sets: u32,
    set_disks: u32,
    /// Data chunks in a row of one set.
    columns: u32,
    chunk_bytes: u64,
}

impl Geometry {
    /// Layout of `active_disks` disks.
    ///
    /// # Errors
    /// The disks cannot carry the policy.
    pub fn new(raid: &RaidPlan, active_disks: u32) -> Result<Self, ArrayError> {
        let policy = raid.policy;
        let set_disks = if raid.set_disks == 0 || policy.has_one_set() { active_disks } else { raid.set_disks };
        let fewest = fewest_disks(policy);
        if active_disks < fewest || set_disks < fewest_in_set(policy) {
            let have = if active_disks < fewest { active_disks } else { set_disks };
            let need = if active_disks < fewest { fewest } else { fewest_in_set(policy) };
            return Err(ArrayError::invalid(
                "raid",
                format!("RAID {} of {have} disks: needs at least {need}", policy.name()),
            ));
        }
        if !active_disks.is_multiple_of(set_disks) {
            let message = format!("{active_disks} active disks are no multiple of sets of {set_disks}");
            return Err(ArrayError::invalid("raid.set_disks", message));
        }
        if policy.copies() == 2 && (!set_disks.is_multiple_of(2) || (policy == RaidPolicy::Raid1 && set_disks != 2)) {
            let message = format!("RAID {} mirrors pairs of disks, and {set_disks} is not pairs", policy.name());
            return Err(ArrayError::invalid("raid.set_disks", message));
        }
        if raid.chunk_bytes < 4096 || !raid.chunk_bytes.is_power_of_two() || raid.chunk_bytes > 1 << 30 {
            let message = format!("{} bytes is no power of two from 4 KiB to 1 GiB", raid.chunk_bytes);
            return Err(ArrayError::invalid("raid.chunk", message));
        }
        let columns = (set_disks - policy.parity_disks()) / policy.copies();
        Ok(Self { policy, sets: active_disks / set_disks, set_disks, columns, chunk_bytes: raid.chunk_bytes })
    }

    pub fn policy(&self) -> RaidPolicy {
        self.policy
    }

    pub fn sets(&self) -> u32 {
        self.sets
    }

    pub fn set_disks(&self) -> u32 {
        self.set_disks
    }

    /// Data chunks in a row of one set.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_bytes
    }

    /// Data bytes that disks of this size hold together.
    pub fn usable_bytes(&self, disk_bytes: u64) -> u64 {
        disk_bytes / self.chunk_bytes * self.chunk_bytes * u64::from(self.columns) * u64::from(self.sets)
    }

    /// Bytes used on each disk by `data_bytes` of data.
    pub fn disk_bytes(&self, data_bytes: u64) -> u64 {
        let row_bytes = self.chunk_bytes * u64::from(self.columns) * u64::from(self.sets);
        data_bytes.div_ceil(row_bytes) * self.chunk_bytes
    }

    /// Place of a data chunk: chunks go across the row of the first set, then of the next, then to the next row.
    #[inline]
    pub fn place(&self, chunk: u64) -> Place {
        let columns = u64::from(self.columns);
        let stripe = chunk / columns;
        let column = (chunk % columns) as u32;
        let (row, set) = if self.sets == 1 {
            (stripe, 0)
        } else {
            (stripe / u64::from(self.sets), (stripe % u64::from(self.sets)) as u32)
        };
        Place { set, row, column, disk: self.data_disk(set, row, column) }
    }

    /// Number of a data chunk; the inverse of [`Self::place`].
    #[inline]
    pub fn chunk(&self, set: u32, row: u64, column: u32) -> u64 {
        (row * u64::from(self.sets) + u64::from(set)) * u64::from(self.columns) + u64::from(column)
    }

    /// Disk of a data chunk; with mirrors the first of the pair, the other is the next one.
    #[inline]
    pub fn data_disk(&self, set: u32, row: u64, column: u32) -> u32 {
        let first = set * self.set_disks;
        let within = match self.policy {
            RaidPolicy::Raid0 | RaidPolicy::Dp => column,
            RaidPolicy::Raid1 | RaidPolicy::Raid10 => column * 2,
            RaidPolicy::Raid5 | RaidPolicy::Raid50 | RaidPolicy::Raid6 | RaidPolicy::Raid60 => {
                (self.last_parity(row) + 1 + column) % self.set_disks
            }
        };
        first + within
    }

    /// Disk of parity `which` of a row: 0 is row parity (P), 1 is Q or diagonal parity.
    #[inline]
    pub fn parity_disk(&self, set: u32, row: u64, which: u32) -> u32 {
        let first = set * self.set_disks;
        if self.policy == RaidPolicy::Dp {
            return first + self.columns + which;
        }
        let p = self.set_disks - 1 - (row % u64::from(self.set_disks)) as u32;
        first + (p + which) % self.set_disks
    }

    /// Position in the set of the last parity chunk of a row, after which its data begin.
    #[inline]
    fn last_parity(&self, row: u64) -> u32 {
        let p = self.set_disks - 1 - (row % u64::from(self.set_disks)) as u32;
        (p + self.policy.parity_disks() - 1) % self.set_disks
    }
}

/// Disks a policy needs at all, and in each set.
fn fewest_disks(policy: RaidPolicy) -> u32 {
    match policy {
        RaidPolicy::Raid0 => 1,
        RaidPolicy::Raid1 | RaidPolicy::Raid10 => 2,
        RaidPolicy::Raid5 | RaidPolicy::Dp => 3,
        RaidPolicy::Raid6 => 4,
        RaidPolicy::Raid50 => 6,
        RaidPolicy::Raid60 => 8,
    }
}

fn fewest_in_set(policy: RaidPolicy) -> u32 {
    match policy {
        RaidPolicy::Raid50 => 3,
        RaidPolicy::Raid60 => 4,
        other => fewest_disks(other),
    }
}
