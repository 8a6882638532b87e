//! The imitated engine's I/O: latches, admission, submission, and the verification of everything that comes back.

use std::collections::BTreeMap;

use assay_load::{
    Completion, DataQueue, Op, Request,
    tasks::{Schedule, TaskId},
};
use rand::{SeedableRng, rngs::SmallRng};

use crate::{
    VerifyPlan,
    course::Course,
    expected::{File, Flag, expected_state_bytes, state_mut},
    failure::{FAILURES_MAX, Failure},
    history::Entry,
    in_flight::{InFlight, Ios, Purpose, RawEnd},
    log::Log,
    observer::{Counts, Observer},
    pool::Pool,
    slots::Slots,
    stamp::{NOT_READ, PageId, Stamp, Stamper},
    throttle::Throttle,
    user::User,
    verdict::{Suspect, Verdict},
};

/// Event that waiting tasks wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Unlatched,
    SlotFree,
    LogSpace,
    LogDurable,
    LogWanted,
    CheckpointWanted,
    Cleaned,
    Suspicion,
    /// A writer of a checkpoint is done.
    Written,
    Quiet,
}

const EVENTS: usize = Event::Quiet as usize + 1;

/// The imitated engine: its files, the expected state of their pages, and the I/Os it has issued.
pub(crate) struct Core {
    pub plan: VerifyPlan,
    pub queue: Box<dyn DataQueue>,
    pub observer: Box<dyn Observer>,
    pub stamper: Stamper,
    pub files: Vec<File>,
    pub throttles: Vec<Throttle>,
    pub log: Log,
    pub pool: Pool,
    /// Changed pages that are not written yet, and the log record each waits for.
    pub dirty: BTreeMap<PageId, u64>,
    pub schedule: Schedule,
    pub counts: Counts,
    pub rng: SmallRng,
    pub now_ns: u64,
    pub course: Course,
    pub verdict: Verdict,
    pub ios: Ios,
    pub failure: Option<Failure>,
    waiting: [Vec<TaskId>; EVENTS],
}

impl Core {
    /// # Errors
    /// [`Failure::Memory`] when the expected state does not fit.
    pub(crate) fn new(
        plan: VerifyPlan,
        queue: Box<dyn DataQueue>,
        observer: Box<dyn Observer>,
    ) -> Result<Self, Failure> {
        let needed_bytes = expected_state_bytes(&plan.files);
        let files = plan.files.iter().cloned().map(File::new).collect::<Result<Vec<_>, usize>>();
        let files = files.map_err(|_| Failure::Memory { needed_bytes })?;
        Ok(Self {
            stamper: Stamper::new(plan.run_id),
            throttles: files.iter().map(|_| Throttle::new(plan.target_io_ns, plan.max_outstanding)).collect(),
            log: Log::new(&plan.files),
            pool: Pool::new((plan.pool_bytes / u64::from(plan.frame_bytes())).max(16) as usize),
            dirty: BTreeMap::new(),
            schedule: Schedule::default(),
            counts: Counts::default(),
            rng: SmallRng::seed_from_u64(plan.seed),
            now_ns: 0,
            course: Course::new(),
            verdict: Verdict::default(),
            ios: Ios::new(&plan),
            failure: None,
            waiting: Default::default(),
            files,
            queue,
            observer,
            plan,
        })
    }

    pub(crate) fn wait_for(&mut self, event: Event) {
        let task = self.schedule.current;
        self.waiting[event as usize].push(task);
    }

    pub(crate) fn wake(&mut self, event: Event) {
        for task in self.waiting[event as usize].drain(..) {
            self.schedule.wake(task);
        }
    }

    pub(crate) fn outstanding(&self) -> u32 {
        self.ios.slots.used()
    }

    /// Whether nothing is outstanding and nothing is being looked into.
    pub(crate) fn is_quiet(&self) -> bool {
        self.ios.slots.used() == 0 && !self.verdict.is_pending()
    }

    pub(crate) fn is_log(&self, file: u16) -> bool {
        self.files[usize::from(file)].plan.log
    }

    /// Takes the latches of all these pages, or none.
    pub(crate) fn try_latch(&mut self, id: PageId, pages: u32) -> bool {
        let range = id.page as usize..(id.page + pages) as usize;
        let states = &mut self.files[usize::from(id.file)].states[range];
        if states.iter().any(|state| state.has(Flag::Latched)) {
            return false;
        }
        states.iter_mut().for_each(|state| state.set(Flag::Latched, true));
        true
    }

