//! Which place of the flash holds what: a page-mapped translation of a slice of the drive, and its garbage collection.

use super::fill;

/// Nothing is there.
const NONE: u32 = u32::MAX;
/// Blocks that have to be free before a block is opened for data.
const FREE_LEAST: usize = 2;
/// Blocks beyond the over-provisioned ones: the open ones.
const RESERVE: u32 = 2;
/// Units of flash that a slice has at most: write amplification depends on the share of over-provisioning and, from some
/// thousand blocks on, hardly on their number.
const SLICE_UNITS: u64 = 1 << 18;
/// Units of all slices of an array: 8 bytes each.
const ALL_UNITS: u64 = 1 << 26;
const BLOCKS_USUAL: u64 = 1 << 10;
const BLOCKS_LEAST: u64 = 16;

/// Shape of a slice: how many logical units there are, and blocks of how many physical units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) logical_units: u32,
    pub(super) blocks: u32,
    pub(super) block_units: u32,
    /// Units of the drive that one unit of the slice stands for.
    pub(super) every: u64,
}

impl Slice {
    /// The slice of each of `drives` drives of `units` units.
    pub(super) fn of(units: u64, over_provisioning: f64, drives: u32) -> Self {
        let slice_units = SLICE_UNITS.min(ALL_UNITS / u64::from(drives.max(1)));
        let physical = |logical: u64| (logical as f64 * (1.0 + over_provisioning)).ceil() as u64;
        let most = (slice_units as f64 / (1.0 + over_provisioning)) as u64;
        let every = units.div_ceil(most.max(1)).max(1);
        let logical = units.div_ceil(every).max(1);
        let block_units = (slice_units / BLOCKS_USUAL).min(physical(logical) / BLOCKS_LEAST).max(2) as u32;
        let blocks = physical(logical).div_ceil(u64::from(block_units)) as u32 + RESERVE;
        Self { logical_units: logical as u32, blocks, block_units, every }
    }

    /// Physical units that data can settle in, of each logical one.
    pub(super) fn share(&self, mapped: u32) -> f64 {
        f64::from((self.blocks - RESERVE) * self.block_units) / f64::from(mapped.max(1)) - 1.0
    }
}

/// A block that is being filled.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    block: u32,
    filled: u32,
}

/// Blocks that were collected for a write, and the valid units that had to be moved out of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Collected {
    pub(super) blocks: u32,
    pub(super) moved: u32,
}

/// Units of a slice. Garbage is collected where the fewest units are valid; data that were moved, which are colder than what
/// hosts write, have an open block of their own.
#[derive(Debug, Clone)]
pub(super) struct Translation {
    block_units: u32,
    /// By logical unit: where it lies.
    places: Box<[u32]>,
    /// By physical unit: what lies there.
    owners: Box<[u32]>,
    full: FullBlocks,
    free: Vec<u32>,
    hosts: Open,
    moves: Open,
    mapped: u32,
}

impl Translation {
    /// A slice that holds nothing.
    pub(super) fn empty(slice: &Slice) -> Self {
        let units = (slice.blocks * slice.block_units) as usize;
        let mut free: Vec<u32> = (0..slice.blocks).rev().collect();
        let mut open = || Open { block: free.pop().expect("a slice has blocks"), filled: 0 };
        let (hosts, moves) = (open(), open());
        Self {
            block_units: slice.block_units,
            places: vec![NONE; slice.logical_units as usize].into(),
            owners: vec![NONE; units].into(),
            full: FullBlocks::new(slice.blocks, slice.block_units),
            free,
            hosts,
            moves,
            mapped: 0,
        }
    }

    /// The first `mapped` logical units written once, in order.
    pub(super) fn written(slice: &Slice, mapped: u32) -> Self {
        let mut made = Self::empty(slice);
        for logical in 0..mapped {
            made.write(logical);
        }
        made
    }

    /// The first `mapped` logical units as uniform random writes leave them in the long run.
    pub(super) fn steady(slice: &Slice, mapped: u32) -> Self {
        let mut made = Self::empty(slice);
        let settled = slice.blocks - RESERVE;
        let counts = fill::valid_counts(settled, slice.block_units, mapped);
        let mut logical = fill::shuffled(mapped).into_iter();
        for count in counts {
            let block = made.free.pop().expect("settled blocks are fewer than all");
            for at in block * made.block_units..block * made.block_units + count {
                let unit = logical.next().expect("the counts add up to what is mapped");
                made.places[unit as usize] = at;
                made.owners[at as usize] = unit;
            }
            made.full.add(block, count);
        }
        made.mapped = mapped;
        made
    }

