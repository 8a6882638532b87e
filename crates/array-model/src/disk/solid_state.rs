use std::sync::Arc;

use super::command::{Begun, DiskCommand, DiskCounters};
use crate::SolidStatePlan;

/// Data that all flash disks of one kind share.
#[derive(Debug)]
pub(crate) struct SolidStateKind {
    channels: usize,
    page_bytes: u64,
    read_ns: u64,
    program_ns: u64,
    overhead_ns: u64,
    interface_ps_per_byte: u64,
    queue_depth: u32,
    /// Programs that wait in protected memory, each a page.
    buffer_pages: u64,
    /// Time that garbage collection adds to each program, besides the program itself.
    collection_ns: u64,
}

impl SolidStateKind {
    pub(crate) fn new(plan: &SolidStatePlan) -> Self {
        let amplification = write_amplification(plan.over_provisioning);
        let moved = amplification - 1.0;
        let erase_per_page = plan.erase_ns as f64 / f64::from(plan.pages_per_block.max(1));
        let collection_ns = moved * (plan.read_ns + plan.program_ns) as f64 + amplification * erase_per_page;
        Self {
            channels: plan.channels.max(1) as usize,
            page_bytes: plan.page_bytes.max(1),
            read_ns: plan.read_ns,
            program_ns: plan.program_ns,
            overhead_ns: plan.command_overhead_ns,
            interface_ps_per_byte: (1e12 / plan.interface_bytes_per_s) as u64,
            queue_depth: plan.queue_depth.max(1),
            buffer_pages: plan.write_buffer_bytes / plan.page_bytes.max(1),
            collection_ns: collection_ns as u64,
        }
    }
}

/// Pages programmed per page written under uniform random writes to a full disk, by the share of flash beyond its capacity:
/// `(1 + s) / (2 s)`, the greedy collector in the limit of large blocks (Agarwal and Marrow, "A closed-form expression for write
/// amplification in NAND flash", 2010), never below 1.
pub(crate) fn write_amplification(over_provisioning: f64) -> f64 {
    ((1.0 + over_provisioning) / (2.0 * over_provisioning)).max(1.0)
}

/// A disk of flash: channels that read and program pages side by side, and garbage that has to be collected.
#[derive(Debug, Clone)]
pub(crate) struct SolidState {
    kind: Arc<SolidStateKind>,
    /// When each channel is free again.
    free_ns: Box<[u64]>,
    served: Vec<Option<DiskCommand>>,
    slots: Vec<u16>,
    waiting: std::collections::VecDeque<DiskCommand>,
    /// Which channel the next program goes to: the disk places writes where there is room.
    next_channel: usize,
    interface_free_ns: u64,
    counters: DiskCounters,
    counted_ns: u64,
}

impl SolidState {
    pub(crate) fn new(kind: Arc<SolidStateKind>, phase: u64) -> Self {
        let depth = kind.queue_depth as usize;
        Self {
            free_ns: vec![0; kind.channels].into(),
            served: vec![None; depth],
            slots: (0..depth as u16).rev().collect(),
            waiting: std::collections::VecDeque::with_capacity(64),
            next_channel: (phase % kind.channels as u64) as usize,
            interface_free_ns: 0,
            counters: DiskCounters::default(),
            counted_ns: 0,
            kind,
        }
    }

    pub(crate) fn push(&mut self, now_ns: u64, command: DiskCommand) -> Option<Begun> {
        self.account(now_ns);
        match self.slots.pop() {
            Some(slot) => Some(self.serve(now_ns, slot, command)),
            None => {
                self.waiting.push_back(command);
                None
            }
        }
    }

    pub(crate) fn end(&mut self, now_ns: u64, slot: u16) -> (DiskCommand, Option<Begun>) {
        self.account(now_ns);
        let ended = self.served[usize::from(slot)].take().expect("a disk ends what it serves");
        self.counters.count(&ended);
        let next = self.waiting.pop_front().map(|next| self.serve(now_ns, slot, next));
        if next.is_none() {
            self.slots.push(slot);
        }
        (ended, next)
    }

    pub(crate) fn present(&self) -> u32 {
        (self.served.len() - self.slots.len() + self.waiting.len()) as u32
    }

    pub(crate) fn counters(&self, now_ns: u64) -> DiskCounters {
        let mut copy = self.counters;
        let passed_ns = now_ns - self.counted_ns;
        copy.queue_ns += passed_ns * u64::from(self.present());
        copy.busy_ns += if self.present() > 0 { passed_ns } else { 0 };
        copy
    }

