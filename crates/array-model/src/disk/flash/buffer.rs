//! Acknowledged data on their way to the flash, and the programs beside them.

use std::collections::VecDeque;

use super::dies::{DieKind, Dies};
use crate::SolidStatePlan;

/// A drive that was written to no more than so long ago does not empty its fast cells.
const IDLE_NS: u64 = 1_000_000_000;

/// One way to program: all planes of a die at once.
#[derive(Debug, Clone, Copy)]
struct Shot {
    bytes: u64,
    takes_ns: u64,
}

/// How a drive programs.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub(super) dies: DieKind,
    dense: Shot,
    /// Cells that hold one bit for the time being: how many bytes go there, and how many a second are moved on when idle.
    fast: Shot,
    fast_bytes: u64,
    fold_bytes_per_s: f64,
    buffer_bytes: u64,
}

impl Programs {
    pub(super) fn new(plan: &SolidStatePlan) -> Self {
        let plane_bytes = u64::from(plan.flash.planes) * plan.flash.page_bytes;
        Self {
            dies: DieKind::new(plan),
            dense: Shot { bytes: plane_bytes * u64::from(plan.flash.cell_bits), takes_ns: plan.flash.program_ns },
            fast: Shot { bytes: plane_bytes, takes_ns: plan.slc.program_ns },
            fast_bytes: plan.slc_bytes(),
            fold_bytes_per_s: plan.slc.fold_bytes_per_s,
            buffer_bytes: plan.write_buffer_bytes,
        }
    }
}

/// A write that has come, and the work that it makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incoming {
    pub(super) there_ns: u64,
    pub(super) bytes: u64,
    /// Programmed besides: what garbage collection moves, and tables.
    pub(super) more_bytes: u64,
    /// Reads of flash before that, one after the other on a die.
    pub(super) reads_ns: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Buffer {
    /// Acknowledged and not programmed: in no program yet, and in programs that end at a time.
    open_bytes: u64,
    in_flight: VecDeque<(u64, u64)>,
    held_bytes: u64,
    more_bytes: u64,
    reads_ns: u64,
    /// In fast cells.
    fast_bytes: u64,
    last_ns: u64,
    pub(super) programmed_bytes: u64,
}

impl Buffer {
    /// Takes a write in; returns when it has room, which is when it is acknowledged.
    pub(super) fn write(&mut self, programs: &Programs, dies: &mut Dies, coming: &Incoming) -> u64 {
        let Incoming { there_ns, bytes, more_bytes, reads_ns } = *coming;
        self.rest(programs, there_ns);
        while let Some((_, bytes)) = self.in_flight.front().filter(|(end_ns, _)| *end_ns <= there_ns) {
            self.held_bytes -= bytes;
            self.in_flight.pop_front();
        }
        let mut admitted_ns = there_ns;
        while self.held_bytes + bytes > programs.buffer_bytes {
            let Some((end_ns, freed)) = self.in_flight.pop_front() else { break };
            self.held_bytes -= freed;
            admitted_ns = admitted_ns.max(end_ns);
        }
        self.held_bytes += bytes;
        self.open_bytes += bytes;
        self.more_bytes += more_bytes;
        self.reads_ns += reads_ns;
        while self.open_bytes >= self.shot(programs).bytes {
            self.program(programs, dies, admitted_ns, self.shot(programs).bytes);
        }
        // Tables go where data go: a slow program among fast ones would hold all of them up.
        let shot = self.shot(programs);
        while self.more_bytes >= shot.bytes {
            self.more_bytes -= shot.bytes;
            self.programmed_bytes += shot.bytes;
            dies.program(&programs.dies, admitted_ns, shot.takes_ns + std::mem::take(&mut self.reads_ns));
        }
        if programs.buffer_bytes < programs.dense.bytes {
            // Nothing holds what was written until there is enough for a program.
            return self.drain(programs, dies, admitted_ns);
        }
        admitted_ns
    }

    /// Programs everything; returns when the last of it is done.
    pub(super) fn drain(&mut self, programs: &Programs, dies: &mut Dies, ready_ns: u64) -> u64 {
        if self.open_bytes > 0 {
            self.program(programs, dies, ready_ns, self.open_bytes);
        }
        let last_ns = self.in_flight.iter().map(|(end_ns, _)| *end_ns).max().unwrap_or(ready_ns);
        (self.held_bytes, self.in_flight) = (0, VecDeque::new());
        last_ns.max(ready_ns)
    }

    /// Everything is programmed, and so are the tables that say where it is.
    pub(super) fn flush(&mut self, programs: &Programs, dies: &mut Dies, ready_ns: u64) -> u64 {
        if self.held_bytes == 0 {
            return ready_ns;
        }
        let there_ns = self.drain(programs, dies, ready_ns);
        let shot = self.shot(programs);
        self.programmed_bytes += shot.bytes;
        dies.program(&programs.dies, there_ns, shot.takes_ns)
    }

    fn shot(&self, programs: &Programs) -> Shot {
        if self.fast_bytes < programs.fast_bytes { programs.fast } else { programs.dense }
    }

    fn program(&mut self, programs: &Programs, dies: &mut Dies, ready_ns: u64, bytes: u64) {
        let shot = self.shot(programs);
        let bytes = bytes.min(shot.bytes);
        if self.fast_bytes < programs.fast_bytes {
            self.fast_bytes += bytes;
        }
        self.open_bytes -= bytes;
        self.programmed_bytes += shot.bytes;
        let end_ns = dies.program(&programs.dies, ready_ns, shot.takes_ns + std::mem::take(&mut self.reads_ns));
        self.in_flight.push_back((end_ns, bytes));
    }

    /// A drive that was left alone has emptied some of its fast cells.
    fn rest(&mut self, programs: &Programs, now_ns: u64) {
        let idle_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now_ns);
        if idle_ns > IDLE_NS && self.fast_bytes > 0 {
            let folded = ((idle_ns - IDLE_NS) as f64 / 1e9 * programs.fold_bytes_per_s) as u64;
            let folded = folded.min(self.fast_bytes);
            self.fast_bytes -= folded;
            self.programmed_bytes += folded;
        }
    }
}
