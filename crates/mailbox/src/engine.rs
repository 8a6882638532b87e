//! The loop that drives the tasks on a queue's clock.

use std::{cell::RefCell, rc::Rc};

use assay_load::{
    Completion, Counter, DataQueue, IoTally, Pulse, Watch,
    tasks::{TaskId, Tasks},
};

use crate::{core::Core, failure::Failure, kernel::Kernel, plan::MailboxPlan, slots::Slots, users::script};

/// A run of a plan on a queue.
pub struct Engine {
    pub(crate) kernel: Kernel,
    tasks: Tasks,
    script: TaskId,
    completions: Vec<Completion>,
}

impl Engine {
    /// How many I/Os and frames of a page the queue must have.
    pub fn queue_needs(plan: &MailboxPlan) -> (u32, u32) {
        Slots::needed(plan)
    }

    /// A run that counts with `meters`, those of each database one after the other.
    pub fn new(plan: MailboxPlan, queue: Box<dyn DataQueue>, meters: Vec<Option<Counter<IoTally>>>) -> Self {
        let kernel = Kernel(Rc::new(RefCell::new(Core::new(plan, queue, meters))));
        Self::of(kernel.clone(), script(kernel))
    }

    pub(crate) fn of(kernel: Kernel, script: impl Future<Output = ()> + 'static) -> Self {
        let mut tasks = Tasks::default();
        let script = tasks.add(Box::pin(script));
        kernel.with(|core| core.schedule.wake(script));
        Self { kernel, tasks, script, completions: Vec::with_capacity(4096) }
    }

    /// Lets the run tell by a pulse when not the storage but its own process stood still.
    pub fn watch(&mut self, pulse: Pulse) {
        self.kernel.with(|core| core.watch = Watch::new(pulse));
    }

    /// Goes on until a time, or the end; tells whether that has come.
    ///
    /// # Errors
    /// Whatever keeps the run from going on; bad pages are no errors.
    pub fn run_to(&mut self, to_ns: u64) -> Result<bool, Failure> {
        loop {
            // Before the task that waits for it goes on: a failed I/O moved no bytes that could be looked at.
            if let Some(failure) = self.kernel.with(|core| core.failure.take()) {
                return Err(failure);
            }
            if self.tasks.run_ready(self.script, &self.kernel) {
                return Ok(true);
            }
            let mut core = self.kernel.0.borrow_mut();
            let core = &mut *core;
            core.flush_submissions()?;
            let until_ns = core.schedule.next_ns().unwrap_or(u64::MAX).min(core.next_tick_ns()).min(to_ns);
            let least = usize::from(core.schedule.is_idle());
            let waited = core.queue.wait(least, until_ns, &mut self.completions);
            waited.map_err(|error| Failure::Queue(error.to_string()))?;
            core.now_ns = core.queue.now_ns();
            self.completions.drain(..).for_each(|completion| core.complete(completion));
            core.schedule.wake_due(core.now_ns);
            if core.now_ns >= core.next_tick_ns() {
                core.tick();
                if let Some(oldest_ns) = core.oldest_ns().filter(|age_ns| *age_ns > core.plan.io_timeout_ns) {
                    let outstanding = core.used_slots();
                    return Err(Failure::NotAnswering { outstanding, oldest_s: oldest_ns / 1_000_000_000 });
                }
            }
            if core.now_ns >= to_ns {
                return Ok(false);
            }
        }
    }

    /// Waits for outstanding I/O once the run has ended, `timeout_ns` at most: nothing may use its memory or the
    /// storage afterwards.
    pub(crate) fn drain(&mut self, timeout_ns: u64) {
        let mut core = self.kernel.0.borrow_mut();
        let core = &mut *core;
        let ends_ns = core.queue.now_ns().saturating_add(timeout_ns);
        let sent = core.flush_submissions();
        while sent.is_ok() && core.outstanding() > 0 && core.now_ns < ends_ns {
            if core.queue.wait(1, ends_ns, &mut self.completions).is_err() {
                return;
            }
            core.now_ns = core.queue.now_ns();
            self.completions.drain(..).for_each(|completion| core.complete(completion));
        }
    }
}
