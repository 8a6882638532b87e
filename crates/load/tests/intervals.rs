//! From the worker's intervals to the collector's windows: whatever happens on the way, the sums are what was done.

mod simulated;

use std::{cell::RefCell, rc::Rc};

use assay_load::{Activity, Exchange, IoCollector, IoTally, Op, Sync, Tally, Totals, Worker, WorkerPlan, run_worker};
use proptest::prelude::*;
use simulated::{BLOCK_BYTES, Device, KEY, MS, S, Service, US, activity, closed, collector, open, plan, takes};

/// Runs a worker with a collector that collects every so often, or only at the end.
fn run(plan: &WorkerPlan, stop_at_ns: u64, service: Service, collect_every_ns: u64) -> (IoCollector, Device) {
    let mut device = Device::new(plan, stop_at_ns, service);
    let collector = Rc::new(RefCell::new(collector(plan)));
    let collects = Rc::clone(&collector);
    let mut next_ns = collect_every_ns;
    device.each_wait = Box::new(move |now_ns| {
        if now_ns >= next_ns {
            collects.borrow_mut().collect();
            next_ns = now_ns + collect_every_ns;
        }
    });
    run_worker(&mut device, &mut Worker::new(plan.clone())).unwrap();
    collector.borrow_mut().collect();
    device.each_wait = Box::new(|_| {});
    (Rc::into_inner(collector).unwrap().into_inner(), device)
}

fn sum<'a>(intervals: impl IntoIterator<Item = &'a IoTally>) -> IoTally {
    let mut sum = IoTally::default();
    intervals.into_iter().for_each(|interval| sum.merge(interval));
    sum
}

fn window(collector: &IoCollector, from_tick: u64, to_tick: u64) -> IoTally {
    sum(collector.totals(from_tick, to_tick).values())
}

fn everything(collector: &IoCollector) -> IoTally {
    let mut all: Totals = collector.totals(0, u64::MAX);
    for (key, interval) in collector.drained() {
        all.entry(*key).or_default().merge(interval);
    }
    sum(all.values())
}

fn count(interval: &IoTally) -> u64 {
    interval.read.latency.count() + interval.write.latency.count()
}

