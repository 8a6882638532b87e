//! Where blocks lie after any sequence of moves, and what a member reads and writes there.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::{Moved, Piece, Placed, WriteAnywhere, geometry, space::bit_runs};
use crate::{
    CachePlan, ControllerPlan, DiskPlan, LayoutPlan, MemberPlan, PartialWrite, RaidPlan, RaidPolicy, SpacePlan,
    StatePlan, StationPlan,
    disk::DiskKinds,
    events::{Event, Events},
    member::Member,
    task::Access,
};

const BLOCK: u64 = 4096;

fn plan(policy: RaidPolicy, run_blocks: u32, disk_rows: u64) -> MemberPlan {
    MemberPlan {
        disks: 6,
        spares: 0,
        disk: DiskPlan::Station(StationPlan {
            capacity_bytes: disk_rows * u64::from(run_blocks) * BLOCK,
            channels: 4,
            read_ns: 100_000,
            program_ns: 300_000,
            command_overhead_ns: 10_000,
            interface_bytes_per_s: 500e6,
            write_buffer_bytes: 0,
            queue_depth: 32,
        }),
        raid: RaidPlan {
            policy,
            set_disks: 0,
            chunk_bytes: 64 << 10,
            partial_write: PartialWrite::Cheapest,
            misalign_bytes: 0,
        },
        controller: ControllerPlan { count: 1, ports: 1, cpu_per_io_ns: 1000, cpu_bytes_per_s: 1e9, cores: 1 },
        cache: CachePlan {
            bytes: 4 << 20,
            write_back: true,
            dirty_low: 0.0,
            dirty_high: 0.5,
            dirty_most: 0.9,
            destage_depth: 2,
            read_preference_ns: 0,
            keep_reads: true,
            sequential_after: 2,
            prefetch_bytes: 256 << 10,
            starts_warm: false,
        },
        layout: LayoutPlan::WriteAnywhere {
            block_bytes: BLOCK,
            run_blocks,
            read_realloc: false,
            reduction: 1.0,
            space: SpacePlan::default(),
        },
        state: StatePlan::Healthy,
        others: None,
        software: None,
        rebuild_bytes_per_s: 0.0,
    }
}

fn layout(plan: &MemberPlan, blocks: u64) -> WriteAnywhere {
    WriteAnywhere::new(plan, &geometry(plan, plan.disks).unwrap(), blocks * BLOCK).unwrap()
}

/// Every block has a place of its own, exactly these places are used, and the free ones are counted right.
fn check(layout: &WriteAnywhere, shadow: &HashMap<u64, u64>, blocks: u64, places: u64) {
    let mut seen = HashSet::new();
    for block in 0..blocks {
        let place = layout.map.get(block);
        assert_eq!(place, shadow.get(&block).copied().unwrap_or(block), "block {block}");
        assert!(place < places && layout.space.is_used(place), "block {block} lies at {place}, which is free");
        assert!(seen.insert(place), "two blocks lie at {place}");
    }
    let used = (0..places).filter(|place| layout.space.is_used(*place)).count() as u64;
    assert_eq!((used, layout.space.free()), (blocks, places - blocks));
    layout.space.check_rows();
}

