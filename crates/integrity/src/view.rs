use assay_load::DataQueue;

use crate::{
    core::Core,
    finding::Finding,
    in_flight::InFlight,
    observer::{FileStanding, RunView, Standing},
    phase::Phase,
};

impl RunView for Core {
    fn standing(&self) -> Standing {
        let phase_done = match self.course.phase {
            Phase::Stress => {
                let left_ns = self.course.stress_ends_ns.saturating_sub(self.now_ns);
                1.0 - left_ns as f64 / self.plan.stress_ns.max(1) as f64
            }
            _ => self.course.phase_done,
        };
        Standing {
            phase: self.course.phase,
            cycle: self.course.cycle,
            phase_done,
            now_ns: self.now_ns,
            outstanding: self.outstanding(),
            counts: self.counts,
            audited: self.verdict.audited,
            stopped_on_error: self.plan.stop_on_error
                && self.course.stopping
                && !self.verdict.findings.all().is_empty(),
        }
    }

    fn files(&self) -> Vec<FileStanding> {
        let files = self.files.iter().zip(&self.throttles);
        files
            .map(|(file, io)| FileStanding {
                size_bytes: u64::from(file.pages) * u64::from(file.page_bytes),
                average_io_ns: io.average_ns(),
                io: io.clone(),
            })
            .collect()
    }

    fn long_outstanding(&self) -> Vec<InFlight> {
        let is_long = |io: &&InFlight| self.ios.age_ns(io, self.now_ns) > self.plan.long_io_ns;
        self.ios.in_flight.iter().flatten().filter(is_long).copied().collect()
    }

    fn queue(&self) -> &dyn DataQueue {
        &*self.queue
    }

    fn take_findings(&mut self) -> Vec<Finding> {
        self.verdict.findings.take_changed()
    }
}
