//! Write-anywhere layouts: writes go to free places instead of the old places of their blocks.
//!
//! Blocks of a member's address space lie at numbered places, at first each at its own: volumes were written in order
//! on an empty array. What is destaged takes free places at a frontier that goes around the disks: `run_blocks` in a
//! row on one disk, then on the next, so that whole stripes of free places are written with a parity that needs no
//! reads. Where stripes are partly occupied, the RAID policy's reads are paid. The places of old blocks become free.
//!
//! The run is the unit of striping: a [`Geometry`] of chunks of one run says where places lie, and how parity rotates.
//! The cache keeps chunks of logical addresses of the plan's own chunk size.

mod follow;
mod map;
mod moved;
mod reclaim;
mod space;
#[cfg(test)]
mod tests;

use map::{Map, PLACES_MAX};
pub use moved::Moved;
pub(crate) use reclaim::{Reclaim, check_room};
use space::Space;
pub(crate) use space::bit_runs;

use crate::{
    ArrayError, Geometry, LayoutPlan, MemberPlan, RaidPlan, cache::PARTS, disk::DiskCommand, task::ChunkParts,
};

/// Shorter runs would make more rows than there is memory for.
const RUN_MIN: u32 = 8;
const PAGE_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;
const RUN_MAX: u32 = 1 << 13;

/// Where a member's blocks lie and what is on its way to a new place.
#[derive(Debug, Clone)]
pub(crate) struct WriteAnywhere {
    map: Map,
    pub(crate) space: Space,
    pub(crate) block_shift: u32,
    pub(crate) run_shift: u32,
    /// Bytes on a disk for each byte of data, of 2^32.
    reduced: u64,
    pub(crate) chunk_shift: u32,
    /// Parts of a chunk that make a block.
    block_parts: u32,
    /// Chunks that reading ahead may go on in a run, beyond the stream's own distance.
    pub(crate) ahead_chunks: u64,
    /// Bytes of the cache's chunks in tasks.
    pub(crate) under_way_bytes: u64,
    /// Places that each task writes, by the task's number.
    placed: Vec<Placed>,
    /// The moves since they were last taken; `None` where nothing follows them.
    followed: Option<Vec<Moved>>,
    /// Kept for their memory.
    pub(crate) scratch: Scratch,
}

/// Free places taken by a task: bits of a row, column after column.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placed {
    pub(crate) row: u64,
    pub(crate) written: Vec<u64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    /// Logical addresses that a read did not find in the cache.
    pub(crate) missing: Vec<(u64, u64)>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) blocks: Vec<u64>,
    taken: Vec<(u64, u32)>,
    /// Old places.
    pub(crate) old: Vec<u64>,
}

/// Bytes that lie together in a run; addresses of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) at_bytes: u64,
    pub(crate) bytes: u64,
}

/// The layout of disks in units of one run.
///
/// # Errors
/// The RAID plan is impossible, or the block or the run is.
pub(crate) fn geometry(plan: &MemberPlan, active_disks: u32) -> Result<Geometry, ArrayError> {
    let in_place = Geometry::new(&plan.raid, active_disks)?;
    let LayoutPlan::WriteAnywhere { block_bytes, run_blocks, .. } = plan.layout else { return Ok(in_place) };
    let chunk_bytes = plan.raid.chunk_bytes;
    let (least, most) = ((chunk_bytes / u64::from(PARTS)).max(4096), chunk_bytes);
    if !block_bytes.is_power_of_two() || !(least..=most).contains(&block_bytes) {
        let message = format!("{block_bytes} bytes is no power of two from {least} to {most}, a chunk");
        return Err(ArrayError::invalid("layout.block", message));
    }
    if !run_blocks.is_power_of_two() || !(RUN_MIN..=RUN_MAX).contains(&run_blocks) {
        let message = format!("{run_blocks} is no power of two from {RUN_MIN} to {RUN_MAX}");
        return Err(ArrayError::invalid("layout.write_run", message));
    }
    let geometry = Geometry::new(
        &RaidPlan { chunk_bytes: block_bytes * u64::from(run_blocks), ..plan.raid.clone() },
        active_disks,
    )?;
    if geometry.usable_bytes(plan.disk.capacity_bytes()) / block_bytes >= PLACES_MAX {
        return Err(ArrayError::TooLarge(format!("a member of more than {PLACES_MAX} blocks")));
    }
    Ok(geometry)
}

