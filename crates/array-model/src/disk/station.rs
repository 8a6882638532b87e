use std::sync::Arc;

use super::{
    command::{Begun, DiskCommand, DiskCounters},
    slots::Slots,
};
use crate::StationPlan;

/// A larger I/O is several: each takes a server of its own.
const PIECE_BYTES: u64 = 1 << 20;

/// Data that all disks of one kind share.
#[derive(Debug)]
pub(crate) struct StationKind {
    channels: usize,
    read_ns: u64,
    program_ns: u64,
    overhead_ns: u64,
    interface_ps_per_byte: u64,
    queue_depth: u32,
    /// Acknowledged writes that may wait, each of a piece.
    buffer_pieces: u64,
}

impl StationKind {
    pub(crate) fn new(plan: &StationPlan) -> Self {
        Self {
            channels: plan.channels as usize,
            read_ns: plan.read_ns,
            program_ns: plan.program_ns,
            overhead_ns: plan.command_overhead_ns,
            interface_ps_per_byte: (1e12 / plan.interface_bytes_per_s) as u64,
            queue_depth: plan.queue_depth,
            buffer_pieces: plan.write_buffer_bytes / PIECE_BYTES,
        }
    }
}

/// A disk of which only the times of I/Os are known: servers side by side, each with one I/O at a time.
#[derive(Debug, Clone)]
pub(crate) struct Station {
    kind: Arc<StationKind>,
    /// When each channel is free again.
    free_ns: Box<[u64]>,
    slots: Slots,
    /// The channel of the next write: all take their turns.
    next_channel: usize,
    interface_free_ns: u64,
}

impl Station {
    pub(crate) fn new(kind: Arc<StationKind>, phase: u64) -> Self {
        Self {
            free_ns: vec![0; kind.channels].into(),
            slots: Slots::new(kind.queue_depth),
            next_channel: (phase % kind.channels as u64) as usize,
            interface_free_ns: 0,
            kind,
        }
    }

    pub(crate) fn push(&mut self, now_ns: u64, command: DiskCommand) -> Option<Begun> {
        let slot = self.slots.push(now_ns, command)?;
        Some(self.serve(now_ns, slot, command))
    }

    pub(crate) fn end(&mut self, now_ns: u64, slot: u16) -> (DiskCommand, Option<Begun>) {
        let (ended, next) = self.slots.end(now_ns, slot);
        (ended, next.map(|next| self.serve(now_ns, slot, next)))
    }

    pub(crate) fn present(&self) -> u32 {
        self.slots.present()
    }

    pub(crate) fn counters(&self, now_ns: u64) -> DiskCounters {
        self.slots.counters(now_ns)
    }

    fn serve(&mut self, now_ns: u64, slot: u16, command: DiskCommand) -> Begun {
        let kind = Arc::clone(&self.kind);
        let bytes = u64::from(command.bytes);
        let transfer_ns = bytes * kind.interface_ps_per_byte / 1000;
        let ready_ns = now_ns + kind.overhead_ns;
        let first_piece = command.at_bytes / PIECE_BYTES;
        let pieces = (command.at_bytes + bytes).div_ceil(PIECE_BYTES) - first_piece;
        let carried_ns = self.carry(ready_ns, transfer_ns);
        let end_ns = if command.write {
            let last_ns = (0..pieces).map(|_| self.program(carried_ns)).max().unwrap_or(carried_ns);
            // Acknowledged from protected memory while it has room: the backlog of a channel is what waits there.
            let room_ns = (kind.buffer_pieces / kind.channels as u64).saturating_mul(kind.program_ns);
            last_ns.saturating_sub(room_ns).max(carried_ns)
        } else {
            let read_ns = (first_piece..first_piece + pieces).map(|piece| self.read(ready_ns, piece)).max();
            (read_ns.unwrap_or(ready_ns) + transfer_ns).max(carried_ns)
        };
        Begun { end_ns, slot }
    }

