use std::sync::atomic::Ordering;

use crate::{Arrivals, Completion, Counter, IoTally, Load, Op, Pattern, Request, Sync, TracedOp, Turns, Watch};

mod plan;
mod replay;
mod slot;

pub use plan::{Outcome, Step, WorkerPlan};
use replay::Replay;
use slot::Slot;

/// The state machine that asks: patterns and arrivals in, requests out, completions counted into intervals.
///
/// It has no thread and no clock: a driver tells it the time. See [`crate::run_worker`] for the loop around it.
pub struct Worker {
    plan: WorkerPlan,
    pattern: Pattern,
    arrivals: Option<Arrivals>,
    replay: Option<Box<Replay>>,
    poll_ns: u64,
    /// The worker ends with the tick that lasts until then: its I/Os of a trace have all ended.
    replayed_ns: Option<u64>,
    turns: Option<Turns>,
    /// When the turn may pass on; never where the load is spread evenly.
    next_turn_ns: u64,
    counter: Counter<IoTally>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    flushes_wanted: Vec<u32>,
    requests: Vec<Request>,
    /// Whether the last step left no slot free.
    full: bool,
    /// Until when no slot was free: up to then a late submission is the device's doing.
    full_until_ns: u64,
    writes_since_flush: u32,
    issued_bytes: u64,
    stopping_since_ns: Option<u64>,
    unfinished_count: u64,
    oldest_unfinished_ns: u64,
    final_flush: Option<FinalFlush>,
    cpu_before_ns: u64,
    burst: Burst,
    watch: Watch,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum FinalFlush {
    Outstanding,
    Over,
}

/// A burst is on from its first submission until its last write ended.
#[derive(Default)]
struct Burst {
    on: bool,
    all_submitted: bool,
}

impl Worker {
    pub fn new(plan: WorkerPlan) -> Self {
        let activity = &plan.activity;
        let depth = plan.queue_depth();
        let arrivals_seed = plan.seed ^ 0xd1b5_4a32_d192_ed03;
        Self {
            pattern: Pattern::new(&activity.access, plan.seed, plan.worker_on_volume, plan.workers_on_volume),
            arrivals: Arrivals::new(
                &activity.load,
                activity.access.mean_block_bytes(),
                arrivals_seed,
                plan.worker,
                plan.workers,
            ),
            replay: match (activity.load, &plan.feed) {
                (Load::Replay { pace, .. }, Some(feed)) => Some(Box::new(Replay::new(feed.clone(), pace, depth))),
                (load, _) => {
                    assert!(!load.is_replay(), "a replay has a feed for each worker");
                    None
                }
            },
            poll_ns: plan.poll_ns(),
            replayed_ns: None,
            turns: Turns::new(&activity.load, plan.worker, plan.workers),
            next_turn_ns: u64::MAX,
            counter: Counter::new(plan.exchange.clone(), plan.interval_ns),
            slots: vec![Slot::FREE; depth as usize],
            free: (0..depth).rev().collect(),
            flushes_wanted: Vec::with_capacity(depth as usize),
            requests: Vec::with_capacity(depth as usize + 1),
            full: false,
            full_until_ns: 0,
            writes_since_flush: 0,
            issued_bytes: 0,
            stopping_since_ns: None,
            unfinished_count: 0,
            oldest_unfinished_ns: 0,
            final_flush: None,
            cpu_before_ns: 0,
            burst: Burst::default(),
            watch: Watch::new(plan.pulse.clone()),
            plan,
        }
    }

    /// CPU time the thread used before the load began is not the load's.
    pub fn begin(&mut self, cpu_ns: Option<u64>) {
        self.cpu_before_ns = cpu_ns.unwrap_or(0);
    }

