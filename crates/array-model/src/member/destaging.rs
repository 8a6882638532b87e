//! Destaging of a member: tasks that take dirty chunks to disk, with the reads before them.

use super::Member;
use crate::{
    PartialWrite, Place, RaidPolicy,
    cache::PARTS,
    disk::{Disk, DiskCommand},
    events::Events,
    task::{Access, ChunkParts, Work, runs},
};

impl Member {
    /// Begins as many destage tasks as the dirty level asks for.
    #[inline]
    pub(crate) fn destage(&mut self, now_ns: u64, events: &mut Events) {
        // A write that waits may need more room than lies between the levels.
        let waits = !self.waiting.writes.is_empty();
        let wanted = if waits { self.destager.most() } else { self.destager.wanted(self.cache.dirty_bytes()) };
        if self.destager.total >= wanted {
            return;
        }
        let lanes = self.destager.under_way.len() as u32;
        let in_lane = wanted.div_ceil(lanes);
        let mut passed_over = 0;
        while self.destager.total < wanted && passed_over < lanes {
            let lane = self.destager.turn;
            self.destager.turn = if lane + 1 == lanes { 0 } else { lane + 1 };
            if self.destager.under_way[lane as usize] < in_lane && self.destage_one(now_ns, lane, events) {
                passed_over = 0;
            } else {
                passed_over += 1;
            }
        }
    }

    /// Begins to write the next dirty chunk of a lane, with a parity set its whole stripe.
    fn destage_one(&mut self, now_ns: u64, lane: u32, events: &mut Events) -> bool {
        if self.anywhere.is_some() {
            return self.destage_anywhere(now_ns, events);
        }
        let Some(index) = self.cache.next_dirty(lane) else { return false };
        let task = self.begin(Work::Destage { lane });
        let chunk = self.cache.entry(index).chunk;
        if self.geometry.policy().parity_disks() == 0 {
            let parts = self.cache.begin_flush(index, lane);
            self.tasks[task].chunks.push(ChunkParts { chunk, parts });
        } else {
            let place = self.geometry.place(chunk);
            for column in 0..self.geometry.columns() {
                let chunk = self.geometry.chunk(place.set, place.row, column);
                let Some(index) = self.cache.find(chunk) else { continue };
                let entry = self.cache.entry(index);
                if entry.dirty != 0 && entry.flushing == 0 {
                    let parts = self.cache.begin_flush(index, lane);
                    self.tasks[task].chunks.push(ChunkParts { chunk, parts });
                }
            }
        }
        self.destager.begin(lane);
        self.flush(now_ns, task, events);
        true
    }

    /// Writes that no cache may hold back: a task for each stripe they touch.
    pub(crate) fn write_through(&mut self, now_ns: u64, access: Access, events: &mut Events) {
        if self.anywhere.is_some() {
            self.write_through_anywhere(now_ns, access, events);
            return;
        }
        let command = access.command;
        let mut stripe = None;
        let mut tasks = Vec::new();
        let mut at_bytes = access.at_bytes;
        let end_bytes = access.at_bytes + access.bytes;
        while at_bytes < end_bytes {
            let (chunk, parts, until_bytes) = self.piece(at_bytes, end_bytes);
            let place = self.geometry.place(chunk);
            if stripe != Some((place.set, place.row)) {
                stripe = Some((place.set, place.row));
                tasks.push(self.begin(Work::WriteThrough { command }));
            }
            let task = tasks[tasks.len() - 1];
            self.tasks[task].chunks.push(ChunkParts { chunk, parts });
            at_bytes = until_bytes;
        }
        if tasks.len() > 1 {
            self.waiting.tasks_left.push((command, tasks.len() as u32));
        }
        tasks.iter().for_each(|task| self.begin_stripe(now_ns, *task, events));
    }

    /// Serves a flush. A cache with a battery keeps all it acknowledged; without one every write has gone to the disks, and
    /// they have to empty what they hold in memory of their own.
    pub(crate) fn flush_disks(&mut self, now_ns: u64, command: u32, events: &mut Events) {
        if self.caching.write_back || self.disks.iter().all(Disk::is_protected) {
            self.done.push(command);
            return;
        }
        let task = self.begin(Work::Flush { command });
        let lost = self.lost_disk.filter(|_| self.rebuild.is_none());
        for disk in (0..self.disks.len() as u32).filter(|disk| lost != Some(*disk)) {
            let (at_bytes, bytes, queued_ns) = (0, 0, now_ns);
            let command = DiskCommand { at_bytes, bytes, write: true, background: false, task, queued_ns };
            self.push(now_ns, disk, command, events);
        }
    }

    /// First step of a task that writes chunks of one stripe: read what its parity needs, or write at once.
    pub(super) fn flush(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        if self.geometry.policy().parity_disks() > 0 {
            let stripe = self.stripe(task);
            match self.way_to_write(task, &stripe) {
                Way::Full => {}
                Way::ReadModify => self.read_old(now_ns, task, &stripe, events),
                Way::Reconstruct => self.read_rest(now_ns, task, &stripe, events),
            }
        }
        if self.tasks[task].remaining == 0 && !self.log_stripe(now_ns, task, events) {
            self.write_all(now_ns, task, events);
        }
    }