    pub(crate) fn unlatch(&mut self, id: PageId, pages: u32) {
        for page in id.page..id.page + pages {
            state_mut(&mut self.files, PageId { page, ..id }).set(Flag::Latched, false);
        }
        self.wake(Event::Unlatched);
    }

    /// A slot for an I/O, if there is one and the file is not throttled.
    pub(crate) fn try_slot(&mut self, file: u16, pages: u32, throttled: bool) -> Option<u32> {
        if throttled && !self.course.bursting && !self.throttles[usize::from(file)].admits() {
            return None;
        }
        let bytes = pages * self.files[usize::from(file)].page_bytes;
        self.ios.slots.take(bytes)
    }

    /// Issues a read. Its pages are latched, its slot is taken.
    pub(crate) fn submit_read(&mut self, tag: u32, id: PageId, pages: u32, user: User, purpose: Purpose) {
        let io = self.begin(tag, Op::Read, id, pages, user, purpose);
        for page in 0..pages {
            self.page(&io, page).fill(NOT_READ);
        }
        self.push(tag, &io);
    }

    /// Issues a write of new generations. Its pages are latched, its slot is taken; `lsn_of` gives each page's log record.
    pub(crate) fn submit_write(&mut self, tag: u32, id: PageId, pages: u32, user: User, lsn_of: impl Fn(u32) -> u64) {
        let io = self.begin(tag, Op::Write, id, pages, user, Purpose::Write);
        let time_us = self.now_ns / 1000;
        for page in 0..pages {
            let at = PageId { page: id.page + page, ..id };
            let generation = state_mut(&mut self.files, at).generation + 1;
            let writer = user.kind.writer(user.number);
            let stamp = Stamp { generation, time_us, lsn: lsn_of(page), writer };
            let checksum = self.write_stamp(&io, page, at, &stamp);
            let state = state_mut(&mut self.files, at);
            state.set_stamp(&stamp, checksum);
            state.set(Flag::Dirty, false);
        }
        self.push(tag, &io);
    }

    /// Writes pages as they should be already.
    pub(crate) fn submit_rewrite(&mut self, tag: u32, id: PageId, pages: u32, user: User) {
        let io = self.begin(tag, Op::Write, id, pages, user, Purpose::Raw);
        for page in 0..pages {
            let at = PageId { page: id.page + page, ..id };
            let stamp = state_mut(&mut self.files, at).stamp();
            self.write_stamp(&io, page, at, &stamp);
        }
        self.push(tag, &io);
    }

    pub(crate) fn submit_flush(&mut self, tag: u32, file: u16, user: User) {
        let io = self.begin(tag, Op::Flush, PageId { file, page: 0 }, 0, user, Purpose::Raw);
        self.push(tag, &io);
    }

    /// A page as it should be.
    pub(crate) fn expected_image(&mut self, id: PageId) -> Box<[u8]> {
        let bytes = self.files[usize::from(id.file)].page_bytes as usize;
        let stamp = state_mut(&mut self.files, id).stamp();
        let mut image = vec![0; bytes].into_boxed_slice();
        self.stamper.write(&mut image, id, &stamp);
        image
    }

    /// Hands issued requests to the queue.
    ///
    /// # Errors
    /// The queue is broken.
    pub(crate) fn flush_submissions(&mut self) -> Result<(), Failure> {
        if self.ios.to_submit.is_empty() {
            return Ok(());
        }
        let now_ns = self.queue.now_ns();
        for request in &self.ios.to_submit {
            if let Some(io) = &mut self.ios.in_flight[request.tag as usize] {
                io.submitted_ns = now_ns;
                self.ios.history.submitted(io.history, now_ns);
            }
        }
        let submitted = self.queue.submit(&self.ios.to_submit);
        self.ios.to_submit.clear();
        submitted.map_err(|error| Failure::Queue(error.to_string()))
    }

