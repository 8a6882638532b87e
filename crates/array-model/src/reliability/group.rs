//! From a RAID layout to the groups that lose data by themselves.

use serde::{Deserialize, Serialize};

use super::inputs::{Inputs, RebuildTime, above_zero};
use crate::{ArrayError, Geometry, PartialWrite, RaidPlan, RaidPolicy};

/// Disks under one RAID policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    pub policy: RaidPolicy,
    /// Disks in use; spares are not counted.
    pub disks: u32,
    /// Disks of one set; 0: all of them.
    pub set_disks: u32,
    /// Mean time from the loss of a disk until it is rebuilt, hours.
    pub rebuild_h: f64,
}

/// Equal groups; everything the formulas and the simulation need.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) groups: u32,
    /// Disks of one group.
    pub(super) disks: u32,
    /// Lost disks it survives.
    pub(super) tolerates: u32,
    /// Disks' worth of data in all groups.
    pub(super) data_disks: u32,
    /// Failures of one disk per hour.
    pub(super) failure_rate: f64,
    pub(super) rebuild_h: f64,
    pub(super) rebuild: RebuildTime,
    /// Probability that something cannot be read from the disks left when the last redundancy is gone.
    pub(super) unreadable: f64,
}

impl Layout {
    /// # Errors
    /// The disks cannot carry the policy, or the rebuild is no time or longer than a disk lives.
    pub(super) fn group(&self, inputs: &Inputs) -> Result<Group, ArrayError> {
        let plan = RaidPlan {
            policy: self.policy,
            set_disks: self.set_disks,
            chunk_bytes: 1 << 16,
            partial_write: PartialWrite::Cheapest,
            misalign_bytes: 0,
        };
        let geometry = Geometry::new(&plan, self.disks)?;
        above_zero("rebuild", self.rebuild_h)?;
        if self.rebuild_h >= inputs.mtbf_h {
            let message = format!("{} h is not shorter than the MTBF of {} h", self.rebuild_h, inputs.mtbf_h);
            return Err(ArrayError::invalid("rebuild", message));
        }
        let (groups, disks, tolerates) = match (self.policy.copies(), self.policy.parity_disks()) {
            (2, _) => (self.disks / 2, 2, 1),
            // Without redundancy the first failure of any disk loses data, wherever the sets end.
            (_, 0) => (1, self.disks, 0),
            (_, parity) => (geometry.sets(), geometry.set_disks(), parity),
        };
        let unreadable = match tolerates {
            0 => 0.0,
            _ => inputs.unreadable.probability(disks - tolerates, inputs.disk_bytes),
        };
        Ok(Group {
            groups,
            disks,
            tolerates,
            data_disks: geometry.sets() * geometry.columns(),
            failure_rate: 1.0 / inputs.mtbf_h,
            rebuild_h: self.rebuild_h,
            rebuild: inputs.rebuild,
            unreadable,
        })
    }
}
