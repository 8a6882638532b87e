//! Volumes on members: pages dealt out in turn.

use std::ops::Range;

use assay_load::SplitMix;

use crate::{
    ArrayPlan,
    added::Added,
    grown::{Grown, Home},
};

/// Where a byte of a volume lies: the member, its address there, and how many bytes follow in the same page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) member: u32,
    pub(crate) at_bytes: u64,
    pub(crate) left_bytes: u64,
}

/// Pages of volumes, dealt out over the members of a pool so that each has the same number of every volume, give or take
/// one. On a member the volumes take turns page by page, so that all of them reach as far in as the data do.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    page_bytes: u64,
    members: Vec<Dealt>,
    volumes: Vec<Placed>,
    /// Groups that members have joined since.
    grown: Option<Box<Grown>>,
    /// Pages that volumes got when they grew, oldest first.
    added: Vec<Added>,
}

/// Where a volume is.
#[derive(Debug, Clone, Copy)]
struct Placed {
    /// Members of its pool: the first, and how many.
    first: u32,
    members: u32,
    /// Its place among the volumes of its pool.
    number: u32,
    /// Where in a chunk it begins.
    begins_bytes: u32,
    pages: u64,
}

/// Rounds in which the same volumes still have pages, from the first.
#[derive(Debug, Clone)]
struct Rounds {
    first: u64,
    first_slot: u64,
    /// Place of each volume in a round, and how many places a round has.
    places: Vec<u32>,
    width: u64,
}

/// Pages dealt to one member.
#[derive(Debug, Clone)]
struct Dealt {
    rounds: Vec<Rounds>,
    slots: u64,
    /// Distance of pages: volumes begin off a chunk's start, so a page may reach into one more chunk.
    slot_bytes: u64,
}

impl Spread {
    /// Deals out the plan's volumes.
    pub(crate) fn new(plan: &ArrayPlan, random: &mut SplitMix) -> Self {
        let (mut members, mut volumes) = (Vec::new(), Vec::new());
        for pool in &plan.pools {
            let pages: Vec<u64> = pool.volumes.iter().map(|volume| volume.bytes.div_ceil(plan.page_bytes)).collect();
            let raid = &pool.member.raid;
            let slot_bytes = plan.page_bytes + if raid.misalign_bytes > 0 { raid.chunk_bytes } else { 0 };
            let places = raid.chunk_bytes.checked_div(raid.misalign_bytes).unwrap_or(1);
            let first = members.len() as u32;
            volumes.extend(pages.iter().enumerate().map(|(number, pages)| Placed {
                first,
                members: pool.members,
                number: number as u32,
                begins_bytes: (random.below(places.max(1)) * raid.misalign_bytes) as u32,
                pages: *pages,
            }));
            members.extend((0..pool.members).map(|member| {
                let dealt = pages.iter().enumerate().map(|(volume, pages)| {
                    let turn = turn_of(member, volume as u32, pool.members);
                    (pages + u64::from(pool.members - 1 - turn)) / u64::from(pool.members)
                });
                Dealt::new(&dealt.collect::<Vec<_>>(), slot_bytes)
            }));
        }
        Self { page_bytes: plan.page_bytes, members, volumes, grown: None, added: Vec::new() }
    }

    /// Bytes of a member's address space that volumes take.
    pub(crate) fn used_bytes(&self, member: u32) -> u64 {
        let dealt = &self.members[member as usize];
        dealt.slots * dealt.slot_bytes
    }

    /// Members that hold a volume.
    pub(crate) fn members_of(&self, volume: u16) -> Range<u32> {
        let Placed { first, members, .. } = self.volumes[usize::from(volume)];
        // A group that members have joined is one pool.
        if self.grown.is_some() { 0..self.members.len() as u32 } else { first..first + members }
    }

    /// A member joins the one pool there is: pages move onto it as [`Self::set_moved`] says. Says how many bytes of the
    /// member's address space they take.
    pub(crate) fn join(&mut self, plan: &ArrayPlan) -> u64 {
        let pages: Vec<u64> = self.volumes.iter().map(|volume| volume.pages).collect();
        let chunk_bytes = plan.pools[0].member.raid.chunk_bytes;
        let new = || Box::new(Grown::new(&pages, plan.page_bytes, chunk_bytes));
        let mut grown = self.grown.clone().unwrap_or_else(new);
        let member = self.members.len() as u32;
        let slots = grown.join(member, |volume, page| self.settled(volume, page * plan.page_bytes).member);
        self.grown = Some(grown);
        self.members.push(Dealt { rounds: Vec::new(), slots, slot_bytes: self.members[0].slot_bytes });
        self.used_bytes(member)
    }

    /// A volume has `bytes` from now on; its new pages lie behind all others.
    pub(crate) fn grow(&mut self, volume: u16, bytes: u64) {
        let pages = bytes.div_ceil(self.page_bytes);
        let Placed { number, pages: before, .. } = self.volumes[usize::from(volume)];
        if pages <= before {
            // The last page has room for it.
            return;
        }
        let members = self.members_of(volume);
        let own = &mut self.members[members.start as usize..members.end as usize];
        let slots = own.iter().map(|dealt| dealt.slots).collect();
        let (added, taken) = Added::new(volume, before, pages, u64::from(number), slots);
        own.iter_mut().zip(taken).for_each(|(dealt, taken)| dealt.slots += taken);
        self.added.push(added);
        if let Some(grown) = &mut self.grown {
            grown.set_pages(volume, pages);
        }
        self.volumes[usize::from(volume)].pages = pages;
    }

    pub(crate) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The moves of pages.
    pub(crate) fn grown(&self) -> Option<&Grown> {
        self.grown.as_deref()
    }

