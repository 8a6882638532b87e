//! Workers on a modelled array count what happened: rates, Little's law, and latencies that a pencil finds too.

mod plans;

use std::sync::{Arc, atomic::AtomicBool};

use assay_array_model::{ArrayModel, ArrayPlan, DiskPlan, MechanicalPlan, ModelSession, RaidPolicy, SessionPlan};
use assay_load::{
    Activity, IoCollector, Load, Outcome, Pulse, Queue, SimulatedQueue, Worker, WorkerPlan, WorkersPlan, plan_workers,
    run_worker,
};
use plans::{GIB, KIB, MIB, POLICIES, SECOND, activity, plan};

/// I/Os and their latencies' sum, over ticks and what was drained.
fn counted(collector: &IoCollector, ticks: u64) -> (u64, u128) {
    let totals = collector.totals(0, ticks);
    totals.values().chain(collector.drained().values()).fold((0, 0), |(count, sum_ns), interval| {
        assert_eq!(interval.errors.count(), 0);
        let (read, write) = (&interval.read.latency, &interval.write.latency);
        (count + read.count() + write.count(), sum_ns + read.sum_ns() + write.sum_ns())
    })
}

#[test]
fn one_worker_on_its_own_queue_counts_every_io() {
    for policy in POLICIES {
        for depth in [1, 8] {
            let activity = Activity {
                limit_bytes: Some(4000 * 8192),
                ..activity(1, 8192, 0.7, Load::Closed { queue_depth: depth })
            };
            let stop = Arc::new(AtomicBool::new(false));
            let plan_of_workers = WorkersPlan {
                feeds: &[],
                activities: std::slice::from_ref(&activity),
                seed: 3,
                interval_ns: SECOND,
                io_timeout_ns: 60 * SECOND,
                spare_intervals: 1000,
                pulse: &Pulse::default(),
                processors: 0,
            };
            let (sources, mut workers) = plan_workers(&plan_of_workers, &stop);
            let mut collector = IoCollector::new(sources);
            let (volume, worker_plan) = workers.remove(0);
            let mut worker = Worker::new(WorkerPlan { volume: volume as u16, ..worker_plan });
            let mut queue = SimulatedQueue::new(ArrayModel::new(&plan(policy)).unwrap());
            let outcome = run_worker(&mut queue, &mut worker).unwrap();
            assert_eq!(outcome, Outcome::Finished);
            let ticks = collector.collect();
            let (count, sum_ns) = counted(&collector, ticks);
            assert_eq!(count, 4000);
            assert_eq!(ticks, queue.now_ns() / SECOND);
            // Little's law: what was outstanding on average is the sum of the latencies over the time.
            let outstanding = sum_ns as f64 / queue.now_ns() as f64;
            assert!((outstanding / f64::from(depth) - 1.0).abs() < 0.01, "{outstanding} of {depth} outstanding");
        }
    }
}

#[test]
fn many_workers_on_one_clock_keep_littles_law_in_every_tick() {
    for (policy, write_back) in [(RaidPolicy::Raid10, true), (RaidPolicy::Raid50, false), (RaidPolicy::Dp, true)] {
        let mut plan = plan(policy);
        plan.pools[0].member.cache.write_back = write_back;
        plan.pools[0].members = 2;
        let activities = vec![
            Activity { workers: 2, ..activity(2, 8192, 0.7, Load::Closed { queue_depth: 8 }) },
            activity(1, 65536, 1.0, Load::Closed { queue_depth: 3 }),
        ];
        let session = SessionPlan { activities, seed: 5, interval_ns: SECOND, warm: false };
        let mut session = ModelSession::start(ArrayModel::new(&plan).unwrap(), &session).unwrap();
        let ticks = 60;
        session.run_ticks(ticks);
        assert_eq!(session.now_ns(), ticks * SECOND);
        let (mut count, mut latency_ns) = (0, 0.0);
        for tick in session.collector().fresh_ticks() {
            for side in [tick.counted.read, tick.counted.write].into_iter().filter(|side| side.count > 0) {
                count += side.count;
                latency_ns += side.mean_ns.unwrap() * side.count as f64;
            }
        }
        let (total, _) = counted(session.collector(), ticks);
        assert_eq!(count, total, "ticks add up");
        // As many I/Os a second as the time for which each of the slots is taken allows.
        let depth = (2 * 2 * 8 + 3) as f64;
        let outstanding = latency_ns / (ticks * SECOND) as f64;
        assert!((outstanding / depth - 1.0).abs() < 0.01, "{outstanding} of {depth} outstanding");
        session.finish();
        let (with_drained, _) = counted(session.collector(), u64::MAX);
        assert!((total..=total + depth as u64).contains(&with_drained), "what was outstanding ended");
    }
}

