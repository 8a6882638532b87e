use assay_load::DataQueue;

use crate::{
    Counts, Finding, Phase,
    core::{Core, InFlight},
    throttle::Throttle,
};

/// What observers may see of a run.
pub struct RunView<'a>(pub(crate) &'a mut Core);

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

/// What one file did so far.
#[derive(Debug, Clone)]
pub struct FileStanding {
    pub size_bytes: u64,
    pub average_io_ns: f64,
    pub io: Throttle,
}

impl RunView<'_> {
    pub fn standing(&self) -> Standing {
        let core = &*self.0;
        let phase_done = match core.phase {
            Phase::Stress => {
                let left_ns = core.stress_ends_ns.saturating_sub(core.now_ns);
                1.0 - left_ns as f64 / core.plan.stress_ns.max(1) as f64
            }
            _ => core.phase_done,
        };
        Standing {
            phase: core.phase,
            cycle: core.cycle,
            phase_done,
            now_ns: core.now_ns,
            outstanding: core.outstanding(),
            counts: core.counts,
            audited: core.audited,
            stopped_on_error: core.plan.stop_on_error && core.stopping && !core.findings.all().is_empty(),
        }
    }

    pub fn files(&self) -> Vec<FileStanding> {
        let files = self.0.files.iter().zip(&self.0.throttles);
        files
            .map(|(file, io)| FileStanding {
                size_bytes: u64::from(file.pages) * u64::from(file.page_bytes),
                average_io_ns: io.average_ns(),
                io: io.clone(),
            })
            .collect()
    }

    /// I/Os outstanding for longer than they may be.
    pub fn long_outstanding(&self) -> Vec<InFlight> {
        self.0.outstanding_longer_than(self.0.plan.long_io_ns).copied().collect()
    }

    /// The queue the run is on.
    pub fn queue(&self) -> &dyn DataQueue {
        &*self.0.queue
    }

    /// Findings that are new or changed since the last call.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        self.0.findings.take_changed()
    }
}