    /// A step of such a task is over.
    pub(crate) fn flush_goes_on(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        if !self.tasks[task].writing {
            if !self.log_stripe(now_ns, task, events) {
                self.write_all(now_ns, task, events);
            }
            return;
        }
        match self.tasks[task].work {
            Work::Destage { lane } => {
                self.end_destage(task, lane);
                self.admit_waiting();
                self.destage(now_ns, events);
            }
            Work::WriteThrough { command } => {
                self.end_stripe(now_ns, task, events);
                self.finish(task);
                self.end_write_through(command);
            }
            _ => unreachable!("only these write chunks"),
        }
    }

    fn end_destage(&mut self, task: u32, lane: u32) {
        let mut written = 0;
        for position in 0..self.tasks[task].chunks.len() {
            let ChunkParts { chunk, parts } = self.tasks[task].chunks[position];
            let (_, at) = self.destager.lane(&self.geometry, chunk);
            self.cache.end_flush(chunk, lane, at, self.caching.keep_reads);
            written += u64::from(parts.count_ones());
        }
        self.counters.destaged_bytes += written << self.part_shift;
        self.end_destage_anywhere(written);
        self.destager.under_way[lane as usize] -= 1;
        self.destager.total -= 1;
        self.finish(task);
    }

    pub(super) fn end_write_through(&mut self, command: u32) {
        if let Some(position) = self.waiting.tasks_left.iter().position(|(other, _)| *other == command) {
            let left = &mut self.waiting.tasks_left[position].1;
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.waiting.tasks_left.swap_remove(position);
        }
        self.done.push(command);
    }

    /// The stripe a task writes to.
    pub(super) fn stripe(&self, task: u32) -> Stripe {
        let chunks = &self.tasks[task].chunks;
        let parts = chunks.iter().fold(0, |all, chunk| all | chunk.parts);
        Stripe { place: self.geometry.place(chunks[0].chunk), parts }
    }

    /// What to read before the stripe's parity can be written.
    fn way_to_write(&self, task: u32, stripe: &Stripe) -> Way {
        let chunks = &self.tasks[task].chunks;
        let Place { set, row, .. } = stripe.place;
        // Diagonals cross from one part of a chunk to others: only whole chunks determine theirs.
        let same = if self.geometry.policy() == RaidPolicy::Dp { u64::MAX } else { stripe.parts };
        if chunks.len() == self.geometry.columns() as usize && chunks.iter().all(|chunk| chunk.parts == same) {
            return Way::Full;
        }
        if let Some(lost) = self.lost_disk.filter(|disk| !self.has(*disk, row))
            && lost / self.geometry.set_disks() == set
        {
            return self.way_without(lost, chunks, stripe);
        }
        match self.partial_write {
            PartialWrite::ReadModify => Way::ReadModify,
            PartialWrite::Reconstruct => Way::Reconstruct,
            PartialWrite::Cheapest => {
                let parity = self.geometry.policy().parity_disks();
                let modify: u32 = chunks.iter().map(|chunk| runs(chunk.parts).count() as u32).sum::<u32>()
                    + parity * runs(stripe.parts).count() as u32;
                let rest: u32 = (0..self.geometry.columns())
                    .map(|column| runs(self.missing(chunks, stripe, column)).count() as u32)
                    .sum();
                if rest < modify { Way::Reconstruct } else { Way::ReadModify }
            }
        }
    }

    /// With a disk lost: what it held cannot be read, so that the way is chosen that does not need it.
    fn way_without(&self, lost: u32, chunks: &[ChunkParts], stripe: &Stripe) -> Way {
        let Place { set, row, .. } = stripe.place;
        let is_lost = |chunk: &ChunkParts| self.geometry.place(chunk.chunk).disk == lost;
        if chunks.iter().any(is_lost) {
            return Way::Reconstruct;
        }
        let parity = self.geometry.policy().parity_disks();
        let lost_parity = (0..parity).any(|which| self.geometry.parity_disk(set, row, which) == lost);
        // The only parity is lost: there is nothing to keep up to date.
        if lost_parity && parity == 1 { Way::Full } else { Way::ReadModify }
    }

    /// Parts of a column that the stripe's parity is computed from, and that are neither written nor in the cache.
    fn missing(&self, chunks: &[ChunkParts], stripe: &Stripe, column: u32) -> u64 {
        let chunk = self.geometry.chunk(stripe.place.set, stripe.place.row, column);
        let written = chunks.iter().find(|other| other.chunk == chunk).map_or(0, |other| other.parts);
        let held = self.cache.find(chunk).map_or(0, |index| self.cache.entry(index).valid);
        let needed = if self.geometry.policy() == RaidPolicy::Dp { u64::MAX } else { stripe.parts };
        needed & !written & !held
    }

