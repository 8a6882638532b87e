//! The thread that owns the model and the bytes.
//!
//! It drains what came, tells the model, lets the model's time follow the wall clock, answers what is due and sleeps until
//! something is. The way to the array and back takes its own time, the floor, and so does the work on the bytes; the model's events are
//! taken ahead by both.

mod bytes;
mod commands;
mod status;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    sync::{Arc, atomic::Ordering, mpsc},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use assay_load::{Completion, Op, Request};
use serde::Serialize;

use crate::{
    Durability, ServeError, StoreFault,
    array::{Array, News},
    command::PlannedEvent,
    floor::FloorNs,
    inbox::{AttributeCall, AttributeKind, Inbox, Message},
    io::{Io, IoKind, Shown},
    lateness::{Ended, EndedKind, Lateness},
    plan::ServePlan,
    scheduling::Scheduling,
    transport::Transport,
};

/// An event of the array.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Happened {
    /// Since the volumes are shown.
    pub(crate) at_ns: u64,
    /// UTC.
    pub(crate) t_ns: u64,
    pub(crate) what: String,
    /// How the array is from then on.
    pub(crate) state: &'static str,
}

/// A model's thread sleeps no longer than this, so that a tick comes.
const SLEEP_MOST: Duration = Duration::from_millis(100);
/// Upper bound of one sample in the moving average of wake-up delay; outliers are capped.
const WAKE_MOST_NS: u64 = 100_000;
/// Upper bound of one sample in the moving average of the work on an I/O's bytes.
const WORK_MOST_NS: u64 = 200_000;
const HAPPENED_MOST: usize = 10_000;
/// Of the attributes of a volume.
const ATTRIBUTES_MOST_BYTES: usize = 256 << 10;

