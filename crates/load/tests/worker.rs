//! A worker on a virtual clock: what it asks, when, and how it counts what comes back.

mod simulated;

use std::sync::Arc;

use assay_load::{Activity, Exchange, IoTally, Load, Op, Outcome, Sync, Tally, Worker, WorkerPlan, run_worker};
use proptest::prelude::*;
use simulated::{
    BLOCK_BYTES, Device, KEY, MS, S, Service, US, activity, closed, collector, host, open, plan, stalls, takes,
};

/// Runs a worker until `stop_at_ns` and returns all it counted, how it ended, and the device.
fn run(plan: &WorkerPlan, stop_at_ns: u64, service: Service) -> (IoTally, Outcome, Device) {
    let device = Device::new(plan, stop_at_ns, service);
    run_on(plan, device)
}

fn run_on(plan: &WorkerPlan, mut device: Device) -> (IoTally, Outcome, Device) {
    let mut worker = Worker::new(plan.clone());
    let mut collector = collector(plan);
    let mut sum = IoTally::default();
    let exchange = plan.exchange.clone();
    // Everything is taken as it comes, so that ticks are as long as planned.
    let taken = Arc::new(std::sync::Mutex::new(IoTally::default()));
    let into = Arc::clone(&taken);
    device.each_wait = Box::new(move |_| {
        while let Some(interval) = exchange.take() {
            into.lock().unwrap().merge(&interval.tally);
            exchange.give_back(interval);
        }
    });
    let outcome = run_worker(&mut device, &mut worker).unwrap();
    collector.collect();
    sum.merge(&taken.lock().unwrap());
    collector.totals(0, u64::MAX).values().chain(collector.drained().values()).for_each(|rest| sum.merge(rest));
    (sum, outcome, device)
}

fn writes(load: Load) -> Activity {
    activity(load, 0.0)
}

// How hard it asks.

#[test]
fn a_closed_loop_keeps_its_queue_depth_outstanding() {
    for depth in [1, 2, 17, 256] {
        let plan = plan(activity(closed(depth), 0.7));
        // No two take equally long, so that they end one by one.
        let service: Service =
            Box::new(|now_ns, request| (now_ns + 50 * US + u64::from(request.tag) * 997, BLOCK_BYTES as i32));
        let (counted, outcome, device) = run(&plan, S, service);
        assert_eq!(outcome, Outcome::Stopped { unfinished_count: 0, oldest_unfinished_ns: 0 });
        assert!(device.outstanding_at_wait.len() > 1000);
        assert!(device.outstanding_at_wait.iter().all(|count| *count == depth as usize));
        let ended = counted.read.latency.count() + counted.write.latency.count();
        assert_eq!(ended, device.completed.len() as u64);
        assert_eq!(ended, device.submitted.len() as u64);
    }
}

#[test]
fn an_open_loop_asks_at_its_rate_whatever_the_device_does() {
    // Arrivals fall due while a completion, a tick or nothing is waited for; the device is quick, slow, very quick.
    for (rate, service_ns) in [(200.0, 100 * US), (5000.0, 100 * US), (5000.0, 3 * MS), (100_000.0, US)] {
        for poisson in [false, true] {
            let (counted, _, device) = run(&plan(activity(open(rate, poisson, 64), 1.0)), 4 * S, takes(service_ns));
            let expected = 4.0 * rate;
            let slack = if poisson { 5.0 * expected.sqrt() } else { 2.0 };
            let count = counted.read.latency.count() as f64;
            assert!((count - expected).abs() <= slack, "{count} instead of {expected}");
            assert_eq!(counted.lag.count(), device.submitted.len() as u64);
            assert!(counted.lag.percentile_ns(99.0) <= 20 * US, "{}", counted.lag.percentile_ns(99.0));
        }
    }
}

#[test]
fn constant_arrivals_are_submitted_when_they_are_due() {
    let (_, _, device) = run(&plan(activity(open(1000.0, false, 4), 1.0)), S, takes(100 * US));
    for (index, (at_ns, _)) in device.submitted.iter().enumerate() {
        let late_ns = at_ns - index as u64 * MS;
        assert!(late_ns <= 2 * US, "arrival {index} is {late_ns} ns late");
    }
}

