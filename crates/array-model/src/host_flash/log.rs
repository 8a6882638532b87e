//! The log of containers: its live blocks, the blocks that cleaning moves, and the blocks that snapshots hold.
//!
//! A pool has billions of blocks, and no run writes all of them. The log here is smaller and as full: so many slots
//! stand for the room of the pool, and units of neighbouring blocks for what is live. How much cleaning moves for each
//! write follows from that share alone (u = exp(-(1 - u) / r), where r is the live share and u that of a segment when it is
//! cleaned), so that the model takes the ratio from here and the bytes from its hosts.

use std::collections::VecDeque;

use assay_load::SplitMix;

/// Slots of a segment. Segments of 256 and more behave as the formula says to a few percent.
const SEGMENT_SLOTS: usize = 256;
/// Segments that stand for the room.
const SEGMENTS: usize = 256;
/// Free ones that cleaning keeps, and that are not part of the room.
const RESERVE: usize = 3;
/// Times that as much is written as there is room for, before a log counts as aged.
const AGED_TURNS: u64 = 4;
const NONE: u32 = u32::MAX;

/// Work of a cleaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cleaned {
    /// Slots of the segments that were cleaned, and those of them that were live and moved.
    pub(crate) slots: u64,
    pub(crate) moved: u64,
}

/// A unit as it was written once.
#[derive(Debug, Clone, Copy)]
struct Version {
    unit: u32,
    /// Snapshots from the one after this on may hold it.
    born: u32,
    /// Segment and slot.
    place: u32,
}

#[derive(Debug, Clone)]
struct Segment {
    versions: Vec<u32>,
    live: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Log {
    segments: Vec<Segment>,
    free: Vec<u32>,
    open: u32,
    versions: Vec<Version>,
    free_versions: Vec<u32>,
    /// The version of each unit that hosts see.
    current: Vec<u32>,
    /// Snapshots, oldest first; `epoch` is the newest that was ever taken.
    chain: VecDeque<u32>,
    chain_most: usize,
    epoch: u32,
    /// Versions that were overwritten and are held by snapshots, with the epoch in which they were.
    held: VecDeque<(u32, Vec<u32>)>,
    held_count: u64,
    snapshot_every: u64,
    since_snapshot: u64,
}

impl Log {
    /// Units that take `live_share` of the room, written once in order, and a chain of at most so many snapshots, one each time
    /// `change` of the units has been written.
    pub(crate) fn new(live_share: f64, snapshots: u32, change: f64) -> Self {
        let slots = (SEGMENTS * SEGMENT_SLOTS) as f64;
        let units = ((slots * live_share) as usize).max(1);
        let empty = Segment { versions: Vec::with_capacity(SEGMENT_SLOTS), live: 0 };
        let mut log = Self {
            segments: vec![empty; SEGMENTS + RESERVE],
            free: (1..(SEGMENTS + RESERVE) as u32).rev().collect(),
            open: 0,
            versions: Vec::new(),
            free_versions: Vec::new(),
            current: vec![NONE; units],
            chain: VecDeque::new(),
            chain_most: snapshots as usize,
            epoch: 0,
            held: VecDeque::new(),
            held_count: 0,
            snapshot_every: ((units as f64 * change) as u64).max(1),
            since_snapshot: 0,
        };
        for unit in 0..units as u32 {
            log.write_version(unit);
        }
        log
    }

    pub(crate) fn units(&self) -> u64 {
        self.current.len() as u64
    }

    /// Versions that hosts see or snapshots hold.
    pub(crate) fn live(&self) -> u64 {
        self.units() + self.held_count
    }

    /// Versions that snapshots alone hold.
    pub(crate) fn held(&self) -> u64 {
        self.held_count
    }

    /// Live share of the room.
    pub(crate) fn live_share(&self) -> f64 {
        self.live() as f64 / (SEGMENTS * SEGMENT_SLOTS) as f64
    }

    pub(crate) fn snapshots(&self) -> usize {
        self.chain.len()
    }

    /// Writes a unit anew; returns the cleaning that keeps segments free.
    pub(crate) fn write(&mut self, unit: u64) -> Cleaned {
        let before = self.current[unit as usize];
        self.retire(before);
        self.write_version(unit as u32);
        self.since_snapshot += 1;
        if self.chain_most > 0 && self.since_snapshot >= self.snapshot_every {
            self.snapshot();
        }
        let mut cleaned = Cleaned::default();
        while self.free.len() < RESERVE {
            let Some(moved) = self.clean() else { break };
            cleaned.slots += SEGMENT_SLOTS as u64;
            cleaned.moved += moved;
        }
        cleaned
    }

