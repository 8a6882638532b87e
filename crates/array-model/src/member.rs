//! One array: its disks, its cache, and the work between them.

mod admitting;
mod destaging;
mod moving;
mod rebuilding;
mod reclaiming;
mod scattered_reads;
mod scattered_writes;
mod software;

use std::collections::VecDeque;

use crate::{
    Code, Geometry, LayoutPlan, MemberPlan, PartialWrite, Place, StatePlan,
    cache::{Cache, PARTS},
    destage::Destager,
    disk::{Begun, Disk, DiskCommand, DiskKinds},
    events::{Event, Events},
    processors::Processors,
    rebuild::Rebuild,
    slab::Slab,
    software_raid::Software,
    streams::Streams,
    task::{Access, ChunkParts, Task, Work},
    write_anywhere::{Reclaim, WriteAnywhere},
};

/// Work of a member so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MemberCounters {
    pub(crate) reads: u64,
    pub(crate) read_hits: u64,
    pub(crate) written_bytes: u64,
    pub(crate) destaged_bytes: u64,
    pub(crate) writes_waited: u64,
    pub(crate) cpu_busy_ns: u64,
    pub(crate) rebuilt_bytes: u64,
    /// Read ahead in pieces, and made dirty to be written in one.
    pub(crate) reallocated_bytes: u64,
    /// Read and written again to reclaim space.
    pub(crate) cleaned_bytes: u64,
    pub(crate) moved_bytes: u64,
    /// Pieces on disks that reading ahead took together, and their bytes.
    pub(crate) ahead_pieces: u64,
    pub(crate) ahead_bytes: u64,
}

/// Permissions and limits of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caching {
    pub(crate) keep_reads: bool,
    pub(crate) write_back: bool,
    /// Write-anywhere layouts only.
    pub(crate) read_realloc: bool,
    pub(crate) dirty_most_bytes: u64,
}

/// Accesses that wait for the cache.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiting {
    /// Writes for which the cache has no room, oldest first.
    pub(crate) writes: VecDeque<Access>,
    /// Reads of chunks that are being read ahead: the chunk, and the task that waits.
    reads: Vec<(u64, u32)>,
    /// Commands written through in several tasks, with the number of tasks left.
    pub(crate) tasks_left: Vec<(u32, u32)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) geometry: Geometry,
    /// Of policies with parity.
    pub(crate) code: Option<Code>,
    pub(crate) partial_write: PartialWrite,
    /// Number of the member's first disk in the group.
    pub(crate) first_disk: u16,
    pub(crate) disks: Vec<Disk>,
    pub(crate) cache: Cache,
    pub(crate) caching: Caching,
    streams: Streams,
    pub(crate) tasks: Slab<Task>,
    pub(crate) destager: Destager,
    pub(crate) waiting: Waiting,
    pub(crate) lost_disk: Option<u32>,
    /// How many times longer commands take on each disk; empty while none does.
    pub(crate) slowed: Vec<u32>,
    pub(crate) rebuild: Option<Rebuild>,
    /// Where blocks lie, unless each is at its own place.
    pub(crate) anywhere: Option<Box<WriteAnywhere>>,
    /// Write-anywhere layouts that reclaim space or keep snapshots.
    pub(crate) reclaim: Option<Box<Reclaim>>,
    /// Of members whose RAID is the host's.
    pub(crate) software: Option<Box<Software>>,
    pub(crate) processors: Processors,
    chunk_shift: u32,
    pub(crate) part_shift: u32,
    /// Addresses from here on hold nothing.
    pub(crate) used_bytes: u64,
    pub(crate) counters: MemberCounters,
    /// Commands of hosts that are over, for the caller to answer.
    pub(crate) done: Vec<u32>,
    /// Slots of pieces that were read to be moved, for the caller to carry on.
    pub(crate) read_out: Vec<u16>,
}

