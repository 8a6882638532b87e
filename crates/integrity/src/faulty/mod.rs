//! A device that injects faults from one seed, logs each, and knows which of them could have been seen. It never looks at
//! what pages say about themselves, only at bytes and where they come from.

mod cache;
mod effects;
mod frames;
mod medium;
mod options;
#[cfg(test)]
mod tests;
mod truth;
mod volume;

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ops::Range,
    thread,
    time::{Duration, Instant},
};

use assay_load::{Completion, DataQueue, LoadError, Op, Queue, QueueError, Request};
use rand::{RngExt, SeedableRng, rngs::SmallRng};

use self::{
    cache::Store,
    frames::{Frames, Span},
    truth::Truth,
    volume::{UNIT_BYTES, UNITS_PER_PAGE_MAX},
};
pub use self::{
    medium::{FileMedium, Medium, Memory},
    options::FaultyOptions,
    truth::{Injection, Observed},
    volume::FaultyFile,
};
use crate::{Fault, FaultCounts};

/// How long an I/O takes on the virtual clock.
const VIRTUAL_IO_NS: Range<u64> = 50_000..500_000;

/// The time of a faulty device.
#[derive(Debug, Clone, Copy)]
pub enum FaultyClock {
    /// Goes on to the next completion whenever a caller waits; I/Os take 50 to 500 us.
    Virtual { now_ns: u64 },
    /// I/Os take as long as the medium does.
    Wall { start: Instant },
}

impl FaultyClock {
    /// A virtual clock at zero.
    pub fn virtual_time() -> Self {
        Self::Virtual { now_ns: 0 }
    }

    /// The wall clock, zero at `start`.
    pub fn wall(start: Instant) -> Self {
        Self::Wall { start }
    }

    fn now_ns(&self) -> u64 {
        match self {
            Self::Virtual { now_ns } => *now_ns,
            Self::Wall { start } => start.elapsed().as_nanos() as u64,
        }
    }

    fn wait_until(&mut self, until_ns: u64) {
        match self {
            Self::Virtual { now_ns } => *now_ns = until_ns,
            Self::Wall { start } => {
                thread::sleep(Duration::from_nanos(until_ns).saturating_sub(start.elapsed()));
            }
        }
    }
}

/// A queue on a medium that goes wrong. I/Os take effect when they complete, one after the other.
pub struct FaultyQueue<M> {
    options: FaultyOptions,
    files: Vec<FaultyFile>,
    clock: FaultyClock,
    frames: Frames,
    store: Store<M>,
    truth: Truth,
    /// Which pages of each volume were ever written.
    written: Vec<Vec<bool>>,
    /// By tag.
    outstanding: Vec<Option<Io>>,
    /// Times at which outstanding I/Os complete, with their numbers and tags.
    due: BinaryHeap<Reverse<(u64, u64, u32)>>,
    submitted: u64,
    power_is_cut: bool,
}

/// An outstanding I/O.
struct Io {
    number: u64,
    op: Op,
    volume: usize,
    /// Within the volume.
    offset_bytes: u64,
    span: Span,
    /// Bytes of a page.
    page: usize,
    fault: Option<Fault>,
    rng: SmallRng,
    /// Of a flush: the writes before it.
    flush_line: u64,
}

impl Io {
    fn touches(&self, volume: usize, place: &Range<u64>) -> bool {
        let end_bytes = self.offset_bytes.saturating_add(self.span.length as u64);
        let moves_bytes = self.op != Op::Flush;
        moves_bytes && self.volume == volume && self.offset_bytes < place.end && place.start < end_bytes
    }

    /// Units of the medium that part of the I/O is about.
    fn units(&self, part: &Range<usize>) -> Range<u64> {
        let unit = |position: usize| (self.offset_bytes + position as u64) / UNIT_BYTES as u64;
        unit(part.start)..unit(part.end)
    }
}

