//! A worker that replays the I/Os of a trace, on a virtual clock: when each begins, and how it is counted.

mod simulated;

use std::thread;

use assay_load::{
    Activity, Feeds, IoTally, Load, Op, Outcome, Pace, Tally, TracedIo, TracedOp, Worker, WorkerPlan, run_worker,
};
use proptest::prelude::*;
use simulated::{BLOCK_BYTES, Device, MS, S, Service, US, activity, collector, plan, takes};

const END_BYTES: u64 = 1 << 30;

fn io(at_ns: u64, place: u64, op: TracedOp, link: u32) -> TracedIo {
    let length_bytes = if op == TracedOp::Flush { 0 } else { BLOCK_BYTES };
    TracedIo { at_ns, offset_bytes: place * u64::from(BLOCK_BYTES), length_bytes, link, op }
}

fn replay(pace: Pace, queue_depth: u32) -> Activity {
    activity(Load::Replay { pace, queue_depth }, 0.5)
}

/// Feeds of one worker that hold all of a trace.
fn fed(ios: &[TracedIo]) -> Feeds {
    let feeds = Feeds::new(vec![END_BYTES], BLOCK_BYTES);
    for chunk in ios.chunks(7) {
        assert!(feeds.push(vec![chunk.to_vec()], chunk[chunk.len() - 1].at_ns).unwrap());
    }
    feeds.close();
    feeds
}

fn run(asked: Activity, feeds: &Feeds, stop_at_ns: u64, service: Service) -> (IoTally, Outcome, Device) {
    let plan = WorkerPlan { feed: Some(feeds.each().remove(0)), ..plan(asked) };
    let mut device = Device::new(&plan, stop_at_ns, service);
    let mut worker = Worker::new(plan.clone());
    let mut collector = collector(&plan);
    let outcome = run_worker(&mut device, &mut worker).unwrap();
    collector.collect();
    let mut sum = IoTally::default();
    collector.totals(0, u64::MAX).values().chain(collector.drained().values()).for_each(|rest| sum.merge(rest));
    (sum, outcome, device)
}

fn begins(device: &Device) -> Vec<(u64, Op, u64)> {
    device.submitted.iter().map(|(at_ns, request)| (*at_ns, request.op, request.offset_bytes)).collect()
}

// Timed.

#[test]
fn ios_begin_at_their_times_and_are_those_of_the_trace() {
    let ops = [TracedOp::Read, TracedOp::Write, TracedOp::Flush, TracedOp::DurableWrite];
    let ios: Vec<_> = (0..1000_u64).map(|n| io(n * n * US / 2, (n * 37) % 1000, ops[n as usize % 4], 0)).collect();
    let (counted, outcome, device) = run(replay(Pace::Timed, 64), &fed(&ios), S, takes(90 * US));
    assert_eq!(outcome, Outcome::Stopped { unfinished_count: 0, oldest_unfinished_ns: 0 });
    let own = begins(&device).into_iter().filter(|(_, op, _)| *op != Op::Flush);
    let wanted = ios.iter().filter(|io| io.op != TracedOp::Flush);
    for ((at_ns, op, place), traced) in own.zip(wanted) {
        assert!(at_ns >= traced.at_ns && at_ns <= traced.at_ns + 20 * US, "{at_ns} instead of {}", traced.at_ns);
        assert_eq!(place, traced.offset_bytes);
        assert_eq!(op == Op::Read, traced.op == TracedOp::Read);
    }
    assert_eq!((counted.read.latency.count(), counted.write.latency.count()), (250, 500));
    // Flushes of the trace, and those that make writes durable.
    assert_eq!(counted.flush.latency.count(), 500);
    assert_eq!(counted.held, 0);
    assert_eq!(counted.lag.count(), 1000);
}

#[test]
fn a_device_that_is_too_slow_makes_ios_wait_and_their_latency_counts_from_their_times() {
    let ios: Vec<_> = (0..1000).map(|n| io(n * MS, n, TracedOp::Read, 0)).collect();
    let (counted, outcome, _) = run(replay(Pace::Timed, 1), &fed(&ios), S, takes(2 * MS));
    let Outcome::Stopped { unfinished_count, oldest_unfinished_ns } = outcome else { panic!("{outcome:?}") };
    assert!((499..=501).contains(&unfinished_count), "{unfinished_count}");
    assert!((499 * MS..=501 * MS).contains(&oldest_unfinished_ns), "{oldest_unfinished_ns}");
    assert!(counted.read.latency.max_ns() >= 495 * MS);
    assert!(counted.service.max_ns() <= 3 * MS);
    assert!(counted.held >= 498, "{}", counted.held);
    // That is the device's doing, not the generator's.
    assert!(counted.lag.max_ns() <= 20 * US);
}

