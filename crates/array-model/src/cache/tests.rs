//! The cache against a model of it that is slow and simple.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const LANES: u32 = 2;
const CHUNK_BYTES: u64 = 64 << 10;
const PART_BYTES: u64 = CHUNK_BYTES / PARTS as u64;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Held {
    valid: u64,
    dirty: u64,
    flushing: u64,
    loading: u64,
}

impl Held {
    fn is_clean(self) -> bool {
        self.dirty | self.flushing | self.loading == 0
    }
}

/// Expected contents of the cache, and its clean chunks from the oldest to the newest.
#[derive(Debug, Default)]
struct Simple {
    held: BTreeMap<u64, Held>,
    clean: Vec<u64>,
    most_parts: u64,
}

impl Simple {
    fn held_parts(&self) -> u64 {
        self.held.values().map(|held| u64::from(held.valid.count_ones())).sum()
    }

    fn dirty_parts(&self) -> u64 {
        self.held.values().map(|held| u64::from(held.dirty.count_ones() + held.flushing.count_ones())).sum()
    }

    /// Changes a chunk; it is the newest of the clean ones afterwards if it is clean and `used`.
    fn change(&mut self, chunk: u64, used: bool, change: impl FnOnce(&mut Held)) {
        let held = self.held.entry(chunk).or_default();
        let was_listed = self.clean.contains(&chunk);
        change(held);
        let (clean, holds) = (held.is_clean(), held.valid != 0);
        if !clean || used || !was_listed {
            self.clean.retain(|other| *other != chunk);
        }
        if clean && !holds {
            self.held.remove(&chunk);
        } else if clean && (used || !was_listed) {
            self.clean.push(chunk);
        }
        while self.held_parts() > self.most_parts && !self.clean.is_empty() {
            let oldest = self.clean.remove(0);
            self.held.remove(&oldest);
        }
    }
}

/// Where a chunk lies: its lane, and its position there.
fn place(chunk: u64) -> (u32, u32) {
    ((chunk % u64::from(LANES)) as u32, (chunk.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32)
}

fn bucket(chunk: u64) -> u32 {
    place(chunk).1 >> (32 - BUCKETS.ilog2())
}

/// Chunks of a list that begins at `first`, its links checked both ways.
fn list(cache: &Cache, first: Index) -> Vec<u64> {
    let (mut chunks, mut previous, mut index) = (Vec::new(), NONE, first);
    while index != NONE {
        let entry = cache.entry(index);
        assert_eq!(entry.previous, previous);
        chunks.push(entry.chunk);
        assert!(chunks.len() <= cache.entries.len(), "the list is a circle");
        (previous, index) = (index, entry.next);
    }
    chunks
}

fn assert_same(cache: &Cache, simple: &Simple) {
    assert_eq!(cache.held_bytes(), simple.held_parts() * PART_BYTES);
    assert_eq!(cache.dirty_bytes(), simple.dirty_parts() * PART_BYTES);
    assert_eq!(cache.table.iter().filter(|slot| slot.index != NONE).count(), simple.held.len());
    assert_eq!(cache.entries.len() - cache.unused.len(), simple.held.len());
    for (chunk, held) in &simple.held {
        let entry = cache.entry(cache.find(*chunk).expect("no entry is lost"));
        let found = Held { valid: entry.valid, dirty: entry.dirty, flushing: entry.flushing, loading: entry.loading };
        assert_eq!(found, *held);
    }
    assert_eq!(list(cache, cache.oldest), simple.clean);
    assert_eq!(cache.newest == NONE, simple.clean.is_empty());
    for (number, lane) in cache.lanes.iter().enumerate() {
        let mut dirty = BTreeSet::new();
        for (position, head) in lane.heads.iter().enumerate() {
            let chunks = list(cache, *head);
            assert_eq!(lane.occupied[position / 64] >> (position % 64) & 1 == 1, !chunks.is_empty());
            assert!(chunks.iter().all(|chunk| bucket(*chunk) == position as u32));
            dirty.extend(chunks);
        }
        let is_listed =
            |(chunk, held): &(&u64, &Held)| place(**chunk).0 == number as u32 && held.dirty != 0 && held.flushing == 0;
        assert_eq!(dirty, simple.held.iter().filter(is_listed).map(|(chunk, _)| *chunk).collect());
        assert_eq!(lane.dirty_entries as usize, dirty.len());
    }
}

#[derive(Debug, Clone)]
enum Act {
    Write(u64, u64),
    Keep(u64, u64),
    Touch(u64),
    Load(u64, u64),
    EndLoad(usize),
    Flush(u32),
    EndFlush(usize, bool),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let chunk = 0_u64..60;
    let parts = (0_u32..PARTS, 1_u32..=PARTS).prop_map(|(first, count)| (u64::MAX >> (PARTS - count)) << first);
    let act = prop_oneof![
        4 => (chunk.clone(), parts.clone()).prop_map(|(chunk, parts)| Act::Write(chunk, parts)),
        4 => (chunk.clone(), parts.clone()).prop_map(|(chunk, parts)| Act::Keep(chunk, parts)),
        2 => chunk.clone().prop_map(Act::Touch),
        2 => (chunk, parts).prop_map(|(chunk, parts)| Act::Load(chunk, parts)),
        2 => any::<usize>().prop_map(Act::EndLoad),
        4 => (0..LANES).prop_map(Act::Flush),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(which, keep)| Act::EndFlush(which, keep)),
    ];
    prop::collection::vec(act, 1..300)
}

