//! What every array does, whatever its figures: larger blocks, fuller disks and parity cost; disks, cache and members help.

mod plans;

use assay_array_model::{
    ArrayModel, ArrayPlan, DiskPlan, FaultPlan, Lost, ModelSession, PathPolicy, RaidPolicy, SessionPlan, SolidStatePlan,
};
use assay_load::{Activity, Load, Op, Skew};
use plans::{GIB, KIB, SECOND, activity, large, perform, plan, request};

/// Differences below this are noise of a run of ten seconds.
const NOISE: f64 = 0.02;

/// I/Os per second of 8 KiB 70/30 or another mix, with so many I/Os outstanding on each volume.
fn iops(plan: &ArrayPlan, bytes: u64, read_share: f64, queue_depth: u32) -> f64 {
    iops_of(plan, activity(plan.pools[0].volumes.len(), bytes as u32, read_share, Load::Closed { queue_depth }))
}

fn iops_of(plan: &ArrayPlan, activity: Activity) -> f64 {
    plans::measure(plan, activity, 2, 10).0
}

/// That figures fall from one to the next, each by more than noise; or, turned round, rise.
fn falls(figures: &[f64], what: &str) {
    assert!(figures.windows(2).all(|pair| pair[1] < pair[0] * (1.0 - NOISE)), "{what}: {figures:.0?}");
}

fn never_falls(figures: &[f64], what: &str) {
    assert!(figures.windows(2).all(|pair| pair[1] > pair[0] * (1.0 - NOISE)), "{what}: {figures:.0?}");
}

#[test]
fn larger_blocks_are_fewer_ios() {
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid50] {
        let figures: Vec<f64> = [4, 8, 16, 32, 64, 128, 256, 512]
            .iter()
            .map(|kib| iops(&large(policy, 12, 1), kib * KIB, 0.7, 4))
            .collect();
        assert!(figures.windows(2).all(|pair| pair[1] < pair[0]), "RAID {}: {figures:.0?}", policy.name());
        falls(&[figures[1], figures[4], figures[6], figures[7]], "blocks");
    }
}

#[test]
fn fuller_disks_are_slower_with_the_same_outstanding() {
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid50] {
        let figures: Vec<f64> = [(3, 16), (6, 8), (12, 4)]
            .iter()
            .map(|&(v, depth)| iops(&large(policy, v, 1), 8 * KIB, 0.7, depth))
            .collect();
        falls(&figures, policy.name());
    }
}

#[test]
fn more_disks_help() {
    let figures: Vec<f64> = [12, 16, 24, 36]
        .iter()
        .map(|&disks| {
            let mut plan = large(RaidPolicy::Raid10, 6, 1);
            (plan.pools[0].member.disks, plan.pools[0].member.spares) = (disks, 0);
            1.0 / iops(&plan, 8 * KIB, 0.7, 8)
        })
        .collect();
    assert!(figures.windows(2).all(|pair| pair[1] < pair[0] * (1.0 - NOISE)), "{figures:?}");
}

#[test]
fn more_cache_helps_a_skewed_load() {
    let figures: Vec<f64> = [1, 2, 4, 8, 16]
        .iter()
        .map(|&gib| {
            let mut plan = large(RaidPolicy::Raid10, 4, 1);
            plan.pools[0].member.cache.bytes = gib * GIB;
            let mut activity = activity(4, 8192, 0.7, Load::Closed { queue_depth: 8 });
            activity.access.skew = Skew::Hot { access_share: 0.8, space_share: 0.03 };
            iops_of(&plan, activity)
        })
        .collect();
    never_falls(&figures, "cache");
    assert!(figures[4] > 1.2 * figures[0], "{figures:.0?}");
}