    #[inline]
    fn account(&mut self, now_ns: u64) {
        self.counters = self.counters(now_ns);
        self.counted_ns = now_ns;
    }

    fn serve(&mut self, now_ns: u64, slot: u16, command: DiskCommand) -> Begun {
        let kind = Arc::clone(&self.kind);
        let bytes = u64::from(command.bytes);
        let transfer_ns = bytes * kind.interface_ps_per_byte / 1000;
        let ready_ns = now_ns + kind.overhead_ns;
        let first_page = command.at_bytes / kind.page_bytes;
        let pages = (command.at_bytes + bytes).div_ceil(kind.page_bytes) - first_page;
        let carried_ns = self.carry(ready_ns, transfer_ns);
        let end_ns = if command.write {
            let last_ns = (0..pages).map(|_| self.program(carried_ns)).max().unwrap_or(carried_ns);
            // Acknowledged from protected memory while it has room: the backlog of a channel is what waits there.
            let room_ns =
                (kind.buffer_pages / kind.channels as u64).saturating_mul(kind.program_ns + kind.collection_ns);
            last_ns.saturating_sub(room_ns).max(carried_ns)
        } else {
            let read_ns = (first_page..first_page + pages).map(|page| self.read(ready_ns, page)).max();
            (read_ns.unwrap_or(ready_ns) + transfer_ns).max(carried_ns)
        };
        self.served[usize::from(slot)] = Some(command);
        Begun { end_ns, slot }
    }

    /// The interface has room for so many bytes a second, whichever transfer comes first.
    fn carry(&mut self, from_ns: u64, transfer_ns: u64) -> u64 {
        self.interface_free_ns = self.interface_free_ns.max(from_ns) + transfer_ns;
        self.interface_free_ns
    }

    fn read(&mut self, from_ns: u64, page: u64) -> u64 {
        // Pages were written at different times, so neighbours lie anywhere.
        let channel = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % self.free_ns.len() as u64;
        let free_ns = &mut self.free_ns[channel as usize];
        *free_ns = (*free_ns).max(from_ns) + self.kind.read_ns;
        *free_ns
    }

    fn program(&mut self, from_ns: u64) -> u64 {
        self.next_channel = (self.next_channel + 1) % self.free_ns.len();
        let free_ns = &mut self.free_ns[self.next_channel];
        *free_ns = (*free_ns).max(from_ns) + self.kind.program_ns + self.kind.collection_ns;
        *free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn plan() -> SolidStatePlan {
        SolidStatePlan {
            capacity_bytes: 1 << 40,
            channels: 8,
            page_bytes: 16 * KIB,
            read_ns: 60_000,
            program_ns: 600_000,
            erase_ns: 3_000_000,
            pages_per_block: 256,
            over_provisioning: 0.25,
            command_overhead_ns: 10_000,
            interface_bytes_per_s: 4e9,
            write_buffer_bytes: 0,
            queue_depth: 64,
        }
    }

    /// Commands a second of a disk with `depth` of them present, at random pages.
    fn rate(plan: &SolidStatePlan, depth: u64, write: bool, count: u64) -> f64 {
        let mut disk = SolidState::new(Arc::new(SolidStateKind::new(plan)), 0);
        let command = |number: u64, queued_ns| DiskCommand {
            at_bytes: number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 26) * 16 * KIB,
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
    fn lasting_writes_pay_for_the_garbage() {
        // (1 + 1/4) / (2/4) = 2.5 programs for each, 1.5 of them after a read, and 2.5 shares of an erase.
        assert_eq!(write_amplification(0.25), 2.5);
        assert_eq!(write_amplification(10.0), 1.0);
        let each_ns = 600_000.0 + 1.5 * 660_000.0 + 2.5 * 3e6 / 256.0;
        let expected = 8e9 / each_ns;
        let buffered = SolidStatePlan { write_buffer_bytes: 4096 * KIB, ..plan() };
        assert!((rate(&plan(), 64, true, 20_000) / expected - 1.0).abs() < 0.01);
        // A buffer makes the first ones quick and the lasting rate no better.
        assert!((rate(&buffered, 64, true, 20_000) / expected - 1.0).abs() < 0.03);
        assert!(rate(&buffered, 1, true, 200) > 10.0 * rate(&plan(), 1, true, 200));
    }
}
