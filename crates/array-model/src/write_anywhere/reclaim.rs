//! Cost of reclaiming space in a write-anywhere layout that has been full before, and the share of snapshots in it.
//!
//! The map of places begins on an empty array, and no run fills terabytes. So the ratio of what is moved for what is written
//! comes from a log of the same fullness that has been overwritten before ([`Log`]), and the reads and writes it stands for go
//! to rows all over the disks.

use assay_load::SplitMix;

use crate::{
    ArrayError, Geometry, LayoutPlan, MemberPlan, SpacePlan,
    host_flash::{LIVE_MOST, Log},
};

/// The log, and reads and writes of reclamation still to be issued.
#[derive(Debug, Clone)]
pub(crate) struct Reclaim {
    log: Log,
    random: SplitMix,
    blocks: u64,
    rows: u64,
    row_bytes: u64,
    /// Bytes that are still to be read and to be written again.
    read_bytes: u64,
    move_bytes: u64,
    charges: bool,
    snapshots: u32,
    snapshot_change: f64,
}

/// Share of a member's capacity that volumes and the snapshots of a chain keep.
///
/// # Errors
/// Nothing would be left to reclaim.
pub(crate) fn check_room(plan: &MemberPlan, geometry: &Geometry, used_bytes: u64) -> Result<(), ArrayError> {
    let LayoutPlan::WriteAnywhere { space, .. } = &plan.layout else { return Ok(()) };
    if !(0.0..=1.0).contains(&space.snapshot_change) || space.snapshots > 4096 {
        return Err(ArrayError::invalid("snapshots", "more than 4096, or a change outside 0 to 1"));
    }
    let most = live_share(plan, geometry, used_bytes) * (1.0 + f64::from(space.snapshots) * space.snapshot_change);
    if (space.reclaims || space.snapshots > 0) && most > LIVE_MOST {
        return Err(ArrayError::TooLarge(format!(
            "reclamation is impossible: volumes and snapshots take {:.0} % of a member, and nothing is won above {:.0} %; \
             give smaller volumes or fewer snapshots",
            most * 100.0,
            LIVE_MOST * 100.0
        )));
    }
    Ok(())
}

fn live_share(plan: &MemberPlan, geometry: &Geometry, used_bytes: u64) -> f64 {
    used_bytes as f64 / geometry.usable_bytes(plan.disk.capacity_bytes()).max(1) as f64
}

impl Reclaim {
    /// For a layout that reclaims or keeps snapshots; it has been overwritten several times before.
    pub(crate) fn new(plan: &MemberPlan, geometry: &Geometry, used_bytes: u64) -> Option<Self> {
        let LayoutPlan::WriteAnywhere { block_bytes, space, .. } = &plan.layout else { return None };
        let SpacePlan { snapshots, snapshot_change, reclaims } = *space;
        if !reclaims && snapshots == 0 {
            return None;
        }
        let mut log = Log::new(live_share(plan, geometry, used_bytes), snapshots, snapshot_change);
        let mut random = SplitMix::new(log.units());
        log.age(&mut random);
        Some(Self {
            log,
            random,
            blocks: used_bytes.div_ceil(*block_bytes).max(1),
            rows: (geometry.disk_bytes(used_bytes) / geometry.chunk_bytes()).max(1),
            row_bytes: geometry.chunk_bytes() * u64::from(geometry.columns()),
            read_bytes: 0,
            move_bytes: 0,
            charges: reclaims,
            snapshots,
            snapshot_change,
        })
    }

    /// The log as long use leaves it where so large a share is live.
    ///
    /// # Errors
    /// Nothing would be left to reclaim.
    pub(crate) fn fill(&mut self, share: f64) -> Result<(), ArrayError> {
        let most = share * (1.0 + f64::from(self.snapshots) * self.snapshot_change);
        if most > LIVE_MOST {
            let message = format!(
                "{:.0} %: with snapshots {:.0} % would be live, and reclaiming wins nothing above {:.0} %",
                share * 100.0,
                most * 100.0,
                LIVE_MOST * 100.0
            );
            return Err(ArrayError::invalid("fill", message));
        }
        self.log = Log::new(share, self.snapshots, self.snapshot_change);
        self.log.age(&mut self.random);
        Ok(())
    }

    /// Live share of the member, and the share of what is live that snapshots alone hold.
    pub(crate) fn live_share(&self) -> f64 {
        self.log.live_share()
    }

    /// Blocks are written anew.
    pub(crate) fn write(&mut self, blocks: &[u64], block_bytes: u64) {
        let units = self.log.units();
        for block in blocks {
            let cleaned = self.log.write((block.min(&(self.blocks - 1)) * units) / self.blocks);
            if self.charges {
                self.read_bytes += cleaned.slots * block_bytes;
                self.move_bytes += cleaned.moved * block_bytes;
            }
        }
    }
    /// The next row that is due, of so many sets: whether it is written, its number, its set and its bytes.
    pub(crate) fn due(&mut self, sets: u64) -> Option<(bool, u64, u32, u64)> {
        let write = self.read_bytes < self.row_bytes;
        let due_bytes = if write { &mut self.move_bytes } else { &mut self.read_bytes };
        if *due_bytes < self.row_bytes {
            return None;
        }
        *due_bytes -= self.row_bytes;
        Some((write, self.random.below(self.rows), self.random.below(sets) as u32, self.row_bytes))
    }
}