#[test]
fn an_open_loop_has_its_rate() {
    let mut session = ModelSession::start(
        ArrayModel::new(&plan(RaidPolicy::Raid10)).unwrap(),
        &SessionPlan {
            activities: vec![activity(2, 8192, 0.7, Load::Open { rate: 200.0, poisson: true, queue_depth: 64 })],
            seed: 5,
            interval_ns: SECOND,
            warm: false,
        },
    )
    .unwrap();
    session.run_ticks(200);
    let rate = counted(session.collector(), 200).0 as f64 / 200.0;
    assert!((rate / 200.0 - 1.0).abs() < 0.02, "{rate} I/Os a second");
}

/// One disk behind a controller that keeps nothing, as simple as an array can be; its tracks are all of one length, so that
/// random bytes are random cylinders.
fn one_disk() -> ArrayPlan {
    let mut plan = plan(RaidPolicy::Raid0);
    plan.pools[0].member.disks = 1;
    plan.pools[0].member.raid.set_disks = 1;
    plan.pools[0].member.disk = DiskPlan::Mechanical(MechanicalPlan {
        capacity_bytes: 64 * GIB,
        rate_inner_bytes_per_s: 160e6,
        read_ahead_bytes: 0,
        ..plans::mechanical()
    });
    plan.pools[0].volumes.truncate(1);
    plan.pools[0].volumes[0].bytes = 64 * GIB;
    plan.pools[0].member.cache.keep_reads = false;
    plan.pools[0].member.cache.write_back = false;
    plan.pools[0].member.cache.sequential_after = u32::MAX;
    plan
}

#[test]
fn an_idle_disk_takes_overhead_seek_half_a_turn_and_transfer() {
    for (bytes, read_share) in [(8 * KIB, 1.0), (512 * KIB, 1.0), (8 * KIB, 0.0)] {
        let mut plan = one_disk();
        plan.pools[0].member.raid.chunk_bytes = MIB;
        // Far enough apart that none waits for another; no multiple of a turn, so that the platters stand anywhere.
        let load = Load::Open { rate: 7.77, poisson: false, queue_depth: 64 };
        let (_, latency_ns) = plans::measure(&plan, activity(1, bytes as u32, read_share, load), 0, 600);
        let command = 128.0 / 117e6;
        let wire = bytes as f64 / 117e6;
        let link = command + command + wire + 200e-6;
        let controller = 20e-6 + bytes as f64 / 2e9;
        let settle = if read_share == 0.0 { 400e-6 } else { 0.0 };
        let disk = 700e-6 + 2.9e-3 + settle + 2e-3 + bytes as f64 / 160e6;
        let expected_ns = (link + controller + disk) * 1e9;
        let error = latency_ns / expected_ns - 1.0;
        assert!(error.abs() < 0.02, "{bytes} bytes, reads {read_share}: {latency_ns} against {expected_ns}");
    }
}

#[test]
fn an_idle_flash_disk_takes_overhead_read_and_transfer() {
    let mut plan = one_disk();
    plan.pools[0].member.disk =
        DiskPlan::SolidState(assay_array_model::SolidStatePlan { capacity_bytes: 64 * GIB, ..plans::solid_state() });
    let load = Load::Open { rate: 50.0, poisson: false, queue_depth: 8 };
    let (_, latency_ns) = plans::measure(&plan, activity(1, 8192, 1.0, load), 0, 40);
    let link = 2.0 * 128.0 / 117e6 + 8192.0 / 117e6 + 200e-6;
    let flash = 1e-6 + 10e-6 + 60e-6 + 8192.0 / 1.2e9;
    let expected_ns = (link + 20e-6 + 8192.0 / 2e9 + flash + 8192.0 / 2e9) * 1e9;
    assert!((latency_ns / expected_ns - 1.0).abs() < 0.001, "{latency_ns} against {expected_ns}");
}