    /// Reads the old data and the old parity.
    fn read_old(&mut self, now_ns: u64, task: u32, stripe: &Stripe, events: &mut Events) {
        for position in 0..self.tasks[task].chunks.len() {
            let ChunkParts { chunk, parts } = self.tasks[task].chunks[position];
            let disk = self.geometry.place(chunk).disk;
            self.push_runs(now_ns, task, RowParts { disk, row: stripe.place.row, parts }, false, events);
        }
        self.push_parity(now_ns, task, stripe, false, events);
    }

    /// Reads the data of the stripe that are not written; of all rows with diagonal parity, whose diagonals cross them.
    fn read_rest(&mut self, now_ns: u64, task: u32, stripe: &Stripe, events: &mut Events) {
        let Place { set, row, .. } = stripe.place;
        for column in 0..self.geometry.columns() {
            let missing = self.missing(&self.tasks[task].chunks, stripe, column);
            let disk = self.geometry.data_disk(set, row, column);
            self.push_runs(now_ns, task, RowParts { disk, row, parts: missing }, false, events);
            if missing != 0 && !self.has(disk, row) {
                // The old row parity stands in for what the lost disk held of it.
                let disk = self.geometry.parity_disk(set, row, 0);
                self.push_runs(now_ns, task, RowParts { disk, row, parts: missing }, false, events);
            }
        }
    }

    /// Writes the chunks and whatever protects them.
    fn write_all(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        if self.anywhere.is_some() {
            self.write_placed(now_ns, task, events);
            return;
        }
        self.tasks[task].writing = true;
        for position in 0..self.tasks[task].chunks.len() {
            let ChunkParts { chunk, parts } = self.tasks[task].chunks[position];
            let place = self.geometry.place(chunk);
            for copy in 0..self.geometry.policy().copies() {
                self.push_runs(now_ns, task, RowParts { disk: place.disk + copy, row: place.row, parts }, true, events);
            }
        }
        if self.geometry.policy().parity_disks() > 0 {
            let stripe = self.stripe(task);
            self.push_parity(now_ns, task, &stripe, true, events);
        }
        if self.tasks[task].remaining == 0 {
            // All of it was for a disk that is lost.
            self.flush_goes_on(now_ns, task, events);
        }
    }

    /// Parts of the diagonal parity that a task changes, as one range from the first to the last.
    fn diagonal_parts(&self, task: u32) -> u64 {
        let Some(code) = &self.code else { return 0 };
        let part_bytes = self.geometry.chunk_bytes() / u64::from(PARTS);
        let changed = |chunk: &ChunkParts| {
            let column = self.geometry.place(chunk.chunk).column;
            runs(chunk.parts)
                .map(move |(first, count)| {
                    let (offset, bytes) = (u64::from(first) * part_bytes, u64::from(count) * part_bytes);
                    code.affected_parity(column, offset, bytes)[1].clone()
                })
                .fold((u64::MAX, 0), |range, other| (range.0.min(other.start), range.1.max(other.end)))
        };
        let (start, end) = self.tasks[task]
            .chunks
            .iter()
            .map(changed)
            .fold((u64::MAX, 0), |range, other| (range.0.min(other.0), range.1.max(other.1)));
        parts_between(start / part_bytes, end.div_ceil(part_bytes))
    }

    fn push_parity(&mut self, now_ns: u64, task: u32, stripe: &Stripe, write: bool, events: &mut Events) {
        let Place { set, row, .. } = stripe.place;
        for which in 0..self.geometry.policy().parity_disks() {
            let disk = self.geometry.parity_disk(set, row, which);
            let parts = if which == 1 && self.geometry.policy() == RaidPolicy::Dp {
                self.diagonal_parts(task)
            } else {
                stripe.parts
            };
            self.push_runs(now_ns, task, RowParts { disk, row, parts }, write, events);
        }
    }

    /// Commands for the runs of parts of a disk's row; none for a disk that does not have it.
    fn push_runs(&mut self, now_ns: u64, task: u32, at: RowParts, write: bool, events: &mut Events) {
        let RowParts { disk, row, parts } = at;
        if !self.has(disk, row) {
            return;
        }
        let chunk_bytes = self.geometry.chunk_bytes();
        let part_bytes = chunk_bytes / u64::from(PARTS);
        let background = self.is_background(task);
        for (first, count) in runs(parts) {
            let command = DiskCommand {
                at_bytes: row * chunk_bytes + u64::from(first) * part_bytes,
                bytes: count * part_bytes as u32,
                write,
                background,
                task,
                queued_ns: now_ns,
            };
            self.push(now_ns, disk, command, events);
        }
    }
}

/// Parts from the first up to another.
fn parts_between(first: u64, end: u64) -> u64 {
    if first >= end { 0 } else { (u64::MAX << first) & (u64::MAX >> (u64::from(PARTS) - end)) }
}

/// Parts of a disk's row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowParts {
    pub(crate) disk: u32,
    pub(crate) row: u64,
    pub(crate) parts: u64,
}

/// Part of a row of a set that is being written.
pub(super) struct Stripe {
    pub(super) place: Place,
    /// Parts of the chunks that any column writes.
    pub(super) parts: u64,
}

/// How a stripe's parity is brought up to date.
enum Way {
    /// All of it is known.
    Full,
    ReadModify,
    Reconstruct,
}