    /// Overwrites units at random until the log is as long use leaves it.
    pub(crate) fn age(&mut self, random: &mut SplitMix) {
        for _ in 0..AGED_TURNS * (SEGMENTS * SEGMENT_SLOTS) as u64 {
            self.write(random.below(self.units()));
        }
    }

    /// Adds a snapshot to the chain, and drops the oldest snapshot if the chain is too long.
    pub(crate) fn snapshot(&mut self) -> u32 {
        self.epoch += 1;
        self.since_snapshot = 0;
        self.chain.push_back(self.epoch);
        while self.chain.len() > self.chain_most.max(1) {
            self.chain.pop_front();
            let oldest = self.chain.front().copied().unwrap_or(NONE);
            while self.held.front().is_some_and(|(died, _)| *died < oldest) {
                let (_, versions) = self.held.pop_front().expect("it is there");
                self.held_count -= versions.len() as u64;
                versions.into_iter().for_each(|version| self.free_version(version));
            }
        }
        self.epoch
    }

    /// Reverts units to a snapshot of the chain, and drops later snapshots; returns the units that changed.
    pub(crate) fn revert(&mut self, snapshot: u32) -> Option<Vec<u32>> {
        self.chain.contains(&snapshot).then(|| {
            self.chain.retain(|one| *one <= snapshot);
            let mut changed = Vec::new();
            while self.held.back().is_some_and(|(died, _)| *died >= snapshot) {
                let (_, versions) = self.held.pop_back().expect("it is there");
                self.held_count -= versions.len() as u64;
                for version in versions {
                    let Version { unit, born, .. } = self.versions[version as usize];
                    if born < snapshot {
                        let newer = std::mem::replace(&mut self.current[unit as usize], version);
                        self.free_version(newer);
                        changed.push(unit);
                    } else {
                        self.free_version(version);
                    }
                }
            }
            changed
        })
    }

    /// Retires a version that hosts no longer see: it is dead, or a snapshot holds it.
    fn retire(&mut self, version: u32) {
        let born = self.versions[version as usize].born;
        if self.chain.back().is_none_or(|newest| *newest <= born) {
            self.free_version(version);
            return;
        }
        match self.held.back_mut() {
            Some((died, versions)) if *died == self.epoch => versions.push(version),
            _ => self.held.push_back((self.epoch, vec![version])),
        }
        self.held_count += 1;
    }

    fn write_version(&mut self, unit: u32) {
        let version = Version { unit, born: self.epoch, place: NONE };
        let number = match self.free_versions.pop() {
            Some(number) => {
                self.versions[number as usize] = version;
                number
            }
            None => {
                self.versions.push(version);
                self.versions.len() as u32 - 1
            }
        };
        self.current[unit as usize] = number;
        self.place(number);
    }

    fn place(&mut self, version: u32) {
        if self.segments[self.open as usize].versions.len() == SEGMENT_SLOTS {
            self.open = self.free.pop().expect("cleaning keeps segments free");
        }
        let segment = &mut self.segments[self.open as usize];
        self.versions[version as usize].place = self.open * SEGMENT_SLOTS as u32 + segment.versions.len() as u32;
        segment.versions.push(version);
        segment.live += 1;
    }

    fn free_version(&mut self, version: u32) {
        let place = std::mem::replace(&mut self.versions[version as usize].place, NONE);
        self.segments[place as usize / SEGMENT_SLOTS].live -= 1;
        self.free_versions.push(version);
    }

