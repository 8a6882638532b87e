//! A set of numbers that mostly come in runs.

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

/// Runs that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl From<Vec<(u64, u64)>> for Ranges {
    fn from(runs: Vec<(u64, u64)>) -> Self {
        let mut ranges = Self::default();
        runs.into_iter().for_each(|(start, end)| ranges.insert(start..end));
        ranges
    }
}

impl From<Ranges> for Vec<(u64, u64)> {
    fn from(ranges: Ranges) -> Self {
        ranges.0.into_iter().collect()
    }
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// After the last number.
    pub(super) fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(_, end)| *end)
    }

    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        range.start < range.end && self.0.range(..range.end).next_back().is_some_and(|(_, end)| *end > range.start)
    }

    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Those that touch become one.
        while let Some((&first, &last)) = self.0.range(..=end).next_back().filter(|(_, last)| **last >= start) {
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }

    pub(super) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&first, &last)) = self.0.range(..range.end).next_back().filter(|(_, last)| **last > range.start)
        {
            self.0.remove(&first);
            if last > range.end {
                self.0.insert(range.end, last);
            }
            if first < range.start {
                self.0.insert(first, range.start);
            }
        }
    }

    /// Number of groups of `size` numbers each that the set touches.
    pub(super) fn groups(&self, size: u64) -> u64 {
        let (mut count, mut next) = (0, 0);
        for (start, end) in &self.0 {
            let (first, past) = ((start / size).max(next), (end - 1) / size + 1);
            count += past.saturating_sub(first);
            next = next.max(past);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_hold_what_a_set_of_numbers_holds(
            acts in prop::collection::vec((any::<bool>(), 0..60_u64, 0..12_u64), 0..40),
            asked in (0..60_u64, 0..12_u64),
        ) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (insert, start, count) in acts {
                if insert {
                    ranges.insert(start..start + count);
                    set.extend(start..start + count);
                } else {
                    ranges.remove(start..start + count);
                    (start..start + count).for_each(|number| { set.remove(&number); });
                }
                let runs: Vec<(u64, u64)> = ranges.clone().into();
                prop_assert!(runs.iter().zip(runs.iter().skip(1)).all(|(one, next)| one.1 < next.0));
                let held: BTreeSet<u64> = runs.iter().flat_map(|(start, end)| *start..*end).collect();
                prop_assert_eq!(&held, &set);
            }
            let range = asked.0..asked.0 + asked.1;
            prop_assert_eq!(ranges.overlaps(&range), set.range(range).next().is_some());
            let groups: BTreeSet<u64> = set.iter().map(|number| number / 5).collect();
            prop_assert_eq!(ranges.groups(5), groups.len() as u64);
        }
    }
}
