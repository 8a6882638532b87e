//! A member joins a group that runs: every byte keeps one place, I/O goes on, and the group is faster afterwards.

mod plans;

use std::collections::BTreeSet;

use assay_array_model::{ArrayModel, ArrayPlan, LayoutPlan, Part, RaidPolicy, SpacePlan};
use assay_load::{Completion, Op, Simulated};
use plans::{Draws, KIB, MIB, SECOND, plan, request};

fn small(policy: RaidPolicy, members: u32) -> ArrayPlan {
    let mut plan = plan(policy);
    plan.pools[0].members = members;
    plan.page_bytes = MIB;
    plan.pools[0].member.raid.misalign_bytes = 512;
    plan.pools[0].volumes[0].bytes = 40 * MIB + 4096;
    plan.pools[0].volumes[1].bytes = 17 * MIB;
    plan
}

/// Parts of all volumes, in order.
fn parts(model: &ArrayModel, plan: &ArrayPlan) -> Vec<Part> {
    let volumes = plan.volumes().enumerate();
    volumes.flat_map(|(number, volume)| model.parts(number as u16, 0, volume.bytes).collect::<Vec<_>>()).collect()
}

/// No two bytes have one place.
fn assert_apart(parts: &[Part]) {
    let mut taken = BTreeSet::new();
    for part in parts {
        for sector in part.at_bytes / 512..(part.at_bytes + part.bytes).div_ceil(512) {
            assert!(taken.insert((part.member, sector)), "{part:?} lies on another one");
        }
    }
}

/// Runs random I/Os of 8 KiB, so many at a time, until a time or until nothing moves; gives how many ended and their mean
/// latency.
fn load(model: &mut ArrayModel, now_ns: &mut u64, outstanding: u32, until_ns: u64) -> (u64, f64) {
    let mut draws = Draws(7);
    let mut began = vec![0; outstanding as usize];
    let mut send = |model: &mut ArrayModel, now_ns: u64, tag: u32| {
        let op = if draws.below(10) < 7 { Op::Read } else { Op::Write };
        let volume = draws.below(2);
        let bytes = model.volume_bytes(volume as usize).unwrap() / 8192;
        model.submit(now_ns, &request(op, volume as u16, draws.below(bytes) * 8192, 8192, tag));
    };
    for tag in 0..outstanding {
        began[tag as usize] = *now_ns;
        send(model, *now_ns, tag);
    }
    let mut completions: Vec<Completion> = Vec::new();
    let (mut ended, mut sum_ns, mut left) = (0, 0, outstanding);
    while left > 0 {
        *now_ns = model.advance(*now_ns + SECOND, &mut completions);
        for completion in completions.drain(..) {
            assert_eq!(completion.result, 8192);
            (ended, sum_ns) = (ended + 1, sum_ns + completion.at_ns - began[completion.tag as usize]);
            let moves = until_ns == u64::MAX && model.rebalance_reading().is_some();
            if moves || (until_ns < u64::MAX && *now_ns < until_ns) {
                began[completion.tag as usize] = *now_ns;
                send(model, *now_ns, completion.tag);
            } else {
                left -= 1;
            }
        }
        settle(model);
    }
    (ended, sum_ns as f64 / ended as f64)
}

/// Bytes follow at once.
fn settle(model: &mut ArrayModel) {
    if let Some(reading) = model.rebalance_reading() {
        model.set_moved(reading.pieces_over);
    }
}

#[test]
fn at_every_moment_every_byte_has_one_place_and_pages_that_stay_have_the_old_one() {
    for members in 1..4 {
        let plan = small(RaidPolicy::Raid5, members);
        let mut model = ArrayModel::new(&plan).unwrap();
        for joined in 0..3 {
            let before = parts(&model, &plan);
            model.add_member(&plan, 0).unwrap();
            assert_eq!(parts(&model, &plan), before, "nothing has moved yet");
            let member = members + joined;
            let reading = model.rebalance_reading().unwrap();
            assert_eq!((reading.member, reading.pieces_moved), (member, 0));
            for moved in [1, reading.pieces / 3, reading.pieces / 2 + 1, reading.pieces] {
                model.set_moved(moved);
                assert_apart(&parts(&model, &plan));
            }
            assert_eq!(model.rebalance_reading(), None);
            let now = parts(&model, &plan);
            assert!(now.iter().all(|part| part.member == member || before.contains(part)), "what stays, stays");
            // Each has its share of each volume.
            for volume in 0..2_u16 {
                let bytes = plan.pools[0].volumes[usize::from(volume)].bytes;
                let all: Vec<Part> = model.parts(volume, 0, bytes).collect();
                for owner in 0..=member {
                    let own: u64 = all.iter().filter(|part| part.member == owner).map(|part| part.bytes).sum();
                    let share = bytes / u64::from(member + 1);
                    assert!(own.abs_diff(share) <= 3 * MIB, "volume {volume}, member {owner}: {own} of {bytes}");
                }
            }
        }
    }
}

#[test]
fn a_piece_moves_between_the_places_that_the_parts_say() {
    let mut plan = small(RaidPolicy::Raid10, 2);
    plan.pools[0].volumes[0].bytes = 6 * MIB + 4096;
    plan.pools[0].volumes[1].bytes = 4 * MIB;
    let mut model = ArrayModel::new(&plan).unwrap();
    model.add_member(&plan, 0).unwrap();
    let pieces = model.rebalance_reading().unwrap().pieces;
    for piece in 0..pieces {
        let (from, to) = model.move_of(piece);
        assert_eq!((from.bytes, to.member), (to.bytes, 2));
        let before = bytes_of(&parts(&model, &plan));
        let old = bytes_of(&[from]);
        model.set_moved(piece + 1);
        let now = bytes_of(&parts(&model, &plan));
        let gone: BTreeSet<_> = before.difference(&now).copied().collect();
        let come: BTreeSet<_> = now.difference(&before).copied().collect();
        // The last page of a volume has bytes that are none of it.
        assert!(gone.is_subset(&old) && come.is_subset(&bytes_of(&[to])) && gone.len() == come.len());
    }
}

