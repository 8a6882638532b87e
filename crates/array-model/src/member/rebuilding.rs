//! A member rebuilds: rows that are read from the other disks and written to the spare.

use super::Member;
use crate::{
    disk::DiskCommand,
    events::{Event, Events},
    task::Work,
};

impl Member {
    /// Begins as many rows as the rebuild's depth allows; ends it after the last.
    pub(crate) fn rebuild_next(&mut self, now_ns: u64, events: &mut Events) {
        while let Some(rebuild) = &mut self.rebuild {
            if rebuild.next_row == rebuild.rows {
                if rebuild.under_way.is_empty() {
                    (self.lost_disk, self.rebuild) = (None, None);
                }
                return;
            }
            if rebuild.under_way.len() as u32 == rebuild.depth {
                return;
            }
            if let Err(due_ns) = rebuild.may_begin(now_ns) {
                if let Some(due_ns) = due_ns {
                    events.set(due_ns, Event::Rebuilds { disk: self.first_disk });
                }
                return;
            }
            let row = rebuild.next_row;
            rebuild.under_way.push(row);
            rebuild.next_row += 1;
            let task = self.begin(Work::Rebuild { row });
            self.read_survivors(now_ns, task, row, events);
        }
    }

    /// Reads as many chunks of the row as determine the lost one: its mirror, or all data columns with the row parity in
    /// place of a lost one.
    fn read_survivors(&mut self, now_ns: u64, task: u32, row: u64, events: &mut Events) {
        let lost = self.lost_disk.expect("a rebuild is of a lost disk");
        let geometry = self.geometry.clone();
        let set = lost / geometry.set_disks();
        if geometry.policy().copies() == 2 {
            self.push_row(now_ns, task, lost ^ 1, row, false, events);
            return;
        }
        let mut lost_data = false;
        for column in 0..geometry.columns() {
            let disk = geometry.data_disk(set, row, column);
            if disk == lost {
                lost_data = true;
            } else {
                self.push_row(now_ns, task, disk, row, false, events);
            }
        }
        if lost_data {
            self.push_row(now_ns, task, geometry.parity_disk(set, row, 0), row, false, events);
        }
    }

    pub(crate) fn rebuild_goes_on(&mut self, now_ns: u64, task: u32, row: u64, events: &mut Events) {
        let lost = self.lost_disk.expect("a rebuild is of a lost disk");
        if !self.tasks[task].writing {
            self.tasks[task].writing = true;
            self.push_row(now_ns, task, lost, row, true, events);
            return;
        }
        self.finish(task);
        let bytes = self.geometry.chunk_bytes();
        self.counters.rebuilt_bytes += self.anywhere.as_ref().map_or(bytes, |anywhere| anywhere.reduced_bytes(bytes));
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.under_way.retain(|other| *other != row);
        }
        self.rebuild_next(now_ns, events);
    }

    fn push_row(&mut self, now_ns: u64, task: u32, disk: u32, row: u64, write: bool, events: &mut Events) {
        let bytes = self.geometry.chunk_bytes();
        let command = DiskCommand {
            at_bytes: row * bytes,
            bytes: bytes as u32,
            write,
            background: true,
            task,
            queued_ns: now_ns,
        };
        self.push(now_ns, disk, command, events);
    }
}
