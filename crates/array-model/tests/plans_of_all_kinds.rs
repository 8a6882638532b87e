//! Whatever plan is accepted works: no panic, no overflow, every I/O ends.

mod plans;

use assay_array_model::{
    ArrayModel, ArrayPlan, CachePlan, ControllerPlan, DiskPlan, FaultPlan, FlashAge, FlashPlan, HeatPlan, HostPlan,
    LayoutPlan, LinkPlan, Lost, MechanicalPlan, MemberPlan, PartialWrite, PathPolicy, PoolPlan, RaidPlan, ReadPriority,
    ReadsPlan, SlcPlan, SolidStatePlan, StatePlan, VolumePlan,
};
use assay_load::{Op, Simulated};
use plans::{Draws, POLICIES, request};
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};

/// Sizes of every magnitude, round and odd ones.
fn size(bits: std::ops::Range<u32>) -> impl Strategy<Value = u64> {
    (bits, any::<u64>(), any::<bool>()).prop_map(|(bits, odd, round)| {
        let base = 1_u64 << bits;
        if round { base } else { base + odd % base }
    })
}

/// Times from nothing to beyond all reason.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 8 => 1_u64..50_000_000, 2 => size(20..32), 1 => size(32..64)]
}

fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![8 => 1e6..1e10, 2 => 1e2..1e6, 1 => 1e10..1e15]
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(0.0), 1 => Just(1.0), 8 => 0.0..=1.0]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0_u32..40, 2 => 40_u32..5000, 1 => any::<u32>()]
}

prop_compose! {
    fn mechanical()(
        capacity_bytes in size(19..44), revolution_ns in prop_oneof![4 => 2_000_000_u64..20_000_000, 1 => size(15..31)],
        mut seeks in prop::array::uniform3(time()), straight: bool, write_settle_ns in time(), mut rates in prop::array::uniform2(rate()),
        command_overhead_ns in time(), queue_depth in count(), reorder_weight in share(), age_credit in share(),
        read_ahead_bytes in prop_oneof![Just(0), size(9..64)], interface_bytes_per_s in rate(),
    ) -> MechanicalPlan {
        seeks.sort_unstable();
        if straight {
            seeks[1] = seeks[0] + (seeks[2] - seeks[0]) / 5 * 2;
        }
        rates.sort_by(f64::total_cmp);
        MechanicalPlan {
            capacity_bytes, revolution_ns, seek_track_ns: seeks[0], seek_average_ns: seeks[1], seek_full_ns: seeks[2],
            write_settle_ns, rate_outer_bytes_per_s: rates[1], rate_inner_bytes_per_s: rates[0], command_overhead_ns,
            queue_depth, reorder_weight, age_credit, read_ahead_bytes, interface_bytes_per_s,
        }
    }
}

prop_compose! {
    fn solid_state()(
        capacity_bytes in size(19..44), counts in prop::array::uniform6(count()), planes in 0_u32..6, cell_bits in 0_u32..6,
        page_bytes in prop_oneof![4 => size(9..20), 1 => size(0..64)], unit_bytes in prop_oneof![4 => size(9..17), 1 => size(0..64)],
        times in prop::array::uniform9(time()), shares in prop::array::uniform3(share()),
        over_provisioning in prop_oneof![4 => 0.01..2.0, 1 => Just(1e-300), 1 => Just(0.0)], rates in prop::array::uniform4(rate()),
        write_buffer_bytes in prop_oneof![Just(0), size(10..64)], power_loss_protection: bool, heat in prop_oneof![Just(0), size(10..40)],
        slc in (prop_oneof![Just(0), size(10..40)], size(10..40)), kinds in (0..3_usize, 0..3_usize),
    ) -> SolidStatePlan {
        let [read_ns, program_ns, erase_ns, command_overhead_ns, command_ns, suspend_ns, slc_ns, resume_ns, late_ns] = times;
        let [dies, channels, pages_per_block, queue_depth, suspends, programming_dies] = counts;
        let [metadata_share, trimmed_share, throttled_share] = shares;
        let [channel_bytes_per_s, interface_bytes_per_s, fold_bytes_per_s, cooling_bytes_per_s] = rates;
        let flash = FlashPlan {
            dies, planes, channels, channel_bytes_per_s, page_bytes, cell_bits, pages_per_block, read_ns, program_ns, erase_ns,
            programming_dies,
        };
        let priority = [ReadPriority::InTurn, ReadPriority::Next, ReadPriority::Suspend][kinds.1];
        SolidStatePlan {
            capacity_bytes, flash, unit_bytes, over_provisioning, metadata_share, trimmed_share, command_overhead_ns, command_ns,
            interface_bytes_per_s, queue_depth, write_buffer_bytes, power_loss_protection,
            age: [FlashAge::Fresh, FlashAge::Written, FlashAge::Steady][kinds.0],
            reads: ReadsPlan { priority, suspend_ns, suspends, late_ns, resume_ns },
            slc: SlcPlan { bytes: slc.0, empty_bytes: slc.1, program_ns: slc_ns, fold_bytes_per_s },
            heat: HeatPlan { bytes: heat, cooling_bytes_per_s, throttled_share },
        }
    }
}

