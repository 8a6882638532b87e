//! What reclaiming space costs a write-anywhere layout that has been full before, and what snapshots add to it.
//!
//! The map of places begins on an empty array, and no run fills terabytes. So the ratio of what is moved for what is written
//! comes from a log of the same fullness that has been overwritten before ([`Log`]), and the reads and writes it stands for go
//! to rows all over the disks.

use assay_load::SplitMix;

use crate::{
    ArrayError, Geometry, LayoutPlan, MemberPlan, SpacePlan,
    disk::DiskCommand,
    events::Events,
    host_flash::{LIVE_MOST, Log},
    member::Member,
    task::Work,
};

/// The log and what it owes.
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
        })
    }

    /// Live share of the member, and the share of what is live that snapshots alone hold.
    pub(crate) fn live_share(&self) -> f64 {
        self.log.live_share()
    }

    /// Blocks are written anew.
    fn write(&mut self, blocks: &[u64], block_bytes: u64) {
        let units = self.log.units();
        for block in blocks {
            let cleaned = self.log.write((block.min(&(self.blocks - 1)) * units) / self.blocks);
            if self.charges {
                self.read_bytes += cleaned.slots * block_bytes;
                self.move_bytes += cleaned.moved * block_bytes;
            }
        }
    }
}

impl Member {
    /// Reads and writes what reclaiming costs for blocks that were just placed: whole rows, at places all over the disks.
    pub(super) fn reclaim(&mut self, now_ns: u64, blocks: &[u64], block_bytes: u64, events: &mut Events) {
        let Some(reclaim) = &mut self.reclaim else { return };
        reclaim.write(blocks, block_bytes);
        loop {
            let reclaim = self.reclaim.as_mut().expect("it is there");
            let write = reclaim.read_bytes < reclaim.row_bytes;
            let due_bytes = if write { &mut reclaim.move_bytes } else { &mut reclaim.read_bytes };
            if *due_bytes < reclaim.row_bytes {
                return;
            }
            *due_bytes -= reclaim.row_bytes;
            let row_bytes = reclaim.row_bytes;
            let (row, set) =
                (reclaim.random.below(reclaim.rows), reclaim.random.below(u64::from(self.geometry.sets())));
            if write {
                self.counters.moved_bytes += row_bytes;
            } else {
                self.counters.cleaned_bytes += row_bytes;
            }
            let task = self.begin(Work::Reclaim);
            for disk in self.disks_of_row(set as u32, row, write) {
                if self.has(disk, row) {
                    let (at_bytes, bytes) = (row * self.geometry.chunk_bytes(), self.geometry.chunk_bytes() as u32);
                    let command = DiskCommand { at_bytes, bytes, write, background: true, task, queued_ns: now_ns };
                    self.push(now_ns, disk, command, events);
                }
            }
            if self.tasks[task as usize].remaining == 0 {
                self.finish(task);
            }
        }
    }

    /// The disks that have the data of a row, and with `all` its copies and parity too.
    fn disks_of_row(&self, set: u32, row: u64, all: bool) -> Vec<u32> {
        let columns = 0..self.geometry.columns();
        let copies = if all { self.geometry.policy().copies() } else { 1 };
        let data = columns.map(|column| self.geometry.data_disk(set, row, column));
        let mut disks: Vec<u32> = data.flat_map(|disk| disk..disk + copies).collect();
        if all {
            let parity = self.geometry.policy().parity_disks();
            disks.extend((0..parity).map(|which| self.geometry.parity_disk(set, row, which)));
        }
        disks
    }
}