impl<M: Medium> FaultyQueue<M> {
    /// A queue of `depth` tags and `frames` frames of `frame_bytes` each. The medium has a volume for each of `files`.
    ///
    /// # Errors
    /// [`LoadError::InvalidValue`]: an option is out of range, a page is no power of two from 512 to 32768 bytes, a
    /// volume is not made of pages, or a frame is not.
    pub fn new(
        options: FaultyOptions,
        files: Vec<FaultyFile>,
        medium: M,
        clock: FaultyClock,
        depth: u32,
        frames: u32,
        frame_bytes: u32,
    ) -> Result<Self, LoadError> {
        options.validate()?;
        let invalid = |field, message: String| Err(LoadError::InvalidValue { field, message });
        for FaultyFile { page_bytes, size_bytes, .. } in &files {
            let pages = UNIT_BYTES..=UNITS_PER_PAGE_MAX * UNIT_BYTES;
            if !page_bytes.is_power_of_two() || !pages.contains(&(*page_bytes as usize)) {
                return invalid("page_bytes", format!("{page_bytes} is no power of two from 512 to 32768"));
            }
            if !size_bytes.is_multiple_of(u64::from(*page_bytes)) {
                return invalid("size_bytes", format!("{size_bytes} is no multiple of the page, {page_bytes} bytes"));
            }
            if frame_bytes == 0 || !frame_bytes.is_multiple_of(*page_bytes) {
                return invalid("frame_bytes", format!("{frame_bytes} is no multiple of the page, {page_bytes} bytes"));
            }
        }
        Ok(Self {
            options,
            clock,
            frames: Frames::new(frames, frame_bytes),
            store: Store::new(&options, &files, medium),
            truth: Truth::new(files.iter().map(|file| file.log).collect()),
            written: files.iter().map(|file| vec![false; file.pages() as usize]).collect(),
            outstanding: (0..depth).map(|_| None).collect(),
            due: BinaryHeap::with_capacity(depth as usize),
            submitted: 0,
            power_is_cut: false,
            files,
        })
    }

    /// The log of faults, oldest first.
    pub fn injections(&self) -> &[Injection] {
        self.truth.injections()
    }

    pub fn injected(&self) -> FaultCounts {
        self.truth.injected()
    }

    /// The findings of a perfect verifier of all reads so far.
    pub fn observable(&self) -> FaultCounts {
        self.truth.observable()
    }

    /// Injected and not observable.
    pub fn masked(&self) -> FaultCounts {
        self.truth.masked()
    }

    /// The volumes with their present sizes.
    pub fn files(&self) -> &[FaultyFile] {
        &self.files
    }

    /// Bytes that reads see; after a power cut, bytes that survived it.
    pub fn medium(&self) -> &M {
        &self.store.medium
    }

    pub fn into_medium(self) -> M {
        self.store.medium
    }

    pub fn power_is_cut(&self) -> bool {
        self.power_is_cut
    }

    /// Cuts power. Of writes that are outstanding or not durable, each survives, or is lost, or survives in part. All
    /// requests that are outstanding or come later complete with `-EIO`.
    ///
    /// # Errors
    /// The medium failed.
    pub fn cut_power(&mut self) -> Result<(), QueueError> {
        if self.power_is_cut {
            return Ok(());
        }
        self.power_is_cut = true;
        let mut rng = SmallRng::seed_from_u64(self.options.seed ^ u64::MAX);
        let mut writes: Vec<&Io> = self.outstanding.iter().flatten().filter(|io| io.op == Op::Write).collect();
        writes.retain(|io| valid(&self.files, io));
        writes.sort_by_key(|io| io.number);
        let frames = &self.frames;
        let outstanding = writes.into_iter().flat_map(|io| {
            frames
                .pieces(io.span, 0..io.span.length)
                .map(|piece| (io.volume, io.offset_bytes + piece.start as u64, frames.part(io.span, piece)))
        });
        self.store.cut_power(outstanding, &mut rng).map_err(|errno| QueueError {
            operation: "power cut",
            message: std::io::Error::from_raw_os_error(-errno).to_string(),
        })
    }