    /// Cleans the full segment with the fewest live versions; returns how many it moved, or nothing where all are live.
    fn clean(&mut self) -> Option<u64> {
        let full = |segment: &&Segment| segment.versions.len() == SEGMENT_SLOTS;
        let open = self.open as usize;
        let (number, least) = (self.segments.iter().enumerate())
            .filter(|(number, segment)| *number != open && full(segment))
            .min_by_key(|(_, segment)| segment.live)
            .map(|(number, segment)| (number, segment.live))?;
        if least as usize == SEGMENT_SLOTS {
            return None;
        }
        let versions = std::mem::take(&mut self.segments[number].versions);
        for (slot, version) in versions.iter().enumerate() {
            if self.versions[*version as usize].place as usize == number * SEGMENT_SLOTS + slot {
                self.segments[number].live -= 1;
                self.place(*version);
            }
        }
        self.segments[number].versions = versions;
        self.segments[number].versions.clear();
        self.free.push(number as u32);
        Some(u64::from(least))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Write amplification after the log has come to rest: writes and moves per write.
    fn amplification(log: &mut Log) -> f64 {
        let mut random = SplitMix::new(3);
        let (mut moved, writes, units) = (0, 400_000, log.units());
        (0..300_000).for_each(|_| {
            log.write(random.below(units));
        });
        (0..writes).for_each(|_| moved += log.write(random.below(units)).moved);
        1.0 + moved as f64 / f64::from(writes)
    }

    /// 1 / (1 - u) with u = exp(-(1 - u) / r).
    fn formula(live_share: f64) -> f64 {
        let mut cleaned = 0.5;
        for _ in 0..10_000 {
            cleaned = libm::exp(-(1.0 - cleaned) / live_share);
        }
        1.0 / (1.0 - cleaned)
    }

    #[test]
    fn the_formula_gives_the_figures_of_the_literature() {
        for (live_share, amplified) in [(0.6, 1.48), (0.7, 1.88), (0.8, 2.69), (0.85, 3.52), (0.9, 5.18)] {
            assert!((formula(live_share) - amplified).abs() < 0.006, "{live_share}: {}", formula(live_share));
        }
    }

    #[test]
    fn simulation_and_formula_agree() {
        for live_share in [0.6, 0.7, 0.8, 0.85, 0.9] {
            let mut log = Log::new(live_share, 0, 1.0);
            let (simulated, computed) = (amplification(&mut log), formula(live_share));
            let off = simulated / computed - 1.0;
            assert!(off.abs() <= 0.07, "r {live_share}: {simulated:.3} simulated, {computed:.3} computed");
        }
    }

    #[test]
    fn snapshots_raise_what_is_live_and_with_it_what_cleaning_moves() {
        let mut log = Log::new(0.6, 10, 0.03);
        let amplified = amplification(&mut log);
        assert_eq!(log.snapshots(), 10);
        // Each snapshot holds what was overwritten in its time: 1 - exp(-0.03) of the units.
        let expected = 0.6 * (1.0 + 10.0 * (1.0 - libm::exp(-0.03)));
        assert!((log.live_share() - expected).abs() < 0.03, "{} live, {expected} expected", log.live_share());
        assert!(amplified > formula(0.6) * 1.2, "{amplified}");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(u64),
        Snapshot,
        Revert(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            20 => (0_u64..1 << 20).prop_map(Step::Write),
            1 => Just(Step::Snapshot),
            1 => (0_usize..8).prop_map(Step::Revert),
        ];
        prop::collection::vec(step, 1..400)
    }

    proptest! {
        #[test]
        fn snapshots_keep_what_they_were_taken_of(steps in steps()) {
            let mut log = Log::new(0.0005, 4, 1.0);
            log.snapshot_every = u64::MAX;
            let units = log.units();
            // What each unit holds, as numbers of writes; and the same at each snapshot.
            let mut now: Vec<u64> = vec![0; units as usize];
            let mut content: std::collections::HashMap<u32, u64> =
                log.current.iter().map(|version| (*version, 0)).collect();
            let mut taken: Vec<(u32, Vec<u64>)> = Vec::new();
            for (number, step) in steps.iter().enumerate() {
                match step {
                    Step::Write(draw) => {
                        let unit = draw % units;
                        log.write(unit);
                        now[unit as usize] = number as u64 + 1;
                        content.insert(log.current[unit as usize], number as u64 + 1);
                    }
                    Step::Snapshot => {
                        taken.push((log.snapshot(), now.clone()));
                        if taken.len() > 4 {
                            taken.remove(0);
                        }
                    }
                    Step::Revert(place) if !taken.is_empty() => {
                        let (snapshot, then) = taken[place % taken.len()].clone();
                        log.revert(snapshot).expect("the chain has it");
                        taken.retain(|(one, _)| *one <= snapshot);
                        now = then;
                    }
                    Step::Revert(_) => prop_assert!(log.revert(77).is_none()),
                }
                let seen: Vec<u64> = log.current.iter().map(|version| content[version]).collect();
                prop_assert_eq!(&seen, &now);
                prop_assert_eq!(log.snapshots(), taken.len());
                let live: u64 = log.segments.iter().map(|segment| u64::from(segment.live)).sum();
                prop_assert_eq!(live, log.live());
            }
        }
    }
}