    /// I/Os submitted and not ended.
    pub fn outstanding(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// Whether the interval being filled is over.
    #[inline]
    pub fn tick_due(&self, now_ns: u64) -> bool {
        self.counter.tick_due(now_ns)
    }

    /// Hands the interval over and begins the one `now_ns` lies in. `cpu_ns` is the thread's CPU time so far.
    pub fn tick(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        self.account(now_ns, cpu_ns);
        self.counter.tick(now_ns);
    }

    /// Hands over the counts since the last tick, at the worker's end; the tick is not whole.
    pub fn finish(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        self.account(now_ns, cpu_ns);
        self.end_burst(now_ns);
        self.counter.finish();
    }

    /// Adds figures that are measured by time, not by I/O, up to now.
    fn account(&mut self, now_ns: u64, cpu_ns: Option<u64>) {
        if let Some(cpu_ns) = cpu_ns {
            self.counter.tally().cpu_ns += cpu_ns.saturating_sub(self.cpu_before_ns);
            self.cpu_before_ns = cpu_ns;
        }
        if self.burst.on {
            self.counter.tally().burst_ns += self.plan.gate.uncounted_ns(now_ns);
        }
    }

    /// Most I/Os the worker has outstanding; its tags are below this.
    pub fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    /// When the worker has something to do even if nothing completes: its next arrival or the end of its tick.
    #[inline]
    pub fn next_due_ns(&self) -> u64 {
        match self.next_arrival_ns() {
            Some(next_ns) if !self.free.is_empty() && self.stopping_since_ns.is_none() => {
                self.counter.next_tick_ns().min(next_ns)
            }
            _ => self.counter.next_tick_ns().min(self.next_turn_ns),
        }
    }

    /// When the next I/O is to begin, where its time is given.
    #[inline]
    fn next_arrival_ns(&self) -> Option<u64> {
        match (&self.arrivals, &self.replay) {
            (Some(arrivals), _) => Some(arrivals.next_ns()),
            (None, Some(replay)) => Some(replay.next_ns()),
            (None, None) => None,
        }
    }

    /// Next step at `now_ns`.
    pub fn step(&mut self, now_ns: u64) -> Step<'_> {
        self.requests.clear();
        // Set anew by who may issue: who may not has no turn to wait for.
        self.next_turn_ns = u64::MAX;
        if self.stopping_since_ns.is_none() && self.plan.stop.load(Ordering::Relaxed) {
            self.stop(now_ns);
        }
        self.want_flushes(now_ns);
        let written = self.plan.activity.limit_bytes.is_some_and(|limit_bytes| self.issued_bytes >= limit_bytes);
        let replayed = self.replay.as_ref().is_some_and(|replay| replay.is_over());
        if self.stopping_since_ns.is_none() && !written && !replayed {
            match self.replay {
                Some(_) => self.want_replayed(now_ns),
                None => self.want_accesses(now_ns),
            }
        } else if self.outstanding() == 0 {
            if self.stopping_since_ns.is_some() {
                return Step::Done(Outcome::Stopped {
                    unfinished_count: self.unfinished_count,
                    oldest_unfinished_ns: self.oldest_unfinished_ns,
                });
            }
            if replayed {
                // Counts of a tick are the session's once it is over.
                let until_ns = *self.replayed_ns.get_or_insert(self.counter.next_tick_ns());
                if self.counter.next_tick_ns() > until_ns {
                    return Step::Done(Outcome::Finished);
                }
                return Step::Go { submit: &self.requests, min: 1, until_ns };
            }
            match self.final_flush {
                Some(FinalFlush::Over) => return Step::Done(Outcome::Finished),
                _ => self.want_final_flush(now_ns),
            }
        }
        let (min, until_ns) = self.wait_for(now_ns);
        Step::Go { submit: &self.requests, min, until_ns }
    }

    /// Age of the oldest outstanding I/O if it is beyond the time-out; to be called once a tick, after the completions
    /// are counted.
    pub fn not_answering(&self, now_ns: u64) -> Option<Outcome> {
        let oldest_ns = self.oldest_outstanding_ns(now_ns);
        (oldest_ns > self.plan.io_timeout_ns)
            .then(|| Outcome::NotAnswering { outstanding: self.outstanding(), oldest_ns })
    }

    fn oldest_outstanding_ns(&self, now_ns: u64) -> u64 {
        let since = |slot: &Slot| if slot.flushing { slot.flush_submitted_ns } else { slot.submitted_ns };
        let oldest_ns = self.slots.iter().filter(|slot| slot.busy).map(since).min().unwrap_or(now_ns);
        // What passed before the end of a standstill is not held against the device.
        now_ns.saturating_sub(oldest_ns.max(self.watch.until_ns(now_ns)))
    }

    fn stop(&mut self, now_ns: u64) {
        self.stopping_since_ns = Some(now_ns);
        if let Some(arrivals) = &mut self.arrivals {
            self.oldest_unfinished_ns = now_ns.saturating_sub(arrivals.next_ns());
            self.unfinished_count = arrivals.count_due(now_ns);
        }
        if let Some(replay) = &self.replay {
            (self.unfinished_count, self.oldest_unfinished_ns) = replay.unfinished(now_ns);
        }
        self.end_burst(now_ns);
    }

