//! A group of members as it is served: the model, and the bytes of its disks.

mod damage;
mod faults;
mod growing;
mod growth;
mod heat;
mod picture;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use assay_array_model::{ArrayModel, ArrayPlan, FaultPlan, Lost, Moved, Part};
use assay_load::Simulated;
use damage::Damage;
use growing::Growing;
use heat::Heat;
use serde_json::{Map, Value};

use crate::{
    Cached, DiskState, ServeError, SnapshotReading, Store, StoreFault,
    array::{Array, News},
    command::Command,
    folder::Folder,
    plan::ServePlan,
    stall::Stall,
};

/// Rows of a rebuild written between two looks at what came.
const ROWS_AT_ONCE: u64 = 2;
/// Pieces that are copied onto a new member between two looks.
const PIECES_AT_ONCE: u64 = 2;

pub(crate) struct Group {
    model: ArrayModel,
    store: Store,
    damage: Damage,
    growing: Growing,
    /// Blocks that the model moved, kept for their memory.
    moved: Vec<Moved>,
    /// Members whose bytes could not follow it.
    following: BTreeMap<u32, Stall>,
    news: Vec<News>,
    heat: Heat,
}

impl Group {
    /// Makes the model and opens the store.
    ///
    /// # Errors
    /// The array or the store is refused, or a file fails.
    pub(crate) fn open(plan: &ServePlan, array: &ArrayPlan, folder: Folder) -> Result<Self, ServeError> {
        let mut prepared = array.clone();
        prepared.links.fault =
            Some(FaultPlan { lost: Lost::Controller, at_ns: FaultPlan::NEVER_NS, failover_ns: plan.failover_ns });
        let mut model = ArrayModel::new(&prepared)?;
        let store = Store::open_in(folder, array, &mut model, plan.durability, plan.sums, plan.room_bytes)?;
        let mut group = Self {
            model,
            store,
            damage: Damage::new(plan.rebuild_depth, plan.failover_ns),
            growing: Growing::new(array, plan.rebalance_depth, plan.members_most),
            moved: Vec::new(),
            following: BTreeMap::new(),
            news: Vec::new(),
            heat: Heat::default(),
        };
        group.model.follow();
        group.resume_faults();
        group.tell_findings();
        group.resume_moves();
        Ok(group)
    }

    /// Bytes follow the blocks that the model has moved. One that cannot stays where it is, and loses nothing.
    fn follow(&mut self, now_ns: u64) {
        for member in 0..self.store.members() {
            self.moved.clear();
            self.model.take_moved(member, &mut self.moved);
            if self.moved.is_empty() {
                continue;
            }
            match self.store.follow(member, &self.moved) {
                Ok(()) => {
                    if self.following.remove(&member).is_some() {
                        self.happens(format!("member{member}: blocks move again"));
                    }
                }
                Err(fault) => {
                    let why = format!("member{member}: blocks stay where they were: {fault}");
                    let told = self.following.entry(member).or_default().fails(why, now_ns);
                    told.into_iter().for_each(|what| self.happens(what));
                }
            }
        }
    }
}

impl Array for Group {
    fn model(&mut self) -> &mut dyn Simulated {
        &mut self.model
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.model.next_event_ns()
    }

    fn members(&self) -> usize {
        self.model.members() as usize
    }

    fn volume_bytes(&self, volume: usize) -> u64 {
        self.model.volume_bytes(volume).expect("the array has the volume")
    }

    fn grow(&mut self, volume: u16, bytes: u64) -> Result<(), ServeError> {
        self.grow_volume(volume, bytes)
    }

    fn read(&mut self, volume: u16, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let parts: Vec<Part> = self.model.parts(volume, offset_bytes, bytes.len() as u64).collect();
        let mut done = 0;
        for part in parts {
            let until = done + part.bytes as usize;
            self.store.read(part, &mut bytes[done..until])?;
            done = until;
        }
        Ok(())
    }

    fn write(&mut self, volume: u16, offset_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        let parts: Vec<Part> = self.model.parts(volume, offset_bytes, bytes.len() as u64).collect();
        let mut done = 0;
        for part in parts {
            self.store.write(part, &bytes[done..done + part.bytes as usize])?;
            done += part.bytes as usize;
        }
        Ok(())
    }

    fn store(&self) -> &dyn Cached {
        &self.store
    }

    fn store_mut(&mut self) -> &mut dyn Cached {
        &mut self.store
    }

    fn held_bytes(&self) -> u64 {
        self.model.readings().iter().map(|member| member.dirty_bytes).sum()
    }

    fn store_bytes(&self) -> u64 {
        self.store.used_bytes()
    }

    fn set_attribute(&mut self, volume: usize, name: &str, value: Option<&[u8]>) -> Result<(), ServeError> {
        self.store.set_attribute(volume, name, value)
    }

    fn state(&self) -> &'static str {
        let members = 0..self.store.members();
        let disks = members.flat_map(|member| (0..self.store.disks(member)).map(move |disk| (member, disk)));
        let states: Vec<DiskState> = disks.map(|(member, disk)| self.store.disk_state(member, disk)).collect();
        let is_rebuilding = |state: &DiskState| matches!(state, DiskState::Rebuilding { .. });
        if states.iter().any(is_rebuilding) {
            "rebuilding"
        } else if states.contains(&DiskState::Absent) {
            "degraded"
        } else if self.model.rebalance_reading().is_some() {
            "rebalancing"
        } else if self.heat.throttles() {
            "throttled"
        } else {
            "healthy"
        }
    }

    fn is_behind(&self) -> bool {
        self.damage.is_behind || self.growing.is_behind
    }

    fn go_on(&mut self, now_ns: u64, has_power: bool) {
        self.follow(now_ns);
        for what in self.heat.look(now_ns, &self.model) {
            self.happens(what);
        }
        self.go_on_rebuilding(ROWS_AT_ONCE, now_ns);
        self.go_on_moving(PIECES_AT_ONCE, now_ns, has_power);
    }

    fn obey(&mut self, command: &Command, has_power: bool) -> Result<String, ServeError> {
        self.carry_out(command, has_power)
    }

    fn snapshot(&mut self, name: &str) -> Result<(), ServeError> {
        self.store.snapshot(name)
    }

    fn revert(&mut self, name: &str) -> Result<(), ServeError> {
        self.store.revert(name)
    }

    fn snapshots(&self) -> Vec<SnapshotReading> {
        self.store.snapshots()
    }

    fn news(&mut self) -> &mut Vec<News> {
        &mut self.news
    }

    fn counted(&self) -> Map<String, Value> {
        self.counted_parts()
    }

    fn standing(&self) -> Map<String, Value> {
        self.standing_parts()
    }

    fn close(self: Box<Self>) -> Result<(), ServeError> {
        self.store.close()
    }
}