#[test]
fn a_rate_beyond_every_device_stays_within_the_queue_depth() {
    let plan = plan(activity(open(1e7, true, 32), 0.5));
    let (counted, outcome, device) = run(&plan, S, takes(100 * US));
    assert_eq!(device.outstanding_at_wait.iter().max(), Some(&32));
    let Outcome::Stopped { unfinished_count, oldest_unfinished_ns } = outcome else { panic!("{outcome:?}") };
    let asked = device.submitted.len() as u64 + unfinished_count;
    assert!(asked.abs_diff(10_000_000) < 20_000, "{asked}");
    assert!(oldest_unfinished_ns > S * 9 / 10);
    assert!(counted.read.latency.max_ns() > S * 9 / 10);
}

// What an open loop shows and a closed one hides.

#[test]
fn a_stall_shows_in_an_open_loop_and_hides_in_a_closed_one() {
    let stall = 5 * S..6 * S;
    let (counted, ..) = run(&plan(activity(open(1000.0, false, 32), 1.0)), 20 * S, stalls(100 * US, stall.clone()));
    let p99_ns = counted.read.latency.percentile_ns(99.0);
    assert!((700 * MS..=S).contains(&p99_ns), "open loop: p99 {p99_ns}");
    // The service time beside it sees what was outstanding only: 32 of 20,000.
    assert_eq!(counted.service.count(), counted.read.latency.count());
    assert!(counted.service.percentile_ns(99.0) < 101 * US);
    assert!(counted.service.max_ns() > 990 * MS);
    assert!(counted.lag.percentile_ns(99.9) < 20 * US, "the device is late, not the generator");

    let (counted, ..) = run(&plan(activity(closed(1), 1.0)), 20 * S, stalls(100 * US, stall));
    let p99_ns = counted.read.latency.percentile_ns(99.0);
    assert!((99 * US..=101 * US).contains(&p99_ns), "closed loop: p99 {p99_ns}");
    assert!(counted.read.latency.max_ns() > 990 * MS);
    assert!(counted.service.is_empty());
}

#[test]
fn arrivals_that_wait_for_a_slot_are_counted_from_their_intended_start() {
    // One slot, 10 ms each, 1,000 a second: the queue grows by nine in ten.
    let (counted, outcome, device) = run(&plan(activity(open(1000.0, false, 1), 1.0)), 2 * S, takes(10 * MS));
    let Outcome::Stopped { unfinished_count, oldest_unfinished_ns } = outcome else { panic!("{outcome:?}") };
    // The stop is noticed when the I/O that is under way ends.
    let asked = device.submitted.len() as u64 + unfinished_count;
    assert!((2000..=2011).contains(&asked), "{asked}");
    let next_ns = device.submitted.len() as u64 * MS;
    assert!((2 * S - next_ns..=2 * S + 11 * MS - next_ns).contains(&oldest_unfinished_ns));
    assert!(counted.read.latency.max_ns() > 1700 * MS);
    assert!(counted.service.max_ns() < 11 * MS);
    assert!(counted.lag.max_ns() < 20 * US, "no slot was free: lag {}", counted.lag.max_ns());
}

#[test]
fn lag_is_what_the_generator_is_late_by() {
    let plan = plan(activity(open(100.0, false, 8), 1.0));
    let mut device = Device::new(&plan, 2 * S, takes(100 * US));
    device.oversleep_ns = 3 * MS;
    let (counted, ..) = run_on(&plan, device);
    let p50_ns = counted.lag.percentile_ns(50.0);
    assert!((2 * MS..4 * MS).contains(&p50_ns), "{p50_ns}");
    assert!(counted.read.latency.percentile_ns(50.0) > 5 * MS, "and it is part of the latency");
}

// Bursts.

fn bursts(per_burst: u64) -> Load {
    Load::Bursts { interval_ns: S, bytes: per_burst * u64::from(BLOCK_BYTES), spread_share: 0.5, queue_depth: 4 }
}