prop_compose! {
    fn cache()(
        bytes in size(19..36), write_back: bool, mut levels in prop::array::uniform3(share()), destage_depth in count(),
        read_preference_ns in time(), keep_reads: bool, sequential_after in count(),
        prefetch_bytes in prop_oneof![1 => Just(0), 6 => size(12..24), 1 => size(24..64)],
    ) -> CachePlan {
        levels.sort_by(f64::total_cmp);
        let [dirty_low, dirty_high, dirty_most] = levels;
        CachePlan {
            bytes, write_back, dirty_low, dirty_high, dirty_most, destage_depth, read_preference_ns, keep_reads,
            sequential_after, prefetch_bytes, starts_warm: false,
        }
    }
}

prop_compose! {
    fn links()(
        ports in 0_u32..70, host_rate in rate(), shares in (share(), share()), commands_most in count(), least: bool, port_bytes_per_s in rate(), overhead_bytes in count(), latency_ns in time(),
        max_transfer_bytes in prop_oneof![Just(0), size(0..24)], hosts in prop_oneof![4 => 1_u32..4, 1 => 0_u32..2000],
        fault in prop::option::of((any::<bool>(), time())),
    ) -> LinkPlan {
        let policy = if least { PathPolicy::LeastQueueDepth } else { PathPolicy::RoundRobin };
        let hosts = HostPlan {
            count: hosts, ports, port_bytes_per_s: host_rate, first_port_share: shares.0, first_port_loss: shares.1 / 100.0,
            commands_most, path_timeout_ns: latency_ns,
        };
        let fault = fault.map(|(host, at_ns)| FaultPlan {
            lost: if host { Lost::HostPort } else { Lost::Controller }, at_ns, failover_ns: latency_ns.saturating_mul(2),
        });
        LinkPlan { hosts, policy, port_bytes_per_s, overhead_bytes, latency_ns, max_transfer_bytes, fault }
    }
}

prop_compose! {
    fn raid()(
        policy in select(&POLICIES[..]), set_disks in prop_oneof![Just(0), 1_u32..14],
        chunk_bytes in prop_oneof![8 => (12_u32..21).prop_map(|bits| 1_u64 << bits), 1 => size(0..34)],
        partial_write in select(&[PartialWrite::ReadModify, PartialWrite::Reconstruct, PartialWrite::Cheapest][..]),
        misalign_bytes in prop_oneof![Just(0), Just(4096), size(0..20)],
    ) -> RaidPlan {
        RaidPlan { policy, set_disks, chunk_bytes, partial_write, misalign_bytes }
    }
}

prop_compose! {
    fn any_plan()(
        seed: u64, members in prop_oneof![8 => 0_u32..4, 1 => count()], page_bytes in prop_oneof![6 => size(16..26), 1 => size(10..44)],
        volumes in prop::collection::vec(prop_oneof![20 => size(12..30), 1 => size(0..64)], 1..5),
        disks in prop_oneof![8 => 1_u32..25, 1 => count()], spares in prop_oneof![4 => Just(0), 1 => 0_u32..3],
        disk in prop_oneof![mechanical().prop_map(DiskPlan::Mechanical).boxed(), solid_state().prop_map(DiskPlan::SolidState).boxed()].boxed(),
        raid in raid(), cache in cache(), links in links(),
        cpu in (time(), rate(), prop_oneof![8 => 0_u32..9, 1 => count()]), controllers in (0_u32..4, 0_u32..9),
        state in prop_oneof![
            Just(StatePlan::Healthy), Just(StatePlan::Degraded), count().prop_map(|depth| StatePlan::Rebuilding { depth })
        ],
    ) -> ArrayPlan {
        let (count, ports) = controllers;
        let controller = ControllerPlan { count, ports, cpu_per_io_ns: cpu.0, cpu_bytes_per_s: cpu.1, cores: cpu.2 };
        let volumes = volumes.into_iter().enumerate().map(|(n, bytes)| VolumePlan { name: n.to_string(), bytes }).collect();
        let layout = LayoutPlan::InPlace;
        let member = MemberPlan { disks, spares, disk, raid, controller, cache, layout, state, others: None, software: None, rebuild_bytes_per_s: 0.0 };
        ArrayPlan { seed, page_bytes, pools: vec![PoolPlan { members, member, volumes }], links }
    }
}

