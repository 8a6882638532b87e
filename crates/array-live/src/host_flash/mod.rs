//! An array with flash in its hosts as it is served: the model, and the bytes of its pool of disks.

mod faults;
mod picture;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use assay_array_model::{HostFlashModel, HostFlashPlan};
use assay_load::Simulated;
use serde_json::{Map, Value};

use crate::{
    Cached, LoggedStore, ServeError, SnapshotReading, StoreFault,
    array::{Array, News},
    command::Command,
    folder::Folder,
    plan::ServePlan,
    stall::Stall,
};

pub(crate) struct HostFlash {
    model: HostFlashModel,
    store: LoggedStore,
    /// Disks of each data node.
    node_disks: u32,
    /// How many times smaller the model takes blocks to be.
    reduction: f64,
    /// Pieces of each data node that are restored at the same time.
    depth: u32,
    restoring: Option<Restoring>,
    slowed: BTreeMap<u32, u32>,
    is_behind: bool,
    /// Each waits by itself: reclamation may make the room that restoring waits for.
    restoring_stall: Stall,
    reclaiming_stall: Stall,
    news: Vec<News>,
}

/// Missing pieces are being restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Restoring {
    /// Pieces that the model has restored and the store has not.
    due: u64,
    /// Pieces that the store restored since they were counted last.
    done: u64,
}

impl HostFlash {
    /// Makes the model and opens the store.
    ///
    /// # Errors
    /// The array or the store is refused, or a file fails.
    pub(crate) fn open(plan: &ServePlan, array: &HostFlashPlan, folder: Folder) -> Result<Self, ServeError> {
        let model = HostFlashModel::new(array)?;
        let store = LoggedStore::open_in(folder, array, plan.durability, plan.room_bytes)?;
        let mut opened = Self {
            model,
            store,
            node_disks: array.node.disks,
            reduction: array.log.deduplication * array.log.compression,
            depth: plan.rebuild_depth,
            restoring: None,
            slowed: BTreeMap::new(),
            is_behind: false,
            restoring_stall: Stall::default(),
            reclaiming_stall: Stall::default(),
            news: Vec::new(),
        };
        let findings = opened.store.findings().to_vec();
        findings.into_iter().for_each(|finding| opened.happens(finding.what));
        opened.resume_faults();
        Ok(opened)
    }
}

impl Array for HostFlash {
    fn model(&mut self) -> &mut dyn Simulated {
        &mut self.model
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.model.next_event_ns()
    }

    fn volume_bytes(&self, volume: usize) -> u64 {
        self.model.volume_bytes(volume).expect("the array has the volume")
    }

    fn read(&mut self, volume: u16, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        self.store.read(volume, offset_bytes, bytes)
    }

    fn write(&mut self, volume: u16, offset_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        self.store.write(volume, offset_bytes, bytes)
    }

    fn store(&self) -> &dyn Cached {
        &self.store
    }

    fn store_mut(&mut self) -> &mut dyn Cached {
        &mut self.store
    }

    fn held_bytes(&self) -> u64 {
        let held: u64 = self.model.readings().iter().map(|node| node.held_bytes).sum();
        (held as f64 * self.reduction) as u64
    }

    fn store_bytes(&self) -> u64 {
        self.store.file_bytes()
    }

    fn set_attribute(&mut self, volume: usize, name: &str, value: Option<&[u8]>) -> Result<(), ServeError> {
        let set = self.store.set_attribute(volume, name, value);
        set.map_err(|fault| ServeError::Refused(fault.to_string()))
    }

    fn state(&self) -> &'static str {
        if self.restoring.is_some() {
            "rebuilding"
        } else if (0..self.store.disks()).any(|disk| !self.store.is_present(disk)) || self.store.missing_pieces() > 0 {
            "degraded"
        } else {
            "healthy"
        }
    }

    fn is_behind(&self) -> bool {
        self.is_behind
    }

    fn go_on(&mut self, now_ns: u64, has_power: bool) {
        self.is_behind = false;
        if has_power {
            self.go_on_restoring(now_ns);
            self.go_on_reclaiming(now_ns);
        }
    }

    fn obey(&mut self, command: &Command, _has_power: bool) -> Result<String, ServeError> {
        self.carry_out(command)
    }

    fn snapshot(&mut self, name: &str) -> Result<(), ServeError> {
        self.store.snapshot(name)
    }

    fn revert(&mut self, name: &str) -> Result<(), ServeError> {
        let changed = self.store.changed_since(name);
        self.store.revert(name)?;
        changed.into_iter().for_each(|(volume, at_bytes)| self.model.forget(volume, at_bytes, 1));
        Ok(())
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
