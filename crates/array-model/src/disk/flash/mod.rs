//! A drive of flash that ages: translation, garbage, buffers, dies.

mod buffer;
mod dies;
mod fill;
mod heat;
mod translation;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{
    command::{Begun, DiskCommand, DiskCounters},
    slots::Slots,
};
use crate::{FlashAge, SolidStatePlan};
use buffer::{Buffer, Incoming, Programs};
use dies::Dies;
use heat::Heat;
use translation::{Slice, Translation};

/// Fixed point of shares.
const ONE: u64 = 1 << 16;
/// Collected blocks over which the share of valid units is averaged, as a power of two.
const AVERAGED: u32 = 4;
/// Most units moved for each unit written.
const MOVED_MOST: u64 = 100;
/// Places of ends of writes that small writes may go on from.
const STREAMS: usize = 8;

/// Data that all drives of one kind share.
#[derive(Debug)]
pub(crate) struct SolidStateKind {
    page_bytes: u64,
    unit_bytes: u64,
    /// Pages of flash that a unit shares, or takes.
    units_per_page: f64,
    read_ns: u64,
    programs: Programs,
    overhead_ns: u64,
    command_ns: u64,
    interface_ps_per_byte: u64,
    channels: u64,
    channel_ps_per_byte: u64,
    queue_depth: u32,
    protected: bool,
    metadata: u64,
    heat: Heat,
    slice: Slice,
    /// As a drive begins; each has a copy of its own from its first write on.
    filled: Arc<Translation>,
    /// Valid share of the blocks that are collected first; none where no garbage has to be collected yet.
    valid: Option<u64>,
}

impl SolidStateKind {
    pub(crate) fn new(plan: &SolidStatePlan, count: u32) -> Self {
        let slice = Slice::of(plan.capacity_bytes.div_ceil(plan.unit_bytes), plan.over_provisioning, count);
        let held = (f64::from(slice.logical_units) * (1.0 - plan.trimmed_share)).round() as u32;
        let (filled, valid) = match plan.age {
            FlashAge::Fresh => (Translation::empty(&slice), None),
            FlashAge::Written => (Translation::written(&slice, held), None),
            FlashAge::Steady => {
                let share = 1.0 - 1.0 / fill::write_amplification(slice.share(held).max(1e-3));
                (Translation::steady(&slice, held), Some((share * ONE as f64) as u64))
            }
        };
        Self {
            page_bytes: plan.flash.page_bytes,
            unit_bytes: plan.unit_bytes,
            units_per_page: plan.flash.page_bytes as f64 / plan.unit_bytes as f64,
            read_ns: plan.flash.read_ns,
            programs: Programs::new(plan),
            overhead_ns: plan.command_overhead_ns,
            command_ns: plan.command_ns,
            interface_ps_per_byte: (1e12 / plan.interface_bytes_per_s) as u64,
            channels: u64::from(plan.flash.channels),
            channel_ps_per_byte: (1e12 / plan.flash.channel_bytes_per_s) as u64,
            queue_depth: plan.queue_depth,
            protected: plan.power_loss_protection,
            metadata: (plan.metadata_share * ONE as f64) as u64,
            heat: Heat::new(&plan.heat),
            slice,
            filled: Arc::new(filled),
            valid,
        }
    }

    /// Units moved for each unit written where so many of those collected are valid, as a share of [`ONE`].
    fn moved(valid: u64) -> u64 {
        (valid * ONE / (ONE - valid).max(1)).min(MOVED_MOST * ONE)
    }

    /// Page reads for each moved unit: collecting reads the pages that hold a valid unit.
    fn reads_of_moved(&self, valid: u64) -> f64 {
        let share = (valid as f64 / ONE as f64).clamp(1e-6, 1.0);
        let units = self.units_per_page;
        if units <= 1.0 { 1.0 / units } else { (1.0 - libm::pow(1.0 - share, units)) / (units * share) }
    }
}

/// How a drive has aged.
#[derive(Debug, Clone)]
struct Aging {
    translation: Arc<Translation>,
    /// Units written that the slice has not seen.
    unseen: u64,
    /// Mean valid share of the blocks collected last.
    valid: Option<u64>,
    /// Units moved for each unit written, and pages read for each moved one, as shares of [`ONE`].
    moved: u64,
    page_reads: u64,
}

