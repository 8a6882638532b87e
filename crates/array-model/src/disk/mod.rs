//! Disks: the time of their commands, and the order in which they serve them.

mod command;
mod flash;
mod mechanical;
mod seek;
mod slots;
mod station;
mod zones;

use std::sync::Arc;

pub(crate) use command::{Begun, DiskCommand, DiskCounters};
use flash::{SolidState, SolidStateKind};
use mechanical::{Mechanical, MechanicalKind};
use station::{Station, StationKind};

use crate::{DiskPlan, MemberPlan, StatePlan};

/// A disk of any kind.
#[derive(Debug, Clone)]
pub(crate) enum Disk {
    Mechanical(Mechanical),
    SolidState(Box<SolidState>),
    Station(Station),
}

/// Data that all disks of a member share.
#[derive(Debug, Clone)]
pub(crate) enum DiskKind {
    Mechanical(Arc<MechanicalKind>),
    SolidState(Arc<SolidStateKind>),
    Station(Arc<StationKind>),
}

/// Kinds of a member's disks: the last ones of the sets may be of another kind.
#[derive(Debug, Clone)]
pub(crate) struct DiskKinds {
    usual: DiskKind,
    others: Option<(u32, DiskKind)>,
    /// The drive onto which the first disk is rebuilt: nothing was written to it.
    spare: Option<DiskKind>,
}

impl DiskKinds {
    /// Disks of a plan; `members` of them will be made.
    pub(crate) fn new(plan: &MemberPlan, members: u32) -> Self {
        let kind = |disk, count: u32| DiskKind::new(disk, plan.cache.read_preference_ns, count * members);
        let others = plan.others.as_ref().map(|others| (others.count, kind(&others.disk, others.count)));
        let rebuilds = matches!(plan.state, StatePlan::Rebuilding { .. });
        let spare = rebuilds.then(|| DiskKind::new(&plan.disk.unwritten(), plan.cache.read_preference_ns, 1));
        Self { usual: kind(&plan.disk, plan.serving_disks()), others, spare }
    }

    /// The kind of a disk of a member, of whose sets `active` are; the first may be a spare.
    pub(crate) fn of(&self, disk: u32, active: u32, rebuilds: bool) -> &DiskKind {
        match (&self.spare, &self.others) {
            (Some(spare), _) if disk == 0 && rebuilds => spare,
            (_, Some((count, kind))) if disk < active && disk + count >= active => kind,
            _ => &self.usual,
        }
    }
}

impl DiskKind {
    /// Disks of this kind; `count` of them will be made.
    pub(crate) fn new(plan: &DiskPlan, read_preference_ns: u64, count: u32) -> Self {
        match plan {
            DiskPlan::Mechanical(disk) => Self::Mechanical(Arc::new(MechanicalKind::new(disk, read_preference_ns))),
            DiskPlan::SolidState(disk) => Self::SolidState(Arc::new(SolidStateKind::new(disk, count))),
            DiskPlan::Station(disk) => Self::Station(Arc::new(StationKind::new(disk))),
        }
    }

    /// An idle disk; its spindle, where it has one, stands at `phase` of 2^32 at time 0.
    pub(crate) fn disk(&self, phase: u32) -> Disk {
        match self {
            Self::Mechanical(kind) => Disk::Mechanical(Mechanical::new(Arc::clone(kind), phase)),
            Self::SolidState(kind) => Disk::SolidState(Box::new(SolidState::new(Arc::clone(kind), u64::from(phase)))),
            Self::Station(kind) => Disk::Station(Station::new(Arc::clone(kind), u64::from(phase))),
        }
    }
}

impl Disk {
    /// Takes a command; says when it ends if it begins at once.
    #[inline]
    pub(crate) fn push(&mut self, now_ns: u64, command: DiskCommand) -> Option<Begun> {
        match self {
            Self::Mechanical(disk) => disk.push(now_ns, command),
            Self::SolidState(disk) => disk.push(now_ns, command),
            Self::Station(disk) => disk.push(now_ns, command),
        }
    }

    /// Ends a command; returns it, and the next one if that begins now.
    #[inline]
    pub(crate) fn end(&mut self, now_ns: u64, slot: u16) -> (DiskCommand, Option<Begun>) {
        match self {
            Self::Mechanical(disk) => disk.end(now_ns),
            Self::SolidState(disk) => disk.end(now_ns, slot),
            Self::Station(disk) => disk.end(now_ns, slot),
        }
    }

    /// Commands present, served or waiting.
    #[inline]
    pub(crate) fn present(&self) -> u32 {
        match self {
            Self::Mechanical(disk) => disk.present(),
            Self::SolidState(disk) => disk.present(),
            Self::Station(disk) => disk.present(),
        }
    }

    /// Whether what it acknowledges survives a power cut.
    pub(crate) fn is_protected(&self) -> bool {
        match self {
            Self::Mechanical(_) | Self::Station(_) => true,
            Self::SolidState(disk) => disk.is_protected(),
        }
    }

    /// Work until `now_ns`.
    pub(crate) fn counters(&self, now_ns: u64) -> DiskCounters {
        match self {
            Self::Mechanical(disk) => disk.counters(now_ns),
            Self::SolidState(disk) => disk.counters(now_ns),
            Self::Station(disk) => disk.counters(now_ns),
        }
    }
}

impl DiskCounters {
    #[inline]
    pub(crate) fn count(&mut self, command: &DiskCommand) {
        let bytes = u64::from(command.bytes);
        if command.write && command.bytes > 0 {
            self.writes += 1;
            self.write_bytes += bytes;
        } else if !command.write {
            self.reads += 1;
            self.read_bytes += bytes;
        }
    }
}
