//! The virtual clock: a model under load, and the driver that hosts all workers on it.

use crate::{Completion, Outcome, Queue, QueueError, Request, Step, Worker};

/// A passive model: a state machine that is told when I/Os are submitted and how far its clock goes.
///
/// Contract: times never go back; every submitted request completes exactly once; the same calls give the same
/// completions, to the nanosecond.
pub trait Simulated {
    /// Accepts a request at `at_ns`, which is not before the time reached.
    fn submit(&mut self, at_ns: u64, request: &Request);

    /// When something happens next, if nothing is submitted before.
    fn next_event_ns(&self) -> Option<u64>;

    /// Lets events happen in order up to and including `to_ns`, and stops after the first moment at which requests
    /// completed. Appends these and returns the time reached: theirs, or `to_ns` when nothing completed.
    fn advance(&mut self, to_ns: u64, completions: &mut Vec<Completion>) -> u64;
}

/// A model as a queue of its own: the clock moves while it is waited for.
pub struct SimulatedQueue<S> {
    model: S,
    now_ns: u64,
}

impl<S: Simulated> SimulatedQueue<S> {
    pub fn new(model: S) -> Self {
        Self { model, now_ns: 0 }
    }

    pub fn model(&self) -> &S {
        &self.model
    }
}

impl<S: Simulated> Queue for SimulatedQueue<S> {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        requests.iter().for_each(|request| self.model.submit(self.now_ns, request));
        Ok(())
    }

    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        let before = completions.len();
        loop {
            // Looking once takes a moment, so that a worker that only looks gets on.
            let until_ns = if min == 0 { self.now_ns + LOOK_NS } else { until_ns };
            if until_ns <= self.now_ns {
                self.model.advance(self.now_ns, completions);
                return Ok(());
            }
            self.now_ns = self.model.advance(until_ns, completions);
            if completions.len() - before >= min {
                return Ok(());
            }
        }
    }
}

/// Virtual time of a look for completions without waiting.
const LOOK_NS: u64 = 1_000;

/// Workers of all volumes on the one clock of a model. CPU has no meaning here, and no worker is ever late.
pub struct VirtualDriver<S> {
    model: S,
    now_ns: u64,
    workers: Vec<Hosted>,
    /// Worker of each tag.
    owners: Vec<u16>,
    completions: Vec<Completion>,
    touched: Vec<u16>,
}

struct Hosted {
    worker: Worker,
    first_tag: u32,
    /// When the worker wants to be asked again, whatever completes.
    wake_ns: u64,
    outcome: Option<Outcome>,
    touched: bool,
}

impl<S: Simulated> VirtualDriver<S> {
    /// A driver at time 0.
    ///
    /// # Panics
    /// There are more workers than `u16` counts.
    pub fn new(model: S, workers: Vec<Worker>) -> Self {
        let mut owners = Vec::new();
        let hosted: Vec<Hosted> = workers
            .into_iter()
            .enumerate()
            .map(|(index, worker)| {
                let first_tag = owners.len() as u32;
                let index = u16::try_from(index).expect("a session has few workers");
                owners.extend(std::iter::repeat_n(index, worker.depth() as usize));
                Hosted { worker, first_tag, wake_ns: 0, outcome: None, touched: false }
            })
            .collect();
        let touched = Vec::with_capacity(hosted.len());
        Self { model, now_ns: 0, workers: hosted, owners, completions: Vec::with_capacity(1024), touched }
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn model(&self) -> &S {
        &self.model
    }

    /// Gives the model back, idle or not.
    pub fn into_model(self) -> S {
        self.model
    }

    /// How the workers ended, once all have.
    pub fn outcomes(&self) -> Option<Vec<Outcome>> {
        self.workers.iter().map(|hosted| hosted.outcome).collect()
    }

    /// Lets time pass until `to_ns`, or until all workers are done; `to_ns` itself has been reached, and ticks that
    /// end there are handed over.
    pub fn run_to(&mut self, to_ns: u64) {
        loop {
            self.wake_due();
            let wake_ns = self.workers.iter().map(|hosted| hosted.wake_ns).min().unwrap_or(u64::MAX);
            if self.now_ns >= to_ns || wake_ns == u64::MAX {
                return;
            }
            self.run_until_wake(wake_ns.min(to_ns));
        }
    }

    /// Serves completions until a worker wants to be woken for its own sake.
    fn run_until_wake(&mut self, until_ns: u64) {
        let mut until_ns = until_ns;
        while self.now_ns < until_ns {
            self.now_ns = self.model.advance(until_ns, &mut self.completions);
            for completion in &self.completions {
                let owner = self.owners[completion.tag as usize];
                let hosted = &mut self.workers[usize::from(owner)];
                hosted.worker.complete(Completion { tag: completion.tag - hosted.first_tag, ..*completion });
                if !hosted.touched {
                    hosted.touched = true;
                    self.touched.push(owner);
                }
            }
            self.completions.clear();
            // At the moment of a wake the tick comes first, so that what ended in it is counted in it.
            if self.now_ns >= until_ns {
                return;
            }
            while let Some(owner) = self.touched.pop() {
                until_ns = until_ns.min(self.step(usize::from(owner)));
            }
        }
    }

    /// Ticks and steps of every worker whose time has come or that completions left waiting.
    fn wake_due(&mut self) {
        self.touched.clear();
        for index in 0..self.workers.len() {
            let hosted = &mut self.workers[index];
            if hosted.touched || hosted.wake_ns <= self.now_ns {
                if hosted.outcome.is_none() && hosted.worker.tick_due(self.now_ns) {
                    hosted.worker.tick(self.now_ns, None);
                }
                self.step(index);
            }
        }
    }

    /// One step of a worker; returns when it wants to be woken.
    #[inline]
    fn step(&mut self, index: usize) -> u64 {
        let hosted = &mut self.workers[index];
        hosted.touched = false;
        if hosted.outcome.is_some() {
            return hosted.wake_ns;
        }
        match hosted.worker.step(self.now_ns) {
            Step::Go { submit, .. } => {
                for request in submit {
                    self.model.submit(self.now_ns, &Request { tag: request.tag + hosted.first_tag, ..*request });
                }
                hosted.wake_ns = hosted.worker.next_due_ns().max(self.now_ns + 1);
            }
            Step::Done(outcome) => {
                hosted.outcome = Some(outcome);
                hosted.wake_ns = u64::MAX;
                hosted.worker.finish(self.now_ns, None);
            }
        }
        hosted.wake_ns
    }
}
