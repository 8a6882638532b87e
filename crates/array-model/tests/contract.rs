//! A modelled array keeps the contract of [`Queue`], under every policy, state, disk and cache.

mod plans;

use std::collections::HashMap;

use assay_array_model::{ArrayModel, ArrayPlan, DiskPlan, PathPolicy, RaidPolicy, StatePlan};
use assay_load::{Completion, Op, Queue, Request, Simulated, SimulatedQueue};
use plans::{Draws, KIB, MIB, MS, SECOND, request};

const EINVAL: i32 = 22;
const HOUR: u64 = 3600 * SECOND;

/// Every way in which a policy's arrays differ that the contract must not notice.
fn variants(policy: RaidPolicy) -> Vec<ArrayPlan> {
    let mut variants = Vec::new();
    for state in [StatePlan::Healthy, StatePlan::Degraded, StatePlan::Rebuilding { depth: 4 }] {
        if policy == RaidPolicy::Raid0 && state != StatePlan::Healthy {
            continue;
        }
        for (disk, write_back, members) in
            [(0, true, 1), (0, false, 2), (1, true, 3), (1, false, 1), (0, true, 3), (0, false, 1), (1, false, 2)]
        {
            for (max_transfer_bytes, misalign_bytes, dirty_most) in [(0, 0, 0.9), (64 * KIB, 4096, 0.52)] {
                let mut plan = plans::plan(policy);
                plan.pools[0].members = members;
                plan.pools[0].member.state = state;
                if disk == 1 {
                    plan.pools[0].member.disk = DiskPlan::SolidState(plans::solid_state());
                }
                plan.pools[0].member.cache.write_back = write_back;
                // Little, so that writes have to wait for room.
                plan.pools[0].member.cache.bytes = 4 * MIB;
                plan.pools[0].member.cache.dirty_most = dirty_most;
                plan.pools[0].member.raid.misalign_bytes = misalign_bytes;
                plan.links.max_transfer_bytes = max_transfer_bytes;
                plan.links.policy =
                    if misalign_bytes == 0 { PathPolicy::RoundRobin } else { PathPolicy::LeastQueueDepth };
                variants.push(plan);
            }
        }
    }
    // A pool of mirrors beside it, with fewer disks.
    let mut plan = plans::plan(policy);
    plan.pools.push(plans::plan(RaidPolicy::Raid1).pools[0].clone());
    plan.pools[0].members = 2;
    plan.pools.iter_mut().for_each(|pool| pool.volumes.truncate(1));
    variants.push(plan);
    variants
}

fn queue(plan: &ArrayPlan) -> SimulatedQueue<ArrayModel> {
    SimulatedQueue::new(ArrayModel::new(plan).unwrap())
}

/// Waits until this many requests have completed; an hour, should the model not answer.
fn complete(queue: &mut SimulatedQueue<ArrayModel>, count: usize) -> Vec<Completion> {
    let mut completions = Vec::new();
    let until_ns = queue.now_ns() + HOUR;
    while completions.len() < count {
        queue.wait(count - completions.len(), until_ns, &mut completions).unwrap();
        assert!(queue.now_ns() < until_ns, "{} of {count} completed", completions.len());
    }
    completions
}

/// A request of any kind, place and size, some of them beyond the volume, and what it must complete with.
fn any_request(draws: &mut Draws, tag: u32) -> (Request, i32) {
    let sectors = 1 + if draws.below(8) == 0 { draws.below(4096) } else { draws.below(128) };
    let length_bytes = sectors as u32 * 512;
    let volume = draws.below(2) as u16;
    let last = 256 * MIB - u64::from(length_bytes);
    let inside = draws.below(last / 512 + 1) * 512;
    match draws.below(16) {
        0 => (request(Op::Flush, volume, 0, 0, tag), 0),
        1 => (request(Op::Read, volume, last + 512, length_bytes, tag), -EINVAL),
        2 => (request(Op::Write, 2, 0, length_bytes, tag), -EINVAL),
        3 => (request(Op::Write, volume, u64::MAX - 511, length_bytes, tag), -EINVAL),
        // The same place again and again, and the end of the volume.
        4 => (request(Op::Write, volume, MIB, length_bytes, tag), length_bytes as i32),
        5 => (request(Op::Read, volume, last, length_bytes, tag), length_bytes as i32),
        draw if draw % 2 == 0 => (request(Op::Write, volume, inside, length_bytes, tag), length_bytes as i32),
        _ => (request(Op::Read, volume, inside, length_bytes, tag), length_bytes as i32),
    }
}

