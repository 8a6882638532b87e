//! The shape of a database before anything was inserted: how many pages each level of its tree has, and where they lie.
//!
//! Page 0 is the header. Then come the inner levels from the root on, then the leaves in the order of their keys, then free
//! pages for leaves that split. The place of every page follows from its number, so that a database of terabytes needs no memory.

use assay_load::content::SECTOR_BYTES;

use crate::{
    node::{Content, Node, Slot},
    page::{CHILDREN_PER_SECTOR, HEADER_BYTES, RECORD_SLOT_BYTES},
};

/// Keys that a leaf is for at first.
pub(crate) const LEAF_KEYS: u64 = 1 << 20;
/// Share of a page that is used at first.
const FILLED_SHARE: f64 = 0.7;
/// Share of the pages that are free at first.
const FREE_SHARE: f64 = 0.05;

/// The kind of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Header,
    /// An inner page of a level, 1 just above the leaves, and its place within the level.
    Inner(u8, u64),
    Leaf(u64),
    Free,
}

#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub pages: u64,
    pub leaves: u64,
    /// First page and pages of the inner levels, 1 just above the leaves first.
    levels: Vec<(u64, u64)>,
    pub first_leaf: u64,
    pub first_free: u64,
    pub leaf_most: usize,
    pub inner_most: usize,
    leaf_first: u64,
    inner_first: u64,
}

impl Shape {
    pub(crate) fn new(size_bytes: u64, page_bytes: u32) -> Self {
        let pages = size_bytes / u64::from(page_bytes);
        let room = page_bytes - HEADER_BYTES;
        let leaf_most = (room / RECORD_SLOT_BYTES) as usize;
        let inner_most = room as usize / SECTOR_BYTES * CHILDREN_PER_SECTOR;
        let filled = |most: usize| ((most as f64 * FILLED_SHARE) as u64).max(1);
        let (leaf_first, inner_first) = (filled(leaf_most), filled(inner_most).max(2));
        let free = ((pages as f64 * FREE_SHARE) as u64).max(1);
        // The most leaves whose inner pages still fit.
        let (mut low, mut high) = (1, pages.saturating_sub(free + 2).max(1));
        while low < high {
            let leaves = (low + high).div_ceil(2);
            let inner: u64 = inner_levels(leaves, inner_first).iter().sum();
            if 1 + inner + leaves + free <= pages { low = leaves } else { high = leaves - 1 }
        }
        let counts = inner_levels(low, inner_first);
        let mut at = 1;
        let mut levels: Vec<(u64, u64)> = counts
            .iter()
            .rev()
            .map(|count| {
                at += count;
                (at - count, *count)
            })
            .collect();
        levels.reverse();
        Self {
            pages,
            leaves: low,
            levels,
            first_leaf: at,
            first_free: at + low,
            leaf_most,
            inner_most,
            leaf_first,
            inner_first,
        }
    }

    pub(crate) fn root(&self) -> u64 {
        1
    }

    /// Keys that there are.
    pub(crate) fn keys(&self) -> u64 {
        self.leaves * LEAF_KEYS
    }

    pub(crate) fn kind(&self, page: u64) -> Kind {
        if page == 0 {
            return Kind::Header;
        }
        if page >= self.first_free {
            return Kind::Free;
        }
        if page >= self.first_leaf {
            return Kind::Leaf(page - self.first_leaf);
        }
        let level = self.levels.iter().position(|(first, count)| (*first..first + count).contains(&page));
        level.map_or(Kind::Header, |level| Kind::Inner(level as u8 + 1, page - self.levels[level].0))
    }

    /// Initial content of a page.
    pub(crate) fn initial(&self, page: u64) -> Node {
        match self.kind(page) {
            Kind::Header | Kind::Free => Node { lsn: 0, low: 0, high: 0, right: 0, content: Content::Empty },
            Kind::Leaf(leaf) => {
                let low = leaf * LEAF_KEYS;
                let apart = LEAF_KEYS / self.leaf_first;
                let records = (0..self.leaf_first).map(|slot| Slot { key: low + slot * apart, version: 0 }).collect();
                let right = if leaf + 1 < self.leaves { page + 1 } else { 0 };
                Node { lsn: 0, low, high: low + LEAF_KEYS, right, content: Content::Leaf(records) }
            }
            Kind::Inner(level, place) => {
                let (below_first, below_count) =
                    if level == 1 { (self.first_leaf, self.leaves) } else { self.levels[usize::from(level) - 2] };
                let keys = LEAF_KEYS.saturating_mul(self.inner_first.saturating_pow(u32::from(level) - 1));
                let first = place * self.inner_first;
                let last = (first + self.inner_first).min(below_count);
                let children = (first..last).map(|child| (child * keys, below_first + child)).collect();
                let count = self.levels[usize::from(level) - 1].1;
                let right = if place + 1 < count { page + 1 } else { 0 };
                let high = last.saturating_mul(keys).min(self.keys());
                Node { lsn: 0, low: first * keys, high, right, content: Content::Inner(children) }
            }
        }
    }
}

/// Pages of the inner levels, 1 just above the leaves first; the last is the root alone.
fn inner_levels(leaves: u64, inner_first: u64) -> Vec<u64> {
    let mut counts = vec![leaves.div_ceil(inner_first)];
    while counts[counts.len() - 1] > 1 {
        counts.push(counts[counts.len() - 1].div_ceil(inner_first));
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The smallest database: header, root, two leaves and a free page.
    const PAGES_MIN: u64 = 5;

    /// The leaf that a search from the root arrives at.
    fn found(shape: &Shape, key: u64) -> u64 {
        let mut page = shape.root();
        loop {
            let node = shape.initial(page);
            match node.content {
                Content::Leaf(_) => return page,
                _ => page = node.child(key).unwrap(),
            }
        }
    }

    proptest! {
        #[test]
        fn every_key_is_found_in_the_leaf_that_holds_it(pages in PAGES_MIN..200_000, page_kib in prop::sample::select(vec![4_u32, 8, 16, 32]), key: u64) {
            let shape = Shape::new(pages * u64::from(page_kib) * 1024, page_kib * 1024);
            let key = key % shape.keys();
            let leaf = found(&shape, key);
            prop_assert_eq!(leaf, shape.first_leaf + key / LEAF_KEYS);
            let node = shape.initial(leaf);
            prop_assert!(node.low <= key && key < node.high);
        }

        #[test]
        fn pages_fill_the_database_and_leave_some_free(pages in PAGES_MIN..1_000_000) {
            let shape = Shape::new(pages * 32768, 32768);
            prop_assert!(shape.first_free < pages);
            prop_assert!(pages - shape.first_free >= (pages / 20).max(1));
            prop_assert!(pages < 100 || pages - shape.first_free <= pages / 10);
        }
    }

    #[test]
    fn a_terabyte_has_few_levels() {
        let shape = Shape::new(1 << 41, 32768);
        assert_eq!(shape.levels.len(), 3);
        assert_eq!(shape.kind(shape.root()), Kind::Inner(3, 0));
    }
}
