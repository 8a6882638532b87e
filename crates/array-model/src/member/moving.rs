//! Reads of pieces that move onto a member that has joined.

use super::Member;
use crate::{events::Events, task::Work};

impl Member {
    /// Reads a piece that moves from the disks that have it.
    pub(crate) fn read_to_move(&mut self, now_ns: u64, slot: u16, at_bytes: u64, bytes: u64, events: &mut Events) {
        let task = self.begin(Work::Move { slot });
        let (mut at_bytes, end_bytes) = (at_bytes, at_bytes + bytes);
        while at_bytes < end_bytes {
            let (chunk, _, until_bytes) = self.piece(at_bytes, end_bytes);
            let within = at_bytes & (self.geometry.chunk_bytes() - 1);
            let place = self.geometry.place(chunk);
            self.read_chunk(now_ns, task, place, within, (until_bytes - at_bytes) as u32, events);
            at_bytes = until_bytes;
        }
        if self.tasks[task].remaining == 0 {
            self.finish(task);
            self.read_out.push(slot);
        }
    }
}