/// Keeps up to `depth` requests outstanding with waits of all kinds, and holds every completion against its request.
fn every_request_completes_exactly_once(plan: &ArrayPlan, seed: u64) {
    let mut queue = queue(plan);
    let mut draws = Draws(seed);
    let depth = [1, 4, 32][draws.below(3) as usize];
    let mut outstanding: HashMap<u32, (u64, i32)> = HashMap::new();
    let mut completions = Vec::new();
    let (mut tag, mut last_ns) = (u32::MAX, 0);
    for _ in 0..150 {
        let now_ns = queue.now_ns();
        let count = draws.below(depth + 1 - outstanding.len() as u64);
        let requests: Vec<Request> = (0..count)
            .map(|_| {
                let (request, result) = any_request(&mut draws, tag);
                outstanding.insert(tag, (now_ns, result));
                tag -= 1;
                request
            })
            .collect();
        queue.submit(&requests).unwrap();
        let min = draws.below(outstanding.len() as u64 + 1) as usize;
        let until_ns = now_ns + [0, 10_000, MS, 50 * MS, SECOND][draws.below(5) as usize];
        queue.wait(min, until_ns, &mut completions).unwrap();
        let after_ns = queue.now_ns();
        assert!(after_ns >= now_ns, "the clock went back");
        assert!(completions.len() >= min || after_ns >= until_ns, "the wait ended early");
        for completion in completions.drain(..) {
            let (submitted_ns, result) = outstanding.remove(&completion.tag).expect("it was outstanding");
            assert_eq!(completion.result, result);
            assert!((submitted_ns..=after_ns).contains(&completion.at_ns));
            assert!(completion.at_ns >= last_ns, "completions are seen in order");
            last_ns = completion.at_ns;
        }
    }
    for completion in complete(&mut queue, outstanding.len()) {
        assert_eq!(completion.result, outstanding.remove(&completion.tag).expect("it was outstanding").1);
    }
    let until_ns = queue.now_ns() + 10 * SECOND;
    queue.wait(1, until_ns, &mut completions).unwrap();
    assert!(completions.is_empty(), "nothing completes that was not asked for");
    assert_eq!(queue.now_ns(), until_ns);
}

fn slots_are_refilled_one_by_one(plan: &ArrayPlan) {
    let mut queue = queue(plan);
    let depth = 16;
    let place = |step: u64| step * 7919 % 4096 * 64 * KIB;
    let first: Vec<Request> = (0..depth).map(|slot| request(Op::Read, 0, place(u64::from(slot)), 8192, slot)).collect();
    queue.submit(&first).unwrap();
    let mut outstanding: Vec<u32> = (0..depth).collect();
    let mut completions = Vec::new();
    for step in 0..100 {
        let until_ns = queue.now_ns() + HOUR;
        queue.wait(1, until_ns, &mut completions).unwrap();
        assert!(!completions.is_empty());
        let again: Vec<Request> = completions
            .drain(..)
            .map(|completion| {
                assert!(outstanding.contains(&completion.tag));
                request(Op::Read, 1, place(step), 8192, completion.tag)
            })
            .collect();
        queue.submit(&again).unwrap();
    }
    let mut tags: Vec<u32> = complete(&mut queue, outstanding.len()).iter().map(|completion| completion.tag).collect();
    tags.sort_unstable();
    outstanding.sort_unstable();
    assert_eq!(tags, outstanding);
}

