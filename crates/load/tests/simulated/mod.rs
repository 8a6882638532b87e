//! A device in virtual time, and what surrounds a worker.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use assay_load::{
    Access, Activity, BlockShare, BurstGate, Completion, Exchange, GroupKey, IoCollector, Load, Op, Pulse, Queue,
    QueueError, Region, Request, Skew, Step, Sync, Worker, WorkerPlan,
};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000_000_000;
pub(crate) const BLOCK_BYTES: u32 = 8192;
/// What looking once without waiting takes.
const POLL_NS: u64 = US;

/// Says of a request submitted at a time when it completes, and with what result.
pub(crate) type Service = Box<dyn FnMut(u64, &Request) -> (u64, i32)>;

/// A device whose every completion is known beforehand. It holds its user to the rules of [`Queue`].
pub(crate) struct Device {
    pub(crate) now_ns: u64,
    service: Service,
    due: BinaryHeap<Reverse<(u64, u32, i32)>>,
    outstanding: HashMap<u32, Request>,
    stop: Arc<AtomicBool>,
    /// The worker is told to stop at this time.
    pub(crate) stop_at_ns: u64,
    /// Called at every wait.
    pub(crate) each_wait: Box<dyn FnMut(u64)>,
    /// Every wait for something returns this much late,
    pub(crate) oversleep_ns: u64,
    /// and without having looked what has ended meanwhile.
    pub(crate) looks_away: bool,
    /// Beats as long as the process runs.
    pub(crate) pulse: Option<Pulse>,
    beaten_ns: u64,
    /// The process stands still once: from when on, and for how long.
    pub(crate) standstill: Option<(u64, u64)>,
    /// Outstanding requests at every wait before the stop.
    pub(crate) outstanding_at_wait: Vec<usize>,
    /// Everything submitted, with its time.
    pub(crate) submitted: Vec<(u64, Request)>,
    /// Everything completed: when, of what, with what result.
    pub(crate) completed: Vec<(u64, Request, i32)>,
    duplicate_buffer: u32,
    write_buffers_start: u32,
}

impl Device {
    pub(crate) fn new(plan: &WorkerPlan, stop_at_ns: u64, service: Service) -> Self {
        Self {
            now_ns: 0,
            service,
            due: BinaryHeap::new(),
            outstanding: HashMap::new(),
            stop: Arc::clone(&plan.stop),
            stop_at_ns,
            each_wait: Box::new(|_| {}),
            oversleep_ns: 0,
            looks_away: false,
            pulse: None,
            beaten_ns: 0,
            standstill: None,
            outstanding_at_wait: Vec::new(),
            submitted: Vec::new(),
            completed: Vec::new(),
            duplicate_buffer: plan.buffers_count().saturating_sub(1),
            write_buffers_start: plan.write_buffers_start(),
        }
    }

    /// The heartbeat goes on while the worker waits.
    fn beat_until(&mut self, now_ns: u64) {
        let Some(pulse) = &self.pulse else { return };
        while self.beaten_ns < now_ns {
            self.beaten_ns = (self.beaten_ns + 20 * MS).min(now_ns);
            pulse.beat(self.beaten_ns);
        }
    }

    pub(crate) fn next_due_ns(&self) -> u64 {
        self.due.peek().map_or(u64::MAX, |Reverse((due_ns, ..))| *due_ns)
    }

    /// Ends what is due by now.
    pub(crate) fn complete_due(&mut self, completions: &mut Vec<Completion>) -> usize {
        let mut found = 0;
        while let Some(&Reverse((due_ns, tag, result))) = self.due.peek() {
            if due_ns > self.now_ns {
                break;
            }
            self.due.pop();
            let request = self.outstanding.remove(&tag).expect("a request completes once");
            self.completed.push((self.now_ns, request, result));
            completions.push(Completion { tag, result, at_ns: self.now_ns });
            found += 1;
        }
        found
    }

    fn check(&self, request: &Request) {
        assert!(!self.outstanding.contains_key(&request.tag), "tag {} is outstanding already", request.tag);
        match request.op {
            Op::Flush => return,
            Op::Read => assert!(request.buffer < self.write_buffers_start, "a read into a buffer of writes"),
            Op::Write => {
                assert!((self.write_buffers_start..=self.duplicate_buffer).contains(&request.buffer));
            }
        }
        let shared = request.op == Op::Write && request.buffer == self.duplicate_buffer;
        let taken = self.outstanding.values().any(|other| other.op != Op::Flush && other.buffer == request.buffer);
        assert!(shared || !taken, "two outstanding requests share buffer {}", request.buffer);
    }
}

