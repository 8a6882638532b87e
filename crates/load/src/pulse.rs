//! Whether the load generator itself was running: what a device seems to take while its generator stands still is not the device's.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// A thread that wakes this much too late did not merely wait for its turn. On a busy host a wake-up is late by tens of milliseconds, and
/// a cgroup that has used up its share of the CPU waits for the rest of its period, which is 100 ms. What stops a whole process (a signal,
/// a frozen cgroup, a paused virtual machine) rarely lasts less than this. Shorter stops cannot be told from either and stay in the figures.
pub const STANDSTILL_MIN_NS: u64 = 250_000_000;
/// More are not kept; the oldest go first. A point sees a fraction of them.
const KEPT_MAX: usize = 10_000;

/// The signs of life of a session's process, on the session's clock: one thread beats, all others look.
///
/// Beats of a process. A pulse that never beat knows of no standstill: on a virtual clock there is none.
#[derive(Debug, Clone)]
pub struct Pulse(Arc<Beats>);

#[derive(Debug)]
struct Beats {
    last_ns: AtomicU64,
    /// End of the last standstill; 0 when there was none.
    ended_ns: AtomicU64,
    standstills: Mutex<VecDeque<(u64, u64)>>,
}

/// Standstills within a window, cut off at its ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standstills {
    pub count: u64,
    pub longest_ns: u64,
    pub total_ns: u64,
}

impl Default for Pulse {
    fn default() -> Self {
        let beats =
            Beats { last_ns: AtomicU64::new(u64::MAX), ended_ns: AtomicU64::new(0), standstills: Mutex::default() };
        Self(Arc::new(beats))
    }
}

impl Pulse {
    /// The process runs at `now_ns`. One thread only may say so.
    pub fn beat(&self, now_ns: u64) {
        let last_ns = self.0.last_ns.load(Ordering::Relaxed);
        if now_ns.saturating_sub(last_ns) >= STANDSTILL_MIN_NS {
            let mut standstills = self.standstills();
            if standstills.len() == KEPT_MAX {
                standstills.pop_front();
            }
            standstills.push_back((last_ns, now_ns));
            self.0.ended_ns.store(now_ns, Ordering::Relaxed);
        }
        // A reader that sees this beat sees the standstill before it.
        self.0.last_ns.store(now_ns, Ordering::Release);
    }

    /// Until when the process stood still last, as far as one can tell at `now_ns`: that itself when no beat has come since; 0 if it never did.
    ///
    /// All threads of a stopped process go on together, so that one may look before the beat.
    pub fn stood_still_until_ns(&self, now_ns: u64) -> u64 {
        let last_ns = self.0.last_ns.load(Ordering::Acquire);
        if now_ns.saturating_sub(last_ns) >= STANDSTILL_MIN_NS {
            now_ns
        } else {
            self.0.ended_ns.load(Ordering::Relaxed)
        }
    }

    /// Standstills in a window, as known at `now_ns`.
    pub fn within(&self, from_ns: u64, to_ns: u64, now_ns: u64) -> Standstills {
        let standstills = self.standstills();
        let last_ns = self.0.last_ns.load(Ordering::Acquire);
        let lasting = (now_ns.saturating_sub(last_ns) >= STANDSTILL_MIN_NS).then_some((last_ns, now_ns));
        let inside = standstills.iter().copied().chain(lasting);
        inside
            .map(|(began_ns, ended_ns)| ended_ns.min(to_ns).saturating_sub(began_ns.max(from_ns)))
            .filter(|length_ns| *length_ns > 0)
            .fold(Standstills::default(), |sum, length_ns| Standstills {
                count: sum.count + 1,
                longest_ns: sum.longest_ns.max(length_ns),
                total_ns: sum.total_ns + length_ns,
            })
    }

    fn standstills(&self) -> MutexGuard<'_, VecDeque<(u64, u64)>> {
        self.0.standstills.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thread's look at the pulse, for every I/O at the price of two comparisons.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    pulse: Pulse,
    /// End of the last standstill this thread knows of.
    until_ns: u64,
}

impl Watch {
    pub fn new(pulse: Pulse) -> Self {
        Self { pulse, until_ns: 0 }
    }