/// Lines in which commands and their bytes follow each other.
#[derive(Debug, Clone, Default)]
struct Lines {
    command_ns: u64,
    in_ns: u64,
    out_ns: u64,
}

/// A drive of flash.
#[derive(Debug, Clone)]
pub(crate) struct SolidState {
    kind: Arc<SolidStateKind>,
    slots: Slots,
    lines: Lines,
    /// By channel: when it is free.
    channels: Box<[u64]>,
    dies: Dies,
    buffer: Buffer,
    aging: Aging,
    heat: Heat,
    /// Where the last writes ended.
    ends: [u64; STREAMS],
    next_end: usize,
}

impl SolidState {
    pub(crate) fn new(kind: Arc<SolidStateKind>, phase: u64) -> Self {
        let mut made = Self {
            slots: Slots::new(kind.queue_depth),
            lines: Lines::default(),
            channels: vec![0; kind.channels as usize].into(),
            dies: Dies::new(&kind.programs.dies, phase),
            buffer: Buffer::default(),
            aging: Aging {
                translation: Arc::clone(&kind.filled),
                unseen: phase % kind.slice.every,
                valid: None,
                moved: 0,
                page_reads: 0,
            },
            heat: kind.heat.clone(),
            ends: [u64::MAX; STREAMS],
            next_end: 0,
            kind,
        };
        if let Some(valid) = made.kind.valid {
            made.collected(valid);
        }
        made
    }

    pub(crate) fn push(&mut self, now_ns: u64, command: DiskCommand) -> Option<Begun> {
        let slot = self.slots.push(now_ns, command)?;
        Some(self.serve(now_ns, slot, command))
    }

    pub(crate) fn end(&mut self, now_ns: u64, slot: u16) -> (DiskCommand, Option<Begun>) {
        let (ended, next) = self.slots.end(now_ns, slot);
        (ended, next.map(|next| self.serve(now_ns, slot, next)))
    }

    pub(crate) fn is_protected(&self) -> bool {
        self.kind.protected
    }

    pub(crate) fn present(&self) -> u32 {
        self.slots.present()
    }

    pub(crate) fn counters(&self, now_ns: u64) -> DiskCounters {
        let mut copy = self.slots.counters(now_ns);
        copy.programmed_bytes = self.buffer.programmed_bytes;
        copy.erases = self.dies.erases;
        copy.throttled_ns = self.heat.throttled_ns(now_ns);
        copy
    }

    #[inline]
    fn serve(&mut self, now_ns: u64, slot: u16, command: DiskCommand) -> Begun {
        // Firmware begins with one command after the other, and is at work on many.
        self.lines.command_ns = self.lines.command_ns.max(now_ns) + self.kind.command_ns;
        let ready_ns = self.lines.command_ns + self.kind.overhead_ns;
        let end_ns = match (command.write, command.bytes) {
            (true, 0) => self.flush(ready_ns),
            (true, _) => self.write(ready_ns, &command),
            (false, _) => self.read(ready_ns, &command),
        };
        Begun { end_ns, slot }
    }

    /// The interface has room for so many bytes a second each way, whichever transfer comes first.
    #[inline]
    fn transfer_ns(&mut self, now_ns: u64, bytes: u64) -> u64 {
        bytes.saturating_mul(self.heat.slowed(now_ns, bytes, self.kind.interface_ps_per_byte)) / 1000
    }

    fn read(&mut self, ready_ns: u64, command: &DiskCommand) -> u64 {
        let kind = Arc::clone(&self.kind);
        let bytes = u64::from(command.bytes);
        let (mut at, end_bytes) = (command.at_bytes, command.at_bytes + bytes);
        let planes = kind.programs.dies.planes();
        let mut there_ns = ready_ns;
        while at < end_bytes {
            let page = at / kind.page_bytes;
            let until = end_bytes.min((page + 1) * kind.page_bytes);
            if self.is_mapped(at / kind.unit_bytes) {
                // Pages were written at different times, so neighbours lie anywhere.
                let place = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                let read_ns = self.dies.read(&kind.programs.dies, ((place * planes) >> 32) as usize, ready_ns);
                let channel = &mut self.channels[((place * kind.channels) >> 32) as usize];
                *channel = (*channel).max(read_ns) + (until - at) * kind.channel_ps_per_byte / 1000;
                there_ns = there_ns.max(*channel);
            }
            at = until;
        }
        let transfer_ns = self.transfer_ns(ready_ns, bytes);
        self.lines.out_ns = self.lines.out_ns.max(ready_ns) + transfer_ns;
        self.lines.out_ns.max(there_ns + transfer_ns)
    }

