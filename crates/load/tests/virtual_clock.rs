//! The virtual clock: a model as a queue, and many workers on one model.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use assay_load::{
    Access, Activity, BlockShare, Completion, IoCollector, Load, Op, Outcome, Pulse, Queue, Region, Request, Simulated,
    SimulatedQueue, Skew, Sync, VirtualDriver, Worker, WorkerPlan, WorkersPlan, plan_workers, run_worker,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// Servers that each take a fixed time for an I/O, whichever worker asks; requests wait in line.
struct Servers {
    now_ns: u64,
    takes_ns: u64,
    /// When each server is free again.
    free_ns: Vec<u64>,
    ends: VecDeque<(u64, Request)>,
    submitted: u64,
    advanced: u64,
}

impl Servers {
    fn new(servers: usize, takes_ns: u64) -> Self {
        Self { now_ns: 0, takes_ns, free_ns: vec![0; servers], ends: VecDeque::new(), submitted: 0, advanced: 0 }
    }
}

impl Simulated for Servers {
    fn submit(&mut self, at_ns: u64, request: &Request) {
        assert!(at_ns >= self.now_ns, "time goes back");
        self.submitted += 1;
        let free_ns = self.free_ns.iter_mut().min().unwrap();
        *free_ns = (*free_ns).max(at_ns) + self.takes_ns;
        self.ends.push_back((*free_ns, *request));
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.ends.front().map(|(at_ns, _)| *at_ns)
    }

    fn advance(&mut self, to_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        self.advanced += 1;
        self.now_ns = self.next_event_ns().map_or(to_ns, |at_ns| at_ns.min(to_ns)).max(self.now_ns);
        while self.ends.front().is_some_and(|(at_ns, _)| *at_ns <= self.now_ns) {
            let (at_ns, request) = self.ends.pop_front().unwrap();
            completions.push(Completion { tag: request.tag, result: request.length_bytes as i32, at_ns });
        }
        self.now_ns
    }
}

fn read(tag: u32) -> Request {
    Request { op: Op::Read, volume: 0, offset_bytes: 0, length_bytes: 4096, buffer: 0, tag }
}

#[test]
fn a_wait_returns_at_the_completion_or_at_its_end_whichever_is_first() {
    let mut queue = SimulatedQueue::new(Servers::new(1, 10 * MS));
    let mut completions = Vec::new();
    queue.submit(&[read(1), read(2), read(3)]).unwrap();
    queue.wait(1, 4 * MS, &mut completions).unwrap();
    assert_eq!((completions.len(), queue.now_ns()), (0, 4 * MS));
    queue.wait(1, SECOND, &mut completions).unwrap();
    assert_eq!((completions.len(), queue.now_ns()), (1, 10 * MS));
    queue.wait(2, SECOND, &mut completions).unwrap();
    assert_eq!((completions.len(), queue.now_ns()), (3, 30 * MS));
    assert_eq!(
        completions.iter().map(|each| (each.tag, each.at_ns / MS)).collect::<Vec<_>>(),
        [(1, 10), (2, 20), (3, 30)]
    );
    // For nothing that is outstanding, for what is over already, and backwards.
    queue.wait(1, 35 * MS, &mut completions).unwrap();
    assert_eq!(queue.now_ns(), 35 * MS);
    queue.wait(1, 0, &mut completions).unwrap();
    assert_eq!((completions.len(), queue.now_ns()), (3, 35 * MS));
}

#[test]
fn whoever_only_looks_gets_on() {
    let mut queue = SimulatedQueue::new(Servers::new(1, MS));
    let mut completions = Vec::new();
    queue.submit(&[read(1)]).unwrap();
    let mut looks = 0;
    while completions.is_empty() {
        let now_ns = queue.now_ns();
        queue.wait(0, now_ns, &mut completions).unwrap();
        looks += 1;
        assert!(looks <= 1001);
    }
    assert_eq!(completions[0].at_ns, MS);
}

