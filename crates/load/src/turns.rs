use crate::Load;

/// Time for which a worker keeps the one I/O more: several times the time of an I/O, and a small part of the window.
const TURN_NS: u64 = 50_000_000;

/// Whose turn it is to have one I/O more outstanding, where a total does not divide evenly among workers.
///
/// The turn passes on by as many workers as have one more, so that over any time all have had it equally long, but for one
/// turn. Each worker knows it from the time alone; workers share nothing.
pub struct Turns {
    worker: u64,
    workers: u64,
    /// How many have one more at a time.
    extra: u64,
}

impl Turns {
    /// Turns of one worker among all of its activity; none where each has the same.
    pub fn new(load: &Load, worker: u32, workers: u32) -> Option<Self> {
        let &Load::Spread { outstanding } = load else { return None };
        let extra = outstanding % workers;
        (extra > 0).then(|| Self { worker: worker.into(), workers: workers.into(), extra: extra.into() })
    }

    /// Whether the worker has one more at a time, and until when that holds.
    #[inline]
    pub fn at(&self, now_ns: u64) -> (bool, u64) {
        let turn = now_ns / TURN_NS;
        let place = (self.worker + turn % self.workers * self.extra) % self.workers;
        (place < self.extra, (turn + 1) * TURN_NS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_many_as_are_left_over_have_one_more_and_all_equally_long(workers in 2_u32..40, each in 1_u32..9, turns in 1_u64..200) {
            for extra in 1..workers {
                let load = Load::Spread { outstanding: each * workers + extra };
                let all: Vec<Turns> = (0..workers).map(|worker| Turns::new(&load, worker, workers).unwrap()).collect();
                let mut had = vec![0; workers as usize];
                for turn in 0..turns {
                    let ours: Vec<bool> = all.iter().map(|of| of.at(turn * TURN_NS + 7).0).collect();
                    prop_assert_eq!(ours.iter().filter(|is_ours| **is_ours).count(), extra as usize);
                    ours.iter().zip(&mut had).for_each(|(is_ours, had)| *had += u64::from(*is_ours));
                }
                prop_assert!(had.iter().max().unwrap() - had.iter().min().unwrap() <= 1);
            }
            let even = Load::Spread { outstanding: each * workers };
            prop_assert!(Turns::new(&even, 0, workers).is_none());
        }
    }
}