    /// Takes one I/O's end: verifies read pages, and wakes waiting tasks.
    pub(crate) fn complete(&mut self, completion: Completion) {
        let tag = completion.tag;
        let Some(io) = self.ios.in_flight[tag as usize].take() else { return };
        let stood_still = self.ios.watch.stood_still(io.submitted_ns, completion.at_ns);
        let latency_ns = self.ios.age_ns(&io, completion.at_ns);
        let file = usize::from(io.id.file);
        self.ios.history.ended(io.history, completion.at_ns, completion.result);
        self.ios.failures_in_a_row = if completion.result < 0 { self.ios.failures_in_a_row + 1 } else { 0 };
        if self.ios.failures_in_a_row > FAILURES_MAX {
            self.fail(io.id.file, -completion.result, "thousands of I/Os failed one after the other");
        }
        let bytes = io.pages * self.files[file].page_bytes;
        self.throttles[file].ended(io.op, io.pages, latency_ns);
        self.observer.io(file, io.op, (!stood_still).then_some(latency_ns), bytes, completion.result);
        if latency_ns > self.plan.long_io_ns && !io.reported_long {
            self.find_long(&io, latency_ns);
        }
        match (io.purpose, io.op) {
            (Purpose::Raw, _) => self.end_raw(&io, completion.result),
            (Purpose::Verify, _) => self.end_read(&io, completion.result),
            (Purpose::Write, _) => self.end_write(&io, completion.result),
        }
        self.ios.slots.give_back(tag);
        let outstanding = &mut self.ios.outstanding_of[io.task];
        *outstanding -= 1;
        if *outstanding == 0 {
            self.schedule.wake(io.task);
        }
        self.wake(Event::SlotFree);
        if self.is_quiet() {
            self.wake(Event::Quiet);
        }
    }

    fn end_read(&mut self, io: &InFlight, result: i32) {
        if result < 0 {
            self.suspect_io(io, -result);
            return;
        }
        let page_bytes = self.files[usize::from(io.id.file)].page_bytes;
        let whole = result as u32 / page_bytes;
        for page in 0..io.pages {
            let id = PageId { page: io.id.page + page, ..io.id };
            let (generation, checksum) = {
                let state = state_mut(&mut self.files, id);
                (state.generation, state.checksum)
            };
            let (file, frame, at) = (io.id.file, self.frame_of(io, page), self.place_in_frame(io, page));
            let bytes = &self.queue.frame(frame)[at..at + page_bytes as usize];
            if page < whole && self.stamper.is_right(bytes, id, generation, checksum) {
                let state = &mut self.files[usize::from(file)].states[id.page as usize];
                state.set(Flag::SeenRight, true);
                state.set(Flag::Latched, false);
                self.counts.pages_verified += 1;
                self.counts.bytes_verified += u64::from(page_bytes);
                continue;
            }
            let state = &mut self.files[usize::from(file)].states[id.page as usize];
            if state.is_doubtful() {
                self.verdict.skipped |= state.has(Flag::KnownWrong);
                state.set(Flag::Latched, false);
                continue;
            }
            // A short read is one fault of one I/O: it is named at the first page that is not whole.
            let image = (page <= whole).then(|| bytes.to_vec().into_boxed_slice());
            self.verdict.suspects.push_back(Suspect::Page { id, image, user: io.user });
            self.wake(Event::Suspicion);
        }
        self.wake(Event::Unlatched);
    }

    fn end_write(&mut self, io: &InFlight, result: i32) {
        let bytes = io.pages * self.files[usize::from(io.id.file)].page_bytes;
        if result != bytes as i32 {
            self.suspect_io(io, if result < 0 { -result } else { 0 });
            return;
        }
        self.written(io.id, io.pages);
        self.unlatch(io.id, io.pages);
    }

    /// Notes that pages hold their expected bytes.
    pub(crate) fn written(&mut self, id: PageId, pages: u32) {
        for page in id.page..id.page + pages {
            let state = state_mut(&mut self.files, PageId { page, ..id });
            if state.has(Flag::Uncertain) {
                state.set(Flag::Uncertain, false);
                self.verdict.uncertain -= 1;
            }
        }
        self.counts.pages_written += u64::from(pages);
        self.counts.bytes_written += u64::from(pages * self.files[usize::from(id.file)].page_bytes);
        let stamped = &self.files[usize::from(id.file)].states[id.page as usize..(id.page + pages) as usize];
        self.observer.acknowledged(id, stamped);
    }

    fn end_raw(&mut self, io: &InFlight, result: i32) {
        let mut image: Box<[u8]> = Box::default();
        if io.op == Op::Read && result >= 0 {
            image = self.page(io, 0).to_vec().into_boxed_slice();
        }
        if result < 0 && Failure::is_failure(-result) {
            self.fail(io.id.file, -result, "an I/O failed");
        }
        self.ios.mailbox[io.task] = Some(RawEnd { result, image });
        self.schedule.wake(io.task);
    }