    /// Whether a unit of the drive was ever written: of those that were not, the drive knows without reading flash.
    #[inline]
    fn is_mapped(&self, unit: u64) -> bool {
        let Aging { translation, .. } = &self.aging;
        translation.is_all_mapped() || translation.is_mapped((unit / self.kind.slice.every) as u32)
    }

    fn write(&mut self, ready_ns: u64, command: &DiskCommand) -> u64 {
        let kind = Arc::clone(&self.kind);
        let bytes = u64::from(command.bytes);
        let transfer_ns = self.transfer_ns(ready_ns, bytes);
        self.lines.in_ns = self.lines.in_ns.max(ready_ns) + transfer_ns;
        let there_ns = self.lines.in_ns;
        let (programmed_bytes, read_units) = self.units(command);
        self.age(command.at_bytes / kind.unit_bytes, programmed_bytes.div_ceil(kind.unit_bytes));
        let moved_bytes = programmed_bytes * self.aging.moved / ONE;
        let metadata_bytes = (programmed_bytes + moved_bytes) * kind.metadata / ONE;
        // A write of a part of a unit first reads the rest of it, and then writes the whole.
        let old_ns = read_units * kind.read_ns;
        let moving_ns = moved_bytes.saturating_mul(kind.read_ns) / kind.unit_bytes * self.aging.page_reads / ONE;
        let coming = Incoming {
            there_ns,
            bytes: programmed_bytes,
            more_bytes: moved_bytes + metadata_bytes,
            reads_ns: old_ns + moving_ns,
        };
        self.buffer.write(&kind.programs, &mut self.dies, &coming)
    }

    /// Bytes that a write programs: whole units, unless it goes on where another ended; and units read for the rest of them.
    fn units(&mut self, command: &DiskCommand) -> (u64, u64) {
        let (from, to) = (command.at_bytes, command.at_bytes + u64::from(command.bytes));
        let unit = self.kind.unit_bytes;
        if from.is_multiple_of(unit) && to.is_multiple_of(unit) {
            return (to - from, 0);
        }
        let goes_on = self.ends.iter().position(|end| *end == from);
        let place = goes_on.unwrap_or(self.next_end);
        self.next_end = if goes_on.is_none() { (self.next_end + 1) % STREAMS } else { self.next_end };
        self.ends[place] = to;
        if goes_on.is_some() {
            return (to - from, 0);
        }
        let (first, last) = (from / unit, (to - 1) / unit);
        let parts = u64::from(!from.is_multiple_of(unit)) + u64::from(!to.is_multiple_of(unit));
        let known = (first..=last).any(|unit| self.is_mapped(unit));
        ((last - first + 1) * unit, if known { parts.min(last - first + 1) } else { 0 })
    }

    /// The slice sees one of so many units as the drive is larger.
    fn age(&mut self, first_unit: u64, units: u64) {
        let every = self.kind.slice.every;
        self.aging.unseen += units;
        while self.aging.unseen >= every {
            self.aging.unseen -= every;
            let unit = first_unit + units.saturating_sub(self.aging.unseen + 1);
            let logical = (unit / every).min(u64::from(self.kind.slice.logical_units) - 1) as u32;
            let collected = Arc::make_mut(&mut self.aging.translation).write(logical);
            if collected.blocks > 0 {
                let units = u64::from(collected.blocks) * u64::from(self.kind.slice.block_units);
                let valid = u64::from(collected.moved) * ONE / units;
                let mean = self.aging.valid.map_or(valid, |mean| mean - (mean >> AVERAGED) + (valid >> AVERAGED));
                self.collected(mean);
            }
        }
    }

    fn collected(&mut self, valid: u64) {
        self.aging.valid = Some(valid);
        self.aging.moved = SolidStateKind::moved(valid);
        self.aging.page_reads = (self.kind.reads_of_moved(valid) * ONE as f64) as u64;
    }

    /// Everything acknowledged is where a power cut does no harm.
    fn flush(&mut self, ready_ns: u64) -> u64 {
        if self.kind.protected {
            return ready_ns;
        }
        self.buffer.flush(&self.kind.programs, &mut self.dies, ready_ns)
    }
}