fn activity(volumes: usize, load: Load) -> Activity {
    Activity {
        name: "io".into(),
        role: "data".into(),
        volumes: (0..volumes).collect(),
        workers: 1,
        access: Access {
            blocks: vec![BlockShare { bytes: 8192, weight: 1.0 }],
            read_share: 0.7,
            random_share: 1.0,
            skew: Skew::Uniform,
            region: Region { start_bytes: 0, end_bytes: 1 << 30 },
            align_bytes: 8192,
            streams: 1,
            stride_bytes: None,
            duplicate_share: 0.0,
        },
        load,
        direct: true,
        sync: Sync::None,
        sync_every: 1,
        compressible_share: 0.0,
        limit_bytes: None,
    }
}

fn workers(activities: &[Activity], stop: &Arc<AtomicBool>) -> (IoCollector, Vec<Worker>) {
    let plan = WorkersPlan {
        activities,
        seed: 1,
        interval_ns: 100 * MS,
        io_timeout_ns: u64::MAX,
        spare_intervals: 1000,
        pulse: &Pulse::default(),
        processors: 0,
        feeds: &[],
    };
    let (sources, workers) = plan_workers(&plan, stop);
    let workers =
        workers.into_iter().map(|(volume, plan)| Worker::new(WorkerPlan { volume: volume as u16, ..plan })).collect();
    (IoCollector::new(sources), workers)
}

/// I/Os, the sum of their latencies, and ticks that are complete.
fn counted(collector: &mut IoCollector) -> (u64, u128, u64) {
    let ticks = collector.collect();
    let totals = collector.totals(0, u64::MAX);
    let (count, sum_ns) =
        totals.values().chain(collector.drained().values()).fold((0, 0), |(count, sum_ns), interval| {
            let (read, write) = (&interval.read.latency, &interval.write.latency);
            (count + read.count() + write.count(), sum_ns + read.sum_ns() + write.sum_ns())
        });
    (count, sum_ns, ticks)
}

#[test]
fn one_worker_on_its_own_queue_and_hosted_on_the_clock_do_the_same() {
    for load in [
        Load::Closed { queue_depth: 4 },
        Load::Open { rate: 1500.0, poisson: false, queue_depth: 16 },
        Load::Open { rate: 1500.0, poisson: true, queue_depth: 16 },
    ] {
        let activities = [Activity { limit_bytes: Some(3000 * 8192), ..activity(1, load) }];
        let stop = Arc::new(AtomicBool::new(false));
        let (mut alone, mut worker) = workers(&activities, &stop);
        let mut queue = SimulatedQueue::new(Servers::new(2, MS));
        assert_eq!(run_worker(&mut queue, &mut worker[0]).unwrap(), Outcome::Finished);
        let (mut hosted, worker) = workers(&activities, &stop);
        let mut driver = VirtualDriver::new(Servers::new(2, MS), worker);
        driver.run_to(100 * SECOND);
        assert_eq!(driver.outcomes(), Some(vec![Outcome::Finished]));
        let (left, right) = (counted(&mut alone), counted(&mut hosted));
        assert_eq!((left.0, left.2), (right.0, right.2));
        assert_eq!(left.0, 3000);
        assert_eq!(driver.model().submitted, 3001, "and the flush at the end");
        // Alone, arrivals are waited for by looking, each look a microsecond.
        let (left_ns, right_ns) = (left.1 as f64 / 3000.0, right.1 as f64 / 3000.0);
        assert!((left_ns - right_ns).abs() <= 2000.0, "{left_ns} and {right_ns}");
    }
}

