//! Dirty chunks on their way to disk: when, in which order, and with which reads before them.

use crate::{CachePlan, Geometry};

/// How many dirty chunks are under way, by how full the cache is of them.
///
/// Disks that are written together make a lane: a mirrored pair, a parity set, a single disk. Each lane is swept in one
/// direction (C-SCAN). Below the low level nothing is destaged, at the high level as much as the disks take, and in between in
/// proportion, so that the level settles where as much goes to disk as is written.
#[derive(Debug, Clone)]
pub(crate) struct Destager {
    low_bytes: u64,
    high_bytes: u64,
    /// Tasks under way in each lane, and the most there may be.
    pub(crate) under_way: Vec<u32>,
    most_in_lane: u32,
    pub(crate) total: u32,
    pub(crate) turn: u32,
    /// Position of a row, of 2^32, in units of 2^-16; of a chunk if `by_chunk`.
    position_per_row: u64,
    /// Whether all chunks are swept in one lane by their number: where they lie is no matter of where they go.
    by_chunk: bool,
}

impl Destager {
    pub(crate) fn lanes(geometry: &Geometry) -> u32 {
        if geometry.policy().parity_disks() == 0 { geometry.sets() * geometry.columns() } else { geometry.sets() }
    }

    pub(crate) fn new(cache: &CachePlan, geometry: &Geometry, span_rows: u64) -> Self {
        let lanes = Self::lanes(geometry);
        // A task of a parity set keeps its data disk and the parity disks busy; one of a mirror both disks.
        let tasks_per_depth = match geometry.policy().parity_disks() {
            0 => 1,
            parity => (geometry.set_disks() / (1 + parity)).max(1),
        };
        Self {
            low_bytes: (cache.bytes as f64 * cache.dirty_low) as u64,
            high_bytes: (cache.bytes as f64 * cache.dirty_high) as u64,
            under_way: vec![0; lanes as usize],
            most_in_lane: (cache.destage_depth * tasks_per_depth).max(1),
            total: 0,
            turn: 0,
            position_per_row: Self::position_per_row(span_rows),
            by_chunk: false,
        }
    }

    /// One lane of `chunks`, for writes that go anywhere: each task keeps all disks of a set busy.
    pub(crate) fn anywhere(cache: &CachePlan, geometry: &Geometry, chunks: u64) -> Self {
        Self {
            under_way: vec![0],
            most_in_lane: (cache.destage_depth * geometry.sets()).max(1),
            by_chunk: true,
            ..Self::new(cache, geometry, chunks)
        }
    }

    /// Spreads positions over `span_rows` rows from now on.
    pub(crate) fn reach(&mut self, span_rows: u64) {
        self.position_per_row = Self::position_per_row(span_rows);
    }

    fn position_per_row(span_rows: u64) -> u64 {
        ((1_u64 << 48) - 1) / span_rows.max(1)
    }

    /// Lanes the cache sweeps.
    pub(crate) fn lanes_count(&self) -> u32 {
        self.under_way.len() as u32
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.total == 0
    }

    /// Counts a task in.
    pub(crate) fn begin(&mut self, lane: u32) {
        self.under_way[lane as usize] += 1;
        self.total += 1;
    }

    /// The level at which as much is destaged as disks take.
    pub(crate) fn high_bytes(&self) -> u64 {
        self.high_bytes
    }

    /// Dirty level in the middle of its working range.
    pub(crate) fn working_bytes(&self) -> u64 {
        u64::midpoint(self.low_bytes, self.high_bytes)
    }

    /// Lane of a chunk and its position there, of 2^32.
    #[inline]
    pub(crate) fn lane(&self, geometry: &Geometry, chunk: u64) -> (u32, u32) {
        if self.by_chunk {
            return (0, ((chunk * self.position_per_row) >> 16) as u32);
        }
        let place = geometry.place(chunk);
        let lane = if geometry.policy().parity_disks() == 0 {
            place.set * geometry.columns() + place.column
        } else {
            place.set
        };
        (lane, ((place.row * self.position_per_row) >> 16) as u32)
    }

    /// Most tasks under way in all lanes together.
    #[inline]
    pub(crate) fn most(&self) -> u32 {
        self.most_in_lane * self.under_way.len() as u32
    }

    /// Tasks there should be under way in all lanes together.
    #[inline]
    pub(crate) fn wanted(&self, dirty_bytes: u64) -> u32 {
        if dirty_bytes <= self.low_bytes {
            return 0;
        }
        let most = u64::from(self.most());
        let range = (self.high_bytes - self.low_bytes).max(1);
        ((dirty_bytes - self.low_bytes).min(range) * most).div_ceil(range) as u32
    }
}