impl Member {
    pub(crate) fn new(
        plan: &MemberPlan,
        geometry: &Geometry,
        kinds: &DiskKinds,
        first_disk: u16,
        used_bytes: u64,
        mut phase: impl FnMut() -> u32,
    ) -> Self {
        let active = plan.disks - plan.spares;
        let chunk_bytes = plan.raid.chunk_bytes;
        let cache = &plan.cache;
        let anywhere = WriteAnywhere::new(plan, geometry, used_bytes).map(Box::new);
        let destager = match anywhere {
            Some(_) => Destager::anywhere(cache, geometry, used_bytes.div_ceil(chunk_bytes)),
            None => Destager::new(cache, geometry, geometry.disk_bytes(used_bytes) / chunk_bytes),
        };
        let (lost_disk, rebuild) = match plan.state {
            StatePlan::Healthy => (None, None),
            StatePlan::Degraded => (Some(0), None),
            StatePlan::Rebuilding { depth } => {
                let rows = plan.disk.capacity_bytes() / geometry.chunk_bytes();
                (Some(0), Some(Rebuild::new(depth, rows, plan.rebuild_interval_ns(geometry.chunk_bytes()))))
            }
        };
        Self {
            geometry: geometry.clone(),
            code: Code::of(geometry).ok(),
            partial_write: plan.raid.partial_write,
            first_disk,
            disks: (0..plan.serving_disks())
                .map(|disk| kinds.of(disk, active, rebuild.is_some()).disk(phase()))
                .collect(),
            cache: Cache::new(cache.bytes, chunk_bytes, destager.lanes_count()),
            caching: Caching {
                keep_reads: cache.keep_reads,
                write_back: cache.write_back,
                read_realloc: matches!(plan.layout, LayoutPlan::WriteAnywhere { read_realloc: true, .. }),
                dirty_most_bytes: (cache.bytes as f64 * cache.dirty_most) as u64,
            },
            streams: Streams::new(cache.sequential_after, cache.prefetch_bytes),
            tasks: Slab::new(),
            destager,
            waiting: Waiting::default(),
            lost_disk,
            slowed: Vec::new(),
            rebuild,
            anywhere,
            reclaim: Reclaim::new(plan, geometry, used_bytes).map(Box::new),
            software: plan.software.as_ref().map(|software| {
                Box::new(Software::new(software, plan, geometry.columns(), chunk_bytes / u64::from(PARTS)))
            }),
            processors: Processors::new(&plan.controller),
            chunk_shift: chunk_bytes.trailing_zeros(),
            part_shift: (chunk_bytes / u64::from(PARTS)).trailing_zeros(),
            used_bytes,
            counters: MemberCounters::default(),
            done: Vec::new(),
            read_out: Vec::new(),
        }
    }

    /// A controller's work on a command that has come at `at_ns`; returns when it is done.
    #[inline]
    pub(crate) fn compute(&mut self, controller: u32, at_ns: u64, bytes: u64) -> u64 {
        let (end_ns, takes_ns) = self.processors.compute(controller, at_ns, bytes);
        self.counters.cpu_busy_ns += takes_ns;
        end_ns
    }

    /// Serves a read; the command is over when it is in `done`.
    #[inline]
    pub(crate) fn read(&mut self, now_ns: u64, access: Access, events: &mut Events) {
        self.counters.reads += 1;
        let task = self.begin(Work::Read { command: access.command });
        let mut at_bytes = access.at_bytes;
        let end_bytes = access.at_bytes + access.bytes;
        while at_bytes < end_bytes {
            let (chunk, parts, until_bytes) = self.piece(at_bytes, end_bytes);
            self.read_piece(now_ns, task, chunk, parts, at_bytes..until_bytes, events);
            at_bytes = until_bytes;
        }
        self.read_missing(now_ns, task, events);
        if let Some((from_bytes, to_bytes)) = self.streams.note(access.at_bytes, access.bytes, access.page_end_bytes) {
            self.prefetch(now_ns, from_bytes, to_bytes, events);
        }
        if self.tasks[task].remaining == 0 {
            self.counters.read_hits += 1;
            self.finish(task);
            self.done.push(access.command);
        }
    }

    /// The piece of an access that lies in one chunk: the chunk, its parts, and where the piece ends.
    #[inline]
    pub(crate) fn piece(&self, at_bytes: u64, end_bytes: u64) -> (u64, u64, u64) {
        let chunk = at_bytes >> self.chunk_shift;
        let until_bytes = end_bytes.min((chunk + 1) << self.chunk_shift);
        let first = (at_bytes >> self.part_shift) as u32 % PARTS;
        let last = ((until_bytes - 1) >> self.part_shift) as u32 % PARTS;
        (chunk, (u64::MAX << first) & (u64::MAX >> (PARTS - 1 - last)), until_bytes)
    }

    #[inline]
    fn read_piece(
        &mut self,
        now_ns: u64,
        task: u32,
        chunk: u64,
        parts: u64,
        range: std::ops::Range<u64>,
        events: &mut Events,
    ) {
        if let Some(index) = self.cache.find(chunk) {
            let entry = self.cache.entry(index);
            if entry.valid & parts == parts {
                self.cache.touch(index);
                return;
            }
            if (entry.valid | entry.loading) & parts == parts {
                self.tasks[task].remaining += 1;
                self.waiting.reads.push((chunk, task));
                return;
            }
        }
        if self.anywhere.is_some() {
            self.tasks[task].chunks.push(ChunkParts { chunk, parts });
            self.note_missing(range.start, range.end);
            return;
        }
        let place = self.geometry.place(chunk);
        let within = range.start & (self.geometry.chunk_bytes() - 1);
        self.tasks[task].chunks.push(ChunkParts { chunk, parts });
        self.read_chunk(now_ns, task, place, within, (range.end - range.start) as u32, events);
    }