    /// An I/O as it goes out, with its time to take and its fault.
    fn begin(&mut self, request: &Request) -> (Io, u64) {
        let volume = usize::from(request.volume);
        let file = self.files[volume];
        let flush = request.op == Op::Flush;
        let length = if flush { 0 } else { request.length_bytes as usize };
        let page = file.page_bytes as usize;
        let mut rng = SmallRng::seed_from_u64(self.options.seed ^ self.submitted.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut duration_ns = match self.clock {
            FaultyClock::Virtual { .. } => rng.random_range(VIRTUAL_IO_NS),
            FaultyClock::Wall { .. } => 0,
        };
        let fault = self.options.fault(request.op, file.log, page / UNIT_BYTES, rng.random());
        let mut io = Io {
            number: self.submitted,
            op: request.op,
            volume,
            // An offset before the base is none within the volume.
            offset_bytes: request.offset_bytes.checked_sub(file.base_bytes).unwrap_or(u64::MAX),
            span: Span { first: request.buffer, length, scattered: file.scattered },
            page,
            fault,
            rng,
            flush_line: if flush { self.store.flush_line() } else { 0 },
        };
        if fault == Some(Fault::LongIo) && valid(&self.files, &io) {
            let victim = io.victim();
            self.log(&io, Fault::LongIo, &victim, None, Observed::OwnPlace);
            duration_ns = duration_ns.saturating_add(self.options.long_io_delay_ns);
        }
        (io, duration_ns)
    }

    fn end(&mut self, mut io: Io) -> i32 {
        self.frames.release(io.span);
        if self.power_is_cut {
            return -libc::EIO;
        }
        if !valid(&self.files, &io) {
            return -libc::EINVAL;
        }
        let result = match io.op {
            Op::Read => self.read(&mut io),
            Op::Write => self.write(&mut io),
            Op::Flush => self.store.flush(io.volume, io.flush_line).map(|()| 0),
        };
        if self.options.volatile_cache {
            let volume = io.rng.random_range(0..self.files.len());
            let page = io.rng.random_range(0..self.files[volume].pages().max(1));
            self.store.destage((volume, page), &mut io.rng);
        }
        result.map_or_else(|errno| errno, |bytes| bytes as i32)
    }

    fn log(&mut self, io: &Io, fault: Fault, page: &Range<usize>, other: Option<u64>, observed: Observed) -> usize {
        self.truth.log(Injection {
            id: 0,
            fault,
            operation: io.number,
            volume: io.volume as u16,
            page: (io.offset_bytes + page.start as u64) / io.page as u64,
            other_page: other,
            observed,
        })
    }
}

/// Whether an I/O is made of pages of its volume.
fn valid(files: &[FaultyFile], io: &Io) -> bool {
    let file = &files[io.volume];
    let end_bytes = io.offset_bytes.checked_add(io.span.length as u64);
    io.op == Op::Flush
        || (io.span.length > 0
            && io.span.length.is_multiple_of(io.page)
            && io.offset_bytes.is_multiple_of(io.page as u64)
            && end_bytes.is_some_and(|end_bytes| end_bytes <= file.size_bytes))
}

impl<M: Medium> Queue for FaultyQueue<M> {
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        let now_ns = self.clock.now_ns();
        for request in requests {
            self.submitted += 1;
            let (io, duration_ns) = self.begin(request);
            self.frames.acquire(io.span);
            self.due.push(Reverse((now_ns.saturating_add(duration_ns), io.number, request.tag)));
            let place = &mut self.outstanding[request.tag as usize];
            assert!(place.is_none(), "tag {} belongs to an outstanding request", request.tag);
            *place = Some(io);
            if self.options.power_cut_after == Some(self.submitted) {
                self.cut_power()?;
            }
        }
        Ok(())
    }

    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        let mut found = 0;
        loop {
            let now_ns = self.clock.now_ns();
            while let Some(&Reverse((due_ns, _, tag))) = self.due.peek() {
                if due_ns > now_ns && !self.power_is_cut {
                    break;
                }
                self.due.pop();
                if let Some(io) = self.outstanding[tag as usize].take() {
                    let result = self.end(io);
                    completions.push(Completion { tag, result, at_ns: self.clock.now_ns() });
                    found += 1;
                }
            }
            // No caller waits for ever for what will never come.
            let nothing_comes = self.due.is_empty() && until_ns == u64::MAX;
            if found >= min || now_ns >= until_ns || nothing_comes {
                return Ok(());
            }
            let next_ns = self.due.peek().map_or(until_ns, |&Reverse((due_ns, ..))| due_ns.min(until_ns));
            self.clock.wait_until(next_ns);
        }
    }
}

impl<M: Medium + 'static> DataQueue for FaultyQueue<M> {
    fn frame_bytes(&self) -> u32 {
        self.frames.frame_bytes() as u32
    }

    fn frame(&mut self, frame: u32) -> &mut [u8] {
        self.frames.frame(frame)
    }

    fn frame_of_piece(&self, volume: u16, first: u32, piece: u32, pieces: u32) -> u32 {
        frames::frame_of_piece(self.files[usize::from(volume)].scattered, first, piece, pieces)
    }

    fn resize(&mut self, volume: u16, size_bytes: u64) -> Result<(), i32> {
        let volume = usize::from(volume);
        let file = self.files[volume];
        let size_bytes = size_bytes.checked_sub(file.base_bytes).ok_or(-libc::EINVAL)?;
        let cut_off = size_bytes..file.size_bytes;
        let mut outstanding = self.outstanding.iter().flatten();
        assert!(!outstanding.any(|io| io.touches(volume, &cut_off)), "an outstanding request touches what is cut off");
        if self.power_is_cut {
            return Err(-libc::EIO);
        }
        if !size_bytes.is_multiple_of(u64::from(file.page_bytes)) {
            return Err(-libc::EINVAL);
        }
        self.store.resize(volume, size_bytes)?;
        self.files[volume].size_bytes = size_bytes;
        self.truth.cut_off(volume, size_bytes / UNIT_BYTES as u64);
        self.written[volume].resize(self.files[volume].pages() as usize, false);
        Ok(())
    }
}