    /// Queues every access that is due and has a free slot.
    #[inline]
    fn want_accesses(&mut self, now_ns: u64) {
        if self.full {
            self.full_until_ns = now_ns;
        }
        let kept_free = self.kept_free(now_ns);
        while self.free.len() > kept_free
            && let Some(&tag) = self.free.last()
        {
            let intended_ns = match &mut self.arrivals {
                None => now_ns,
                Some(arrivals) if arrivals.next_ns() <= now_ns => {
                    let starts_burst = arrivals.starts_burst();
                    let intended_ns = arrivals.advance();
                    let ends_burst = arrivals.starts_burst();
                    self.note_burst(now_ns, starts_burst, ends_burst);
                    self.counter.tally().lag.record(now_ns.saturating_sub(intended_ns.max(self.full_until_ns)));
                    // The most overdue comes first, and with it the standstill is known to all that were due in it.
                    self.watch.stood_still(intended_ns, now_ns);
                    intended_ns
                }
                Some(_) => break,
            };
            self.free.pop();
            let next = self.pattern.draw();
            let buffer = self.buffer_for(next.op, tag, next.duplicate);
            self.slots[tag as usize] = Slot {
                op: next.op,
                busy: true,
                flushing: false,
                durable: false,
                length_bytes: next.length_bytes,
                intended_ns,
                submitted_ns: now_ns,
                flush_submitted_ns: 0,
            };
            self.requests.push(Request {
                op: next.op,
                volume: self.plan.volume,
                offset_bytes: next.offset_bytes,
                length_bytes: next.length_bytes,
                buffer,
                tag,
            });
            self.issued_bytes += u64::from(next.length_bytes);
            if self.plan.activity.limit_bytes.is_some_and(|limit_bytes| self.issued_bytes >= limit_bytes) {
                break;
            }
        }
        self.full = self.free.is_empty();
    }

    /// Queues every I/O of the trace that is due and has a free slot.
    fn want_replayed(&mut self, now_ns: u64) {
        if self.full {
            self.full_until_ns = now_ns;
        }
        while let (Some(&tag), Some(replay)) = (self.free.last(), &mut self.replay) {
            let Some((intended_ns, io)) = replay.take(now_ns, tag) else { break };
            self.free.pop();
            if self.plan.activity.load.is_open() {
                let tally = self.counter.tally();
                tally.lag.record(now_ns.saturating_sub(intended_ns.max(self.full_until_ns)));
                tally.held += u64::from(intended_ns < self.full_until_ns);
            }
            self.watch.stood_still(intended_ns, now_ns);
            let op = match io.op {
                TracedOp::Read => Op::Read,
                TracedOp::Write | TracedOp::DurableWrite => Op::Write,
                TracedOp::Flush => Op::Flush,
            };
            let buffer = if op == Op::Flush { 0 } else { self.buffer_for(op, tag, false) };
            self.slots[tag as usize] = Slot {
                op,
                busy: true,
                flushing: op == Op::Flush,
                durable: io.op == TracedOp::DurableWrite,
                length_bytes: io.length_bytes,
                intended_ns,
                submitted_ns: now_ns,
                flush_submitted_ns: intended_ns,
            };
            self.requests.push(Request {
                op,
                volume: self.plan.volume,
                offset_bytes: io.offset_bytes,
                length_bytes: io.length_bytes,
                buffer,
                tag,
            });
        }
        self.full = self.free.is_empty();
    }

    /// Slots that stay free: the one more that other workers have at the moment.
    #[inline]
    fn kept_free(&mut self, now_ns: u64) -> usize {
        let Some(turns) = &self.turns else { return 0 };
        let (is_ours, until_ns) = turns.at(now_ns);
        self.next_turn_ns = until_ns;
        usize::from(!is_ours)
    }

    #[inline]
    fn buffer_for(&self, op: Op, tag: u32, duplicate: bool) -> u32 {
        match op {
            Op::Read | Op::Flush => tag,
            Op::Write if duplicate => self.plan.write_buffers_start() + self.slots.len() as u32,
            Op::Write => self.plan.write_buffers_start() + tag,
        }
    }

    fn want_flushes(&mut self, now_ns: u64) {
        while let Some(tag) = self.flushes_wanted.pop() {
            self.slots[tag as usize].flush_submitted_ns = now_ns;
            self.requests.push(self.flush_request(tag));
        }
    }

    /// A file that was laid out is flushed before anything is measured on it.
    fn want_final_flush(&mut self, now_ns: u64) {
        let Some(tag) = self.free.pop() else { return };
        self.final_flush = Some(FinalFlush::Outstanding);
        self.slots[tag as usize] = Slot {
            op: Op::Flush,
            busy: true,
            flushing: true,
            durable: false,
            length_bytes: 0,
            intended_ns: now_ns,
            submitted_ns: now_ns,
            flush_submitted_ns: now_ns,
        };
        self.requests.push(self.flush_request(tag));
    }