/// Places that bits of a row stand for, in order.
fn places_of(layout: &WriteAnywhere, placed: &Placed, run_blocks: u64) -> Vec<u64> {
    let mut places = Vec::new();
    let first = placed.row * u64::from(layout.space.row_blocks());
    for (column, bits) in placed.written.chunks(layout.space.words()).enumerate() {
        bit_runs(bits, |offset, count| {
            let place = first + column as u64 * run_blocks + u64::from(offset);
            places.extend(place..place + u64::from(count));
        });
    }
    places
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_filled_pool_keeps_every_block_and_leaves_the_share_that_was_asked_for(
        run_bits in 3_u32..9,
        policy in prop::sample::select(vec![RaidPolicy::Dp, RaidPolicy::Raid5, RaidPolicy::Raid10]),
        before in prop::collection::vec(0_u64..1 << 32, 0..60),
        // Further apart than a row's rounding: it may leave the pool fuller than the first share by half a place a row.
        shares in [0.5_f64..0.65, 0.75..0.95],
        after in prop::collection::vec(0_u64..1 << 32, 1..60),
    ) {
        let run_blocks = 1 << run_bits;
        let plan = plan(policy, run_blocks, 16);
        let geometry = geometry(&plan, plan.disks).unwrap();
        let places = geometry.usable_bytes(plan.disk.capacity_bytes()) / BLOCK;
        let blocks = places / 4;
        let mut layout = layout(&plan, blocks);
        let write = |layout: &mut WriteAnywhere, writes: &[u64]| {
            let (mut old, mut placed) = (Vec::new(), Placed::default());
            for block in writes {
                layout.space.left();
                layout.place(&[block % blocks], &mut old, &mut placed);
            }
        };
        let used = |layout: &WriteAnywhere| (0..places).filter(|place| layout.space.is_used(*place)).count() as u64;
        write(&mut layout, &before);
        for share in shares {
            let held: Vec<u64> = (0..places).filter(|place| layout.space.is_used(*place)).collect();
            prop_assert!(layout.fill(share));
            layout.space.check_rows();
            prop_assert!(held.iter().all(|place| layout.space.is_used(*place)), "a fuller pool frees nothing");
            prop_assert_eq!(used(&layout), places - layout.space.free());
            // Each row takes a whole number of places: half of one is as near as it comes.
            let nearest = 0.5 / f64::from(layout.space.row_blocks()) + 1.0 / places as f64;
            prop_assert!((layout.used_share() - share).abs() <= nearest, "{} of {share}", layout.used_share());
            let full = used(&layout);
            write(&mut layout, &after);
            layout.space.check_rows();
            prop_assert_eq!(used(&layout), full, "as many places become free as are taken");
        }
        prop_assert!(!layout.fill(0.2), "a pool does not become emptier");
        let lie: HashSet<u64> = (0..blocks).map(|block| layout.map.get(block)).collect();
        prop_assert!(lie.len() as u64 == blocks && lie.iter().all(|place| layout.space.is_used(*place)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_block_lies_at_one_place_of_its_own(
        run_bits in 3_u32..9,
        policy in prop::sample::select(vec![RaidPolicy::Dp, RaidPolicy::Raid5, RaidPolicy::Raid10, RaidPolicy::Raid0]),
        fill in 1_u64..=1000,
        writes in prop::collection::vec((0_u64..1 << 32, 1_u64..200), 1..120),
    ) {
        let run_blocks = 1 << run_bits;
        let plan = plan(policy, run_blocks, 8);
        let geometry = geometry(&plan, plan.disks).unwrap();
        let places = 8 * u64::from(geometry.columns() * run_blocks);
        let row_blocks = u64::from(geometry.columns() * run_blocks);
        let blocks = (places - row_blocks) * fill / 1000 + 1;
        let mut layout = layout(&plan, blocks);
        layout.follow();
        let mut shadow = HashMap::new();
        let (mut old, mut placed) = (Vec::new(), Placed::default());
        for (start, count) in writes {
            let start = start % blocks;
            let end = blocks.min(start + count);
            let most = layout.space.room((end - start) as u32).min((end - start) as u32);
            let moved: Vec<u64> = (start..start + u64::from(most)).collect();
            let before: Vec<u64> = moved.iter().map(|block| shadow.get(block).copied().unwrap_or(*block)).collect();
            layout.place(&moved, &mut old, &mut placed);
            prop_assert_eq!(&old, &before);
            let taken = places_of(&layout, &placed, u64::from(run_blocks));
            prop_assert_eq!(taken.len(), moved.len());
            shadow.extend(moved.into_iter().zip(taken));
        }
        check(&layout, &shadow, blocks, places);
        // Whoever follows the moves brings the map back.
        let mut followed = Vec::new();
        layout.take_moved(&mut followed);
        let mut lie = HashMap::new();
        for Moved { at_bytes, place_bytes, bytes } in followed {
            lie.extend((0..bytes / BLOCK).map(|number| (at_bytes / BLOCK + number, place_bytes / BLOCK + number)));
        }
        prop_assert_eq!(&lie, &shadow);
        let mut restored = self::layout(&plan, blocks);
        restored.restore(blocks * BLOCK, lie.iter().map(|(block, place)| (*block, *place))).unwrap();
        check(&restored, &shadow, blocks, places);
        prop_assert!(restored.space.left() > 0);
        if let Some((block, _)) = lie.iter().next() {
            let twice = [(*block, 0), ((*block + 1) % blocks, 0)];
            prop_assert!(blocks == 1 || self::layout(&plan, blocks).restore(blocks * BLOCK, twice.into_iter()).is_err());
        }
        prop_assert!(self::layout(&plan, blocks).restore(blocks * BLOCK, [(blocks, 0)].into_iter()).is_err());
    }

    #[test]
    fn pieces_cover_exactly_what_is_asked(
        moves in prop::collection::vec((0_u64..1200, 1_u64..60), 0..40),
        from in 0_u64..1200 * BLOCK,
        bytes in 1_u64..300 * BLOCK,
    ) {
        let plan = plan(RaidPolicy::Dp, 64, 8);
        let mut layout = layout(&plan, 1200);
        let (mut old, mut placed) = (Vec::new(), Placed::default());
        for (start, count) in moves {
            let count = layout.space.left().min(count.min(1200 - start) as u32);
            layout.place(&(start..start + u64::from(count)).collect::<Vec<_>>(), &mut old, &mut placed);
        }
        let to = (from + bytes).min(1200 * BLOCK);
        let mut pieces = Vec::new();
        layout.pieces(from, to, &mut pieces);
        let mut at = from;
        for (number, Piece { at_bytes, bytes }) in pieces.iter().copied().enumerate() {
            let run_bytes = 64 * BLOCK;
            prop_assert_eq!(at_bytes / run_bytes, (at_bytes + bytes - 1) / run_bytes, "a piece lies in one run");
            for byte in (0..bytes).step_by(512).chain([bytes - 1]) {
                let address = at + byte;
                prop_assert_eq!(at_bytes + byte, layout.map.get(address / BLOCK) * BLOCK + address % BLOCK);
            }
            if let Some(next) = pieces.get(number + 1) {
                let joins = at_bytes + bytes == next.at_bytes && next.at_bytes % run_bytes != 0;
                prop_assert!(!joins, "neighbours on a disk are one piece");
            }
            at += bytes;
        }
        prop_assert_eq!(at, to);
    }

    #[test]
    fn a_member_answers_every_command_once_and_loses_no_block(
        policy in prop::sample::select(vec![
            RaidPolicy::Dp, RaidPolicy::Raid6, RaidPolicy::Raid5, RaidPolicy::Raid10, RaidPolicy::Raid0,
        ]),
        state in prop::sample::select(vec![
            StatePlan::Healthy, StatePlan::Degraded, StatePlan::Rebuilding { depth: 2 },
        ]),
        partial_write in prop::sample::select(vec![
            PartialWrite::ReadModify, PartialWrite::Reconstruct, PartialWrite::Cheapest,
        ]),
        write_back in any::<bool>(),
        fill in 1_u64..=1000,
        accesses in prop::collection::vec((any::<bool>(), 0_u64..1 << 40, 1_u64..512, any::<bool>()), 1..150),
    ) {
        let state = if policy == RaidPolicy::Raid0 { StatePlan::Healthy } else { state };
        let mut plan = plan(policy, 32, 24);
        (plan.state, plan.raid.partial_write, plan.cache.write_back) = (state, partial_write, write_back);
        plan.layout = LayoutPlan::WriteAnywhere { block_bytes: BLOCK, run_blocks: 32, read_realloc: true, reduction: 1.0, space: SpacePlan::default() };
        let geometry = geometry(&plan, plan.disks).unwrap();
        let row_blocks = u64::from(geometry.columns()) * 32;
        let (places, most) = (24 * row_blocks, 23 * row_blocks);
        let blocks = (most * fill / 1000).max(1);
        let kinds = DiskKinds::new(&plan, 1);
        let mut member = Member::new(&plan, &geometry, &kinds, 0, blocks * BLOCK, || 0);
        let mut events = Events::default();
        member.rebuild_next(0, &mut events);
        let mut answered = vec![0; accesses.len()];
        let (mut now_ns, mut at_bytes) = (0, 0);
        for (command, (write, place, sectors, follows)) in accesses.iter().copied().enumerate() {
            if !follows {
                at_bytes = place % (blocks * 8) * 512;
            }
            let bytes = (sectors * 512).min(blocks * BLOCK - at_bytes);
            let access = Access { command: command as u32, at_bytes, bytes, page_end_bytes: u64::MAX };
            if write {
                member.write(now_ns, access, &mut events);
            } else {
                member.read(now_ns, access, &mut events);
            }
            at_bytes = (at_bytes + bytes) % (blocks * BLOCK);
            count(&mut member, &mut answered);
            for _ in 0..place % 8 {
                step(&mut member, &mut now_ns, &mut events);
                count(&mut member, &mut answered);
            }
        }
        while step(&mut member, &mut now_ns, &mut events) {
            count(&mut member, &mut answered);
        }
        prop_assert!(answered.iter().all(|times| *times == 1), "{answered:?}");
        // Destaging begins with the first dirty block, so nothing is left.
        prop_assert_eq!(member.cache.dirty_bytes(), 0);
        let layout = member.anywhere.as_ref().unwrap();
        prop_assert_eq!(layout.under_way_bytes, 0);
        let shadow: HashMap<u64, u64> = (0..blocks).map(|block| (block, layout.map.get(block))).collect();
        check(layout, &shadow, blocks, places);
        if matches!(plan.state, StatePlan::Rebuilding { .. }) {
            prop_assert_eq!(member.lost_disk, None);
        }
        if plan.state == StatePlan::Degraded {
            let lost = member.disks[0].counters(now_ns);
            prop_assert_eq!((lost.reads, lost.writes), (0, 0));
        }
    }
}

fn step(member: &mut Member, now_ns: &mut u64, events: &mut Events) -> bool {
    let Some((at_ns, event)) = events.take(u64::MAX) else { return false };
    let Event::DiskEnds { disk, slot } = event else { unreachable!("only disks act here") };
    *now_ns = at_ns;
    member.disk_ends(at_ns, u32::from(disk), slot, events);
    true
}

fn count(member: &mut Member, answered: &mut [u32]) {
    member.done.drain(..).for_each(|command| answered[command as usize] += 1);
}

#[test]
fn the_frontier_passes_over_rows_fuller_than_the_mean() {
    let plan = plan(RaidPolicy::Raid0, 8, 16);
    // Six columns: rows of 48. Rows 14 and 15 are free.
    let mut layout = layout(&plan, 14 * 48);
    let (mut old, mut placed) = (Vec::new(), Placed::default());
    // One block of row 0 and all of row 3.
    layout.place(&std::iter::once(0).chain(3 * 48..3 * 48 + 47).collect::<Vec<_>>(), &mut old, &mut placed);
    assert_eq!(placed.row, 14);
    assert_eq!(layout.space.left(), 48);
    layout.place(&[3 * 48 + 47, 5], &mut old, &mut placed);
    assert_eq!(placed.row, 15);
    let left = layout.space.left();
    layout.place(&(48..48 + u64::from(left)).collect::<Vec<_>>(), &mut old, &mut placed);
    // The mean is 6 free places: row 0 has only 2.
    assert_eq!((layout.space.left(), layout.space.free()), (46, 96));
    layout.place(&[100], &mut old, &mut placed);
    assert_eq!(placed.row, 1);
}

#[test]
fn impossible_layouts_are_refused() {
    let refuse = |block_bytes, run_blocks| {
        let layout = LayoutPlan::WriteAnywhere {
            block_bytes,
            run_blocks,
            read_realloc: false,
            reduction: 1.0,
            space: SpacePlan::default(),
        };
        geometry(&MemberPlan { layout, ..plan(RaidPolicy::Dp, 64, 8) }, 6).unwrap_err().to_string()
    };
    assert!(refuse(5000, 64).contains("layout.block"));
    assert!(refuse(512, 64).contains("layout.block"));
    assert!(refuse(128 << 10, 64).contains("layout.block"));
    assert!(refuse(4096, 48).contains("layout.write_run"));
    assert!(refuse(4096, 4).contains("layout.write_run"));
    assert!(geometry(&plan(RaidPolicy::Dp, 64, 8), 6).is_ok());
}

/// Reads and writes of each disk after one write of so many bytes at address 0 through to the disks.
fn written_through(partial_write: PartialWrite, state: StatePlan, bytes: u64) -> ([u64; 6], [u64; 6]) {
    let mut plan = plan(RaidPolicy::Dp, 64, 8);
    (plan.raid.partial_write, plan.state, plan.cache.write_back) = (partial_write, state, false);
    let geometry = geometry(&plan, plan.disks).unwrap();
    let mut member = Member::new(&plan, &geometry, &DiskKinds::new(&plan, 1), 0, 64 * 4 * BLOCK, || 0);
    let (mut now_ns, mut events) = (0, Events::default());
    member.write(0, Access { command: 7, at_bytes: 0, bytes, page_end_bytes: u64::MAX }, &mut events);
    while step(&mut member, &mut now_ns, &mut events) {}
    assert_eq!(member.done, [7]);
    let counters = |disk: usize| member.disks[disk].counters(now_ns);
    (std::array::from_fn(|disk| counters(disk).reads), std::array::from_fn(|disk| counters(disk).writes))
}

#[test]
fn part_of_a_stripe_costs_the_reads_of_its_policy() {
    use PartialWrite::{Cheapest, ReadModify, Reconstruct};
    let healthy = StatePlan::Healthy;
    // Four data disks, then two of parity. The place is new, and what it held is in the parity all the same.
    let one = |way, state| written_through(way, state, BLOCK);
    assert_eq!(one(ReadModify, healthy), ([1, 0, 0, 0, 1, 1], [1, 0, 0, 0, 1, 1]));
    assert_eq!(one(Reconstruct, healthy), ([0, 1, 1, 1, 0, 0], [1, 0, 0, 0, 1, 1]));
    assert_eq!(one(Cheapest, healthy), one(ReadModify, healthy));
    // The lost disk's block cannot be read: it is known only from the others of its stripe.
    assert_eq!(one(ReadModify, StatePlan::Degraded), ([0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]));
    // Less than a stripe goes on one disk: three blocks are one command.
    assert_eq!(written_through(ReadModify, healthy, 3 * BLOCK), one(ReadModify, healthy));
    // Whole stripes need no reads.
    assert_eq!(written_through(Reconstruct, healthy, 8 * BLOCK), ([0; 6], [1; 6]));
    assert_eq!(written_through(ReadModify, healthy, 4 * BLOCK).0, [0; 6]);
    // A block written in part is completed first: its old place is the first of disk 0.
    assert_eq!(written_through(Reconstruct, healthy, 512), ([1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 1, 1]));
}
