use std::{collections::BTreeMap, ops::Range};

use crate::{Fault, FaultCounts};

/// One fault that was injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Its index in the log.
    pub id: usize,
    pub fault: Fault,
    /// Number of the request, counted from 1.
    pub operation: u64,
    pub volume: u16,
    pub page: u64,
    /// Where a misdirected write went, or a misdirected read came from.
    pub other_page: Option<u64>,
    pub observed: Observed,
}

/// Whether a fault's bad bytes reached a read, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Observed {
    #[default]
    No,
    /// At the page the I/O was meant for; an error or a delay always is.
    OwnPlace,
    /// At the page that got the bytes of a misdirected write.
    OtherPlace,
}

/// Why a unit holds other bytes than the last write of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Stale,
    Foreign,
    Corrupt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wrong {
    injection: usize,
    why: Why,
    /// These bytes reached a read.
    seen: bool,
}

/// Truth of a faulty device: the log of its faults, and every unit that holds wrong bytes.
pub(super) struct Truth {
    injections: Vec<Injection>,
    /// By volume and number of the unit.
    wrong: Vec<BTreeMap<u64, Wrong>>,
    logs: Vec<bool>,
}

impl Truth {
    pub(super) fn new(logs: Vec<bool>) -> Self {
        Self { injections: Vec::new(), wrong: logs.iter().map(|_| BTreeMap::new()).collect(), logs }
    }

    pub(super) fn injections(&self) -> &[Injection] {
        &self.injections
    }

    pub(super) fn log(&mut self, injection: Injection) -> usize {
        self.injections.push(Injection { id: self.injections.len(), ..injection });
        self.injections.len() - 1
    }

    /// Notes that units hold their last write.
    pub(super) fn right(&mut self, volume: usize, units: Range<u64>) {
        let wrong = &mut self.wrong[volume];
        while let Some((&unit, _)) = wrong.range(units.clone()).next() {
            wrong.remove(&unit);
        }
    }

    /// A write of this unit left it as it was. Bytes that no write put there stay a fault of their own until they were
    /// seen; a later read of them sees a write that went nowhere.
    pub(super) fn not_stored(&mut self, volume: usize, unit: u64, injection: usize) {
        let stale = Wrong { injection, why: Why::Stale, seen: false };
        let entry = self.wrong[volume].entry(unit).or_insert(stale);
        if entry.why == Why::Stale || entry.seen {
            *entry = stale;
        }
    }

    /// This unit got bytes that no write put there.
    pub(super) fn spoilt(&mut self, volume: usize, unit: u64, injection: usize, why: Why) {
        self.wrong[volume].insert(unit, Wrong { injection, why, seen: false });
    }

    /// These units reached a read.
    pub(super) fn read(&mut self, volume: usize, units: Range<u64>) {
        for (_, wrong) in self.wrong[volume].range_mut(units) {
            wrong.seen = true;
            let seen = if wrong.why == Why::Foreign { Observed::OtherPlace } else { Observed::OwnPlace };
            let observed = &mut self.injections[wrong.injection].observed;
            *observed = seen.max(*observed);
        }
    }

    pub(super) fn all_right(&self, volume: usize, units: Range<u64>) -> bool {
        self.wrong[volume].range(units).next().is_none()
    }

    pub(super) fn cut_off(&mut self, volume: usize, units: u64) {
        self.wrong[volume].split_off(&units);
    }

    pub(super) fn injected(&self) -> FaultCounts {
        self.count(|injection| Some(injection.fault))
    }

    pub(super) fn observable(&self) -> FaultCounts {
        self.count(|injection| match (injection.fault, injection.observed) {
            (_, Observed::No) => None,
            // No check can tell it from a write that went nowhere.
            (Fault::MisdirectedWrite, Observed::OwnPlace) if self.logs[injection.volume as usize] => {
                Some(Fault::LogBreak)
            }
            (Fault::MisdirectedWrite, Observed::OwnPlace) => Some(Fault::Lost),
            (fault, _) => Some(fault),
        })
    }

    pub(super) fn masked(&self) -> FaultCounts {
        self.count(|injection| (injection.observed == Observed::No).then_some(injection.fault))
    }

    fn count(&self, name: impl Fn(&Injection) -> Option<Fault>) -> FaultCounts {
        let mut counts = FaultCounts::default();
        for fault in self.injections.iter().filter_map(name) {
            counts[fault] += 1;
        }
        counts
    }

    /// Units that hold wrong bytes, by which injection and why.
    #[cfg(test)]
    pub(super) fn wrong_units(&self, volume: usize) -> impl Iterator<Item = (u64, usize, Why)> {
        self.wrong[volume].iter().map(|(unit, wrong)| (*unit, wrong.injection, wrong.why))
    }
}
