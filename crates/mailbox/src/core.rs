//! State of a run: the queue and its outstanding I/O, the databases, and the counts.

use std::collections::VecDeque;

use assay_load::{
    Completion, Counter, DataQueue, IoTally, Op, Request, Watch,
    tasks::{Schedule, TaskId},
};

use crate::{
    database::{Database, Event},
    failure::{BadPage, Failure},
    page::PageName,
    phase::Phase,
    plan::{Activity, MailboxPlan},
    slots::{Size, Slots},
};

/// Bad pages that are described; more are counted.
const DESCRIBED_MAX: usize = 1000;

/// An I/O under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    task: TaskId,
    op: Op,
    database: usize,
    activity: Activity,
    volume: u16,
    offset_bytes: u64,
    bytes: u32,
    /// When it was needed: latencies count from here.
    needed_ns: u64,
    submitted_ns: u64,
    /// Whether it ended.
    ended: bool,
}

/// An I/O that a task asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Io {
    pub op: Op,
    pub database: usize,
    pub activity: Activity,
    pub volume: u16,
    pub offset_bytes: u64,
    pub bytes: u32,
    pub needed_ns: u64,
}

/// Counts of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub pages_verified: u64,
    pub bad_pages: u64,
    pub log_files_replayed: u64,
}

pub(crate) struct Core {
    pub plan: MailboxPlan,
    pub holds_bytes: bool,
    pub queue: Box<dyn DataQueue>,
    pub now_ns: u64,
    pub schedule: Schedule,
    pub databases: Vec<Database>,
    to_submit: Vec<Request>,
    flights: Vec<Option<Flight>>,
    slots: Slots,
    /// Tasks that wait for a place, with their tickets, which rise.
    slot_waiting: [VecDeque<(u64, TaskId)>; 2],
    tickets: u64,
    meters: Vec<Option<Counter<IoTally>>>,
    cpu_ns: u64,
    pub failure: Option<Failure>,
    pub bad: Vec<BadPage>,
    pub counts: Counts,
    pub phase: Phase,
    /// Begins of the phases so far.
    pub phases: Vec<(Phase, u64)>,
    /// Pages or files done of the phase, and in all.
    pub progress: (u64, u64),
    /// I/Os per second of each active database.
    pub rate: f64,
    /// Counts how often the rate was set: what was to come before is forgotten.
    pub rates_set: u64,
    pub stopping: bool,
    /// The end comes without writing and verifying everything.
    pub aborting: bool,
    pub watch: Watch,
}

impl Core {
    pub(crate) fn new(plan: MailboxPlan, queue: Box<dyn DataQueue>, meters: Vec<Option<Counter<IoTally>>>) -> Self {
        let slots = Slots::new(&plan);
        Self {
            holds_bytes: plan.holds_bytes(),
            databases: (0..plan.databases.len()).map(|number| Database::new(number, &plan)).collect(),
            rate: plan.rate / plan.actives().max(1) as f64,
            queue,
            now_ns: 0,
            schedule: Schedule::default(),
            to_submit: Vec::new(),
            flights: vec![None; slots.count()],
            slots,
            slot_waiting: Default::default(),
            tickets: 0,
            meters,
            cpu_ns: 0,
            failure: None,
            bad: Vec::new(),
            counts: Counts::default(),
            phase: Phase::Prepare,
            phases: Vec::new(),
            progress: (0, 0),
            rates_set: 0,
            stopping: false,
            aborting: false,
            watch: Watch::default(),
            plan,
        }
    }

    pub(crate) fn name(&self, database: usize, page: u64) -> PageName {
        PageName { run_id: self.plan.run_id, database: database as u32, page }
    }

    pub(crate) fn wake(&mut self, database: usize, event: Event) {
        for task in self.databases[database].take_waiting(event) {
            self.schedule.wake(task);
        }
    }

    pub(crate) fn begin_phase(&mut self, phase: Phase, of: u64) {
        (self.phase, self.progress) = (phase, (0, of));
        self.phases.push((phase, self.now_ns));
    }