    /// Whether no host waits for a task: destaging, rebuilding and moving.
    pub(crate) fn is_background(&self, task: u32) -> bool {
        matches!(self.tasks[task].work, Work::Destage { .. } | Work::Rebuild { .. } | Work::Reclaim | Work::Move { .. })
    }

    /// Reads bytes of a data chunk from a disk that has them, or from the disks that determine them.
    pub(crate) fn read_chunk(
        &mut self,
        now_ns: u64,
        task: u32,
        place: Place,
        within: u64,
        bytes: u32,
        events: &mut Events,
    ) {
        let background = self.is_background(task);
        let at_bytes = place.row * self.geometry.chunk_bytes() + within;
        let command = |write| DiskCommand { at_bytes, bytes, write, background, task, queued_ns: now_ns };
        if self.geometry.policy().copies() == 2 {
            let disk = self.nearer_mirror(place);
            self.push(now_ns, disk, command(false), events);
        } else if self.has(place.disk, place.row) {
            self.push(now_ns, place.disk, command(false), events);
        } else {
            // The others of the row and its row parity.
            for column in (0..self.geometry.columns()).filter(|column| *column != place.column) {
                let disk = self.geometry.data_disk(place.set, place.row, column);
                self.push(now_ns, disk, command(false), events);
            }
            if self.geometry.policy().parity_disks() > 0 {
                let disk = self.geometry.parity_disk(place.set, place.row, 0);
                self.push(now_ns, disk, command(false), events);
            }
        }
    }

    /// The disk of a mirrored pair with fewer commands, if both have the row.
    #[inline]
    fn nearer_mirror(&self, place: Place) -> u32 {
        let (first, second) = (place.disk, place.disk + 1);
        let (has_first, has_second) = (self.has(first, place.row), self.has(second, place.row));
        if has_first != has_second {
            return if has_first { first } else { second };
        }
        let present = |disk: u32| self.disks[disk as usize].present();
        match present(first).cmp(&present(second)) {
            std::cmp::Ordering::Less => first,
            std::cmp::Ordering::Greater => second,
            // Neighbouring rows stay on one disk, so that a stream is read in one piece.
            std::cmp::Ordering::Equal => first + ((place.row >> 4) & 1) as u32,
        }
    }

    /// Whether a disk holds a row: it is not lost, or the row has been rebuilt.
    #[inline]
    pub(crate) fn has(&self, disk: u32, row: u64) -> bool {
        self.lost_disk != Some(disk) || self.rebuild.as_ref().is_some_and(|rebuild| rebuild.has(row))
    }

    /// Gives a disk a command of a task.
    #[inline]
    pub(crate) fn push(&mut self, now_ns: u64, disk: u32, mut command: DiskCommand, events: &mut Events) {
        if let Some(anywhere) = &self.anywhere {
            anywhere.reduce(&mut command);
        }
        self.tasks[command.task].remaining += 1;
        if let Some(begun) = self.disks[disk as usize].push(now_ns, command) {
            self.set_end(now_ns, disk, begun, events);
        }
    }

    #[inline]
    fn set_end(&self, now_ns: u64, disk: u32, begun: Begun, events: &mut Events) {
        // Most often nothing is slow, and nothing need be looked up.
        let times = if self.slowed.is_empty() { 1 } else { u64::from(self.slowed[disk as usize]) };
        let end_ns = now_ns + begun.end_ns.saturating_sub(now_ns) * times;
        events.set(end_ns, Event::DiskEnds { disk: self.first_disk + disk as u16, slot: begun.slot });
    }

    fn prefetch(&mut self, now_ns: u64, from_bytes: u64, to_bytes: u64, events: &mut Events) {
        if self.anywhere.is_some() {
            self.prefetch_pieces(now_ns, from_bytes, to_bytes, events);
            return;
        }
        // Chunks that begin in the range, so that ranges that follow each other take every chunk once.
        let chunk_bytes = self.geometry.chunk_bytes();
        for chunk in from_bytes.div_ceil(chunk_bytes)..to_bytes.div_ceil(chunk_bytes) {
            let held = self.cache.find(chunk).map_or(0, |index| {
                let entry = self.cache.entry(index);
                entry.valid | entry.loading
            });
            if held == u64::MAX {
                continue;
            }
            let task = self.begin(Work::Prefetch);
            self.tasks[task].chunks.push(ChunkParts { chunk, parts: !held });
            self.cache.begin_loading(chunk, !held);
            let place = self.geometry.place(chunk);
            self.read_chunk(now_ns, task, place, 0, chunk_bytes as u32, events);
        }
    }

