//! Writes to free places, in whole stripes where these are free.

use super::Member;
use crate::{
    PartialWrite,
    disk::DiskCommand,
    events::Events,
    task::{Access, ChunkParts, Work},
    write_anywhere::{Piece, Placed, WriteAnywhere, bit_runs},
};

impl Member {
    /// The layout of a member that has one.
    #[inline]
    pub(super) fn anywhere_mut(&mut self) -> &mut WriteAnywhere {
        self.anywhere.as_mut().expect("only asked of such a layout")
    }

    /// Begins to write dirty blocks to the frontier's row. Less than the row takes is only written while nothing else
    /// is under way, so that stripes fill.
    pub(crate) fn destage_anywhere(&mut self, now_ns: u64, events: &mut Events) -> bool {
        let dirty_bytes = self.cache.dirty_bytes();
        let none_under_way = self.destager.is_idle();
        let anywhere = self.anywhere_mut();
        let left = anywhere.space.left();
        let waiting = ((dirty_bytes - anywhere.under_way_bytes) >> anywhere.block_shift).min(u64::from(left)) as u32;
        if waiting < left && !none_under_way {
            return false;
        }
        let most = anywhere.space.room(waiting.max(1));
        let task = self.begin(Work::Destage { lane: 0 });
        let mut blocks = std::mem::take(&mut self.anywhere_mut().scratch.blocks);
        self.gather(task, most);
        if self.tasks[task].chunks.is_empty() {
            self.finish(task);
            self.anywhere_mut().scratch.blocks = blocks;
            return false;
        }
        let anywhere = self.anywhere.as_mut().expect("only asked of such a layout");
        let chunks = &mut self.tasks[task].chunks;
        chunks.sort_unstable_by_key(|chunk| chunk.chunk);
        blocks.clear();
        let mut parts = 0;
        for chunk in chunks {
            blocks.extend(anywhere.blocks(*chunk));
            parts += u64::from(chunk.parts.count_ones());
        }
        anywhere.under_way_bytes += parts << self.part_shift;
        self.destager.begin(0);
        self.move_blocks(now_ns, task, &blocks, events);
        self.anywhere_mut().scratch.blocks = blocks;
        self.begin_writing(now_ns, task, events);
        true
    }

    /// Takes dirty blocks into a task: where the sweep is, with the dirty chunks next to each other before and after
    /// it.
    fn gather(&mut self, task: u32, most: u32) {
        let anywhere = self.anywhere.as_ref().expect("only asked of such a layout");
        let mut left = most;
        while left > 0 {
            let Some(index) = self.cache.next_dirty(0) else { break };
            let mut index = Some(index);
            // The first of neighbours, as far back as the row takes.
            for _ in 0..most {
                let chunk = self.cache.entry(index.expect("set above")).chunk;
                match chunk.checked_sub(1).and_then(|before| self.cache.find_waiting(before)) {
                    Some(before) => index = Some(before),
                    None => break,
                }
            }
            while let Some(at) = index.filter(|_| left > 0) {
                let (chunk, dirty) = (self.cache.entry(at).chunk, self.cache.entry(at).dirty);
                let (whole, count) = anywhere.whole_blocks(dirty);
                let parts = if count <= left { dirty } else { dirty & anywhere.first_blocks(whole, left) };
                left -= count.min(left);
                self.cache.begin_flush_of(at, 0, parts);
                self.tasks[task].chunks.push(ChunkParts { chunk, parts });
                index = self.cache.find_waiting(chunk + 1);
            }
        }
    }

    /// Writes that no cache may hold back: as many tasks as the rows of the frontier make of them.
    pub(crate) fn write_through_anywhere(&mut self, now_ns: u64, access: Access, events: &mut Events) {
        let Access { command, at_bytes, bytes, .. } = access;
        let mut blocks = std::mem::take(&mut self.anywhere_mut().scratch.blocks);
        let shift = self.anywhere_mut().block_shift;
        let (mut block, end) = (at_bytes >> shift, ((at_bytes + bytes - 1) >> shift) + 1);
        let mut tasks = Vec::new();
        while block < end {
            let left = self.anywhere_mut().space.left();
            let until = end.min(block + u64::from(left));
            let task = self.begin(Work::WriteThrough { command });
            tasks.push(task);
            let (mut from_bytes, to_bytes) = (at_bytes.max(block << shift), (at_bytes + bytes).min(until << shift));
            while from_bytes < to_bytes {
                let (chunk, parts, until_bytes) = self.piece(from_bytes, to_bytes);
                self.tasks[task].chunks.push(ChunkParts { chunk, parts });
                from_bytes = until_bytes;
            }
            blocks.clear();
            blocks.extend(block..until);
            self.move_blocks(now_ns, task, &blocks, events);
            block = until;
        }
        if tasks.len() > 1 {
            self.waiting.tasks_left.push((command, tasks.len() as u32));
        }
        self.anywhere_mut().scratch.blocks = blocks;
        for task in tasks {
            self.begin_writing(now_ns, task, events);
        }
    }

