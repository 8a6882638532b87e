//! Observers of a run, and the facts they see while it goes on.

use assay_load::{DataQueue, Op};

use crate::{
    expected::PageState, failure::Failure, finding::Finding, in_flight::InFlight, phase::Phase, stamp::PageId,
    throttle::Throttle,
};

/// Work so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub pages_verified: u64,
    pub bytes_verified: u64,
    pub pages_written: u64,
    pub bytes_written: u64,
    pub resizes: u64,
}

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    pub phase: Phase,
    pub cycle: u32,
    /// Share of the phase that is done.
    pub phase_done: f64,
    pub now_ns: u64,
    pub outstanding: u32,
    pub counts: Counts,
    pub audited: bool,
    pub stopped_on_error: bool,
}

/// Work of one file so far.
#[derive(Debug, Clone)]
pub struct FileStanding {
    pub size_bytes: u64,
    pub average_io_ns: f64,
    pub io: Throttle,
}

/// View of a run for observers.
pub trait RunView {
    fn standing(&self) -> Standing;

    fn files(&self) -> Vec<FileStanding>;

    /// I/Os outstanding for longer than they may be.
    fn long_outstanding(&self) -> Vec<InFlight>;

    /// The queue the run is on.
    fn queue(&self) -> &dyn DataQueue;

    /// Findings that are new or changed since the last call.
    fn take_findings(&mut self) -> Vec<Finding>;
}

/// Watches a run from inside, on its thread.
pub trait Observer {
    /// An I/O ended. Of one during which the process stood still the latency is not known.
    fn io(&mut self, _file: usize, _op: Op, _latency_ns: Option<u64>, _bytes: u32, _result: i32) {}

    /// These pages are written: the storage has acknowledged them.
    fn acknowledged(&mut self, _first: PageId, _pages: &[PageState]) {}

    /// A file is about to be flushed; flushes are numbered.
    fn flushing(&mut self, _file: u16, _number: u32) {}

    /// A file was flushed; writes acknowledged before the flush was issued are durable.
    fn flushed(&mut self, _file: u16, _number: u32) {}

    fn phase_began(&mut self, _run: &mut dyn RunView) {}

    fn phase_ended(&mut self, _run: &mut dyn RunView) {}

    /// Called once an interval at least; tells whether the run goes on.
    fn look(&mut self, _run: &mut dyn RunView) -> bool {
        true
    }

    /// The run is over, `well` or with a failure.
    ///
    /// # Errors
    /// Failure of the observer.
    fn ended(&mut self, _run: &mut dyn RunView, _well: bool) -> Result<(), Failure> {
        Ok(())
    }
}

impl Observer for () {}