    /// Warms the cache with an access, as after many accesses like it.
    pub(crate) fn warm(&mut self, write: bool, at_bytes: u64, bytes: u64) {
        let access = Access { command: 0, at_bytes, bytes, page_end_bytes: at_bytes + bytes };
        if write {
            if self.caching.write_back && self.cache.dirty_bytes() < self.destager.working_bytes() {
                self.admit(access);
            }
        } else if self.caching.keep_reads {
            let mut at_bytes = at_bytes;
            let end_bytes = access.at_bytes + bytes;
            while at_bytes < end_bytes {
                let (chunk, parts, until_bytes) = self.piece(at_bytes, end_bytes);
                self.cache.keep(chunk, parts);
                at_bytes = until_bytes;
            }
        }
    }

    /// Whether more warming would change nothing.
    pub(crate) fn is_warm(&self, reads: bool, writes: bool) -> bool {
        let dirty = !writes || !self.caching.write_back || self.cache.dirty_bytes() >= self.destager.working_bytes();
        dirty && (!reads || !self.caching.keep_reads || self.cache.is_full())
    }

    /// A new task without commands.
    #[inline]
    pub(crate) fn begin(&mut self, work: Work) -> u32 {
        match self.tasks.reuse() {
            Some(index) => {
                let task = &mut self.tasks[index];
                (task.work, task.remaining, task.writing, task.logged) = (work, 0, false, false);
                task.chunks.clear();
                index
            }
            None => {
                let chunks = Vec::with_capacity(4);
                self.tasks.insert(Task { work, remaining: 0, writing: false, logged: false, chunks })
            }
        }
    }

    #[inline]
    pub(crate) fn finish(&mut self, task: u32) {
        self.tasks.free(task);
    }

    /// A disk ended a command: the next one begins, and its task goes on.
    #[inline]
    pub(crate) fn disk_ends(&mut self, now_ns: u64, disk: u32, slot: u16, events: &mut Events) {
        let (ended, next) = self.disks[disk as usize].end(now_ns, slot);
        if let Some(begun) = next {
            self.set_end(now_ns, disk, begun, events);
        }
        self.progress(now_ns, ended.task, events);
    }

    /// One thing less to come for a task.
    fn progress(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        let state = &mut self.tasks[task];
        state.remaining -= 1;
        if state.remaining > 0 {
            return;
        }
        match state.work {
            Work::Read { command } => {
                self.keep_read(task);
                self.finish(task);
                self.done.push(command);
            }
            Work::Flush { command } => {
                self.finish(task);
                self.done.push(command);
            }
            Work::Prefetch => self.end_prefetch(now_ns, task, events),
            Work::Reclaim => self.finish(task),
            Work::Destage { .. } | Work::WriteThrough { .. } => self.flush_goes_on(now_ns, task, events),
            Work::Rebuild { row } => self.rebuild_goes_on(now_ns, task, row, events),
            Work::Bitmap => {
                self.finish(task);
                self.bitmap_is_written(now_ns, events);
            }
            Work::Log { line } => {
                self.finish(task);
                self.log_is_written(now_ns, line, events);
            }
            Work::Logged { slot } => self.write_is_logged(now_ns, task, slot, events),
            Work::Move { slot } => {
                self.finish(task);
                self.read_out.push(slot);
            }
        }
    }

    fn keep_read(&mut self, task: u32) {
        if self.caching.keep_reads {
            for position in 0..self.tasks[task].chunks.len() {
                let ChunkParts { chunk, parts } = self.tasks[task].chunks[position];
                self.cache.keep(chunk, parts);
            }
        }
    }

    fn end_prefetch(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        for position in 0..self.tasks[task].chunks.len() {
            let ChunkParts { chunk, parts } = self.tasks[task].chunks[position];
            self.cache.end_loading(chunk, parts);
            self.end_waiting(now_ns, chunk, events);
            self.rewrite_scattered(chunk);
        }
        self.finish(task);
        if self.anywhere.is_some() {
            self.destage(now_ns, events);
        }
    }

    /// Reads that waited for a chunk go on.
    fn end_waiting(&mut self, now_ns: u64, chunk: u64, events: &mut Events) {
        let mut position = 0;
        while position < self.waiting.reads.len() {
            let (waited, waiting) = self.waiting.reads[position];
            if waited == chunk {
                self.waiting.reads.swap_remove(position);
                self.progress(now_ns, waiting, events);
            } else {
                position += 1;
            }
        }
    }
}