proptest! {
    #[test]
    fn the_cache_holds_what_a_simple_one_holds(acts in acts(), most_chunks in 1_u64..40) {
        let mut cache = Cache::new(most_chunks * CHUNK_BYTES, CHUNK_BYTES, LANES);
        let mut simple = Simple { most_parts: most_chunks * u64::from(PARTS), ..Simple::default() };
        let mut loading: Vec<(u64, u64)> = Vec::new();
        let mut flushing: Vec<u64> = Vec::new();
        let mut sweeps = [0; LANES as usize];
        for act in acts {
            match act {
                Act::Write(chunk, parts) => {
                    let (lane, position) = place(chunk);
                    cache.write(chunk, parts, lane, position);
                    simple.change(chunk, false, |held| (held.valid, held.dirty) = (held.valid | parts, held.dirty | parts));
                }
                Act::Keep(chunk, parts) => {
                    cache.keep(chunk, parts);
                    simple.change(chunk, true, |held| held.valid |= parts);
                }
                Act::Touch(chunk) => {
                    if let Some(index) = cache.find(chunk) {
                        cache.touch(index);
                        simple.change(chunk, true, |_| {});
                    }
                }
                Act::Load(chunk, parts) => {
                    let held = simple.held.get(&chunk).copied().unwrap_or_default();
                    let parts = parts & !held.valid & !held.loading;
                    if parts != 0 {
                        cache.begin_loading(chunk, parts);
                        simple.change(chunk, false, |held| held.loading |= parts);
                        loading.push((chunk, parts));
                    }
                }
                Act::EndLoad(which) if !loading.is_empty() => {
                    let (chunk, parts) = loading.swap_remove(which % loading.len());
                    cache.end_loading(chunk, parts);
                    simple.change(chunk, false, |held| {
                        (held.valid, held.loading) = (held.valid | parts, held.loading & !parts);
                    });
                }
                Act::Flush(lane) => {
                    let buckets: BTreeSet<u32> = simple
                        .held
                        .iter()
                        .filter(|(chunk, held)| place(**chunk).0 == lane && held.dirty != 0 && held.flushing == 0)
                        .map(|(chunk, _)| bucket(*chunk))
                        .collect();
                    // C-SCAN: the next one up, and again from below.
                    let sweep = &mut sweeps[lane as usize];
                    let expected = buckets.range(*sweep..).next().or_else(|| buckets.first()).copied();
                    let Some(index) = cache.next_dirty(lane) else {
                        prop_assert_eq!(expected, None);
                        continue;
                    };
                    let chunk = cache.entry(index).chunk;
                    prop_assert_eq!(Some(bucket(chunk)), expected);
                    *sweep = bucket(chunk);
                    let parts = cache.begin_flush(index, lane);
                    prop_assert_eq!(parts, simple.held[&chunk].dirty);
                    simple.change(chunk, false, |held| (held.flushing, held.dirty) = (held.dirty, 0));
                    flushing.push(chunk);
                }
                Act::EndFlush(which, keep) if !flushing.is_empty() => {
                    let chunk = flushing.swap_remove(which % flushing.len());
                    let (lane, position) = place(chunk);
                    cache.end_flush(chunk, lane, position, keep);
                    simple.change(chunk, false, |held| {
                        let dropped = if keep { 0 } else { held.flushing & !held.dirty };
                        (held.valid, held.flushing) = (held.valid & !dropped, 0);
                    });
                }
                Act::EndLoad(_) | Act::EndFlush(..) => {}
            }
            assert_same(&cache, &simple);
        }
    }
}

#[test]
fn a_table_that_grows_keeps_every_entry() {
    let mut cache = Cache::new(1 << 40, CHUNK_BYTES, LANES);
    // Far more than the table begins with, half of them dropped again.
    let chunks: Vec<u64> = (0..20_000).map(|number| number * 7919 % 1_000_003).collect();
    for chunk in &chunks {
        let (lane, position) = place(*chunk);
        cache.write(*chunk, 1, lane, position);
    }
    for lane in 0..LANES {
        for _ in 0..5000 {
            let index = cache.next_dirty(lane).unwrap();
            let chunk = cache.entry(index).chunk;
            cache.begin_flush(index, lane);
            cache.end_flush(chunk, lane, place(chunk).1, false);
            assert_eq!(cache.find(chunk), None);
        }
    }
    let found =
        chunks.iter().filter(|chunk| cache.find(**chunk).is_some_and(|index| cache.entry(index).chunk == **chunk));
    assert_eq!(found.count(), 10_000);
    assert_eq!(cache.dirty_bytes(), 10_000 * PART_BYTES);
}