    /// Whether a unit has been written and not trimmed.
    #[inline]
    pub(super) fn is_mapped(&self, logical: u32) -> bool {
        self.places[logical as usize] != NONE
    }

    pub(super) fn is_all_mapped(&self) -> bool {
        self.mapped as usize == self.places.len()
    }

    /// Writes a unit to where there is room, after room was made.
    #[inline]
    pub(super) fn write(&mut self, logical: u32) -> Collected {
        self.forget(logical);
        self.mapped += 1;
        let mut collected = Collected::default();
        if self.hosts.filled == self.block_units {
            self.full.add(self.hosts.block, self.valid_units(self.hosts.block));
            while self.free.len() < FREE_LEAST {
                collected.moved += self.collect();
                collected.blocks += 1;
            }
            self.hosts = Open { block: self.free.pop().expect("collecting freed one"), filled: 0 };
        }
        let at = self.hosts.block * self.block_units + self.hosts.filled;
        self.hosts.filled += 1;
        self.put(logical, at);
        collected
    }

    /// Forgets a unit: what it held is garbage.
    #[inline]
    pub(super) fn forget(&mut self, logical: u32) {
        let at = std::mem::replace(&mut self.places[logical as usize], NONE);
        if at != NONE {
            self.mapped -= 1;
            self.owners[at as usize] = NONE;
            self.full.lose(at / self.block_units);
        }
    }

    fn put(&mut self, logical: u32, at: u32) {
        self.places[logical as usize] = at;
        self.owners[at as usize] = logical;
    }

    fn valid_units(&self, block: u32) -> u32 {
        let first = (block * self.block_units) as usize;
        self.owners[first..first + self.block_units as usize].iter().filter(|owner| **owner != NONE).count() as u32
    }

    /// Frees the block with the fewest valid units; returns how many had to be moved.
    fn collect(&mut self) -> u32 {
        let (victim, valid) = self.full.take_emptiest();
        let first = victim * self.block_units;
        for at in first..first + self.block_units {
            let logical = std::mem::replace(&mut self.owners[at as usize], NONE);
            if logical == NONE {
                continue;
            }
            if self.moves.filled == self.block_units {
                self.full.add(self.moves.block, self.valid_units(self.moves.block));
                // The last free block: the victim takes its place once it is empty.
                self.moves = Open { block: self.free.pop().expect("one is kept for moves"), filled: 0 };
            }
            let to = self.moves.block * self.block_units + self.moves.filled;
            self.moves.filled += 1;
            self.put(logical, to);
        }
        self.free.push(victim);
        valid
    }
}

/// Blocks that are not written to any more, by the number of their valid units.
#[derive(Debug, Clone)]
struct FullBlocks {
    /// By valid units: the first block of a list.
    first: Box<[u32]>,
    next: Box<[u32]>,
    before: Box<[u32]>,
    /// By block: valid units; none for a block that is free or open.
    valid: Box<[u32]>,
    /// No block has fewer valid units.
    lowest: usize,
}

impl FullBlocks {
    fn new(blocks: u32, block_units: u32) -> Self {
        let none = || vec![NONE; blocks as usize].into();
        let first = vec![NONE; block_units as usize + 1].into();
        Self { first, next: none(), before: none(), valid: none(), lowest: block_units as usize }
    }

    fn add(&mut self, block: u32, valid: u32) {
        let second = std::mem::replace(&mut self.first[valid as usize], block);
        self.next[block as usize] = second;
        self.before[block as usize] = NONE;
        self.valid[block as usize] = valid;
        if second != NONE {
            self.before[second as usize] = block;
        }
        self.lowest = self.lowest.min(valid as usize);
    }

    fn remove(&mut self, block: u32) -> u32 {
        let valid = std::mem::replace(&mut self.valid[block as usize], NONE);
        let (before, next) = (self.before[block as usize], self.next[block as usize]);
        match before {
            NONE => self.first[valid as usize] = next,
            _ => self.next[before as usize] = next,
        }
        if next != NONE {
            self.before[next as usize] = before;
        }
        valid
    }