fn waits_end(plan: &ArrayPlan) {
    let mut queue = queue(plan);
    let mut completions = Vec::new();
    for (min, wait_ns) in [(1, MS / 10), (1, 30 * MS), (3, 10 * MS), (8, MS)] {
        let until_ns = queue.now_ns() + wait_ns;
        queue.wait(min, until_ns, &mut completions).unwrap();
        assert_eq!(queue.now_ns(), until_ns);
    }
    queue.wait(1, 0, &mut completions).unwrap();
    assert!(completions.is_empty());
    // For more than is outstanding: the one there is comes, and the clock goes on to the end.
    let until_ns = queue.now_ns() + 5 * SECOND;
    queue.submit(&[request(Op::Read, 0, 0, 8192, 9)]).unwrap();
    queue.wait(5, until_ns, &mut completions).unwrap();
    assert_eq!(completions.iter().map(|completion| completion.tag).collect::<Vec<_>>(), [9]);
    assert_eq!(queue.now_ns(), until_ns);
    // Without an end: the completion ends it.
    queue.submit(&[request(Op::Write, 0, 0, 8192, 10)]).unwrap();
    queue.wait(1, u64::MAX, &mut completions).unwrap();
    assert_eq!(completions[1].at_ns, queue.now_ns());
    assert!(queue.now_ns() < until_ns + SECOND);
    // Looking without waiting gets on, too.
    queue.submit(&[request(Op::Read, 0, 128 * MIB, 8192, 11)]).unwrap();
    for _ in 0..2_000_000 {
        if completions.len() == 3 {
            break;
        }
        let now_ns = queue.now_ns();
        queue.wait(0, now_ns, &mut completions).unwrap();
    }
    assert_eq!(completions[2].tag, 11);
}

/// After all was asked and answered, only destaging and rebuilding go on, and they end.
fn comes_to_rest(plan: &ArrayPlan) {
    let mut model = ArrayModel::new(plan).unwrap();
    let mut draws = Draws(5);
    let mut completions = Vec::new();
    (0..200).for_each(|tag| model.submit(0, &any_request(&mut draws, tag).0));
    let mut now_ns = 0;
    for _ in 0..50_000_000_u64 {
        let Some(next_ns) = model.next_event_ns() else { break };
        assert!(next_ns >= now_ns, "events come in order");
        now_ns = model.advance(next_ns, &mut completions);
    }
    assert_eq!(model.next_event_ns(), None);
    assert_eq!(completions.len(), 200);
}

fn contract(policy: RaidPolicy) {
    for (number, plan) in variants(policy).iter().enumerate() {
        every_request_completes_exactly_once(plan, number as u64);
        slots_are_refilled_one_by_one(plan);
        waits_end(plan);
    }
    // Small disks, so that a rebuild ends soon.
    for mut plan in variants(policy).into_iter().step_by(5) {
        plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = 256 * MIB);
        comes_to_rest(&plan);
    }
}

macro_rules! contracts {
    ($($name:ident: $policy:expr;)*) => {
        $(
            #[test]
            fn $name() {
                contract($policy);
            }
        )*
    };
}

contracts! {
    raid_0: RaidPolicy::Raid0;
    raid_1: RaidPolicy::Raid1;
    raid_10: RaidPolicy::Raid10;
    raid_5: RaidPolicy::Raid5;
    raid_50: RaidPolicy::Raid50;
    raid_6: RaidPolicy::Raid6;
    raid_60: RaidPolicy::Raid60;
    raid_dp: RaidPolicy::Dp;
}

#[test]
fn a_write_larger_than_the_room_of_the_cache_does_not_stand_still() {
    let mut plan = plans::plan(RaidPolicy::Raid10);
    plan.pools[0].member.cache.bytes = MIB;
    for (low, high, most) in [(0.5, 0.52, 0.9), (0.5, 0.5, 0.5), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)] {
        (
            plan.pools[0].member.cache.dirty_low,
            plan.pools[0].member.cache.dirty_high,
            plan.pools[0].member.cache.dirty_most,
        ) = (low, high, most);
        let mut queue = queue(&plan);
        let requests: Vec<Request> = (0..20)
            .map(|tag| request(Op::Write, 0, u64::from(tag) * MIB, [300 * 1024, 1 << 20, 4096][tag as usize % 3], tag))
            .collect();
        queue.submit(&requests).unwrap();
        assert_eq!(complete(&mut queue, 20).len(), 20);
    }
}
