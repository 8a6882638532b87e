//! Virtual time of a model, and the way through its events.

use assay_load::Completion;

use crate::events::{Event, Events};

#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    /// Time reached since the model was made.
    pub(crate) now_ns: u64,
    /// The time that the model's user calls 0.
    epoch_ns: u64,
    pub(crate) events: Events,
}

impl Timeline {
    /// Time since the model was made for a time of its user.
    #[inline]
    pub(crate) fn of_model_ns(&self, user_ns: u64) -> u64 {
        let at_ns = self.epoch_ns + user_ns;
        debug_assert!(at_ns >= self.now_ns, "time does not go back");
        at_ns
    }

    /// The present time of the model's user.
    #[inline]
    pub(crate) fn user_ns(&self) -> u64 {
        self.now_ns - self.epoch_ns
    }

    /// Time of the next event for the model's user.
    #[inline]
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.events.next_ns().map(|at_ns| at_ns - self.epoch_ns)
    }
}

/// A model whose events happen in the order of its timeline.
pub(crate) trait Timed {
    fn timeline(&mut self) -> &mut Timeline;

    fn happen(&mut self, event: Event, completions: &mut Vec<Completion>);

    /// Whether no I/O is outstanding.
    fn is_idle(&self) -> bool;

    /// Lets time pass until an I/O ends, at most to `to_ns` of the model's user; returns the time reached.
    #[inline]
    fn pass_time(&mut self, to_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        let before = completions.len();
        let to_ns = self.timeline().epoch_ns + to_ns;
        while let Some((at_ns, event)) = self.timeline().events.take(to_ns) {
            self.timeline().now_ns = at_ns;
            self.happen(event, completions);
            if completions.len() > before {
                return self.timeline().user_ns();
            }
        }
        let time = self.timeline();
        time.now_ns = time.now_ns.max(to_ns);
        time.user_ns()
    }

    /// Lets outstanding I/Os end, and makes that moment the time 0 of the model's user.
    fn begin_session(&mut self) {
        let mut completions = Vec::new();
        while !self.is_idle() {
            let next_ns = self.timeline().next_ns().expect("outstanding I/Os end");
            self.pass_time(next_ns, &mut completions);
        }
        let time = self.timeline();
        time.epoch_ns = time.now_ns;
    }
}