#[test]
fn a_burst_is_written_within_its_spread_and_again_every_interval() {
    let plan = plan(writes(bursts(100)));
    let (counted, _, device) = run(&plan, 4 * S - MS, takes(100 * US));
    assert_eq!(counted.bursts_count, 4);
    assert_eq!(device.submitted.len(), 400);
    assert!(device.submitted.iter().all(|(at_ns, _)| at_ns % S < S / 2), "spread over half of the interval");
    // Each ends with its last write: 99 gaps of 5 ms, and what that write takes.
    let each_ns = counted.burst_ns / 4;
    assert!(each_ns.abs_diff(495 * MS + 100 * US) < 50 * US, "{each_ns}");
    assert!(!plan.gate.is_open());
}

#[test]
fn reads_during_bursts_are_told_apart() {
    let reader = plan(activity(closed(1), 1.0));
    let mut hosted: Vec<(Worker, Device)> = Vec::new();
    let mut exchanges = vec![reader.exchange.clone()];
    hosted.push((Worker::new(reader.clone()), Device::new(&reader, 10 * S - MS, takes(100 * US))));
    for worker in 0..2 {
        let exchange = Exchange::new(8);
        exchanges.push(exchange.clone());
        let writer = WorkerPlan {
            worker,
            workers: 2,
            gate: reader.gate.clone(),
            stop: Arc::clone(&reader.stop),
            exchange,
            ..plan(writes(bursts(200)))
        };
        hosted.push((Worker::new(writer.clone()), Device::new(&writer, 10 * S - MS, takes(100 * US))));
    }
    let mut counted = IoTally::default();
    host(&mut hosted, |_| {
        for exchange in &exchanges {
            while let Some(interval) = exchange.take() {
                counted.merge(&interval.tally);
                exchange.give_back(interval);
            }
        }
    });
    // The two workers write one checkpoint together: it counts once, and so does its time.
    assert_eq!(counted.write.latency.count(), 2000);
    assert_eq!(counted.bursts_count, 10);
    let expected_ns = 10 * (495 * MS + 100 * US);
    assert!(counted.burst_ns.abs_diff(expected_ns) < 10 * MS, "{}", counted.burst_ns);
    let during = counted.read_in_burst.latency.count();
    let between = counted.read.latency.count();
    assert!(during.abs_diff(expected_ns / (100 * US)) < 100, "{during}");
    assert!((during + between).abs_diff(100_000) < 100, "{during} and {between}");
}

#[test]
fn a_burst_slower_than_its_interval_is_still_counted() {
    // 1,000 writes of 20 ms, four at a time, take five seconds: bursts run into one another.
    let plan = plan(writes(bursts(1000)));
    let (counted, ..) = run(&plan, 9900 * MS, takes(20 * MS));
    assert_eq!(counted.bursts_count, 2, "the first one of five seconds, and the one behind it");
    assert!(counted.burst_ns.abs_diff(9900 * MS) < 30 * MS, "{}", counted.burst_ns);
}

// Durability.

fn synced(sync_every: u32) -> Activity {
    Activity { sync: Sync::Fdatasync, sync_every, ..writes(closed(1)) }
}

/// Writes take 100 us and flushes 1 ms.
fn slow_flushes() -> Service {
    Box::new(|now_ns, request| {
        let service_ns = if request.op == Op::Flush { MS } else { 100 * US };
        (now_ns + service_ns, request.length_bytes as i32)
    })
}

#[test]
fn a_write_with_a_flush_ends_with_the_flush() {
    let (counted, _, device) = run(&plan(synced(1)), S, slow_flushes());
    let ops: Vec<Op> = device.submitted.iter().map(|(_, request)| request.op).collect();
    assert!(ops.chunks(2).all(|pair| pair == [Op::Write, Op::Flush]));
    assert_eq!(counted.flush.latency.count(), counted.write.latency.count());
    assert_eq!(counted.write.latency.count() as usize, ops.len() / 2);
    for (found_ns, expected_ns) in
        [(counted.write.latency.mean_ns(), 1100 * US), (counted.flush.latency.mean_ns(), 1000 * US)]
    {
        assert_eq!(found_ns, Some(expected_ns as f64));
    }
    assert_eq!(counted.write.bytes, counted.write.latency.count() * u64::from(BLOCK_BYTES));
    assert_eq!(counted.flush.bytes, 0);
}

