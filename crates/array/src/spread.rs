//! Volumes on members: pages dealt out in turn.

use crate::ArrayPlan;

/// Where a byte of a volume lies: the member, its address there, and how many bytes follow in the same page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) member: u32,
    pub(crate) at_bytes: u64,
    pub(crate) left_bytes: u64,
}

/// Pages of volumes, dealt out over the members so that each has the same number of every volume, give or take one.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    page_bytes: u64,
    /// Distance of pages on a member: volumes begin off a chunk's start, so a page may reach into one more chunk.
    slot_bytes: u64,
    members: u32,
    volumes: Vec<OnMembers>,
    used_bytes: Vec<u64>,
}

#[derive(Debug, Clone)]
struct OnMembers {
    /// First slot on each member.
    first_slots: Vec<u64>,
    begins_bytes: u64,
    /// Member of page 0.
    first_member: u32,
}

impl Spread {
    /// Deals out the plan's volumes; `begins` draws where in a chunk a volume begins.
    pub(crate) fn new(plan: &ArrayPlan, mut begins: impl FnMut() -> u64) -> Self {
        let members = plan.members;
        let mut slots = vec![0_u64; members as usize];
        let volumes = plan
            .volumes
            .iter()
            .enumerate()
            .map(|(number, volume)| {
                let pages = volume.bytes.div_ceil(plan.page_bytes);
                let first_member = number as u32 % members;
                let first_slots = slots.clone();
                for (member, slot) in slots.iter_mut().enumerate() {
                    let after_first = (member as u32 + members - first_member) % members;
                    *slot += (pages + u64::from(members - 1 - after_first)) / u64::from(members);
                }
                OnMembers { first_slots, begins_bytes: begins(), first_member }
            })
            .collect();
        let has_offsets = plan.member.raid.misalign_bytes > 0;
        let slot_bytes = plan.page_bytes + if has_offsets { plan.member.raid.chunk_bytes } else { 0 };
        let used_bytes = slots.iter().map(|slots| slots * slot_bytes).collect();
        Self { page_bytes: plan.page_bytes, slot_bytes, members, volumes, used_bytes }
    }

    /// Bytes of a member's address space that volumes take.
    pub(crate) fn used_bytes(&self, member: u32) -> u64 {
        self.used_bytes[member as usize]
    }

    #[inline]
    pub(crate) fn address(&self, volume: u16, offset_bytes: u64) -> Address {
        let on = &self.volumes[usize::from(volume)];
        let (page, within) = (offset_bytes / self.page_bytes, offset_bytes % self.page_bytes);
        let (turn, round) = if self.members == 1 {
            (0, page)
        } else {
            ((page % u64::from(self.members)) as u32, page / u64::from(self.members))
        };
        let member = (turn + on.first_member) % self.members;
        let slot = on.first_slots[member as usize] + round;
        Address {
            member,
            at_bytes: slot * self.slot_bytes + on.begins_bytes + within,
            left_bytes: self.page_bytes - within,
        }
    }
}