#[test]
fn more_members_help_and_more_data_on_them_scale() {
    let same: Vec<f64> =
        (1..=3).map(|members| iops(&large(RaidPolicy::Raid10, 12, members), 8 * KIB, 0.7, 6)).collect();
    never_falls(&same, "the same data on more members");
    assert!(same[2] > 1.3 * same[0], "{same:.0?}");
    let growing: Vec<f64> = (1..=3)
        .map(|members| iops(&large(RaidPolicy::Raid10, 8 * members as usize, members), 8 * KIB, 0.7, 6))
        .collect();
    for (members, figure) in growing.iter().enumerate() {
        let ratio = figure / growing[0] / (members + 1) as f64;
        assert!((ratio - 1.0).abs() < 0.05, "data that grow with the members: {growing:.0?}");
    }
}

#[test]
fn more_outstanding_is_never_less_and_takes_longer() {
    let plan = large(RaidPolicy::Raid10, 6, 1);
    let figures: Vec<(f64, f64)> = [1, 2, 4, 8, 16, 32]
        .iter()
        .map(|&queue_depth| plans::measure(&plan, activity(6, 8192, 1.0, Load::Closed { queue_depth }), 2, 10))
        .collect();
    never_falls(&figures.iter().map(|point| point.0).collect::<Vec<_>>(), "queue depth");
    assert!(figures.windows(2).all(|pair| pair[1].1 > pair[0].1), "{figures:.0?}");
}

#[test]
fn parity_costs_random_writes() {
    for write_back in [true, false] {
        let figures: Vec<f64> = [RaidPolicy::Raid10, RaidPolicy::Raid50, RaidPolicy::Raid6]
            .into_iter()
            .map(|policy| {
                let mut plan = large(policy, 6, 1);
                plan.pools[0].member.cache.write_back = write_back;
                if policy == RaidPolicy::Raid6 {
                    plan.pools[0].member.raid.set_disks = 0;
                }
                // The cache so full that writes wait for the disks.
                (plan.pools[0].member.cache.dirty_most, plan.pools[0].member.cache.bytes) = (0.6, GIB / 4);
                iops(&plan, 8 * KIB, 0.0, 16)
            })
            .collect();
        falls(&figures, if write_back { "write-back" } else { "write-through" });
    }
}

#[test]
fn a_lost_disk_costs_and_a_rebuild_costs_more() {
    use assay_array_model::StatePlan;
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid50] {
        let figures: Vec<f64> = [StatePlan::Healthy, StatePlan::Degraded, StatePlan::Rebuilding { depth: 8 }]
            .into_iter()
            .map(|state| {
                let mut plan = large(policy, 6, 1);
                plan.pools[0].member.state = state;
                iops(&plan, 8 * KIB, 1.0, 16)
            })
            .collect();
        assert!(figures[1] < figures[0] && figures[2] < figures[1], "RAID {}: {figures:.0?}", policy.name());
    }
}

#[test]
fn a_sequential_stream_is_faster_than_random_reads_and_more_paths_carry_more() {
    let mut sequential = activity(4, 65536, 1.0, Load::Closed { queue_depth: 8 });
    sequential.access.random_share = 0.0;
    let random = activity(4, 65536, 1.0, Load::Closed { queue_depth: 8 });
    let plan = large(RaidPolicy::Raid10, 6, 1);
    assert!(iops_of(&plan, sequential.clone()) > 2.0 * iops_of(&plan, random));
    let figures: Vec<f64> = [1, 2, 3]
        .iter()
        .map(|&paths| {
            let mut plan = plan.clone();
            plans::set_paths(&mut plan, paths);
            iops_of(&plan, sequential.clone())
        })
        .collect();
    never_falls(&figures, "paths");
    let most = 117e6 / (65536.0 + 128.0);
    assert!(figures[0] <= 1.001 * most && figures[0] > 0.9 * most, "one path carries {most:.0}, not {:.0}", figures[0]);
}