#[test]
fn a_flush_follows_every_nth_write() {
    let (counted, _, device) = run(&plan(synced(4)), S, slow_flushes());
    let ops: Vec<Op> = device.submitted.iter().map(|(_, request)| request.op).collect();
    for group in ops.chunks_exact(5) {
        assert_eq!(group, [Op::Write, Op::Write, Op::Write, Op::Write, Op::Flush]);
    }
    assert_eq!(counted.flush.latency.count(), counted.write.latency.count() / 4);
    assert!(counted.write.latency.percentile_ns(74.0) < 101 * US);
    assert!(counted.write.latency.percentile_ns(76.0) > 1099 * US);
}

#[test]
fn a_failed_flush_is_an_error_and_its_write_no_success() {
    let service: Service = Box::new(|now_ns, request| {
        let result = if request.op == Op::Flush { -5 } else { request.length_bytes as i32 };
        (now_ns + 100 * US, result)
    });
    let (counted, _, device) = run(&plan(synced(1)), S, service);
    assert_eq!(counted.errors.io as usize, device.submitted.len() / 2);
    assert_eq!(counted.write.latency.count() + counted.flush.latency.count(), 0);
}

#[test]
fn laying_out_ends_with_a_flush_behind_the_last_write() {
    for limit_blocks in [0, 1, 7, 1000] {
        let mut asked = writes(closed(8));
        asked.access.random_share = 0.0;
        asked.limit_bytes = Some(limit_blocks * u64::from(BLOCK_BYTES));
        let service: Service =
            Box::new(|now_ns, request| (now_ns + 50 * US + u64::from(request.tag) * 13, request.length_bytes as i32));
        let (counted, outcome, device) = run(&plan(asked), u64::MAX, service);
        assert_eq!(outcome, Outcome::Finished);
        assert_eq!(counted.write.bytes, limit_blocks * u64::from(BLOCK_BYTES));
        assert_eq!(counted.flush.latency.count(), 1);
        let (flushed_at_ns, last) = device.submitted.last().unwrap();
        assert_eq!(last.op, Op::Flush);
        let written = &device.completed[..limit_blocks as usize];
        assert!(written.iter().all(|(at_ns, request, _)| request.op == Op::Write && at_ns <= flushed_at_ns));
        let mut places: Vec<u64> = written.iter().map(|(_, request, _)| request.offset_bytes).collect();
        places.sort_unstable();
        assert!(places.iter().enumerate().all(|(index, place)| *place == index as u64 * u64::from(BLOCK_BYTES)));
    }
}

#[test]
fn laying_out_can_be_stopped() {
    let asked = Activity { limit_bytes: Some(1 << 40), ..writes(closed(8)) };
    let (_, outcome, device) = run(&plan(asked), S, takes(MS));
    assert!(matches!(outcome, Outcome::Stopped { .. }));
    assert!(device.now_ns < S + 10 * MS);
}

// A device that does not answer.

#[test]
fn an_io_that_does_not_end_ends_the_worker_after_the_time_out() {
    for load in [closed(4), open(1000.0, true, 4)] {
        let plan = WorkerPlan { io_timeout_ns: 2 * S, ..plan(activity(load, 0.5)) };
        let service: Service =
            Box::new(|now_ns, request| (if now_ns < S { now_ns + MS } else { u64::MAX }, request.length_bytes as i32));
        let (_, outcome, device) = run(&plan, u64::MAX, service);
        let Outcome::NotAnswering { outstanding, oldest_ns } = outcome else { panic!("{outcome:?}") };
        assert_eq!(outstanding, 4);
        assert!(oldest_ns > 2 * S);
        assert!((3 * S..3 * S + 300 * MS).contains(&device.now_ns), "{}", device.now_ns);
    }
}

