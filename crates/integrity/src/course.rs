//! The course of a run: its phases, its users, and how it ends.

use crate::phase::Phase;

/// Where a run stands: phase, cycle, checkpoints, and whether it is about to end.
#[derive(Debug)]
pub(crate) struct Course {
    pub phase: Phase,
    pub cycle: u32,
    /// Share of the phase that is done, in phases that count their pages.
    pub phase_done: f64,
    /// I/O is not throttled now.
    pub bursting: bool,
    pub users_alive: u32,
    /// Users end when the clock gets here, or at once when `stopping`.
    pub stress_ends_ns: u64,
    pub stopping: bool,
    pub closing: bool,
    pub checkpoint_wanted: bool,
    /// Checkpoints since the stress phase began.
    pub checkpoints: u64,
}

impl Course {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Prepare,
            cycle: 1,
            phase_done: 0.0,
            bursting: false,
            users_alive: 0,
            stress_ends_ns: 0,
            stopping: false,
            closing: false,
            checkpoint_wanted: false,
            checkpoints: 0,
        }
    }
}
