//! A small executor: users are written as what they do one after the other, and run as state machines on the queue's clock.
//! One thread, no locks, no waker: a task that waits has put its number on a list, and the task that makes it go on says so.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    future::Future,
    pin::Pin,
    task::{Context, Waker},
};

/// Number of a task.
pub type TaskId = usize;

pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Steps of tasks between two looks at the queue.
const STEPS_MAX: usize = 100_000;

/// State that tasks share while they run, with their schedule. It is borrowed anew for each look, because a task uses
/// it, too.
pub trait Scheduled {
    fn schedule<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T;
}

/// Schedule of tasks: tasks that can go on, and times at which sleeping tasks wake.
#[derive(Default)]
pub struct Schedule {
    ready: VecDeque<TaskId>,
    queued: Vec<bool>,
    sleeping: BinaryHeap<Reverse<(u64, TaskId)>>,
    spawned: Vec<Task>,
    /// The task that runs.
    pub current: TaskId,
}

impl Schedule {
    /// Lets a task go on.
    pub fn wake(&mut self, task: TaskId) {
        if self.queued.len() <= task {
            self.queued.resize(task + 1, false);
        }
        if !std::mem::replace(&mut self.queued[task], true) {
            self.ready.push_back(task);
        }
    }

    /// Adds a task, which begins after the present one.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.spawned.push(Box::pin(task));
    }

    /// Lets a task go on at a time.
    pub fn wake_at(&mut self, at_ns: u64, task: TaskId) {
        self.sleeping.push(Reverse((at_ns, task)));
    }

    /// When the first sleeping task goes on.
    pub fn next_ns(&self) -> Option<u64> {
        self.sleeping.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Wakes tasks whose time has come.
    pub fn wake_due(&mut self, now_ns: u64) {
        while self.next_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            let Some(Reverse((_, task))) = self.sleeping.pop() else { return };
            self.wake(task);
        }
    }

    /// Lets all sleeping tasks look whether they still want to sleep; those that do stay on their list.
    pub fn wake_sleeping(&mut self) {
        let tasks: Vec<TaskId> = self.sleeping.iter().map(|Reverse((_, task))| *task).collect();
        tasks.into_iter().for_each(|task| self.wake(task));
    }

    /// Whether no task can go on.
    pub fn is_idle(&self) -> bool {
        self.ready.is_empty()
    }

    /// Takes the next task that can go on.
    fn next_ready(&mut self) -> Option<TaskId> {
        let task = self.ready.pop_front()?;
        self.queued[task] = false;
        self.current = task;
        Some(task)
    }
}

/// The tasks themselves; ended ones leave their number to new ones.
#[derive(Default)]
pub struct Tasks {
    tasks: Vec<Option<Task>>,
    /// Numbers of tasks that ended; the lowest is given first, so that the same run gives the same numbers.
    free: BinaryHeap<Reverse<TaskId>>,
}

impl Tasks {
    /// Adds a task; it runs once it is woken.
    pub fn add(&mut self, task: Task) -> TaskId {
        if let Some(Reverse(free)) = self.free.pop() {
            self.tasks[free] = Some(task);
            return free;
        }
        self.tasks.push(Some(task));
        self.tasks.len() - 1
    }

    /// Lets every task go on that can, unless they keep waking each other: the clock and the storage must go on, too.
    /// Tells whether task `script` has ended.
    pub fn run_ready(&mut self, script: TaskId, shared: &impl Scheduled) -> bool {
        for _ in 0..STEPS_MAX {
            let Some(task) = shared.schedule(Schedule::next_ready) else { return false };
            let ended = self.run(task);
            for spawned in shared.schedule(|schedule| std::mem::take(&mut schedule.spawned)) {
                let id = self.add(spawned);
                shared.schedule(|schedule| schedule.wake(id));
            }
            if ended && task == script {
                return true;
            }
        }
        false
    }

    /// Lets a task go on; tells whether it ended.
    fn run(&mut self, id: TaskId) -> bool {
        let Some(task) = self.tasks[id].as_mut() else { return false };
        let ended = task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if ended {
            self.tasks[id] = None;
            self.free.push(Reverse(id));
        }
        ended
    }
}