    /// Places the first `pieces` on the member that joined last.
    pub(crate) fn set_moved(&mut self, pieces: u64) {
        if let Some(grown) = &mut self.grown {
            grown.set_moved(pieces);
        }
    }

    /// Where a byte of a volume lies now.
    #[inline]
    pub(crate) fn address(&self, volume: u16, offset_bytes: u64) -> Address {
        match &self.grown {
            None => self.dealt(volume, offset_bytes),
            Some(grown) => self.moved(grown, volume, offset_bytes),
        }
    }

    fn moved(&self, grown: &Grown, volume: u16, offset_bytes: u64) -> Address {
        let (page, within) = (offset_bytes / self.page_bytes, offset_bytes % self.page_bytes);
        match grown.moving(volume, page) {
            Some((there, moved_bytes)) if within < moved_bytes => {
                self.at_home(there, volume, within, moved_bytes - within)
            }
            _ => self.settled(volume, offset_bytes),
        }
    }

    /// Where a byte lies as long as its piece has not moved onto the member that joined last.
    pub(crate) fn settled(&self, volume: u16, offset_bytes: u64) -> Address {
        let (page, within) = (offset_bytes / self.page_bytes, offset_bytes % self.page_bytes);
        match self.grown.as_ref().and_then(|grown| grown.home(volume, page)) {
            Some(home) => self.at_home(home, volume, within, self.page_bytes - within),
            None => self.dealt(volume, offset_bytes),
        }
    }

    pub(crate) fn at_home(&self, home: Home, volume: u16, within: u64, left_bytes: u64) -> Address {
        let begins_bytes = u64::from(self.volumes[usize::from(volume)].begins_bytes);
        let slot_bytes = self.members[home.member as usize].slot_bytes;
        Address { member: home.member, at_bytes: home.slot * slot_bytes + begins_bytes + within, left_bytes }
    }

    /// The growth by which a volume got a page.
    #[inline]
    fn added(&self, volume: u16, page: u64) -> Option<&Added> {
        self.added.iter().rev().find(|added| added.volume == volume && added.first_page <= page)
    }

    /// Where a byte was dealt out, at the start or when the volume grew.
    #[inline]
    fn dealt(&self, volume: u16, offset_bytes: u64) -> Address {
        let Placed { first, members, number, begins_bytes, .. } = self.volumes[usize::from(volume)];
        let members = u64::from(members);
        let (page, within) = (offset_bytes / self.page_bytes, offset_bytes % self.page_bytes);
        if let Some(added) = self.added(volume, page) {
            let (member, slot) = added.place(page);
            return self.at_home(Home { member: first + member, slot }, volume, within, self.page_bytes - within);
        }
        let (turn, round) = if members == 1 { (0, page) } else { (page % members, page / members) };
        let member = first + ((turn + u64::from(number)) % members) as u32;
        let dealt = &self.members[member as usize];
        Address {
            member,
            at_bytes: dealt.slot(number as usize, round) * dealt.slot_bytes + u64::from(begins_bytes) + within,
            left_bytes: self.page_bytes - within,
        }
    }
}

/// How many pages of a volume are dealt out before this member gets its first: volumes begin on different members.
fn turn_of(member: u32, volume: u32, members: u32) -> u32 {
    (member + members - volume % members) % members
}

impl Dealt {
    /// Takes turns among volumes of `pages` pages each.
    fn new(pages: &[u64], slot_bytes: u64) -> Self {
        let mut ends: Vec<u64> = pages.iter().copied().filter(|pages| *pages > 0).collect();
        ends.sort_unstable();
        ends.dedup();
        let (mut first, mut first_slot) = (0, 0);
        let mut rounds = Vec::new();
        for end in ends {
            let mut width = 0;
            let places = pages
                .iter()
                .map(|pages| {
                    let place = width;
                    width += u32::from(*pages > first);
                    place
                })
                .collect();
            let width = u64::from(width);
            rounds.push(Rounds { first, first_slot, places, width });
            first_slot += (end - first) * width;
            first = end;
        }
        Self { rounds, slots: first_slot, slot_bytes }
    }

    #[inline]
    fn slot(&self, volume: usize, round: u64) -> u64 {
        let rounds = self.rounds.iter().rev().find(|rounds| rounds.first <= round).expect("rounds begin at 0");
        rounds.first_slot + (round - rounds.first) * rounds.width + u64::from(rounds.places[volume])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_page_has_a_slot_of_its_own_and_none_is_left_over(
            pages in prop::collection::vec(1_u64..40, 1..8), members in 1_u32..5,
        ) {
            let dealt: Vec<Dealt> = (0..members)
                .map(|member| {
                    let counts: Vec<u64> = pages.iter().enumerate().map(|(volume, pages)| {
                        let turn = turn_of(member, volume as u32, members);
                        (pages + u64::from(members - 1 - turn)) / u64::from(members)
                    }).collect();
                    Dealt::new(&counts, 1)
                })
                .collect();
            let mut taken: Vec<Vec<bool>> = dealt.iter().map(|dealt| vec![false; dealt.slots as usize]).collect();
            for (volume, pages) in pages.iter().enumerate() {
                for page in 0..*pages {
                    let member = ((page + volume as u64) % u64::from(members)) as usize;
                    let slot = dealt[member].slot(volume, page / u64::from(members)) as usize;
                    prop_assert!(!std::mem::replace(&mut taken[member][slot], true));
                }
            }
            prop_assert!(taken.iter().flatten().all(|taken| *taken));
            let (least, most) = (dealt.iter().map(|d| d.slots).min(), dealt.iter().map(|d| d.slots).max());
            prop_assert!(most.unwrap() - least.unwrap() <= pages.len() as u64);
        }
    }
}
