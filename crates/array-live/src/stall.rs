//! Work in the background that cannot go on: told once for each cause, and tried again after a while.

use std::collections::BTreeSet;

/// Time after which failed work is tried again: there may be disks then, or space.
const AGAIN_NS: u64 = 1_000_000_000;

/// Reason why work waits, and when it was last told.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    why: Option<String>,
    /// Causes that were told since the work last went on.
    told: BTreeSet<String>,
    again_ns: u64,
}

impl Stall {
    /// Whether it is too early to try again.
    pub(crate) fn waits(&self, now_ns: u64) -> bool {
        self.why.is_some() && now_ns < self.again_ns
    }

    /// The work failed. Gives back the cause if it is to be told.
    pub(crate) fn fails(&mut self, why: String, now_ns: u64) -> Option<String> {
        self.again_ns = now_ns + AGAIN_NS;
        self.why = Some(why.clone());
        self.told.insert(why.clone()).then_some(why)
    }

    /// The work got on. Says whether that is to be told, because it had failed before.
    pub(crate) fn goes_on(&mut self) -> bool {
        std::mem::take(self).why.is_some()
    }

    /// Why the work waits, if it does.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_told_once_and_once_that_work_goes_on() {
        let mut stall = Stall::default();
        assert!(!stall.goes_on() && !stall.waits(0));
        let causes = ["no room", "no room", "no disk", "no room", "no disk"];
        let told: Vec<Option<String>> =
            causes.iter().zip(0..).map(|(why, now_ns)| stall.fails((*why).to_owned(), now_ns)).collect();
        assert_eq!(told, [Some("no room".to_owned()), None, Some("no disk".to_owned()), None, None]);
        assert_eq!(stall.why(), Some("no disk"));
        assert!(stall.goes_on() && !stall.goes_on());
        assert_eq!(stall.why(), None);
        assert_eq!(stall.fails("no room".to_owned(), 5), Some("no room".to_owned()));
    }

    #[test]
    fn what_failed_waits_a_second() {
        let mut stall = Stall::default();
        stall.fails("no room".to_owned(), 7);
        assert!(stall.waits(7) && stall.waits(6 + AGAIN_NS) && !stall.waits(7 + AGAIN_NS));
        stall.goes_on();
        assert!(!stall.waits(7));
    }
}