    /// Operations end, and after them the run.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        self.schedule.wake_sleeping();
        self.wake_load();
    }

    /// Ends the load without writing or verifying the databases.
    pub(crate) fn abort(&mut self) {
        self.aborting = true;
        self.stop();
    }

    /// Sets the I/Os per second of all databases together.
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.rate = rate / self.plan.actives().max(1) as f64;
        self.rates_set += 1;
        self.wake_load();
    }

    fn wake_load(&mut self) {
        for database in 0..self.databases.len() {
            self.wake(database, Event::Load);
        }
    }

    // I/O

    /// A place for an I/O; who gets one waits no longer, so that no place that gets free is offered to it in vain.
    pub(crate) fn take_slot(&mut self, size: Size, ticket: Option<u64>) -> Option<u32> {
        let tag = self.slots.take(size)?;
        let waiting = &mut self.slot_waiting[size as usize];
        if let Some(Ok(place)) = ticket.map(|ticket| waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket)) {
            waiting.remove(place);
        }
        Some(tag)
    }

    /// Lets the task wait for a place, unless it does so by its ticket; gives its ticket.
    pub(crate) fn wait_for_slot(&mut self, size: Size, ticket: Option<u64>) -> u64 {
        let waiting = &mut self.slot_waiting[size as usize];
        if let Some(ticket) = ticket.filter(|own| waiting.binary_search_by_key(own, |(ticket, _)| *ticket).is_ok()) {
            return ticket;
        }
        self.tickets += 1;
        waiting.push_back((self.tickets, self.schedule.current));
        self.tickets
    }

    pub(crate) fn release(&mut self, tag: u32) {
        self.flights[tag as usize] = None;
        let size = self.slots.give_back(tag);
        if let Some((_, task)) = self.slot_waiting[size as usize].pop_front() {
            self.schedule.wake(task);
        }
    }

    pub(crate) fn used_slots(&self) -> u32 {
        self.slots.used()
    }

    /// Puts an I/O on its way, in the place that was taken for it.
    pub(crate) fn submit(&mut self, tag: u32, io: Io) {
        let Io { op, database, activity, volume, offset_bytes, bytes, needed_ns } = io;
        let task = self.schedule.current;
        let flight = Flight {
            task,
            op,
            database,
            activity,
            volume,
            offset_bytes,
            bytes,
            needed_ns,
            submitted_ns: self.now_ns,
            ended: false,
        };
        self.flights[tag as usize] = Some(flight);
        let buffer = self.slots.first_frame(tag);
        self.to_submit.push(Request { op, volume, offset_bytes, length_bytes: bytes, buffer, tag });
    }

    pub(crate) fn has_ended(&self, tag: u32) -> bool {
        self.flights[tag as usize].is_some_and(|flight| flight.ended)
    }

    pub(crate) fn flush_submissions(&mut self) -> Result<(), Failure> {
        if self.to_submit.is_empty() {
            return Ok(());
        }
        let now_ns = self.queue.now_ns();
        for request in &self.to_submit {
            if let Some(flight) = &mut self.flights[request.tag as usize] {
                flight.submitted_ns = now_ns;
            }
        }
        let submitted = self.queue.submit(&self.to_submit);
        self.to_submit.clear();
        submitted.map_err(|error| Failure::Queue(error.to_string()))
    }

    pub(crate) fn complete(&mut self, completion: Completion) {
        let Some(flight) = &mut self.flights[completion.tag as usize] else { return };
        flight.ended = true;
        let flight = *flight;
        self.schedule.wake(flight.task);
        let stood_still = self.watch.stood_still(flight.submitted_ns, completion.at_ns);
        let tally = self.meters[meter_of(flight.database, flight.activity)].as_mut().map(Counter::tally);
        if completion.result != flight.bytes as i32 && flight.op != Op::Flush || completion.result < 0 {
            if let Some(tally) = tally {
                tally.errors.record(completion.result);
            }
            self.failure.get_or_insert_with(|| io_failure(&self.plan, &flight, completion.result));
            return;
        }
        let Some(tally) = tally else { return };
        if stood_still {
            tally.standstill_ios += 1;
            return;
        }
        let latency_ns = completion.at_ns.saturating_sub(flight.needed_ns.min(flight.submitted_ns));
        match flight.op {
            Op::Read => tally.read.record(latency_ns, flight.bytes),
            Op::Write => tally.write.record(latency_ns, flight.bytes),
            Op::Flush => tally.flush.record(latency_ns, 0),
        }
        if flight.activity == Activity::Database {
            tally.service.record(completion.at_ns.saturating_sub(flight.submitted_ns));
        }
    }

    /// I/Os that have not ended.
    pub(crate) fn outstanding(&self) -> usize {
        self.flights.iter().flatten().filter(|flight| !flight.ended).count()
    }

    /// How long the oldest I/O has been outstanding.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        let outstanding = self.flights.iter().flatten().filter(|flight| !flight.ended);
        let oldest = outstanding.map(|flight| flight.submitted_ns.max(self.watch.until_ns(self.now_ns))).min()?;
        Some(self.now_ns.saturating_sub(oldest))
    }

    // Ticks

    /// When the tick is over.
    pub(crate) fn next_tick_ns(&self) -> u64 {
        self.meters.iter().flatten().map(Counter::next_tick_ns).min().unwrap_or(u64::MAX)
    }

    pub(crate) fn tick(&mut self) {
        let now_ns = self.now_ns;
        let cpu_ns = self.queue.cpu_ns().unwrap_or(0);
        let used_ns = cpu_ns.saturating_sub(std::mem::replace(&mut self.cpu_ns, cpu_ns));
        if let Some(first) = self.meters.iter_mut().flatten().next() {
            first.tally().cpu_ns += used_ns;
        }
        for meter in self.meters.iter_mut().flatten() {
            meter.tick(now_ns);
        }
    }

    pub(crate) fn finish_meters(&mut self) {
        self.meters.iter_mut().flatten().for_each(Counter::finish);
    }

    // Bytes

    /// A page-sized piece of the memory of an I/O.
    pub(crate) fn frame(&mut self, tag: u32, piece: u32) -> &mut [u8] {
        let frame = self.slots.first_frame(tag) + piece;
        self.queue.frame(frame)
    }

    /// Fills the memory of an I/O from its begin.
    pub(crate) fn fill(&mut self, tag: u32, bytes: &[u8]) {
        let frame_bytes = self.plan.page_bytes as usize;
        for (piece, part) in bytes.chunks(frame_bytes).enumerate() {
            self.frame(tag, piece as u32)[..part.len()].copy_from_slice(part);
        }
    }

    /// The memory of an I/O, copied.
    pub(crate) fn copied(&mut self, tag: u32, bytes: u32) -> Vec<u8> {
        let mut copy = Vec::with_capacity(bytes as usize);
        let pieces = bytes.div_ceil(self.plan.page_bytes);
        for piece in 0..pieces {
            let left = bytes as usize - copy.len();
            let frame = self.frame(tag, piece);
            let length = frame.len().min(left);
            copy.extend_from_slice(&frame[..length]);
        }
        copy
    }

    /// Notes a page that is not what it should be; the same page once.
    pub(crate) fn find_bad_page(&mut self, database: usize, page: u64, activity: Activity, what: String) {
        if !self.databases[database].bad.insert(page) {
            return;
        }
        let at = &self.databases[database];
        let (volume, offset_bytes) = (at.plan.data.volume, at.offset_bytes(page, self.plan.page_bytes));
        self.find(BadPage { database, page: Some(page), volume, offset_bytes, what, activity: activity.name() });
    }

    pub(crate) fn find(&mut self, bad: BadPage) {
        self.counts.bad_pages += 1;
        if self.bad.len() < DESCRIBED_MAX {
            self.bad.push(bad);
        }
    }
}

/// Where I/O of a database for some purpose is counted.
pub(crate) fn meter_of(database: usize, activity: Activity) -> usize {
    database * Activity::ALL.len() + activity as usize
}

fn io_failure(plan: &MailboxPlan, flight: &Flight, result: i32) -> Failure {
    let operation = match flight.op {
        Op::Read => "a read",
        Op::Write => "a write",
        Op::Flush => "a flush",
    };
    let what = if result < 0 {
        std::io::Error::from_raw_os_error(-result).to_string()
    } else {
        format!("only {result} bytes were moved")
    };
    Failure::Io {
        database: format!(
            "{} on {}",
            plan.databases[flight.database].name,
            plan.volumes[usize::from(flight.volume)].name
        ),
        operation,
        offset_bytes: flight.offset_bytes,
        bytes: flight.bytes,
        what,
    }
}