fn bytes_of(parts: &[Part]) -> BTreeSet<(u32, u64)> {
    let sectors = |part: &Part| {
        let member = part.member;
        (part.at_bytes / 512..(part.at_bytes + part.bytes) / 512).map(move |sector| (member, sector))
    };
    parts.iter().flat_map(sectors).collect()
}

#[test]
fn moves_that_were_cut_short_go_on_where_they_stood() {
    let plan = small(RaidPolicy::Raid6, 1);
    let mut model = ArrayModel::new(&plan).unwrap();
    model.add_member(&plan, 0).unwrap();
    model.set_moved(77);
    let mut again = ArrayModel::new(&plan).unwrap();
    again.add_member(&plan, 77).unwrap();
    assert_eq!(parts(&again, &plan), parts(&model, &plan));
    again.rebalance(4);
    let mut now_ns = 0;
    load(&mut again, &mut now_ns, 1, u64::MAX);
    assert_eq!(again.rebalance_reading(), None);
}

#[test]
fn a_group_serves_while_it_is_rebalanced_slower_and_is_faster_than_before_afterwards() {
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Raid60] {
        let mut plan = small(policy, 1);
        plan.pools[0].member.cache.keep_reads = false;
        plan.pools[0].member.cache.bytes = 4 * MIB;
        let mut model = ArrayModel::new(&plan).unwrap();
        let mut now_ns = 0;
        let (before, _) = load(&mut model, &mut now_ns, 32, 5 * SECOND);
        model.add_member(&plan, 0).unwrap();
        model.rebalance(4);
        let from_ns = now_ns;
        let (during, _) = load(&mut model, &mut now_ns, 32, u64::MAX);
        let took_s = (now_ns - from_ns) as f64 / SECOND as f64;
        assert!(took_s > 0.5, "{policy:?}: half of the bytes take their time, not {took_s} s");
        let until_ns = now_ns + 5 * SECOND;
        let (after, _) = load(&mut model, &mut now_ns, 32, until_ns);
        let (before, during, after) = (before as f64 / 5.0, during as f64 / took_s, after as f64 / 5.0);
        assert!(during < 1.3 * before, "{policy:?}: {during} while it goes on, {before} before");
        assert!(after > 1.4 * before, "{policy:?}: {after} after, {before} before");
        let readings = model.readings();
        assert!(readings[1].reads > 0 && readings[1].destaged_bytes > 0);
    }
}

#[test]
fn a_rebalance_is_the_same_each_time() {
    let plan = small(RaidPolicy::Raid50, 2);
    let run = || {
        let mut model = ArrayModel::new(&plan).unwrap();
        let mut now_ns = 0;
        model.add_member(&plan, 0).unwrap();
        model.rebalance(3);
        (load(&mut model, &mut now_ns, 8, u64::MAX), now_ns)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_lost_disk_is_made_up_for_while_its_pieces_move() {
    let plan = small(RaidPolicy::Raid5, 1);
    let mut model = ArrayModel::new(&plan).unwrap();
    model.lose_disk(0, 1);
    model.add_member(&plan, 0).unwrap();
    model.rebalance(4);
    let mut now_ns = 0;
    load(&mut model, &mut now_ns, 4, u64::MAX);
    assert_eq!(model.rebalance_reading(), None);
    assert_eq!(model.lost_disk(0), Some(1));
    let reads: Vec<u64> = model.readings()[0].disks.iter().map(|disk| disk.reads).collect();
    assert!(reads.iter().enumerate().all(|(disk, reads)| (*reads > 0) == (disk != 1)), "{reads:?}");
}

#[test]
fn what_cannot_grow_says_why() {
    let refused = |plan: &ArrayPlan| {
        let mut model = ArrayModel::new(plan).unwrap();
        model.add_member(plan, 0).unwrap_err().to_string()
    };
    let mut pools = small(RaidPolicy::Raid10, 1);
    let mut other = pools.pools[0].clone();
    other.volumes = vec![other.volumes.remove(1)];
    pools.pools[0].volumes.truncate(1);
    pools.pools.push(other);
    assert!(refused(&pools).contains("roles have members of their own"));
    let mut filer = small(RaidPolicy::Dp, 1);
    filer.pools[0].member.raid.misalign_bytes = 0;
    filer.pools[0].member.layout = LayoutPlan::WriteAnywhere {
        reduction: 1.0,
        block_bytes: 4 * KIB,
        run_blocks: 16,
        read_realloc: false,
        space: SpacePlan::default(),
    };
    assert!(refused(&filer).contains("no group"));
    let mut tiny = small(RaidPolicy::Raid10, 1);
    tiny.pools[0].members = 3;
    tiny.pools[0].volumes = vec![tiny.pools[0].volumes[0].clone()];
    tiny.pools[0].volumes[0].bytes = 4096;
    let mut model = ArrayModel::new(&tiny).unwrap();
    model.add_member(&tiny, 0).unwrap();
    assert!(model.add_member(&tiny, 0).unwrap_err().to_string().contains("is being filled"));
}