/// Completions of closed-loop reads of 64 KiB, 16 at a time, in each second; all end.
fn by_second(plan: &ArrayPlan, seconds: u64) -> Vec<u64> {
    let mut sequential = activity(2, 65536, 1.0, Load::Closed { queue_depth: 8 });
    sequential.access.random_share = 0.0;
    let load = SessionPlan { activities: vec![sequential], seed: 7, interval_ns: SECOND, warm: false };
    let mut session = ModelSession::start(ArrayModel::new(plan).unwrap(), &load).unwrap();
    session.run_ticks(seconds);
    let ticks = session.collector().fresh_ticks();
    // A line for each volume.
    let ended = ticks.chunks(2).map(|lines| lines.iter().map(|line| line.counted.read.count).sum()).collect();
    session.finish();
    assert_eq!(session.unfinished().map(|(count, _)| count), Some(0));
    ended
}

#[test]
fn a_lost_host_port_costs_its_share_and_the_commands_on_it_a_time_out() {
    let mut plan = plan(RaidPolicy::Raid10);
    plan.links.policy = PathPolicy::RoundRobin;
    plan.links.fault = Some(FaultPlan { lost: Lost::HostPort, at_ns: 10 * SECOND, failover_ns: 0 });
    let ended = by_second(&plan, 20);
    let one_path = 117e6 / (65536.0 + 128.0);
    assert!(ended[8] as f64 > 1.9 * one_path, "two paths carry {}", ended[8]);
    assert_eq!(ended[11], 0, "all sixteen end up on the dead path until it times out");
    assert!((0.9..1.01).contains(&(ended[18] as f64 / one_path)), "one path carries {}", ended[18]);
}

#[test]
fn a_failed_controller_stops_its_member_until_its_standby_or_the_other_one_takes_its_ports() {
    for (count, share) in [(1, 1.0), (2, 0.5)] {
        let mut plan = plan(RaidPolicy::Raid10);
        plans::set_paths(&mut plan, 2);
        (plan.pools[0].member.controller.count, plan.pools[0].member.controller.ports) = (count, 2 / count);
        (plan.links.policy, plan.links.hosts.path_timeout_ns) = (PathPolicy::RoundRobin, 30 * SECOND);
        plan.links.fault = Some(FaultPlan { lost: Lost::Controller, at_ns: 10 * SECOND, failover_ns: 3 * SECOND });
        let ended = by_second(&plan, 20);
        assert!(ended[11] < ended[8] / 20, "{count} controllers: {ended:?}");
        let after = ended[18] as f64 / ended[8] as f64;
        assert!((after - share).abs() < 0.05, "{count} controllers leave {after:.2}");
    }
}

#[test]
fn least_queue_depth_goes_around_a_slow_path_and_round_robin_does_not() {
    let carried = |policy, share| {
        let mut plan = plan(RaidPolicy::Raid10);
        (plan.links.policy, plan.links.hosts.first_port_share) = (policy, share);
        by_second(&plan, 10)[8] as f64
    };
    let [whole, turns, least] = [
        carried(PathPolicy::RoundRobin, 1.0),
        carried(PathPolicy::RoundRobin, 0.1),
        carried(PathPolicy::LeastQueueDepth, 0.1),
    ];
    assert!((turns / whole - 0.1).abs() < 0.02, "every second command waits for the slow path: {turns} of {whole}");
    assert!(least > 0.5 * whole, "{least} of {whole}");
}

#[test]
fn a_flush_waits_for_flash_that_nothing_protects() {
    let flush_ns = |write_back, power_loss_protection| {
        let mut plan = plan(RaidPolicy::Raid10);
        let member = &mut plan.pools[0].member;
        member.cache.write_back = write_back;
        member.disk = DiskPlan::SolidState(SolidStatePlan { power_loss_protection, ..plans::solid_state() });
        let (mut model, mut now_ns) = (ArrayModel::new(&plan).unwrap(), 0);
        perform(&mut model, &mut now_ns, request(Op::Write, 0, 0, 4096, 1));
        let before_ns = now_ns;
        perform(&mut model, &mut now_ns, request(Op::Flush, 0, 0, 0, 2)).at_ns - before_ns
    };
    // The program of the data, and that of a table, of 1.2 ms each.
    assert!(flush_ns(false, false) > 2_400_000);
    assert_eq!(flush_ns(false, true), flush_ns(true, false));
    assert!(flush_ns(false, true) < 1_000_000);
}