    /// Gives blocks of a task new places, and reads the data that writing them there needs: the rest of partly written
    /// blocks, and the sources of parity.
    fn move_blocks(&mut self, now_ns: u64, task: u32, blocks: &[u64], events: &mut Events) {
        let anywhere = self.anywhere.as_mut().expect("only asked of such a layout");
        let mut old = std::mem::take(&mut anywhere.scratch.old);
        let mut placed = std::mem::take(anywhere.placed(task));
        anywhere.place(blocks, &mut old, &mut placed);
        for position in 0..self.tasks[task].chunks.len() {
            let ChunkParts { chunk, parts } = self.tasks[task].chunks[position];
            self.read_rest_of_blocks(now_ns, task, ChunkParts { chunk, parts }, blocks, &old, events);
        }
        self.read_for_parity(now_ns, task, &placed, events);
        let block_bytes = 1 << self.anywhere_mut().block_shift;
        self.reclaim(now_ns, blocks, block_bytes, events);
        let anywhere = self.anywhere_mut();
        *anywhere.placed(task) = placed;
        anywhere.scratch.old = old;
    }

    /// Reads old blocks of a chunk of which only some parts are known.
    fn read_rest_of_blocks(
        &mut self,
        now_ns: u64,
        task: u32,
        ChunkParts { chunk, parts }: ChunkParts,
        blocks: &[u64],
        old: &[u64],
        events: &mut Events,
    ) {
        let anywhere = self.anywhere_mut();
        let (whole, _) = anywhere.whole_blocks(parts);
        if whole == parts {
            return;
        }
        let (shift, run_shift) = (anywhere.block_shift, anywhere.run_shift);
        let known = parts | self.cache.find(chunk).map_or(0, |index| self.cache.entry(index).valid);
        let (unknown, _) = self.anywhere_mut().whole_blocks(whole & !known);
        for block in self.anywhere_mut().blocks(ChunkParts { chunk, parts: unknown }) {
            let position = blocks.binary_search(&block).expect("the task writes the block");
            let at_bytes = old[position] << shift;
            let place = self.geometry.place(at_bytes >> run_shift);
            let piece = Piece { at_bytes: at_bytes & (self.geometry.chunk_bytes() - 1), bytes: 1 << shift };
            self.read_chunk(now_ns, task, place, piece.at_bytes, piece.bytes as u32, events);
        }
    }

    /// Reads the sources of parity of partly written stripes, offset by offset as the policy says. Diagonal parity
    /// counts as a block of each stripe, as in the published costs of RAID-DP: 2d + 4 or n I/Os for d of n blocks.
    fn read_for_parity(&mut self, now_ns: u64, task: u32, placed: &Placed, events: &mut Events) {
        let parity = self.geometry.policy().parity_disks();
        if parity == 0 {
            return;
        }
        let columns = self.geometry.columns();
        let words = self.anywhere_mut().space.words();
        let of = |column: u32, word: usize| placed.written[column as usize * words + word];
        let partial: Vec<u64> = (0..words)
            .map(|word| {
                let (any, all) = (0..columns)
                    .fold((0, u64::MAX), |(any, all), column| (any | of(column, word), all & of(column, word)));
                any & !all
            })
            .collect();
        if partial.iter().all(|bits| *bits == 0) {
            return;
        }
        let (set, row) = self.set_and_row(placed.row);
        let lost = self.lost_disk.filter(|disk| !self.has(*disk, row) && disk / self.geometry.set_disks() == set);
        let lost_column =
            lost.map(|lost| (0..columns).find(|column| self.geometry.data_disk(set, row, *column) == lost));
        if lost_column == Some(None) && parity == 1 {
            // The only parity is lost: there is nothing to keep up to date.
            return;
        }
        // Stripes whose new parity is computed from what is not written; that of the others from what is.
        let rest: Vec<u64> = (0..words)
            .map(|word| match lost_column {
                Some(Some(column)) => partial[word] & of(column, word),
                Some(None) => 0,
                None => match self.partial_write {
                    PartialWrite::ReadModify => 0,
                    PartialWrite::Reconstruct => partial[word],
                    PartialWrite::Cheapest => each_bit(partial[word], |bit| {
                        let written = (0..columns).filter(|column| of(*column, word) & bit != 0).count() as u32;
                        columns - written < written + parity
                    }),
                },
            })
            .collect();
        let modify = |word: usize| partial[word] & !rest[word];
        for column in 0..columns {
            let bits: Vec<u64> =
                (0..words).map(|word| (modify(word) & of(column, word)) | (rest[word] & !of(column, word))).collect();
            let disk = self.geometry.data_disk(set, row, column);
            self.push_offsets(now_ns, task, disk, row, &bits, false, events);
        }
        let bits: Vec<u64> = (0..words).map(modify).collect();
        for which in 0..parity {
            let disk = self.geometry.parity_disk(set, row, which);
            self.push_offsets(now_ns, task, disk, row, &bits, false, events);
        }
    }