    /// The interface has room for so many bytes a second, whichever transfer comes first.
    fn carry(&mut self, from_ns: u64, transfer_ns: u64) -> u64 {
        self.interface_free_ns = self.interface_free_ns.max(from_ns) + transfer_ns;
        self.interface_free_ns
    }

    fn read(&mut self, from_ns: u64, piece: u64) -> u64 {
        // Neighbours lie anywhere.
        let channel = (piece.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % self.free_ns.len() as u64;
        let free_ns = &mut self.free_ns[channel as usize];
        *free_ns = (*free_ns).max(from_ns) + self.kind.read_ns;
        *free_ns
    }

    fn program(&mut self, from_ns: u64) -> u64 {
        self.next_channel = (self.next_channel + 1) % self.free_ns.len();
        let free_ns = &mut self.free_ns[self.next_channel];
        *free_ns = (*free_ns).max(from_ns) + self.kind.program_ns;
        *free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn plan() -> StationPlan {
        StationPlan {
            capacity_bytes: 1 << 40,
            channels: 8,
            read_ns: 60_000,
            program_ns: 600_000,
            command_overhead_ns: 10_000,
            interface_bytes_per_s: 4e9,
            write_buffer_bytes: 0,
            queue_depth: 64,
        }
    }

    /// Commands a second of a disk with `depth` of them present, at random pieces.
    fn rate(plan: &StationPlan, depth: u64, write: bool, count: u64) -> f64 {
        let mut disk = Station::new(Arc::new(StationKind::new(plan)), 0);
        let command = |number: u64, queued_ns| DiskCommand {
            at_bytes: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 20) * 1024 * KIB,
            bytes: 16 << 10,
            write,
            background: false,
            task: 0,
            queued_ns,
        };
        let mut ends: Vec<(u64, u16)> = Vec::new();
        for number in 0..depth {
            ends.extend(disk.push(0, command(number, 0)).map(|begun| (begun.end_ns, begun.slot)));
        }
        let mut now_ns = 0;
        for number in 0..count {
            let first = (0..ends.len()).min_by_key(|place| ends[*place]).expect("something is served");
            let (end_ns, slot) = ends.swap_remove(first);
            now_ns = end_ns;
            let begun = disk.end(now_ns, slot).1;
            ends.extend(
                begun.into_iter().chain(disk.push(now_ns, command(depth + number, now_ns))).map(|b| (b.end_ns, b.slot)),
            );
            assert_eq!(u64::from(disk.present()), depth);
        }
        assert_eq!(disk.counters(now_ns).busy_ns, now_ns);
        assert_eq!(disk.counters(now_ns).queue_ns, now_ns * depth);
        count as f64 / (now_ns as f64 / 1e9)
    }

    #[test]
    fn one_read_after_the_other_takes_overhead_flash_and_interface() {
        let expected = 1e9 / (10_000.0 + 60_000.0 + 16384.0 / 4.0);
        assert!((rate(&plan(), 1, false, 1000) / expected - 1.0).abs() < 0.001);
    }

    #[test]
    fn many_reads_keep_the_channels_busy() {
        let most = 8e9 / 60_000.0;
        let rates = [1, 4, 16, 64].map(|depth| rate(&plan(), depth, false, 5000));
        assert!(rates.is_sorted() && rates[3] <= most * 1.01 && rates[3] > 0.9 * most, "{rates:?} of {most}");
    }

    #[test]
    fn a_buffer_makes_the_first_writes_quick_and_the_lasting_rate_no_better() {
        let expected = 8e9 / 600_000.0;
        let buffered = StationPlan { write_buffer_bytes: 256 << 20, ..plan() };
        assert!((rate(&plan(), 64, true, 20_000) / expected - 1.0).abs() < 0.01);
        assert!((rate(&buffered, 64, true, 20_000) / expected - 1.0).abs() < 0.03);
        assert!(rate(&buffered, 1, true, 200) > 10.0 * rate(&plan(), 1, true, 200));
    }
}