/// Random service times, a few of them long, and some failures.
fn fickle(seed: u64, longest_ns: u64) -> Service {
    let mut state = seed;
    Box::new(move |now_ns, request| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let draw = state >> 33;
        let service_ns = if draw.is_multiple_of(50) { longest_ns } else { 10 * US + draw % (500 * US) };
        let result = match draw % 97 {
            0 => -5,
            1 => 512,
            _ => request.length_bytes as i32,
        };
        // A flush moves no bytes, so it cannot be short.
        (now_ns + service_ns, if request.op == Op::Flush { result.min(0) } else { result })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn the_sums_are_what_the_device_did(
        depth in 1_u32..20, read_share in 0.0_f64..=1.0, rate in prop::option::of(100.0_f64..20_000.0), poisson: bool,
        sync_every in prop::option::of(1_u32..4), interval_ms in 1_u64..60, collect_every_ms in 1_u64..400,
        longest_ms in 1_u64..200, seed: u64,
    ) {
        let load = rate.map_or(closed(depth), |rate| open(rate, poisson, depth));
        let sync = if sync_every.is_some() { Sync::Fdatasync } else { Sync::None };
        let asked = Activity { sync, sync_every: sync_every.unwrap_or(1), ..activity(load, read_share) };
        let plan = WorkerPlan { seed, interval_ns: interval_ms * MS, ..plan(asked) };
        let (mut collector, device) = run(&plan, 500 * MS, fickle(seed, longest_ms * MS), collect_every_ms * MS);
        let all = everything(&collector);

        let done = |op: Op, good: bool| {
            let ends = device.completed.iter().filter(|(_, request, _)| request.op == op);
            ends.filter(|(_, request, result)| (*result == request.length_bytes as i32) == good).count() as u64
        };
        prop_assert_eq!(all.read.latency.count(), done(Op::Read, true));
        prop_assert_eq!(all.flush.latency.count(), done(Op::Flush, true));
        // A write whose flush failed is no success.
        prop_assert_eq!(all.write.latency.count(), done(Op::Write, true) - done(Op::Flush, false));
        prop_assert_eq!(all.errors.count(), [Op::Read, Op::Write, Op::Flush].map(|op| done(op, false)).iter().sum());
        prop_assert_eq!(all.read.bytes, all.read.latency.count() * u64::from(BLOCK_BYTES));
        prop_assert_eq!(all.write.bytes, all.write.latency.count() * u64::from(BLOCK_BYTES));
        if rate.is_some() {
            prop_assert_eq!(all.service.count(), count(&all));
        }
        if sync == Sync::None && rate.is_none() {
            // The sum of latencies is exact, however it was folded into bins and back.
            let latencies: u128 = latencies_ns(&device).map(u128::from).sum();
            prop_assert_eq!(all.read.latency.sum_ns() + all.write.latency.sum_ns(), latencies);
        }

        // Ticks tell the same as windows, and windows add up.
        let ticks = collector.fresh_ticks();
        let complete = collector.complete_ticks();
        prop_assert!(ticks.windows(2).all(|pair| pair[0].tick < pair[1].tick));
        let of_ticks: u64 = ticks.iter().map(|tick| tick.counted.read.count + tick.counted.write.count).sum();
        prop_assert_eq!(of_ticks, count(&window(&collector, 0, complete)));
        let middle = complete / 2;
        prop_assert_eq!(
            count(&window(&collector, 0, middle)) + count(&window(&collector, middle, complete)),
            of_ticks
        );
    }
}

/// From submission to end of everything that succeeded.
fn latencies_ns(device: &Device) -> impl Iterator<Item = u64> {
    let mut submitted_ns = std::collections::HashMap::<u32, Vec<u64>>::new();
    for (at_ns, request) in device.submitted.iter().rev() {
        submitted_ns.entry(request.tag).or_default().push(*at_ns);
    }
    device.completed.iter().filter_map(move |(at_ns, request, result)| {
        let since_ns = submitted_ns.get_mut(&request.tag)?.pop()?;
        (*result == request.length_bytes as i32).then(|| at_ns - since_ns)
    })
}

#[test]
fn each_tick_holds_what_ended_in_it() {
    let plan = plan(activity(closed(1), 1.0));
    // 40 a tick of 100 ms, which no completion falls on the end of.
    let (mut collector, device) = run(&plan, S + 50 * MS, takes(2_400 * US), 10 * MS);
    let ticks = collector.fresh_ticks();
    assert_eq!(collector.complete_ticks(), 10);
    assert_eq!(ticks.iter().map(|tick| tick.tick).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    for tick in ticks {
        let ends = device.completed.iter().filter(|(at_ns, ..)| at_ns / (100 * MS) == tick.tick).count() as u64;
        assert!(
            tick.counted.read.count.abs_diff(ends) <= 1,
            "tick {}: {} and {ends}",
            tick.tick,
            tick.counted.read.count
        );
        assert_eq!(tick.counted.read.bytes, tick.counted.read.count * u64::from(BLOCK_BYTES));
        assert_eq!(tick.counted.read.mean_ns, Some(2_400_000.0));
        assert_eq!(tick.counted.write.count, 0);
        assert_eq!(tick.counted.write.max_ns, None, "what did not happen has no latency");
    }
}

#[test]
fn a_window_holds_its_ticks_and_no_others() {
    let (collector, _) = run(&plan(activity(closed(1), 1.0)), 2 * S, takes(MS), 10 * MS);
    let each: Vec<u64> = (0..19).map(|tick| count(&window(&collector, tick, tick + 1))).collect();
    assert!(each.iter().all(|count| count.abs_diff(100) <= 1), "{each:?}");
    assert_eq!(count(&window(&collector, 3, 11)), each[3..11].iter().sum());
    assert_eq!(count(&window(&collector, 5, 5)), 0);
    assert_eq!(count(&window(&collector, 19, 1000)), count(&window(&collector, 19, 20)));
}

#[test]
fn the_warm_up_is_forgotten() {
    let (mut collector, _) = run(&plan(activity(closed(1), 1.0)), 2 * S, takes(MS), 10 * MS);
    let after = count(&window(&collector, 5, 15));
    collector.measure_from(5);
    assert_eq!(count(&window(&collector, 0, 5)), 0);
    assert_eq!(count(&window(&collector, 0, 15)), after);
}

#[test]
fn old_ticks_are_folded_and_nothing_is_lost() {
    let asked = activity(open(20_000.0, true, 16), 0.5);
    let plan = WorkerPlan { interval_ns: MS, ..plan(asked) };
    let (mut collector, _) = run(&plan, 2 * S, fickle(3, 2 * MS), MS / 2);
    assert!(collector.complete_ticks() >= 1999, "{}", collector.complete_ticks());
    let ticks = collector.fresh_ticks();
    let all = window(&collector, 0, collector.complete_ticks());
    assert_eq!(count(&all), ticks.iter().map(|tick| tick.counted.read.count + tick.counted.write.count).sum());
    assert_eq!(all.errors.count(), ticks.iter().map(|tick| tick.counted.error_count).sum());
    let longest_ns = ticks.iter().filter_map(|tick| tick.counted.read.max_ns.max(tick.counted.write.max_ns)).max();
    assert_eq!(Some(all.read.latency.max_ns().max(all.write.latency.max_ns())), longest_ns);
    // The last ticks are still there one by one.
    let last = collector.complete_ticks() - 1;
    let in_last: u64 = ticks
        .iter()
        .filter(|tick| tick.tick == last)
        .map(|tick| tick.counted.read.count + tick.counted.write.count)
        .sum();
    assert_eq!(count(&window(&collector, last, last + 1)), in_last);
}

#[test]
fn a_late_collector_loses_nothing() {
    let plan = plan(activity(closed(2), 0.5));
    // 100 ticks, of which the worker has room for nine.
    let (collector, device) = run(&plan, 10 * S, takes(MS), u64::MAX);
    assert_eq!(count(&everything(&collector)), device.completed.len() as u64);
    assert!(collector.complete_ticks() >= 8);
}

#[test]
fn ticks_are_whole_again_once_the_collector_is_back() {
    let plan = plan(activity(closed(1), 1.0));
    let mut device = Device::new(&plan, 10 * S, takes(MS));
    let collector = Rc::new(RefCell::new(collector(&plan)));
    let collects = Rc::clone(&collector);
    device.each_wait = Box::new(move |now_ns| {
        if !(2 * S..6 * S).contains(&now_ns) {
            collects.borrow_mut().collect();
        }
    });
    run_worker(&mut device, &mut Worker::new(plan.clone())).unwrap();
    let mut collector = collector.borrow_mut();
    collector.collect();
    assert!(collector.complete_ticks() >= 99);
    assert_eq!(count(&everything(&collector)), device.completed.len() as u64);
    for tick in (0..20).chain(62..99) {
        let found = count(&window(&collector, tick, tick + 1));
        assert!(found.abs_diff(100) <= 1, "tick {tick}: {found}");
    }
}

#[test]
fn ticks_in_which_nothing_ended_are_complete_and_empty() {
    let plan = WorkerPlan { io_timeout_ns: 100 * S, ..plan(activity(closed(1), 1.0)) };
    let (mut collector, _) = run(&plan, 3 * S, takes(800 * MS), 10 * MS);
    assert!(collector.complete_ticks() >= 30, "{}", collector.complete_ticks());
    let ticks = collector.fresh_ticks();
    let ended: Vec<u64> = ticks.iter().filter(|tick| tick.counted.read.count > 0).map(|tick| tick.tick).collect();
    assert_eq!(ended, [7, 15, 23, 31], "every 800 ms, the last one after the stop");
    assert_eq!(count(&window(&collector, 9, 15)), 0);
}

#[test]
fn a_tick_is_complete_when_every_worker_has_passed_it() {
    let quick = plan(activity(closed(1), 1.0));
    let slow = WorkerPlan { exchange: Exchange::new(8), ..quick.clone() };
    let mut collector = IoCollector::new([(KEY, quick.exchange.clone()), (KEY, slow.exchange.clone())]);
    let mut ahead = Worker::new(quick);
    let mut behind = Worker::new(slow);
    ahead.tick(300 * MS, None);
    assert_eq!(collector.collect(), 0);
    behind.tick(200 * MS, None);
    assert_eq!(collector.collect(), 1, "both passed the first; what lies behind it holds nothing yet");
    ahead.finish(350 * MS, None);
    behind.tick(400 * MS, None);
    assert_eq!(collector.collect(), 3);
    behind.finish(450 * MS, None);
    collector.collect();
    assert_eq!(collector.drained().len(), 1);
}

#[test]
fn cpu_time_before_the_load_is_not_the_loads() {
    let plan = plan(activity(closed(1), 1.0));
    let mut collector = collector(&plan);
    let mut worker = Worker::new(plan);
    worker.begin(Some(7 * S));
    worker.tick(100 * MS, Some(7 * S + 40 * MS));
    worker.finish(150 * MS, Some(7 * S + 50 * MS));
    collector.collect();
    assert_eq!(window(&collector, 0, 1).cpu_ns, 40 * MS);
    assert_eq!(collector.drained()[&KEY].cpu_ns, 10 * MS);
}
