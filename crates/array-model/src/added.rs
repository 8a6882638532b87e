//! Pages that a volume got when it grew: behind all others of its members, dealt out in turn.

/// Pages of one growth of a volume.
#[derive(Debug, Clone)]
pub(crate) struct Added {
    pub(crate) volume: u16,
    pub(crate) first_page: u64,
    /// The member that holds page 0 of the volume, counted from the first of its pool: pages go on in that turn.
    turn: u64,
    /// By member of the pool: its first slot of these pages.
    slots: Vec<u64>,
}

impl Added {
    /// Pages from `first_page` up to `end_page`, on members whose next free slots are these; `turn` is the member of page 0.
    /// Gives the number of pages that each member takes as well.
    pub(crate) fn new(volume: u16, first_page: u64, end_page: u64, turn: u64, slots: Vec<u64>) -> (Self, Vec<u64>) {
        let members = slots.len() as u64;
        let taken = |member: u64| {
            let first = first_page + (member + members - (first_page + turn) % members) % members;
            end_page.saturating_sub(first).div_ceil(members)
        };
        let taken = (0..members).map(taken).collect();
        (Self { volume, first_page, turn, slots }, taken)
    }

    /// The member, counted from the first of the pool, and the slot of a page.
    #[inline]
    pub(crate) fn place(&self, page: u64) -> (u32, u64) {
        let members = self.slots.len() as u64;
        let member = (page + self.turn) % members;
        (member as u32, self.slots[member as usize] + (page - self.first_page) / members)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_page_has_a_slot_of_its_own_behind_the_others(
            first in 0_u64..50, pages in 0_u64..60, turn in 0_u64..4, slots in prop::collection::vec(0_u64..100, 1..5),
        ) {
            let (added, taken) = Added::new(0, first, first + pages, turn, slots.clone());
            let places: BTreeSet<(u32, u64)> = (first..first + pages).map(|page| added.place(page)).collect();
            let wanted = slots.iter().zip(&taken).zip(0_u32..);
            let wanted = wanted.flat_map(|((slot, taken), member)| (*slot..slot + taken).map(move |slot| (member, slot)));
            prop_assert_eq!(places, wanted.collect::<BTreeSet<_>>());
            prop_assert_eq!(taken.iter().sum::<u64>(), pages);
        }
    }
}
