//! A run: its phases one after the other, and the loop that drives it on a queue's clock.

use std::{cell::RefCell, rc::Rc};

use assay_load::{
    Completion, DataQueue, Pulse, Watch,
    tasks::{Task, TaskId, Tasks},
};

use crate::{
    Finding, VerifyPlan,
    core::{Core, Event},
    failure::Failure,
    investigate::investigator,
    kernel::Kernel,
    observer::{Observer, RunView, Standing},
    phases::script,
    slots::Slots,
    users,
};

/// Investigations that go on at the same time.
const INVESTIGATORS: u32 = 8;
/// A clock that only looks for long I/Os looks this often at least.
const LOOKS_PER_LONG_IO: u64 = 8;

/// A run of a plan on a queue.
pub struct Verifier {
    kernel: Kernel,
    tasks: Tasks,
    script: TaskId,
}

impl Verifier {
    /// How many I/Os and frames of [`crate::PAGE_BYTES`] the queue must have.
    pub fn queue_needs(plan: &VerifyPlan) -> (u32, u32) {
        Slots::needed(plan)
    }

    /// # Errors
    /// [`Failure::Memory`] when the expected state does not fit.
    pub fn new(plan: VerifyPlan, queue: Box<dyn DataQueue>, observer: Box<dyn Observer>) -> Result<Self, Failure> {
        let core = Core::new(plan, queue, observer)?;
        let kernel = Kernel(Rc::new(RefCell::new(core)));
        let mut tasks = Tasks::default();
        let mut services: Vec<Task> = vec![
            Box::pin(users::log_writer(kernel.clone())),
            Box::pin(users::log_reader(kernel.clone())),
            Box::pin(users::checkpoint_writer(kernel.clone())),
        ];
        services.extend((0..INVESTIGATORS).map(|number| Box::pin(investigator(kernel.clone(), number)) as Task));
        for service in services {
            let id = tasks.add(service);
            kernel.with(|core| core.schedule.wake(id));
        }
        let script = tasks.add(Box::pin(script(kernel.clone())));
        kernel.with(|core| core.schedule.wake(script));
        Ok(Self { kernel, tasks, script })
    }

    /// Lets the run tell by a pulse when not the storage but its own process stood still.
    pub(crate) fn watch(&mut self, pulse: Pulse) {
        self.with(|core| core.ios.watch = Watch::new(pulse));
    }

    /// Runs all phases.
    ///
    /// # Errors
    /// Whatever keeps the run from going on; findings are no errors.
    pub fn run(&mut self) -> Result<(), Failure> {
        let mut completions: Vec<Completion> = Vec::with_capacity(4096);
        let interval_ns = self.with(|core| core.plan.interval_ns.min(core.plan.long_io_ns / LOOKS_PER_LONG_IO).max(1));
        let mut next_tick_ns = interval_ns;
        loop {
            if self.tasks.run_ready(self.script, &self.kernel) {
                return Ok(());
            }
            let now_ns = {
                let mut core = self.kernel.0.borrow_mut();
                core.flush_submissions()?;
                let core = &mut *core;
                if let Some(failure) = core.failure.take() {
                    return Err(failure);
                }
                let until_ns = core.schedule.next_ns().unwrap_or(u64::MAX).min(next_tick_ns);
                let idle = usize::from(core.schedule.is_idle());
                let waited = core.queue.wait(idle, until_ns, &mut completions);
                waited.map_err(|error| Failure::Queue(error.to_string()))?;
                core.now_ns = core.queue.now_ns();
                completions.drain(..).for_each(|completion| core.complete(completion));
                core.schedule.wake_due(core.now_ns);
                core.now_ns
            };
            if now_ns >= next_tick_ns {
                next_tick_ns = (now_ns / interval_ns + 1) * interval_ns;
                self.tick()?;
            }
        }
    }

    fn tick(&mut self) -> Result<(), Failure> {
        let mut core = self.kernel.0.borrow_mut();
        core.look_for_long_ios();
        if let Some(oldest_ns) = core.ios.oldest_ns(core.now_ns).filter(|age_ns| *age_ns > core.plan.io_timeout_ns) {
            let outstanding = core.outstanding();
            return Err(Failure::NotAnswering { outstanding, oldest_s: oldest_ns / 1_000_000_000 });
        }
        let goes_on = core.observe(|observer, view| observer.look(view));
        if !goes_on {
            core.stop();
        }
        Ok(())
    }

    /// The queue, with whatever it knows.
    ///
    /// # Panics
    /// Never: nothing else holds the run any more.
    pub fn into_queue(self) -> Box<dyn DataQueue> {
        drop(self.tasks);
        let core = Rc::try_unwrap(self.kernel.0).unwrap_or_else(|_| unreachable!("the tasks are gone"));
        core.into_inner().queue
    }

    pub(crate) fn observe_end(&mut self, well: bool) -> Result<(), Failure> {
        self.kernel.with(|core| core.observe(|observer, view| observer.ended(view, well)))
    }

    /// Findings so far.
    pub fn findings(&self) -> Vec<Finding> {
        self.kernel.with(|core| core.verdict.findings.all().to_vec())
    }

    pub fn standing(&self) -> Standing {
        self.kernel.with(|core| core.standing())
    }

    /// Looks at the run.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Core) -> T) -> T {
        self.kernel.with(look)
    }
}

impl Core {
    /// Users end, and after them the run; the final checkpoint and the audit are left out.
    pub(crate) fn stop(&mut self) {
        self.course.stopping = true;
        self.schedule.wake_sleeping();
        self.wake(Event::Cleaned);
        self.wake(Event::Quiet);
    }

    pub(crate) fn observe<T>(&mut self, action: impl FnOnce(&mut dyn Observer, &mut dyn RunView) -> T) -> T {
        let mut observer = std::mem::replace(&mut self.observer, Box::new(()));
        let result = action(observer.as_mut(), self);
        self.observer = observer;
        result
    }
}
