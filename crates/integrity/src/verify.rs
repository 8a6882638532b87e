//! A run: its phases one after the other, and the loop that drives it on a queue's clock.

use std::{cell::RefCell, rc::Rc};

use assay_load::{Completion, DataQueue, Op, Pulse, Watch};
use serde::Serialize;
use thiserror::Error;

use crate::{
    Finding, VerifyPlan,
    core::{Core, Event},
    expected::PageState,
    investigate::investigator,
    kernel::Kernel,
    phases::script,
    slots::Slots,
    stamp::PageId,
    tasks::{Task, TaskId, Tasks},
    users,
    view::{RunView, Standing},
};

/// Investigations that go on at the same time.
const INVESTIGATORS: u32 = 8;
/// Steps of tasks between two looks at the queue.
const STEPS_MOST: usize = 100_000;
/// A clock that only looks for long I/Os looks this often at least.
const LOOKS_PER_LONG_IO: u64 = 8;

/// What a run does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Every page is written.
    Prepare,
    /// Users read and change pages.
    Stress,
    /// What was changed and not yet written is written.
    Checkpoint,
    /// Every page is read.
    Audit,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Stress => "stress",
            Self::Checkpoint => "checkpoint",
            Self::Audit => "audit",
        }
    }
}

/// Why a run cannot go on.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum Failure {
    #[error("{path}: the file system is full")]
    NoSpace { path: String },
    #[error("{path}: the storage is gone (errno {errno})")]
    Gone { path: String, errno: i32 },
    #[error("{0}")]
    Queue(String),
    #[error("{outstanding} I/Os outstanding, the oldest for {oldest_s} s")]
    NotAnswering { outstanding: u32, oldest_s: u64 },
    #[error("the expected state of all pages needs {needed_bytes} bytes of memory")]
    Memory { needed_bytes: u64 },
    #[error("the journal cannot be written: {0}")]
    Journal(String),
}

const EDQUOT: i32 = 122;
const ENOSPC: i32 = 28;
const EFBIG: i32 = 27;
/// ENOENT, ENXIO, EBADF, ENODEV, EROFS, ESHUTDOWN, ESTALE: there is nothing left to talk to, or to write to.
const GONE: [i32; 7] = [2, 6, 9, 19, 30, 108, 116];
/// I/Os that fail one after the other, none between them well, before the storage counts as gone.
pub(crate) const FAILURES_MOST: u32 = 2000;

impl Failure {
    /// Whether this error says something about the environment rather than about the integrity of data.
    pub fn is_failure(errno: i32) -> bool {
        matches!(errno, ENOSPC | EDQUOT | EFBIG) || GONE.contains(&errno)
    }

    pub fn of_errno(path: &str, errno: i32) -> Self {
        match errno {
            ENOSPC | EDQUOT | EFBIG => Self::NoSpace { path: path.to_owned() },
            _ => Self::Gone { path: path.to_owned(), errno },
        }
    }
}

/// Watches a run from inside, on its thread.
pub trait Observer {
    /// An I/O ended. Of one during which the process stood still the latency is not known.
    fn io(&mut self, _file: usize, _op: Op, _latency_ns: Option<u64>, _bytes: u32, _result: i32) {}

    /// These pages are written: the storage has acknowledged them.
    fn acknowledged(&mut self, _first: PageId, _pages: &[PageState]) {}

    /// A file is about to be flushed; flushes are numbered.
    fn flushing(&mut self, _file: u16, _number: u32) {}

    /// A file was flushed; what was acknowledged before the flush was issued is durable.
    fn flushed(&mut self, _file: u16, _number: u32) {}

    fn phase_began(&mut self, _run: &mut RunView<'_>) {}

    fn phase_ended(&mut self, _run: &mut RunView<'_>) {}

    /// Called once an interval at least; tells whether the run goes on.
    fn look(&mut self, _run: &mut RunView<'_>) -> bool {
        true
    }

    /// The run is over, `well` or with a failure.
    ///
    /// # Errors
    /// What the observer could not do.
    fn ended(&mut self, _run: &mut RunView<'_>, _well: bool) -> Result<(), Failure> {
        Ok(())
    }
}

impl Observer for () {}

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
        self.with(|core| core.watch = Watch::new(pulse));
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
            if self.let_tasks_run() {
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

    /// Lets every task go on that can, unless they keep waking each other: the clock and the storage must go on, too.
    /// Tells whether the script has ended.
    fn let_tasks_run(&mut self) -> bool {
        for _ in 0..STEPS_MOST {
            let Some(task) = self.kernel.with(|core| core.schedule.next_ready()) else { return false };
            let ended = self.tasks.run(task);
            for spawned in self.kernel.with(|core| std::mem::take(&mut core.spawned)) {
                let id = self.tasks.add(spawned);
                self.kernel.with(|core| core.schedule.wake(id));
            }
            if ended && task == self.script {
                return true;
            }
        }
        false
    }

    fn tick(&mut self) -> Result<(), Failure> {
        let mut core = self.kernel.0.borrow_mut();
        core.look_for_long_ios();
        if let Some(oldest_ns) = core.oldest_outstanding_ns().filter(|age_ns| *age_ns > core.plan.io_timeout_ns) {
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

    /// What was found so far.
    pub fn findings(&self) -> Vec<Finding> {
        self.kernel.with(|core| core.findings.all().to_vec())
    }

    pub fn standing(&self) -> Standing {
        self.kernel.with(|core| RunView(core).standing())
    }

    /// Looks at the run.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Core) -> T) -> T {
        self.kernel.with(look)
    }
}

impl Core {
    /// Users end, and after them the run; the final checkpoint and the audit are left out.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        self.schedule.wake_sleeping();
        self.wake(Event::Cleaned);
        self.wake(Event::Quiet);
    }

    pub(crate) fn observe<T>(&mut self, action: impl FnOnce(&mut dyn Observer, &mut RunView<'_>) -> T) -> T {
        let mut observer = std::mem::replace(&mut self.observer, Box::new(()));
        let result = action(observer.as_mut(), &mut RunView(self));
        self.observer = observer;
        result
    }
}