#[test]
fn many_workers_keep_every_server_busy_and_littles_law() {
    let activities = [activity(3, Load::Closed { queue_depth: 5 }), activity(1, Load::Closed { queue_depth: 1 })];
    let stop = Arc::new(AtomicBool::new(false));
    let (mut collector, workers) = workers(&activities, &stop);
    let mut driver = VirtualDriver::new(Servers::new(4, MS), workers);
    for tick in 1..=100 {
        driver.run_to(tick * 100 * MS);
        assert_eq!(driver.now_ns(), tick * 100 * MS);
        assert_eq!(collector.collect(), tick, "the tick that ends here was handed over");
    }
    let totals = collector.totals(0, 100);
    let (mut count, mut sum_ns) = (0, 0);
    for interval in totals.values() {
        count += interval.read.latency.count() + interval.write.latency.count();
        sum_ns += interval.read.latency.sum_ns() + interval.write.latency.sum_ns();
    }
    assert!(count.abs_diff(40_000) <= 16, "four servers of 1 ms in 10 s: {count}");
    let outstanding = sum_ns as f64 / (10 * SECOND) as f64;
    assert!((outstanding / 16.0 - 1.0).abs() < 0.01, "{outstanding} outstanding");
    stop.store(true, Ordering::Relaxed);
    driver.run_to(11 * SECOND);
    assert!(driver.outcomes().is_some());
    let (with_drained, _, _) = counted(&mut collector);
    assert_eq!(with_drained, driver.model().submitted, "every I/O ends and is counted once");
}

#[test]
fn a_total_that_does_not_divide_is_outstanding_all_the_time_and_every_volume_has_its_share() {
    let (volumes, outstanding) = (5, 17);
    let activities = [activity(volumes, Load::Spread { outstanding })];
    let stop = Arc::new(AtomicBool::new(false));
    let (mut collector, workers) = workers(&activities, &stop);
    let mut driver = VirtualDriver::new(Servers::new(4, MS), workers);
    driver.run_to(10 * SECOND);
    collector.collect();
    let by_volume: Vec<f64> = collector
        .totals(0, 100)
        .values()
        .map(|interval| interval.read.latency.sum_ns() + interval.write.latency.sum_ns())
        .map(|sum_ns| sum_ns as f64 / (10 * SECOND) as f64)
        .collect();
    let total: f64 = by_volume.iter().sum();
    assert!((total / f64::from(outstanding) - 1.0).abs() < 0.01, "{total} outstanding");
    for share in by_volume {
        assert!((share / total * volumes as f64 - 1.0).abs() < 0.02, "{share} of {total}");
    }
}

#[test]
fn who_has_stopped_waits_for_what_is_outstanding_and_for_no_turn() {
    let activities = [activity(5, Load::Spread { outstanding: 17 })];
    let stop = Arc::new(AtomicBool::new(false));
    let (_collector, workers) = workers(&activities, &stop);
    let mut driver = VirtualDriver::new(Servers::new(1, 10 * SECOND), workers);
    driver.run_to(SECOND);
    stop.store(true, Ordering::Relaxed);
    let before = driver.model().advanced;
    driver.run_to(2 * SECOND);
    // Once for each end of a tick; a turn that is over would wake them every nanosecond.
    let advanced = driver.model().advanced - before;
    assert!(advanced <= 20, "looked {advanced} times in a second in which nothing happens");
}

#[test]
fn open_loops_on_the_clock_submit_when_they_intend_to() {
    let activities = [activity(2, Load::Open { rate: 700.0, poisson: true, queue_depth: 64 })];
    let stop = Arc::new(AtomicBool::new(false));
    let (mut collector, workers) = workers(&activities, &stop);
    let mut driver = VirtualDriver::new(Servers::new(64, MS), workers);
    driver.run_to(20 * SECOND);
    collector.collect();
    let totals = collector.totals(0, 200);
    let mut count = 0;
    for interval in totals.values() {
        count += interval.read.latency.count() + interval.write.latency.count();
        assert_eq!(interval.lag.max_ns(), 0, "no worker is late on a virtual clock");
        // A server is always free: the latency is the service time, to the nanosecond.
        assert_eq!(interval.read.latency.mean_ns(), Some(1e6));
    }
    assert!((count as f64 / 14_000.0 - 1.0).abs() < 0.03, "{count}");
}