#[test]
fn a_cache_that_takes_writes_answers_them_without_the_disks() {
    let plan = plan(RaidPolicy::Raid6);
    let load = Load::Open { rate: 20.0, poisson: false, queue_depth: 8 };
    let (_, latency_ns) = plans::measure(&plan, activity(1, 8192, 0.0, load), 5, 20);
    let expected_ns = (2.0 * 128.0 / 117e6 + 8192.0 / 117e6 + 200e-6 + 20e-6 + 8192.0 / 2e9) * 1e9;
    assert!((latency_ns / expected_ns - 1.0).abs() < 0.001, "{latency_ns} against {expected_ns}");
}

#[test]
fn a_second_session_goes_on_where_the_first_left_the_model() {
    let session = |queue_depth| SessionPlan {
        activities: vec![activity(2, 8192, 0.5, Load::Closed { queue_depth })],
        seed: 5,
        interval_ns: SECOND,
        warm: false,
    };
    // Not finished: more I/Os of the first session are outstanding when the second begins than that has itself.
    let mut first = ModelSession::start(ArrayModel::new(&plan(RaidPolicy::Raid5)).unwrap(), &session(16)).unwrap();
    first.run_ticks(3);
    let mut second = ModelSession::start(first.into_model(), &session(1)).unwrap();
    assert_eq!(second.now_ns(), 0);
    second.run_ticks(5);
    let (count, sum_ns) = counted(second.collector(), 5);
    let outstanding = sum_ns as f64 / (5.0 * SECOND as f64);
    assert!(count > 500 && (outstanding / 2.0 - 1.0).abs() < 0.02, "{count} I/Os, {outstanding} outstanding");
}

#[test]
fn a_cache_at_its_working_level_is_settled_and_an_empty_one_is_not() {
    let settled = |starts_warm, seconds, region_bytes| {
        let mut activity = activity(2, 8192, 0.0, Load::Closed { queue_depth: 8 });
        activity.access.region.end_bytes = region_bytes;
        let session = SessionPlan { activities: vec![activity], seed: 5, interval_ns: SECOND, warm: starts_warm };
        let mut plan = plan(RaidPolicy::Raid10);
        plan.pools[0].member.cache.bytes = 256 * MIB;
        let mut session = ModelSession::start(ArrayModel::new(&plan).unwrap(), &session).unwrap();
        session.run_ticks(seconds);
        session.settled()
    };
    assert!(!settled(false, 2, 256 * MIB), "everything written stays in an empty cache");
    assert!(settled(true, 10, 256 * MIB));
    // Pages that are written again and again before they are destaged.
    assert!(settled(true, 10, 100 * MIB));
}

#[test]
fn an_array_takes_warm_caches_of_another_whose_warmth_is_the_same() {
    let own = plan(RaidPolicy::Raid5);
    let mut other = own.clone();
    other.pools[0].member.controller.cpu_per_io_ns *= 2;
    other.pools[0].member.cache.destage_depth *= 2;
    assert_eq!(own.warmth(), other.warmth());
    other.pools[0].member.cache.bytes *= 2;
    assert_ne!(own.warmth(), other.warmth());
    other.pools[0].member.cache.bytes = own.pools[0].member.cache.bytes;
    let session = |warm| SessionPlan {
        activities: vec![activity(2, 8192, 0.5, Load::Closed { queue_depth: 8 })],
        seed: 5,
        interval_ns: SECOND,
        warm,
    };
    let figures = |model: ArrayModel, warm: bool| {
        let mut session = ModelSession::start(model, &session(warm)).unwrap();
        session.run_ticks(3);
        (counted(session.collector(), 3), session.take_readings().last().unwrap().after.clone())
    };
    let mut warmed = ArrayModel::new(&own).unwrap();
    assay_array_model::warm(&mut warmed, &session(true));
    let mut taken = ArrayModel::new(&other).unwrap();
    taken.take_caches(&warmed);
    assert_eq!(figures(taken, false), figures(ArrayModel::new(&other).unwrap(), true));
    assert_ne!(figures(ArrayModel::new(&other).unwrap(), false), figures(ArrayModel::new(&other).unwrap(), true));
}
