//! Blocks of a volume that are loaded when they are touched first.

use std::collections::BTreeMap;

use super::plan::SnapshotPlan;

const NS_PER_S: u128 = 1_000_000_000;

#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    plan: SnapshotPlan,
    /// A bit for each block that was touched.
    touched: Vec<u64>,
    /// Blocks on their way, and when they are there.
    coming: BTreeMap<u64, u64>,
    free_ns: u64,
    loaded_bytes: u64,
}

impl Snapshot {
    pub(super) fn new(plan: &SnapshotPlan, bytes: u64) -> Self {
        let blocks = bytes.div_ceil(plan.block_bytes);
        Self {
            plan: plan.clone(),
            touched: vec![0; blocks.div_ceil(64) as usize],
            coming: BTreeMap::new(),
            free_ns: 0,
            loaded_bytes: 0,
        }
    }

    /// When all blocks of an I/O that begins at `at_ns` are there. Blocks that are written as a whole need not be loaded.
    pub(super) fn there_ns(&mut self, at_ns: u64, offset: u64, bytes: u64, writes: bool) -> u64 {
        let size = self.plan.block_bytes;
        let in_background = u128::from(self.plan.background_bytes_per_s as u64) * u128::from(at_ns) / NS_PER_S;
        let mut there_ns = at_ns;
        for block in offset / size..(offset + bytes).div_ceil(size) {
            let (word, bit) = ((block / 64) as usize, 1 << (block % 64));
            if self.touched[word] & bit > 0 {
                if let Some(&coming_ns) = self.coming.get(&block) {
                    there_ns = there_ns.max(coming_ns);
                }
                continue;
            }
            self.touched[word] |= bit;
            let whole = offset <= block * size && offset + bytes >= (block + 1) * size;
            if u128::from((block + 1) * size) <= in_background || (writes && whole) {
                continue;
            }
            let takes_ns = (u128::from(size) * NS_PER_S / u128::from(self.plan.bytes_per_s as u64)) as u64;
            self.free_ns = self.free_ns.max(at_ns) + takes_ns;
            self.loaded_bytes += size;
            let coming_ns = self.free_ns + self.plan.latency_ns;
            self.coming.insert(block, coming_ns);
            there_ns = there_ns.max(coming_ns);
        }
        if self.coming.len() > 4096 {
            self.coming.retain(|_, coming_ns| *coming_ns > at_ns);
        }
        there_ns
    }

    pub(super) fn loaded_bytes(&self) -> u64 {
        self.loaded_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;
    const MS: u64 = 1_000_000;

    fn snapshot(background_bytes_per_s: u64) -> Snapshot {
        let plan = SnapshotPlan {
            block_bytes: 512 * KIB,
            latency_ns: 20 * MS,
            bytes_per_s: (512 * KIB * 100) as f64,
            background_bytes_per_s: background_bytes_per_s as f64,
        };
        Snapshot::new(&plan, 1 << 30)
    }

    #[test]
    fn the_first_touch_of_a_block_is_slow_and_the_next_is_not() {
        let mut snapshot = snapshot(0);
        assert_eq!(snapshot.there_ns(0, 8 * KIB, 8 * KIB, false), 30 * MS);
        // The block is on its way, and then there.
        assert_eq!(snapshot.there_ns(5 * MS, 16 * KIB, 8 * KIB, false), 30 * MS);
        assert_eq!(snapshot.there_ns(40 * MS, 64 * KIB, 8 * KIB, false), 40 * MS);
        // Loads of other blocks follow each other.
        assert_eq!(snapshot.there_ns(40 * MS, 512 * KIB, 1024 * KIB, false), 80 * MS);
        assert_eq!(snapshot.loaded_bytes(), 3 * 512 * KIB);
    }

    #[test]
    fn a_block_that_is_written_as_a_whole_is_not_loaded() {
        let mut snapshot = snapshot(0);
        assert_eq!(snapshot.there_ns(0, 0, 512 * KIB, true), 0);
        assert_eq!(snapshot.there_ns(0, 512 * KIB, 8 * KIB, true), 30 * MS);
    }

    #[test]
    fn blocks_that_came_in_the_background_are_there() {
        let mut snapshot = snapshot(512 * KIB);
        assert_eq!(snapshot.there_ns(10_000 * MS, 9 * 512 * KIB, 8 * KIB, false), 10_000 * MS);
        assert_eq!(snapshot.there_ns(10_000 * MS, 10 * 512 * KIB, 8 * KIB, false), 10_030 * MS);
    }
}