/// Bytes of each disk that volumes leave free: writes need places to go to.
pub(crate) fn reserve_bytes(plan: &MemberPlan, geometry: &Geometry) -> u64 {
    if matches!(plan.layout, LayoutPlan::InPlace) { 0 } else { geometry.chunk_bytes() }
}

impl WriteAnywhere {
    /// Volumes of `used_bytes` as they were first written, or nothing for a layout in place.
    pub(crate) fn new(plan: &MemberPlan, geometry: &Geometry, used_bytes: u64) -> Option<Self> {
        let LayoutPlan::WriteAnywhere { block_bytes, run_blocks, .. } = plan.layout else { return None };
        let chunk_bytes = plan.raid.chunk_bytes;
        let rows = plan.disk.capacity_bytes() / geometry.chunk_bytes() * u64::from(geometry.sets());
        Some(Self {
            map: Map::default(),
            space: Space::new(geometry.columns(), run_blocks, rows, used_bytes.div_ceil(block_bytes)),
            block_shift: block_bytes.trailing_zeros(),
            run_shift: geometry.chunk_bytes().trailing_zeros(),
            reduced: ((1_u64 << 32) as f64 / plan.layout.reduction()) as u64,
            chunk_shift: chunk_bytes.trailing_zeros(),
            block_parts: (block_bytes * u64::from(PARTS) / chunk_bytes) as u32,
            ahead_chunks: plan.cache.prefetch_bytes / chunk_bytes,
            under_way_bytes: 0,
            placed: Vec::new(),
            followed: None,
            scratch: Scratch::default(),
        })
    }