    fn suspect_io(&mut self, io: &InFlight, errno: i32) {
        if Failure::is_failure(errno) {
            self.fail(io.id.file, errno, "an I/O failed");
            return;
        }
        self.verdict.writes_in_doubt += u32::from(io.op == Op::Write);
        self.verdict.suspects.push_back(Suspect::Io { op: io.op, id: io.id, pages: io.pages, errno, user: io.user });
        self.wake(Event::Suspicion);
    }

    /// I/Os outstanding for longer than they may be are findings while they are still outstanding.
    pub(crate) fn look_for_long_ios(&mut self) {
        for tag in 0..self.ios.in_flight.len() {
            let Some(io) = self.ios.in_flight[tag] else { continue };
            let age_ns = self.ios.age_ns(&io, self.now_ns);
            if age_ns > self.plan.long_io_ns && !io.reported_long {
                self.find_long(&io, age_ns);
                self.ios.in_flight[tag] = Some(InFlight { reported_long: true, ..io });
            }
        }
    }

    fn begin(&mut self, tag: u32, op: Op, id: PageId, pages: u32, user: User, purpose: Purpose) -> InFlight {
        let task = self.schedule.current;
        if self.ios.outstanding_of.len() <= task {
            self.ios.outstanding_of.resize(task + 1, 0);
            self.ios.mailbox.resize(task + 1, None);
        }
        self.ios.outstanding_of[task] += 1;
        self.throttles[usize::from(id.file)].began();
        let generation =
            self.files[usize::from(id.file)].states.get(id.page as usize).map_or(0, |page| page.generation)
                + u32::from(op == Op::Write && purpose == Purpose::Write);
        let entry = Entry { at_ns: self.now_ns, ended_ns: None, op, user, id, pages, generation, result: 0 };
        let first_frame = self.ios.slots.first_frame(tag);
        let history = self.ios.history.add(entry);
        let (submitted_ns, reported_long) = (self.now_ns, false);
        InFlight { op, id, pages, first_frame, user, purpose, task, submitted_ns, history, reported_long }
    }

    fn push(&mut self, tag: u32, io: &InFlight) {
        let file = &self.files[usize::from(io.id.file)];
        self.ios.to_submit.push(Request {
            op: io.op,
            volume: io.id.file,
            offset_bytes: if io.op == Op::Flush { 0 } else { file.offset_bytes(io.id.page) },
            length_bytes: io.pages * file.page_bytes,
            buffer: io.first_frame,
            tag,
        });
        self.ios.in_flight[tag as usize] = Some(*io);
    }

    fn write_stamp(&mut self, io: &InFlight, page: u32, id: PageId, stamp: &Stamp) -> u32 {
        let bytes = self.files[usize::from(id.file)].page_bytes as usize;
        let (frame, at) = (self.frame_of(io, page), self.place_in_frame(io, page));
        self.stamper.write(&mut self.queue.frame(frame)[at..at + bytes], id, stamp)
    }

    /// Bytes of one page of an I/O.
    fn page(&mut self, io: &InFlight, page: u32) -> &mut [u8] {
        let bytes = self.files[usize::from(io.id.file)].page_bytes as usize;
        let (frame, at) = (self.frame_of(io, page), self.place_in_frame(io, page));
        &mut self.queue.frame(frame)[at..at + bytes]
    }

    /// Data pages fill a frame each; log blocks share frames.
    fn frame_of(&self, io: &InFlight, page: u32) -> u32 {
        let page_bytes = self.files[usize::from(io.id.file)].page_bytes;
        let frame_bytes = self.plan.frame_bytes();
        if page_bytes < frame_bytes {
            return io.first_frame + page * page_bytes / frame_bytes;
        }
        self.queue.frame_of_piece(io.id.file, io.first_frame, page, io.pages)
    }

    fn place_in_frame(&self, io: &InFlight, page: u32) -> usize {
        (page * self.files[usize::from(io.id.file)].page_bytes % self.plan.frame_bytes()) as usize
    }
}

/// Pages that fit one I/O to this file.
pub(crate) fn most_pages_per_io(plan: &VerifyPlan, file: usize) -> u32 {
    let bytes = plan.files[file].page_bytes();
    let most_bytes = Slots::largest_io_bytes(plan);
    if plan.files[file].log { (most_bytes.min(LOG_IO_MAX_BYTES) / bytes).max(1) } else { most_bytes / bytes }
}

/// SQL Server writes its log in pieces of 60 KiB at most.
const LOG_IO_MAX_BYTES: u32 = 60 * 1024;
