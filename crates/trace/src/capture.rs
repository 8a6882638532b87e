//! A capture at work: reads the rings of all processors, and joins what they hold.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    mem,
    time::Duration,
};

use crate::{
    columns::Columns,
    error::TraceError,
    event::{Decoder, Event, Layout},
    join::Joiner,
    latencies::Latencies,
    page::Page,
};

/// Between two looks at the rings: the least while much happens, the most while little does.
const WAIT_MIN: Duration = Duration::from_millis(20);
const WAIT_MAX: Duration = Duration::from_millis(80);
/// Pages of a ring, which has 256 or more, from which on a look found much.
const PAGES_BUSY: usize = 32;
/// Pages of a processor that one look reads at most, so that a look ends.
const PAGES_MAX: usize = 8192;
/// I/Os that are handed out together at most.
const COLUMNS_MAX: usize = 1 << 16;

/// Counts of events, and of I/Os that could not be joined.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub events: u64,
    /// Events that the kernel dropped because the rings were full.
    pub lost: u64,
    pub damaged_pages: u64,
    /// Completions of I/Os whose begin was not seen.
    pub unmatched: u64,
    /// I/Os without a completion.
    pub unfinished: u64,
    /// I/Os that wait for an earlier one.
    pub held: u64,
}

/// Reads the rings of a trace.
pub struct Capture {
    rings: Vec<File>,
    decoder: Decoder,
    joiner: Joiner,
    /// Events that another processor's may still come before.
    events: Vec<Event>,
    settled_ns: u64,
    wait: Duration,
    page: Vec<u8>,
    origin_ns: u64,
    columns: Columns,
    latencies: Option<Latencies>,
    counts: Counts,
}

impl Capture {
    /// A capture of open `trace_pipe_raw` files that do not block.
    ///
    /// Times are counted from `origin_ns` on CLOCK_MONOTONIC. With `keeps_ios` it keeps the I/Os, without it counts their times.
    pub fn new(rings: Vec<File>, layout: Layout, origin_ns: u64, keeps_ios: bool) -> Result<Self, TraceError> {
        let decoder = Decoder::new(layout)?;
        let page = vec![0; decoder.page_layout().bytes];
        Ok(Self {
            rings,
            decoder,
            joiner: Joiner::default(),
            events: Vec::new(),
            settled_ns: 0,
            wait: WAIT_MIN,
            page,
            origin_ns,
            columns: Columns::default(),
            latencies: (!keeps_ios).then(Latencies::default),
            counts: Counts::default(),
        })
    }

    /// Reads what the rings hold; the time until they are to be looked at again.
    ///
    /// Events are taken up to the begin of the look before: those that were written before it are all there.
    pub fn look(&mut self) -> Result<Duration, TraceError> {
        let began_ns = now_ns();
        let pages = self.read()?;
        let settled_ns = mem::replace(&mut self.settled_ns, began_ns);
        self.take(settled_ns, false);
        self.wait = if pages > PAGES_BUSY { WAIT_MIN } else { (self.wait * 2).min(WAIT_MAX) };
        Ok(self.wait)
    }

    /// Whether there are enough I/Os for a batch.
    pub fn is_full(&self) -> bool {
        self.columns.len() >= COLUMNS_MAX
    }

    /// Reads the rest once the kernel has stopped tracing.
    pub fn finish(&mut self) -> Result<(), TraceError> {
        self.read()?;
        self.take(u64::MAX, true);
        Ok(())
    }

    /// Lets go of the rings, which the kernel keeps as long as they are open.
    pub fn close(&mut self) {
        self.rings.clear();
    }

    /// The I/Os since the last call, in the order in which they were asked for.
    pub fn columns(&mut self) -> Columns {
        mem::take(&mut self.columns)
    }

    /// The times of I/Os completed since the last call.
    pub fn latencies(&mut self) -> Latencies {
        self.latencies.as_mut().map(mem::take).unwrap_or_default()
    }

    /// Names of processes by their numbers.
    pub fn processes(&self) -> &[String] {
        self.decoder.names()
    }

    pub fn counts(&self) -> Counts {
        let unjoined = self.joiner.unjoined;
        let held = self.joiner.held() as u64;
        Counts { unmatched: unjoined.completions, unfinished: unjoined.unfinished, held, ..self.counts }
    }

    /// Reads all rings; the pages of the fullest one.
    fn read(&mut self) -> Result<usize, TraceError> {
        let mut most = 0;
        for number in 0..self.rings.len() {
            for page in 0..PAGES_MAX {
                most = most.max(page);
                match self.rings[number].read(&mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => self.take_page(bytes),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if is_empty(&error) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(most)
    }

    fn take_page(&mut self, bytes: usize) {
        let layout = self.decoder.page_layout();
        let Some(mut page) = Page::new(&self.page[..bytes], &layout) else {
            self.counts.damaged_pages += 1;
            return;
        };
        if page.lost > 0 {
            self.counts.lost += page.lost;
            self.joiner.doubt();
        }
        let mut is_damaged = false;
        for (time_ns, event) in page.by_ref() {
            // No host runs for 292 years.
            if i64::try_from(time_ns).is_err() {
                is_damaged = true;
            } else if let Some(event) = self.decoder.event(time_ns, event) {
                self.events.push(event);
            }
        }
        self.counts.damaged_pages += u64::from(page.is_damaged || is_damaged);
    }

    fn take(&mut self, until_ns: u64, is_end: bool) {
        // Each processor's events are a run in order, which a stable sort merges.
        self.events.sort_by_key(|event| event.time_ns);
        let count = self.events.partition_point(|event| event.time_ns <= until_ns);
        self.counts.events += count as u64;
        for event in self.events.drain(..count) {
            if let (Some(io), Some(latencies)) = (self.joiner.take(&event), &mut self.latencies) {
                latencies.count(&io);
            }
        }
        let (columns, origin_ns, keeps) = (&mut self.columns, self.origin_ns, self.latencies.is_none());
        self.joiner.ready(is_end, |io| {
            if keeps {
                columns.push(&io, origin_ns);
            }
        });
    }
}

fn is_empty(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}

/// CLOCK_MONOTONIC, the clock of the trace.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the time, which outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests;