impl Queue for Device {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        for request in requests {
            self.check(request);
            self.outstanding.insert(request.tag, *request);
            self.submitted.push((self.now_ns, *request));
            let (due_ns, result) = (self.service)(self.now_ns, request);
            self.due.push(Reverse((due_ns, request.tag, result)));
        }
        Ok(())
    }

    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        (self.each_wait)(self.now_ns);
        self.beat_until(self.now_ns);
        if let Some((_, length_ns)) = self.standstill.take_if(|(from_ns, _)| self.now_ns >= *from_ns) {
            self.now_ns += length_ns;
            self.beaten_ns = self.now_ns;
        }
        if self.now_ns >= self.stop_at_ns {
            self.stop.store(true, Ordering::Relaxed);
        } else {
            self.outstanding_at_wait.push(self.outstanding.len());
        }
        let mut found = self.complete_due(completions);
        if min == 0 {
            self.now_ns += POLL_NS;
        }
        while found < min && self.now_ns < until_ns {
            self.now_ns = self.next_due_ns().min(until_ns) + self.oversleep_ns;
            self.beat_until(self.now_ns);
            if self.looks_away {
                break;
            }
            found += self.complete_due(completions);
        }
        Ok(())
    }
}

/// Everything takes this long and succeeds.
pub(crate) fn takes(service_ns: u64) -> Service {
    Box::new(move |now_ns, request| (now_ns + service_ns, request.length_bytes as i32))
}

/// As [`takes`], but nothing completes within the stall.
pub(crate) fn stalls(service_ns: u64, stall: std::ops::Range<u64>) -> Service {
    Box::new(move |now_ns, request| {
        let due_ns = now_ns + service_ns;
        (if stall.contains(&due_ns) { stall.end } else { due_ns }, request.length_bytes as i32)
    })
}

pub(crate) fn activity(load: Load, read_share: f64) -> Activity {
    Activity {
        name: "test".into(),
        role: "data".into(),
        volumes: vec![0],
        workers: 1,
        access: Access {
            blocks: vec![BlockShare { bytes: BLOCK_BYTES, weight: 1.0 }],
            read_share,
            random_share: 1.0,
            skew: Skew::Uniform,
            region: Region { start_bytes: 0, end_bytes: 1 << 30 },
            align_bytes: u64::from(BLOCK_BYTES),
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

pub(crate) fn closed(queue_depth: u32) -> Load {
    Load::Closed { queue_depth }
}

pub(crate) fn open(rate: f64, poisson: bool, queue_depth: u32) -> Load {
    Load::Open { rate, poisson, queue_depth }
}

pub(crate) const KEY: GroupKey = GroupKey { activity: 0, volume: 0 };

/// A plan with ticks of 100 ms and a time-out of 10 s.
pub(crate) fn plan(activity: Activity) -> WorkerPlan {
    activity.validate(512).expect("tests ask for what can be carried out");
    WorkerPlan {
        activity,
        volume: 0,
        worker_on_volume: 0,
        workers_on_volume: 1,
        worker: 0,
        workers: 1,
        seed: 1,
        interval_ns: 100 * MS,
        io_timeout_ns: 10 * S,
        gate: BurstGate::default(),
        pulse: Pulse::default(),
        stop: Arc::new(AtomicBool::new(false)),
        exchange: Exchange::new(8),
        has_processor: false,
        feed: None,
    }
}

pub(crate) fn collector(plan: &WorkerPlan) -> IoCollector {
    IoCollector::new([(KEY, plan.exchange.clone())])
}

/// Several workers, each on a device of its own, on one virtual clock until all are done.
pub(crate) fn host(hosted: &mut [(Worker, Device)], mut each_step: impl FnMut(u64)) {
    let mut now_ns = 0;
    let mut done = vec![false; hosted.len()];
    let mut completions = Vec::new();
    while !done.iter().all(|done| *done) {
        let mut next_ns = u64::MAX;
        for ((worker, device), done) in hosted.iter_mut().zip(&mut done).filter(|(_, done)| !**done) {
            device.now_ns = now_ns;
            if worker.tick_due(now_ns) {
                worker.tick(now_ns, None);
            }
            if now_ns >= device.stop_at_ns {
                device.stop.store(true, Ordering::Relaxed);
            }
            match worker.step(now_ns) {
                Step::Done(_) => {
                    *done = true;
                    worker.finish(now_ns, None);
                }
                Step::Go { submit, min, until_ns } => {
                    device.submit(submit).unwrap();
                    let until_ns = if min == 0 { now_ns + POLL_NS } else { until_ns };
                    next_ns = next_ns.min(until_ns).min(device.next_due_ns());
                }
            }
        }
        each_step(now_ns);
        now_ns = now_ns.max(next_ns.min(now_ns + S));
        for (worker, device) in hosted.iter_mut() {
            device.now_ns = now_ns;
            device.complete_due(&mut completions);
            completions.drain(..).for_each(|completion| worker.complete(completion));
        }
    }
}