#[test]
fn a_flush_that_does_not_end_ends_the_worker_too() {
    let plan = WorkerPlan { io_timeout_ns: 2 * S, ..plan(synced(1)) };
    let service: Service = Box::new(|now_ns, request| {
        let hangs = request.op == Op::Flush && now_ns >= S;
        (if hangs { u64::MAX } else { now_ns + 100 * US }, request.length_bytes as i32)
    });
    let (_, outcome, device) = run(&plan, u64::MAX, service);
    assert!(matches!(outcome, Outcome::NotAnswering { outstanding: 1, .. }), "{outcome:?}");
    assert!((3 * S..3 * S + 300 * MS).contains(&device.now_ns));
}

#[test]
fn a_device_that_answers_is_never_said_not_to() {
    // Ticks fall between a write and its flush here, in a session that is older than the time-out.
    let plan = WorkerPlan { io_timeout_ns: S, interval_ns: 7 * MS, ..plan(synced(1)) };
    let (_, outcome, _) = run(&plan, 20 * S, slow_flushes());
    assert_eq!(outcome, Outcome::Stopped { unfinished_count: 0, oldest_unfinished_ns: 0 });
}

#[test]
fn a_suspended_process_does_not_blame_the_device() {
    // Every wait comes back half a minute late, as after a stop signal; the I/Os have long ended then.
    let plan = plan(activity(closed(4), 1.0));
    let mut device = Device::new(&plan, 3600 * S, takes(100 * US));
    device.oversleep_ns = 30 * S;
    device.looks_away = true;
    let (counted, outcome, _) = run_on(&plan, device);
    assert_eq!(outcome, Outcome::Stopped { unfinished_count: 0, oldest_unfinished_ns: 0 });
    assert!(counted.read.latency.count() > 100);
}

#[test]
fn what_a_standstill_of_the_process_lengthened_is_counted_apart() {
    for (load, due_meanwhile) in [(closed(4), 0), (open(1000.0, false, 64), 8000)] {
        for sync in [Sync::None, Sync::Fdatasync] {
            let plan = plan(Activity { sync, ..activity(load, 0.5) });
            let mut device = Device::new(&plan, 20 * S, takes(100 * US));
            device.pulse = Some(plan.pulse.clone());
            device.standstill = Some((3 * S, 8 * S));
            let (counted, outcome, device) = run_on(&plan, device);
            assert!(matches!(outcome, Outcome::Stopped { .. }));
            // What is due right afterwards waits behind the backlog: 8000 I/Os, 64 at a time.
            let backlog_ns = due_meanwhile / 64 * 220 * US + MS;
            for latency in [&counted.read.latency, &counted.write.latency, &counted.flush.latency, &counted.service] {
                assert!(latency.max_ns() < backlog_ns, "{load:?} {sync:?}: {}", latency.max_ns());
            }
            let ended = counted.read.latency.count() + counted.write.latency.count() + counted.standstill_ios;
            assert_eq!(ended, device.submitted.iter().filter(|(_, request)| request.op != Op::Flush).count() as u64);
            // Those due meanwhile, and at most as many as the queue holds that were under way or waited behind them.
            let apart = due_meanwhile.max(1)..=due_meanwhile + 64;
            assert!(apart.contains(&counted.standstill_ios), "{load:?} {sync:?}: {}", counted.standstill_ios);
        }
    }
}

#[test]
fn a_device_that_stalls_while_the_process_runs_is_not_excused() {
    let plan = plan(activity(closed(4), 1.0));
    let mut device = Device::new(&plan, 20 * S, stalls(100 * US, 3 * S..11 * S));
    device.pulse = Some(plan.pulse.clone());
    let (counted, ..) = run_on(&plan, device);
    assert_eq!(counted.standstill_ios, 0);
    assert!(counted.read.latency.max_ns() > 7 * S);
}

#[test]
fn a_standstill_longer_than_the_time_out_does_not_blame_the_device() {
    let plan = WorkerPlan { io_timeout_ns: 2 * S, ..plan(activity(closed(4), 1.0)) };
    // What was outstanding ends a second after the process goes on, as from threads that were stopped with it.
    let service: Service = Box::new(|now_ns, request| {
        let due_ns = if (2990 * MS..=3 * S).contains(&now_ns) { 12 * S } else { now_ns + 100 * US };
        (due_ns, request.length_bytes as i32)
    });
    let mut device = Device::new(&plan, 20 * S, service);
    device.pulse = Some(plan.pulse.clone());
    device.standstill = Some((2995 * MS, 8 * S));
    let (_, outcome, _) = run_on(&plan, device);
    assert_eq!(outcome, Outcome::Stopped { unfinished_count: 0, oldest_unfinished_ns: 0 });
}