    /// Whether the process stood still between `from_ns` and `to_ns`, now or shortly before.
    #[inline]
    pub fn stood_still(&mut self, from_ns: u64, to_ns: u64) -> bool {
        if from_ns >= self.until_ns && to_ns.saturating_sub(from_ns) < STANDSTILL_MIN_NS {
            return false;
        }
        self.until_ns = self.until_ns(to_ns);
        from_ns < self.until_ns
    }

    /// Until when the process stood still last, as far as one can tell at `now_ns`.
    #[cold]
    pub fn until_ns(&self, now_ns: u64) -> u64 {
        self.pulse.stood_still_until_ns(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1000 * MS;

    /// A pulse that beat every 20 ms until `until_ns`.
    fn beating(until_ns: u64) -> Pulse {
        let pulse = Pulse::default();
        (0..=until_ns).step_by(20 * MS as usize).for_each(|now_ns| pulse.beat(now_ns));
        pulse
    }

    #[test]
    fn a_pulse_that_beats_in_time_or_a_little_late_stands_still_never() {
        let pulse = beating(S);
        pulse.beat(S + STANDSTILL_MIN_NS - 1);
        assert_eq!(pulse.within(0, 2 * S, S + STANDSTILL_MIN_NS), Standstills::default());
        assert!(!Watch::new(pulse).stood_still(0, S + STANDSTILL_MIN_NS));
    }

    #[test]
    fn one_that_never_beat_knows_of_no_standstill() {
        let mut watch = Watch::default();
        assert!(!watch.stood_still(0, 3600 * S));
        assert_eq!(Pulse::default().within(0, u64::MAX, u64::MAX - 1), Standstills::default());
    }

    #[test]
    fn a_standstill_lasts_from_the_last_beat_to_the_next() {
        let pulse = beating(S);
        // Before the next beat a reader knows it already.
        let lasting = Standstills { count: 1, longest_ns: 8 * S, total_ns: 8 * S };
        assert_eq!(pulse.within(0, 20 * S, 9 * S), lasting);
        assert_eq!(pulse.stood_still_until_ns(9 * S), 9 * S);
        pulse.beat(9 * S + MS);
        assert_eq!(pulse.stood_still_until_ns(9 * S + MS), 9 * S + MS);
        pulse.beat(10 * S);
        let both = Standstills { count: 2, longest_ns: 8 * S + MS, total_ns: 9 * S };
        assert_eq!(pulse.within(0, 20 * S, 10 * S), both);
        // A window sees of it what lies inside.
        let cut = Standstills { count: 1, longest_ns: S, total_ns: S };
        assert_eq!(pulse.within(0, 2 * S, 10 * S), cut);
        assert_eq!(pulse.within(10 * S, 20 * S, 10 * S), Standstills::default());
    }

    #[test]
    fn what_overlaps_a_standstill_is_told_whichever_thread_goes_on_first() {
        for beats_first in [true, false] {
            let pulse = beating(S);
            let mut watch = Watch::new(pulse.clone());
            if beats_first {
                pulse.beat(9 * S);
            }
            // Submitted before, ended after.
            assert!(watch.stood_still(S - MS, 9 * S));
            pulse.beat(9 * S + MS);
            // Due while it lasted: the wait is the generator's, however short.
            assert!(watch.stood_still(8 * S + 990 * MS, 9 * S + 2 * MS));
            // Submitted afterwards: the device's, quick or slow.
            assert!(!watch.stood_still(9 * S + 2 * MS, 9 * S + 3 * MS));
            (9 * S + MS..=12 * S).step_by(20 * MS as usize).for_each(|now_ns| pulse.beat(now_ns));
            assert!(!watch.stood_still(9 * S + 2 * MS, 12 * S));
        }
    }

    #[test]
    fn the_oldest_are_forgotten_when_there_are_too_many() {
        let pulse = Pulse::default();
        let beats = KEPT_MAX as u64 + 5;
        (0..=beats).for_each(|beat| pulse.beat(beat * S));
        assert_eq!(pulse.within(0, u64::MAX, beats * S).count, KEPT_MAX as u64);
        assert_eq!(pulse.within(0, 5 * S, beats * S).count, 0);
    }
}
