//! What reclaiming space costs a member's disks.

use super::Member;
use crate::{disk::DiskCommand, events::Events, task::Work};

impl Member {
    /// Reads and writes what reclaiming costs for blocks that were just placed: whole rows, at places all over the disks.
    pub(crate) fn reclaim(&mut self, now_ns: u64, blocks: &[u64], block_bytes: u64, events: &mut Events) {
        let Some(reclaim) = &mut self.reclaim else { return };
        reclaim.write(blocks, block_bytes);
        let sets = u64::from(self.geometry.sets());
        while let Some((write, row, set, row_bytes)) = self.reclaim.as_mut().and_then(|reclaim| reclaim.due(sets)) {
            if write {
                self.counters.moved_bytes += row_bytes;
            } else {
                self.counters.cleaned_bytes += row_bytes;
            }
            let task = self.begin(Work::Reclaim);
            for disk in self.disks_of_row(set, row, write) {
                if self.has(disk, row) {
                    let (at_bytes, bytes) = (row * self.geometry.chunk_bytes(), self.geometry.chunk_bytes() as u32);
                    let command = DiskCommand { at_bytes, bytes, write, background: true, task, queued_ns: now_ns };
                    self.push(now_ns, disk, command, events);
                }
            }
            if self.tasks[task].remaining == 0 {
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