// Errors.

#[test]
fn errors_and_short_transfers_are_counted_and_have_no_latency() {
    for load in [closed(3), open(2000.0, false, 8)] {
        let mut number = 0;
        let service: Service = Box::new(move |now_ns, request| {
            number += 1;
            let length = request.length_bytes as i32;
            let results = [length, -5, length, -28, 512, length, -22, 0, length, length];
            (now_ns + 100 * US, results[number % 10])
        });
        let (counted, _, device) = run(&plan(activity(load, 0.5)), S, service);
        let results = |wanted: &dyn Fn(i32) -> bool| {
            device.completed.iter().filter(|(_, _, result)| wanted(*result)).count() as u64
        };
        assert!(device.completed.len() > 1000);
        assert_eq!(counted.errors.io, results(&|result| result == -5));
        assert_eq!(counted.errors.no_space, results(&|result| result == -28));
        assert_eq!(counted.errors.other, results(&|result| result == -22));
        assert_eq!(counted.errors.short, results(&|result| result == 512 || result == 0));
        let succeeded = results(&|result| result == BLOCK_BYTES as i32);
        assert_eq!(counted.read.latency.count() + counted.write.latency.count(), succeeded);
        assert_eq!(counted.read.bytes + counted.write.bytes, succeeded * u64::from(BLOCK_BYTES));
    }
}

// Buffers.

#[test]
fn the_share_of_duplicates_is_written_from_the_last_buffer() {
    let mut asked = activity(closed(16), 0.3);
    asked.access.duplicate_share = 0.25;
    let plan = plan(asked);
    let (_, _, device) = run(&plan, S, takes(100 * US));
    let written: Vec<u32> = device
        .submitted
        .iter()
        .filter(|(_, request)| request.op == Op::Write)
        .map(|(_, request)| request.buffer)
        .collect();
    assert_eq!(plan.buffers_count(), 16 + 16 + 1);
    let share = written.iter().filter(|buffer| **buffer == 32).count() as f64 / written.len() as f64;
    assert!((share - 0.25).abs() < 0.01, "{share}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    // The simulated device itself refuses shared buffers, tags in use, and reads into buffers of writes.
    #[test]
    fn outstanding_requests_never_share_a_buffer(
        depth in 1_u32..40, read_share in 0.0_f64..=1.0, duplicate_share in 0.0_f64..=1.0, sync_every in 1_u32..5,
        open_loop: bool, seed: u64,
    ) {
        let load = if open_loop { open(50_000.0, true, depth) } else { closed(depth) };
        let mut asked = Activity { sync: Sync::Fsync, sync_every, ..activity(load, read_share) };
        asked.access.duplicate_share = duplicate_share;
        let plan = WorkerPlan { seed, ..plan(asked) };
        let mut state = seed;
        let service: Service = Box::new(move |now_ns, request| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (now_ns + 10 * US + (state >> 33) % (300 * US), request.length_bytes as i32)
        });
        let (_, outcome, device) = run(&plan, 30 * MS, service);
        let stopped = matches!(outcome, Outcome::Stopped { .. });
        prop_assert!(stopped);
        for (_, request) in &device.submitted {
            prop_assert!(request.op == Op::Flush || request.buffer < plan.buffers_count());
        }
    }
}

#[test]
fn what_is_counted_is_kept_apart_by_activity_and_volume() {
    let plan = plan(activity(closed(1), 1.0));
    let mut worker = Worker::new(plan.clone());
    let mut device = Device::new(&plan, 300 * MS, takes(MS));
    let mut collector = collector(&plan);
    run_worker(&mut device, &mut worker).unwrap();
    collector.collect();
    assert_eq!(collector.totals(0, u64::MAX).keys().collect::<Vec<_>>(), [&KEY]);
}