// Closed, and following.

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_more_ios_are_outstanding_than_in_the_trace(links in prop::collection::vec(0_u32..12, 1..300), seed in 1_u64..1000) {
        let ios: Vec<_> = links.iter().enumerate().map(|(n, link)| io(0, n as u64, TracedOp::Read, *link)).collect();
        let service: Service = Box::new(move |now_ns, request| {
            (now_ns + 50 * US + request.offset_bytes * seed % 777 * US, BLOCK_BYTES as i32)
        });
        let (counted, outcome, device) = run(replay(Pace::Outstanding, 16), &fed(&ios), 1000 * S, service);
        prop_assert_eq!(outcome, Outcome::Finished);
        prop_assert_eq!(counted.read.latency.count(), ios.len() as u64);
        for (n, (at_ns, _)) in device.submitted.iter().enumerate() {
            let ended = device.completed.iter().filter(|(end_ns, ..)| end_ns <= at_ns).count();
            prop_assert!(n - ended.min(n) <= links[n] as usize);
        }
    }

    #[test]
    fn an_io_begins_its_gap_after_the_end_of_the_one_that_it_follows(
        asked in prop::collection::vec((0_u32..9, 1_u64..3000), 1..300), seed in 1_u64..1000,
    ) {
        let ios: Vec<_> = asked
            .iter()
            .enumerate()
            .map(|(n, (link, gap_us))| io(gap_us * US, n as u64, TracedOp::Read, (*link).min(n as u32)))
            .collect();
        let service: Service = Box::new(move |now_ns, request| {
            (now_ns + 50 * US + request.offset_bytes * seed % 777 * US, BLOCK_BYTES as i32)
        });
        let (_, outcome, device) = run(replay(Pace::Following, 512), &fed(&ios), 1000 * S, service);
        prop_assert_eq!(outcome, Outcome::Finished);
        prop_assert_eq!(device.submitted.len(), ios.len());
        let ended = |place: u64| device.completed.iter().find(|(_, request, _)| request.offset_bytes == place).unwrap().0;
        for (at_ns, request) in &device.submitted {
            let number = (request.offset_bytes / u64::from(BLOCK_BYTES)) as usize;
            let traced = ios[number];
            let from_ns = if traced.link == 0 { 0 } else { ended(ios[number - traced.link as usize].offset_bytes) };
            let due_ns = from_ns + traced.at_ns;
            prop_assert!(*at_ns >= due_ns && *at_ns <= due_ns + 30 * US, "{} instead of {}", at_ns, due_ns);
        }
    }
}

// Feeding.

#[test]
fn a_reader_is_no_further_ahead_than_memory_allows_and_a_patient_worker_waits_for_it() {
    let count = 1_500_000_u64;
    let feeds = Feeds::new(vec![END_BYTES], BLOCK_BYTES);
    feeds.be_patient();
    let reader = thread::spawn({
        let feeds = feeds.clone();
        move || {
            for first in (0..count).step_by(50_000) {
                let chunk = (first..first + 50_000).map(|n| io(n * US, n % 1000, TracedOp::Read, 0)).collect();
                if !feeds.push(vec![chunk], (first + 50_000) * US).unwrap() {
                    return false;
                }
            }
            feeds.close();
            true
        }
    });
    let (counted, ..) = run(replay(Pace::Timed, 64), &feeds, 2 * S, takes(US));
    assert!(reader.join().unwrap());
    assert_eq!(counted.read.latency.count(), count);
}

#[test]
fn a_session_that_ends_releases_its_reader() {
    let feeds = Feeds::new(vec![END_BYTES], BLOCK_BYTES);
    let reader = thread::spawn({
        let feeds = feeds.clone();
        move || (0..).find(|_| !feeds.push(vec![vec![io(0, 0, TracedOp::Read, 0); 1 << 18]], 1).unwrap())
    });
    feeds.close();
    assert!(reader.join().unwrap().is_some());
}

#[test]
fn ios_outside_of_the_bounds_are_refused() {
    let feeds = Feeds::new(vec![END_BYTES], BLOCK_BYTES);
    let good = io(0, 0, TracedOp::Write, 0);
    let cases = [
        TracedIo { offset_bytes: END_BYTES - 512, ..good },
        TracedIo { offset_bytes: u64::MAX, ..good },
        TracedIo { length_bytes: BLOCK_BYTES + 512, ..good },
        TracedIo { length_bytes: 0, ..good },
        TracedIo { op: TracedOp::Flush, ..good },
    ];
    for bad in cases {
        assert!(feeds.push(vec![vec![good, bad]], 0).is_err(), "{bad:?}");
    }
}
