//! Processors of a member's controllers.

use crate::ControllerPlan;

#[derive(Debug, Clone)]
pub(crate) struct Processors {
    /// Time at which each core is free, controller by controller.
    free_ns: Vec<u64>,
    cores_each: u32,
    per_io_ns: u64,
    ps_per_byte: u64,
}

impl Processors {
    pub(crate) fn new(plan: &ControllerPlan) -> Self {
        Self {
            free_ns: vec![0; (plan.cores * plan.count) as usize],
            cores_each: plan.cores,
            per_io_ns: plan.cpu_per_io_ns,
            ps_per_byte: (1e12 / plan.cpu_bytes_per_s) as u64,
        }
    }

    pub(crate) fn cores(&self) -> u32 {
        self.free_ns.len() as u32
    }

    /// Time that cores are already given out beyond now.
    pub(crate) fn booked_ns(&self, now_ns: u64) -> u64 {
        self.free_ns.iter().map(|free_ns| free_ns.saturating_sub(now_ns)).sum()
    }

    /// A controller's work on a command that has come at `at_ns`: when it ends, and the CPU time it takes.
    #[inline]
    pub(crate) fn compute(&mut self, controller: u32, at_ns: u64, bytes: u64) -> (u64, u64) {
        let takes_ns = self.per_io_ns + bytes * self.ps_per_byte / 1000;
        let cores = &mut self.free_ns[(controller * self.cores_each) as usize..][..self.cores_each as usize];
        let core = cores.iter_mut().min().expect("a controller has a core");
        *core = (*core).max(at_ns) + takes_ns;
        (*core, takes_ns)
    }
}
