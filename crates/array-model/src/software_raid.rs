//! RAID in software, as Linux md does it: its bitmap, its logs, and stripes at work.

use std::collections::{BTreeMap, VecDeque};

use crate::{MemberPlan, RaidLog, SoftwarePlan, slab::Slab, task::Access};

/// Page of a bitmap, and of a log's header.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Bytes that a log goes through before it begins again: PPL's usual space, and a journal's.
pub(crate) const PPL_BYTES: u64 = 1 << 20;
pub(crate) const JOURNAL_BYTES: u64 = 1 << 28;

/// Set and row of a stripe.
pub(crate) type StripeKey = (u32, u64);

#[derive(Debug, Clone)]
pub(crate) struct Software {
    pub(crate) bitmap: Option<Bitmap>,
    pub(crate) log: RaidLog,
    /// By disk with PPL; else the journal's.
    pub(crate) lines: Vec<LogLine>,
    /// Writes that are acknowledged once they are in the journal.
    pub(crate) logged: Slab<Access>,
    pub(crate) stripes: Option<Stripes>,
    /// Where bitmap and PPL are: beyond what volumes may use.
    pub(crate) reserved_bytes: u64,
}

/// Regions whose copies or parity may differ after a crash: a bit is on the disks before the first write to its region.
#[derive(Debug, Clone)]
pub(crate) struct Bitmap {
    region_bytes: u64,
    clear_ns: u64,
    /// By region: time of the last write.
    written_ns: BTreeMap<u64, u64>,
    /// Writes that wait for the page under way, and for the next one.
    pub(crate) under_way: Vec<Access>,
    pub(crate) waiting: Vec<Access>,
}

/// A log on one disk: a write of it takes all that came while the one before was under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogLine {
    pub(crate) at_bytes: u64,
    pub(crate) under_way: Vec<u32>,
    pub(crate) waiting: Vec<u32>,
    pub(crate) waiting_bytes: u64,
}

/// Stripes at work. Writes to a stripe at work, and writes beyond their number, wait; those to one stripe go on together.
#[derive(Debug, Clone)]
pub(crate) struct Stripes {
    pages_most: u64,
    pages: u64,
    /// Pages of a part of a chunk.
    part_pages: u64,
    at_work: BTreeMap<StripeKey, Vec<(u32, u64)>>,
    pub(crate) waiting: BTreeMap<StripeKey, Vec<u32>>,
    pub(crate) line: VecDeque<StripeKey>,
    /// Commands that a task carries beside its own.
    pub(crate) joined: BTreeMap<u32, Vec<u32>>,
}

impl Software {
    pub(crate) fn new(plan: &SoftwarePlan, member: &MemberPlan, columns: u32, part_bytes: u64) -> Self {
        let columns = if member.raid.policy.parity_disks() > 0 { u64::from(columns) } else { 1 };
        Self {
            bitmap: (plan.bitmap_bytes > 0).then(|| Bitmap {
                region_bytes: plan.bitmap_bytes * columns,
                clear_ns: plan.bitmap_clear_ns,
                written_ns: BTreeMap::new(),
                under_way: Vec::new(),
                waiting: Vec::new(),
            }),
            log: plan.log,
            lines: vec![LogLine::default(); if plan.log.has_drive() { 1 } else { member.active_disks() as usize }],
            logged: Slab::new(),
            stripes: (plan.stripes > 0).then(|| Stripes {
                pages_most: u64::from(plan.stripes),
                pages: 0,
                part_pages: (part_bytes / PAGE_BYTES).max(1),
                at_work: BTreeMap::new(),
                waiting: BTreeMap::new(),
                line: VecDeque::new(),
                joined: BTreeMap::new(),
            }),
            reserved_bytes: member.disk.capacity_bytes().saturating_sub(2 * PPL_BYTES) / PAGE_BYTES * PAGE_BYTES,
        }
    }
}

impl Bitmap {
    /// Regions that an access touches.
    fn regions(&self, access: &Access) -> std::ops::RangeInclusive<u64> {
        access.at_bytes / self.region_bytes..=(access.at_bytes + access.bytes - 1) / self.region_bytes
    }

    /// Whether all bits of an access are set; if so, its regions are written to now.
    pub(crate) fn is_set(&mut self, now_ns: u64, access: &Access) -> bool {
        let clear_ns = self.clear_ns;
        let all = self.regions(access).all(|region| {
            self.written_ns.get(&region).is_some_and(|written_ns| now_ns.saturating_sub(*written_ns) < clear_ns)
        });
        if all {
            self.touch(now_ns, access);
        }
        all
    }

    pub(crate) fn touch(&mut self, now_ns: u64, access: &Access) {
        for region in self.regions(access) {
            self.written_ns.insert(region, now_ns);
        }
    }
}

impl Stripes {
    fn pages(&self, parts: u64) -> u64 {
        u64::from(parts.count_ones()) * self.part_pages
    }

    pub(crate) fn conflicts(&self, key: StripeKey, parts: u64) -> bool {
        self.at_work.get(&key).is_some_and(|tasks| tasks.iter().any(|(_, others)| others & parts != 0))
    }

    pub(crate) fn has_room(&self, parts: u64) -> bool {
        self.pages == 0 || self.pages + self.pages(parts) <= self.pages_most
    }

    pub(crate) fn enter(&mut self, key: StripeKey, task: u32, parts: u64) {
        self.pages += self.pages(parts);
        self.at_work.entry(key).or_default().push((task, parts));
    }

    pub(crate) fn leave(&mut self, key: StripeKey, task: u32) {
        let Some(tasks) = self.at_work.get_mut(&key) else { return };
        let position = tasks.iter().position(|(other, _)| *other == task).expect("the task is at work");
        let (_, parts) = tasks.swap_remove(position);
        if tasks.is_empty() {
            self.at_work.remove(&key);
        }
        self.pages -= self.pages(parts);
    }
}