    fn flush_request(&self, tag: u32) -> Request {
        Request { op: Op::Flush, volume: self.plan.volume, offset_bytes: 0, length_bytes: 0, buffer: 0, tag }
    }

    #[inline]
    fn wait_for(&self, now_ns: u64) -> (usize, u64) {
        let Some(next_ns) = self.next_arrival_ns() else {
            return (1, self.counter.next_tick_ns().min(self.next_turn_ns));
        };
        if self.free.is_empty() || self.stopping_since_ns.is_some() {
            return (1, self.counter.next_tick_ns());
        }
        if next_ns <= now_ns + self.poll_ns {
            (0, now_ns)
        } else {
            (1, self.counter.next_tick_ns().min(next_ns - self.poll_ns / 2))
        }
    }

    /// Counts the end of an I/O.
    #[inline]
    pub fn complete(&mut self, completion: Completion) {
        let tag = completion.tag;
        let slot = self.slots[tag as usize];
        debug_assert!(slot.busy, "request {tag} completed twice");
        if slot.flushing {
            self.complete_flush(slot, completion);
        } else if completion.result < 0 || completion.result as u32 != slot.length_bytes {
            self.counter.tally().errors.record(completion.result);
        } else if slot.op == Op::Write && (slot.durable || self.flush_follows()) {
            let slot = &mut self.slots[tag as usize];
            slot.flushing = true;
            slot.flush_submitted_ns = completion.at_ns;
            self.flushes_wanted.push(tag);
            return;
        } else {
            self.count(slot, completion.at_ns);
        }
        self.slots[tag as usize].busy = false;
        self.free.push(tag);
        if let Some(replay) = &mut self.replay {
            replay.ended(tag, completion.at_ns);
        }
        if self.burst.on && self.burst.all_submitted && self.outstanding() == 0 {
            self.end_burst(completion.at_ns);
        }
    }

    #[inline]
    fn flush_follows(&mut self) -> bool {
        if matches!(self.plan.activity.sync, Sync::None | Sync::Dsync) {
            return false;
        }
        self.writes_since_flush += 1;
        if self.writes_since_flush < self.plan.activity.sync_every {
            return false;
        }
        self.writes_since_flush = 0;
        true
    }

    /// A write that asked for a flush ends with it.
    fn complete_flush(&mut self, slot: Slot, completion: Completion) {
        if completion.result < 0 {
            self.counter.tally().errors.record(completion.result);
        } else {
            if !self.watch.stood_still(slot.flush_submitted_ns, completion.at_ns) {
                self.counter.tally().flush.record(completion.at_ns.saturating_sub(slot.flush_submitted_ns), 0);
            }
            if slot.op == Op::Write {
                self.count(slot, completion.at_ns);
            }
        }
        if slot.op == Op::Flush && self.replay.is_none() {
            self.final_flush = Some(FinalFlush::Over);
        }
    }

    #[inline]
    fn count(&mut self, slot: Slot, at_ns: u64) {
        if self.watch.stood_still(slot.intended_ns, at_ns) {
            self.counter.tally().standstill_ios += 1;
            return;
        }
        let latency_ns = at_ns.saturating_sub(slot.intended_ns);
        let counted = match slot.op {
            Op::Read if self.plan.gate.is_open() => &mut self.counter.tally().read_in_burst,
            Op::Read => &mut self.counter.tally().read,
            _ => &mut self.counter.tally().write,
        };
        counted.record(latency_ns, slot.length_bytes);
        if self.arrivals.is_some() || self.replay.is_some() {
            self.counter.tally().service.record(at_ns.saturating_sub(slot.submitted_ns));
        }
    }

    #[inline]
    fn note_burst(&mut self, now_ns: u64, starts: bool, ends: bool) {
        if !matches!(self.plan.activity.load, Load::Bursts { .. }) {
            return;
        }
        // All workers of the activity burst together: the first of them counts for all.
        if starts && self.plan.worker == 0 {
            self.counter.tally().bursts_count += 1;
        }
        if starts && !self.burst.on {
            self.burst.on = true;
            self.plan.gate.enter(now_ns);
        }
        self.burst.all_submitted = ends;
    }

    fn end_burst(&mut self, now_ns: u64) {
        if self.burst.on {
            self.counter.tally().burst_ns += self.plan.gate.uncounted_ns(now_ns);
            self.burst.on = false;
            self.plan.gate.leave();
        }
    }
}