    /// Writes at once if nothing has to be read.
    fn begin_writing(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        if self.tasks[task].remaining == 0 {
            self.write_placed(now_ns, task, events);
        }
    }

    /// Writes blocks to their new places and whatever protects them.
    pub(crate) fn write_placed(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        self.tasks[task].writing = true;
        let placed = std::mem::take(self.anywhere_mut().placed(task));
        let words = self.anywhere_mut().space.words();
        let (set, row) = self.set_and_row(placed.row);
        for (column, bits) in placed.written.chunks(words).enumerate() {
            for copy in 0..self.geometry.policy().copies() {
                let disk = self.geometry.data_disk(set, row, column as u32) + copy;
                self.push_offsets(now_ns, task, disk, row, bits, true, events);
            }
        }
        if self.geometry.policy().parity_disks() > 0 {
            let any: Vec<u64> = (0..words)
                .map(|word| placed.written.iter().skip(word).step_by(words).fold(0, |any, bits| any | bits))
                .collect();
            for which in 0..self.geometry.policy().parity_disks() {
                let disk = self.geometry.parity_disk(set, row, which);
                self.push_offsets(now_ns, task, disk, row, &any, true, events);
            }
        }
        *self.anywhere_mut().placed(task) = placed;
        if self.tasks[task].remaining == 0 {
            // All of it was for a disk that is lost.
            self.flush_goes_on(now_ns, task, events);
        }
    }

    /// Blocks of a task are on disk.
    pub(crate) fn end_destage_anywhere(&mut self, parts: u64) {
        let bytes = parts << self.part_shift;
        if let Some(anywhere) = &mut self.anywhere {
            anywhere.under_way_bytes -= bytes;
        }
    }

    /// Set and row of the disks for a row of runs.
    fn set_and_row(&self, row: u64) -> (u32, u64) {
        let sets = u64::from(self.geometry.sets());
        ((row % sets) as u32, row / sets)
    }

    /// Commands for the runs of blocks of a disk's row; none for a disk that does not have it.
    #[expect(clippy::too_many_arguments, reason = "where, what and how of a command")]
    fn push_offsets(
        &mut self,
        now_ns: u64,
        task: u32,
        disk: u32,
        row: u64,
        offsets: &[u64],
        write: bool,
        events: &mut Events,
    ) {
        if !self.has(disk, row) {
            return;
        }
        let (shift, row_bytes) = (self.anywhere_mut().block_shift, row * self.geometry.chunk_bytes());
        let background = !matches!(self.tasks[task].work, Work::WriteThrough { .. });
        bit_runs(offsets, |first, count| {
            let command = DiskCommand {
                at_bytes: row_bytes + (u64::from(first) << shift),
                bytes: count << shift,
                write,
                background,
                task,
                queued_ns: now_ns,
            };
            self.push(now_ns, disk, command, events);
        });
    }
}

/// The bits for which something holds.
fn each_bit(mut bits: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let mut held = 0;
    while bits != 0 {
        let bit = bits & bits.wrapping_neg();
        bits ^= bit;
        if holds(bit) {
            held |= bit;
        }
    }
    held
}