    /// Bytes that reduced data take on a disk.
    #[inline]
    pub(crate) fn reduced_bytes(&self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.reduced)) >> 32) as u64
    }

    /// Where a range of a disk lies once the data are reduced: ranges that follow each other still do. Writes end at whole
    /// pages, what is left of one goes with the next.
    #[inline]
    pub(crate) fn reduce(&self, command: &mut DiskCommand) {
        if self.reduced == 1 << 32 {
            return;
        }
        let unit = if command.write { PAGE_BYTES } else { SECTOR_BYTES };
        let place = |at: u64| self.reduced_bytes(at) / unit * unit;
        let (first, end) = (place(command.at_bytes), place(command.at_bytes + u64::from(command.bytes)));
        (command.at_bytes, command.bytes) = (first, (end - first).max(unit) as u32);
    }

    /// Has others than volumes hold places until so large a share is used; says whether it was less before.
    pub(crate) fn fill(&mut self, share: f64) -> bool {
        self.space.fill(share)
    }

    /// Share of all places that is used.
    pub(crate) fn used_share(&self) -> f64 {
        self.space.used_share()
    }

    /// Moves blocks, in this order, to the frontier, at most as many as there are places left in its row. Where they
    /// were goes to `old`.
    pub(crate) fn place(&mut self, blocks: &[u64], old: &mut Vec<u64>, placed: &mut Placed) {
        old.clear();
        placed.row = self.space.take(blocks.len() as u32, &mut self.scratch.taken, &mut placed.written);
        let mut blocks = blocks.iter();
        for (place, count) in &self.scratch.taken {
            for (block, place) in blocks.by_ref().take(*count as usize).zip(*place..) {
                old.push(self.map.set(*block, place));
                if let Some(followed) = &mut self.followed {
                    moved::note(followed, *block << self.block_shift, place << self.block_shift, 1 << self.block_shift);
                }
            }
        }
        old.iter().for_each(|place| self.space.release(*place));
    }

    /// Adds the pieces of a range of logical addresses; the first may continue the last piece.
    pub(crate) fn pieces(&self, from_bytes: u64, to_bytes: u64, pieces: &mut Vec<Piece>) {
        let (shift, run_bytes) = (self.block_shift, 1_u64 << self.run_shift);
        self.map.each_piece(from_bytes >> shift, ((to_bytes - 1) >> shift) + 1, |block, place, count| {
            let start_bytes = from_bytes.max(block << shift);
            let mut left_bytes = to_bytes.min((block + count) << shift) - start_bytes;
            let mut at_bytes = (place << shift) + (start_bytes - (block << shift));
            while left_bytes > 0 {
                let within = at_bytes & (run_bytes - 1);
                let bytes = left_bytes.min(run_bytes - within);
                match pieces.last_mut() {
                    Some(piece) if within > 0 && piece.at_bytes + piece.bytes == at_bytes => piece.bytes += bytes,
                    _ => pieces.push(Piece { at_bytes, bytes }),
                }
                at_bytes += bytes;
                left_bytes -= bytes;
            }
        });
    }

    /// Whether a chunk begins where the one before it ends, in the same run.
    pub(crate) fn continues(&self, chunk: u64) -> bool {
        let block = chunk << (self.chunk_shift - self.block_shift);
        let place = self.map.get(block);
        place & ((1 << (self.run_shift - self.block_shift)) - 1) > 0 && self.map.get(block - 1) + 1 == place
    }

    /// Whether blocks of a chunk lie in several rows of runs, so that they were written at different times. What goes
    /// on from the end of a row at the beginning of another was written at once.
    pub(crate) fn is_scattered(&self, chunk: u64) -> bool {
        let blocks = 1 << (self.chunk_shift - self.block_shift);
        let (mut last, mut scattered) = (None, false);
        self.map.each_piece(chunk * blocks, (chunk + 1) * blocks, |_, place, count| {
            scattered |= last.is_some_and(|last| {
                let goes_on = self.space.is_row_start(last + 1) && self.space.is_row_start(place);
                !goes_on && self.space.row_of(last) != self.space.row_of(place)
            });
            last = Some(place + count - 1);
        });
        scattered
    }

    /// Parts of the blocks that have any of these parts, and how many blocks that is.
    pub(crate) fn whole_blocks(&self, parts: u64) -> (u64, u32) {
        let block = u64::MAX >> (PARTS - self.block_parts);
        let (mut whole, mut count) = (0, 0);
        for first in (0..PARTS).step_by(self.block_parts as usize) {
            if parts & (block << first) != 0 {
                whole |= block << first;
                count += 1;
            }
        }
        (whole, count)
    }

    /// Parts of at most `most` first blocks.
    pub(crate) fn first_blocks(&self, whole: u64, mut most: u32) -> u64 {
        let block = u64::MAX >> (PARTS - self.block_parts);
        let mut parts = 0;
        for first in (0..PARTS).step_by(self.block_parts as usize) {
            if most > 0 && whole & (block << first) != 0 {
                parts |= block << first;
                most -= 1;
            }
        }
        parts
    }

    /// Numbers of the blocks that have any of these parts.
    pub(crate) fn blocks(&self, ChunkParts { chunk, parts }: ChunkParts) -> impl Iterator<Item = u64> + use<> {
        let (block_parts, count) = (self.block_parts, PARTS / self.block_parts);
        let block = u64::MAX >> (PARTS - block_parts);
        let has = move |number: &u32| parts & (block << (number * block_parts)) != 0;
        (0..count).filter(has).map(move |number| chunk * u64::from(count) + u64::from(number))
    }

    /// Places that a task writes.
    pub(crate) fn placed(&mut self, task: u32) -> &mut Placed {
        if self.placed.len() <= task as usize {
            self.placed.resize(task as usize + 1, Placed::default());
        }
        &mut self.placed[task as usize]
    }
}