/// Mixed I/Os, 24 outstanding, until 10,000 have completed or the events have become too many for a test.
fn works(plan: &ArrayPlan) -> bool {
    let Ok(mut model) = ArrayModel::new(plan) else { return false };
    let mut draws = Draws(plan.seed);
    let mut completions = Vec::new();
    let mut now_ns = 0;
    let mut sequential = 0;
    let mut send = |model: &mut ArrayModel, now_ns, tag| {
        let volume = draws.below(plan.volumes().count() as u64) as usize;
        let volume_bytes = plan.volumes().nth(volume).unwrap().bytes;
        let bytes = (512_u64 << draws.below(10)).min(volume_bytes);
        let offset = if draws.below(3) == 0 {
            sequential += bytes;
            sequential % (volume_bytes - bytes + 1)
        } else {
            draws.below(volume_bytes - bytes + 1)
        };
        let op = if draws.below(2) == 0 { Op::Read } else { Op::Write };
        model.submit(now_ns, &request(op, volume as u16, offset, bytes as u32, tag));
    };
    (0..24).for_each(|tag| send(&mut model, now_ns, tag));
    let (mut submitted, mut ended, mut steps) = (24_u32, 0_u32, 0_u64);
    while ended < submitted && steps < 400_000 {
        steps += 1;
        let next_ns = model.next_event_ns().expect("what is outstanding ends");
        now_ns = model.advance(next_ns, &mut completions);
        for completion in completions.drain(..) {
            assert!(completion.result > 0);
            ended += 1;
            if submitted < 10_000 {
                submitted += 1;
                send(&mut model, now_ns, completion.tag);
            }
        }
    }
    for member in model.readings() {
        for disk in member.disks {
            assert!(disk.busy_ns <= now_ns && disk.queue_ns >= disk.busy_ns);
        }
        assert!(member.read_hits <= member.reads);
    }
    true
}

/// Holds every plan against [`works`]; at least this share must have been accepted, or nothing was tried.
fn holds(plans: impl Strategy<Value = ArrayPlan>, cases: u32, accepted_least: f64) {
    let accepted = std::cell::Cell::new(0_u32);
    let mut runner =
        TestRunner::new(Config { cases, max_shrink_iters: 400, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&plans, |plan| {
        accepted.set(accepted.get() + u32::from(works(&plan)));
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let share = f64::from(accepted.get()) / f64::from(cases);
    assert!(share >= accepted_least, "{share:.3} of the plans were accepted");
}

/// Some 0.42 % of such plans are accepted: that none of 3,000 is happens once in 300,000 runs.
#[test]
fn a_plan_is_refused_or_works() {
    holds(any_plan(), 3000, 1.0 / 3000.0);
}

/// The same with one thing odd at a time, so that most plans are accepted.
fn nearly_usual() -> impl Strategy<Value = ArrayPlan> {
    (select(&POLICIES[..]), any_plan(), 0..12).prop_map(|(policy, odd, what)| {
        let mut plan = plans::plan(policy);
        plan.seed = odd.seed;
        let strange = odd.pools[0].clone();
        let usual = plan.pools[0].clone();
        let pool = &mut plan.pools[0];
        match what {
            0 => pool.member.disk = strange.member.disk,
            1 => pool.member.cache = strange.member.cache,
            2 => pool.member.controller = strange.member.controller,
            3 => plan.links = odd.links,
            4 => pool.member.state = strange.member.state,
            5 => pool.volumes = strange.volumes,
            6 => (pool.members, plan.page_bytes) = (strange.members, odd.page_bytes),
            7 => pool.member.raid.misalign_bytes = strange.member.raid.misalign_bytes,
            8 => pool.member.raid = strange.member.raid,
            9 => (pool.member.disks, pool.member.spares) = (strange.member.disks, strange.member.spares),
            10 => {
                plan.pools.push(usual);
                plan.pools[1].member.raid = strange.member.raid;
            }
            _ => plan.pools.push(strange),
        }
        plan
    })
}

#[test]
fn a_usual_plan_with_one_thing_odd_is_refused_or_works() {
    holds(nearly_usual(), 150, 0.3);
}

#[test]
fn usual_plans_are_accepted() {
    POLICIES.into_iter().for_each(|policy| assert!(works(&plans::plan(policy))));
}
