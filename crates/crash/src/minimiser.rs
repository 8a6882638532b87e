//! The smallest change that still fails: delta debugging (Zeller and Hildebrandt, 2002), asked step by step.

/// Looks for the smallest set of items with which something still fails; it asks, and is told.
#[derive(Debug)]
pub struct Minimiser {
    failing: Vec<usize>,
    parts: usize,
    /// The next of the parts to be tried: the parts themselves first, then all but each.
    next: usize,
    asked: Option<Vec<usize>>,
}

impl Minimiser {
    /// Begins with a set that fails.
    pub fn new(failing: Vec<usize>) -> Self {
        Self { failing, parts: 2, next: 0, asked: None }
    }

    /// The smallest set known to fail.
    pub fn failing(&self) -> &[usize] {
        &self.failing
    }

    /// The next set to be tried; none when the set is as small as it can be made.
    ///
    /// # Panics
    /// The set before has no answer yet.
    pub fn ask(&mut self) -> Option<&[usize]> {
        assert!(self.asked.is_none(), "the set before has no answer yet");
        loop {
            let count = self.failing.len();
            if count < 2 {
                return None;
            }
            self.parts = self.parts.min(count);
            // With two parts, all but one is the other.
            let turns = if self.parts == 2 { 2 } else { 2 * self.parts };
            if self.next < turns {
                let (part, keeps) = (self.next % self.parts, self.next < self.parts);
                let within = count * part / self.parts..count * (part + 1) / self.parts;
                let kept = self.failing.iter().enumerate().filter(|(index, _)| within.contains(index) == keeps);
                self.asked = Some(kept.map(|(_, item)| *item).collect());
                return self.asked.as_deref();
            }
            if self.parts == count {
                return None;
            }
            (self.parts, self.next) = (self.parts * 2, 0);
        }
    }

    /// Says whether the set that was asked for fails.
    ///
    /// # Panics
    /// None was asked for.
    pub fn answer(&mut self, fails: bool) {
        let asked = self.asked.take().expect("a set was asked for");
        if !fails {
            self.next += 1;
            return;
        }
        let was_part = self.next < self.parts;
        self.parts = if was_part { 2 } else { (self.parts - 1).max(2) };
        (self.failing, self.next) = (asked, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A failure that some items cause together is reduced to these items.
        #[test]
        fn finds_the_items_that_fail_together(
            count in 1_usize..200, culprits in proptest::collection::btree_set(0_usize..200, 1..4)
        ) {
            let culprits: Vec<usize> = culprits.into_iter().map(|item| item % count).collect();
            let fails = |items: &[usize]| culprits.iter().all(|culprit| items.contains(culprit));
            let mut minimiser = Minimiser::new((0..count).collect());
            let mut turns = 0;
            while let Some(items) = minimiser.ask() {
                let failed = fails(items);
                minimiser.answer(failed);
                turns += 1;
                prop_assert!(turns < 4000);
            }
            let mut expected = culprits.clone();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(minimiser.failing(), &expected[..]);
        }
    }
}