fn kept_bytes(attributes: &BTreeMap<String, Vec<u8>>) -> usize {
    attributes.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// An I/O that the model has.
struct Pending {
    io: Io,
    came_ns: u64,
    /// When the model took it, which may be ahead of the wall clock.
    taken_ns: u64,
    /// By the model, once it is known.
    latency_ns: u64,
}

impl Pending {
    /// When who asked for it shall have the answer.
    fn due_ns(&self) -> u64 {
        self.came_ns + self.latency_ns
    }
}

pub(crate) struct Server {
    array: Box<dyn Array>,
    transport: Box<dyn Transport>,
    inbox: Arc<Inbox>,
    begun: Instant,
    /// Time that the model has reached.
    model_ns: u64,
    floor_ns: FloorNs,
    pub(crate) most_per_s: f64,
    /// How late this thread is woken when it sleeps, lately.
    wake_ns: u64,
    /// How long the work on the bytes of reads, writes and flushes takes, lately.
    work_ns: [u64; 3],
    /// Over for the model, and not due yet: when it is, and its tag.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    pub(crate) lateness: Lateness,
    pub(crate) scheduling: Scheduling,
    pending: Vec<Option<Pending>>,
    free: Vec<u32>,
    /// I/Os that came while there was no power, or were under way when it went.
    held: Vec<Io>,
    pub(crate) has_power: bool,
    /// The last comes first.
    pub(crate) planned: Vec<PlannedEvent>,
    pub(crate) happened: Vec<Happened>,
    pub(crate) volumes: Vec<Shown>,
    pub(crate) durability: Durability,
    /// Writes that failed because the store has no room left.
    writes_without_room: u64,
    /// When ports that a lost controller had are served by another.
    ports_back_ns: Option<u64>,
    failover_ns: u64,
    bytes: Vec<u8>,
}

impl Server {
    pub(crate) fn new(
        plan: &ServePlan,
        volumes: Vec<Shown>,
        array: Box<dyn Array>,
        transport: Box<dyn Transport>,
        inbox: Arc<Inbox>,
        floor_ns: FloorNs,
    ) -> Self {
        let mut planned = plan.events.clone();
        planned.sort_by_key(|event| std::cmp::Reverse(event.at_ns));
        Self {
            array,
            transport,
            inbox,
            begun: Instant::now(),
            model_ns: 0,
            floor_ns,
            most_per_s: 0.0,
            wake_ns: 0,
            work_ns: [0; 3],
            due: BinaryHeap::new(),
            lateness: Lateness::new(volumes.len()),
            scheduling: Scheduling::Ordinary,
            pending: Vec::new(),
            free: Vec::new(),
            held: Vec::new(),
            has_power: true,
            planned,
            happened: Vec::new(),
            volumes,
            durability: plan.durability,
            writes_without_room: 0,
            ports_back_ns: None,
            failover_ns: plan.failover_ns,
            bytes: Vec::new(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// How the array is now, in a word.
    fn state(&self) -> &'static str {
        if self.has_power { self.array.state() } else { "no power" }
    }

    fn happens(&mut self, what: impl Into<String>) {
        let state = self.state();
        self.note(News { what: what.into(), state });
    }

    /// Takes over the array's news.
    fn hear(&mut self) {
        for mut news in self.array.take_news() {
            if !self.has_power {
                news.state = self.state();
            }
            self.note(news);
        }
    }

    fn note(&mut self, News { what, state }: News) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.happened.len() < HAPPENED_MOST {
            self.happened.push(Happened { at_ns: self.now_ns(), t_ns: since.as_nanos() as u64, what, state });
        }
    }

    pub(crate) fn run(mut self) -> Result<(), ServeError> {
        let mut messages = Vec::new();
        let mut completions = Vec::new();
        loop {
            let most = self.sleeps();
            let since_ns = self.now_ns();
            self.inbox.take(most, &mut messages);
            if messages.is_empty() && !most.is_zero() {
                let late_ns = (self.now_ns() - since_ns).saturating_sub(most.as_nanos() as u64).min(WAKE_MOST_NS);
                self.wake_ns = (self.wake_ns * 15 + late_ns) / 16;
            }
            for message in messages.drain(..) {
                match message {
                    Message::Io(io) => self.begin(io),
                    Message::Command(command, answer) => {
                        let done = self.obey(&command).map_err(|error| error.to_string());
                        let _ = answer.send(done);
                    }
                    Message::Attribute(call) => self.attribute(call),
                    Message::Most(per_s) => self.most_per_s = per_s,
                    Message::Note(line) => self.happens(line),
                    Message::Stop => return self.stop(),
                }
            }
            self.follow(&mut completions);
            let now_ns = self.now_ns();
            self.lateness.tick(now_ns);
            self.do_planned(now_ns);
            self.array.go_on(now_ns, self.has_power);
            self.hear();
            if self.durability != Durability::Battery {
                self.destage();
            }
        }
    }

    /// How long nothing is due.
    fn sleeps(&self) -> Duration {
        // What is due is so soon that sleeping would be too long.
        if self.array.is_behind() || !self.due.is_empty() {
            return Duration::ZERO;
        }
        let ahead_ns = self.ahead_ns();
        let model_ns = self.array.next_event_ns().map(|at_ns| at_ns.saturating_sub(ahead_ns));
        let planned_ns = self.planned.last().map(|event| event.at_ns);
        let next_ns = model_ns.into_iter().chain(planned_ns).chain(self.ports_back_ns).min().unwrap_or(u64::MAX);
        Duration::from_nanos(next_ns.saturating_sub(self.now_ns())).min(SLEEP_MOST)
    }

    fn floor_ns(&self) -> u64 {
        self.floor_ns.load(Ordering::Relaxed)
    }

    /// How far the model's time is ahead of the wall clock, so that answers are there when they are due.
    fn ahead_ns(&self) -> u64 {
        self.floor_ns() + self.wake_ns + self.work_ns.iter().max().copied().unwrap_or(0)
    }

    /// Lets the model's time follow the wall clock, ahead of it by the time of answers and wake-ups, and answers due
    /// I/Os.
    fn follow(&mut self, completions: &mut Vec<Completion>) {
        while let Some(at_ns) = self.array.next_event_ns() {
            if at_ns > self.now_ns() + self.ahead_ns() {
                break;
            }
            self.model_ns = self.array.model().advance(at_ns, completions);
            for completion in completions.drain(..) {
                self.ended(completion);
            }
            self.answer_due();
        }
        self.answer_due();
    }

    /// An I/O is over for the model.
    fn ended(&mut self, completion: Completion) {
        let tag = completion.tag;
        match &mut self.pending[tag as usize] {
            Some(pending) => {
                pending.latency_ns = completion.at_ns - pending.taken_ns;
                self.due.push(Reverse((pending.due_ns(), tag)));
            }
            // One under way when the power went is answered after it is back.
            None => self.free.push(tag),
        }
    }

    fn answer_due(&mut self) {
        while let Some(&Reverse((due_ns, tag))) = self.due.peek() {
            let pending = &self.pending[tag as usize];
            let work_ns = pending.as_ref().map_or(0, |pending| self.work_ns[EndedKind::of(&pending.io.kind) as usize]);
            if due_ns > self.now_ns() + self.floor_ns() + work_ns {
                break;
            }
            self.due.pop();
            self.complete(tag);
        }
    }

    fn begin(&mut self, io: Io) {
        if matches!(io.kind, IoKind::Probe) {
            self.bytes.resize(io.length_bytes as usize, 0);
            io.answer.answer(Ok(&self.bytes[..io.length_bytes as usize]));
            return;
        }
        if !self.has_power {
            self.held.push(io);
            return;
        }
        let (op, length_bytes, offset_bytes) = match io.kind {
            IoKind::Read => (Op::Read, io.length_bytes, io.offset_bytes),
            IoKind::Write { .. } | IoKind::Modify(_) => (Op::Write, io.length_bytes, io.offset_bytes),
            // The model knows no discard; it takes what a flush takes.
            _ => (Op::Flush, 0, 0),
        };
        // Disks move whole sectors.
        let first = offset_bytes / 512 * 512;
        let end = (offset_bytes + u64::from(length_bytes)).div_ceil(512) * 512;
        let volume = io.volume;
        let came_ns = io.came.saturating_duration_since(self.begun).as_nanos() as u64;
        let taken_ns = self.model_ns.max(came_ns);
        let pending = Pending { io, came_ns, taken_ns, latency_ns: 0 };
        let tag = match self.free.pop() {
            Some(tag) => {
                self.pending[tag as usize] = Some(pending);
                tag
            }
            None => {
                self.pending.push(Some(pending));
                self.pending.len() as u32 - 1
            }
        };
        let request = Request { op, volume, offset_bytes: first, length_bytes: (end - first) as u32, buffer: 0, tag };
        self.model_ns = taken_ns;
        self.array.model().submit(taken_ns, &request);
    }

    /// Answers an I/O that is over for the model.
    fn complete(&mut self, tag: u32) {
        self.free.push(tag);
        // Those under way when the power went are answered after it is back.
        let Some(pending) = self.pending[tag as usize].take() else { return };
        let (due_ns, latency_ns) = (pending.due_ns(), pending.latency_ns);
        let Io { kind, volume, offset_bytes, length_bytes, came: _, answer } = pending.io;
        let ended_as = EndedKind::of(&kind);
        let begun_ns = self.now_ns();
        let failed = self.carry_out(kind, volume, offset_bytes, length_bytes, answer);
        let now_ns = self.now_ns();
        let work_ns = &mut self.work_ns[ended_as as usize];
        *work_ns = (*work_ns * 15 + (now_ns - begun_ns).min(WORK_MOST_NS)) / 16;
        self.lateness.note(&Ended {
            volume: usize::from(volume),
            kind: ended_as,
            bytes: u64::from(length_bytes),
            latency_ns,
            // The way back is still to come, and the way here is over.
            late_ns: (now_ns + self.floor_ns()).saturating_sub(due_ns),
            failed,
        });
    }

    fn note_fault(&mut self, volume: u16, fault: &StoreFault) {
        self.count_fault(fault);
        let what = format!("{}: {fault}", self.volumes[usize::from(volume)].name);
        // One of a kind says it, also where volumes take turns.
        if self.happened.iter().rev().take(16).all(|earlier| earlier.what != what) {
            self.happens(what);
        }
    }

    /// Destages from the store's cache what the model has destaged.
    fn destage(&mut self) {
        if let Err(fault) = self.array.destage() {
            self.count_fault(&fault);
            self.happens("what was acknowledged from the cache could not be written");
        }
    }

    fn count_fault(&mut self, fault: &StoreFault) {
        self.writes_without_room += u64::from(fault.errno() == libc::ENOSPC);
    }

    fn attribute(&mut self, AttributeCall { volume, what, answer }: AttributeCall) {
        let volume = usize::from(volume);
        let failed = |_| libc::EIO;
        let held = self.array.store().attributes(volume);
        answer(match what {
            AttributeKind::Get(name) => held.get(&name).cloned().ok_or(libc::ENODATA),
            AttributeKind::List => Ok(held.keys().flat_map(|name| name.bytes().chain([0])).collect()),
            // All of them are written down with each change of one.
            AttributeKind::Set(name, value) if kept_bytes(held) + name.len() + value.len() > ATTRIBUTES_MOST_BYTES => {
                Err(libc::ENOSPC)
            }
            AttributeKind::Set(name, value) => {
                self.array.set_attribute(volume, &name, Some(&value)).map(|()| Vec::new()).map_err(failed)
            }
            AttributeKind::Remove(name) if held.contains_key(&name) => {
                self.array.set_attribute(volume, &name, None).map(|()| Vec::new()).map_err(failed)
            }
            AttributeKind::Remove(_) => Err(libc::ENODATA),
        });
    }

    /// Plans events, at times from now.
    fn plan(&mut self, events: &[PlannedEvent]) {
        let now_ns = self.now_ns();
        let later = |event: &PlannedEvent| PlannedEvent { at_ns: now_ns.saturating_add(event.at_ns), ..event.clone() };
        self.planned.extend(events.iter().map(later));
        self.planned.sort_by_key(|event| std::cmp::Reverse(event.at_ns));
    }

    fn do_planned(&mut self, now_ns: u64) {
        if self.ports_back_ns.take_if(|at_ns| *at_ns <= now_ns).is_some() {
            self.transport.mend_member(0);
            self.happens("another controller serves the portals");
        }
        while let Some(event) = self.planned.pop_if(|event| event.at_ns <= now_ns) {
            if let Err(error) = self.obey(&event.command) {
                self.happens(format!("planned {:?}: refused: {error}", event.command));
            }
        }
    }

    /// The power goes: nothing is answered, and what was only in a volatile cache is lost.
    fn cut_power(&mut self) -> u64 {
        self.has_power = false;
        let under_way = self.pending.iter_mut().filter_map(Option::take);
        self.held.extend(under_way.map(|pending| pending.io));
        self.array.store_mut().cut()
    }

    /// Restores power: initiators send unanswered I/Os again.
    fn restore_power(&mut self) {
        self.has_power = true;
        self.transport.forget_cached();
        for mut io in std::mem::take(&mut self.held) {
            io.came = Instant::now();
            self.begin(io);
        }
    }

    fn in_use(&self) -> Vec<String> {
        self.transport.in_use().into_iter().map(|volume| self.volumes[volume].name.clone()).collect()
    }

    fn forget_cached(&self) {
        self.transport.forget_cached();
    }

    fn stop(mut self) -> Result<(), ServeError> {
        // Nothing waits for an answer that never comes.
        let under_way = self.pending.iter_mut().filter_map(Option::take).map(|pending| pending.io);
        for io in under_way.chain(std::mem::take(&mut self.held)) {
            io.answer.answer(Err(libc::ESHUTDOWN));
        }
        let Self { array, transport, inbox, .. } = self;
        // Those who still use the volumes go on asking until they are away.
        let (done, is_done) = mpsc::channel::<()>();
        let refuse = std::thread::spawn(move || {
            let mut messages = Vec::new();
            while is_done.try_recv() == Err(mpsc::TryRecvError::Empty) {
                inbox.take(Duration::from_millis(10), &mut messages);
                for message in messages.drain(..) {
                    match message {
                        Message::Io(io) => io.answer.answer(Err(libc::ESHUTDOWN)),
                        Message::Attribute(call) => (call.answer)(Err(libc::EIO)),
                        _ => {}
                    }
                }
            }
        });
        let stopped = transport.stop();
        drop(done);
        let _ = refuse.join();
        stopped.and(array.close())
    }
}