    /// A block loses one of its valid units.
    #[inline]
    fn lose(&mut self, block: u32) {
        if self.valid[block as usize] != NONE {
            let valid = self.remove(block);
            self.add(block, valid - 1);
        }
    }

    fn take_emptiest(&mut self) -> (u32, u32) {
        while self.first[self.lowest] == NONE {
            self.lowest += 1;
        }
        let block = self.first[self.lowest];
        let valid = self.remove(block);
        (block, valid)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Write amplification of random writes over `drive_writes` times the mapped units.
    fn amplification(made: &mut Translation, draws: &mut fill::Draws, mapped: u32, drive_writes: f64) -> f64 {
        let writes = (f64::from(mapped) * drive_writes) as u64;
        let moved: u64 = (0..writes).map(|_| u64::from(made.write(draws.below(mapped)).moved)).sum();
        1.0 + moved as f64 / writes as f64
    }

    #[test]
    fn the_steady_fill_has_the_write_amplification_of_a_long_simulation() {
        let mut draws = fill::Draws::new(99);
        for share in [0.07, 0.15, 0.28, 0.5] {
            let slice = Slice::of(1 << 28, share, 1);
            let mapped = slice.logical_units;
            let filled = amplification(&mut Translation::steady(&slice, mapped), &mut draws, mapped, 0.2);
            let mut long = Translation::written(&slice, mapped);
            amplification(&mut long, &mut draws, mapped, 5.0);
            let simulated = amplification(&mut long, &mut draws, mapped, 1.0);
            let formula = fill::write_amplification(share);
            assert!((filled / simulated - 1.0).abs() < 0.02, "{share}: {filled} is not {simulated}");
            // The formula is for blocks without end; free ones are over-provisioning that does not help.
            assert!((simulated / formula - 1.0).abs() < 0.04, "{share}: {simulated} is not {formula}");
        }
    }

    #[test]
    fn sequential_overwrites_move_nothing_and_a_trim_raises_the_over_provisioning() {
        let slice = Slice::of(1 << 16, 0.15, 1);
        let mut made = Translation::written(&slice, slice.logical_units);
        let moved: u32 = (0..4).flat_map(|_| 0..slice.logical_units).map(|unit| made.write(unit).moved).sum();
        assert!(moved < slice.logical_units / 50, "{moved}");
        // Half of it forgotten: alpha of 2.3 has hardly any garbage to move.
        let half = slice.logical_units / 2;
        let mut made = Translation::steady(&slice, slice.logical_units);
        (half..slice.logical_units).for_each(|unit| made.forget(unit));
        let mut draws = fill::Draws::new(7);
        amplification(&mut made, &mut draws, half, 4.0);
        let trimmed = amplification(&mut made, &mut draws, half, 2.0);
        assert!((trimmed / fill::write_amplification(slice.share(half)) - 1.0).abs() < 0.02, "{trimmed}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn every_unit_is_where_it_was_last_put(
            units in 1_u64..3000, share in 0.01_f64..4.0, steady: bool, part in 0.1_f64..=1.0,
            writes in prop::collection::vec((any::<u32>(), 0_u8..10), 0..4000),
        ) {
            let slice = Slice::of(units, share, 1);
            let mapped = ((f64::from(slice.logical_units) * part) as u32).max(1);
            let make = if steady { Translation::steady } else { Translation::written };
            let mut made = make(&slice, mapped);
            for (unit, kind) in writes {
                let unit = unit % slice.logical_units;
                if kind == 0 { made.forget(unit) } else { made.write(unit); }
            }
            for (logical, at) in made.places.iter().enumerate().filter(|(_, at)| **at != NONE) {
                prop_assert_eq!(made.owners[*at as usize] as usize, logical);
            }
            let owned = made.owners.iter().filter(|owner| **owner != NONE).count();
            prop_assert_eq!(owned, made.places.iter().filter(|at| **at != NONE).count());
            prop_assert_eq!(owned, made.mapped as usize);
            for block in (0..slice.blocks).filter(|block| made.full.valid[*block as usize] != NONE) {
                prop_assert_eq!(made.full.valid[block as usize], made.valid_units(block));
            }
        }
    }
}
