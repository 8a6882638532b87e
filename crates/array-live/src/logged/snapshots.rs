//! Snapshots of all volumes, and going back to one.

use std::collections::BTreeSet;

use super::{LoggedStore, block::BLOCK_BYTES, change::Change};
use crate::{ServeError, SnapshotReading};

impl LoggedStore {
    /// Takes a snapshot of all volumes.
    ///
    /// # Errors
    /// There is such a snapshot, the name is none, or a file of the store fails.
    pub fn snapshot(&mut self, name: &str) -> Result<(), ServeError> {
        crate::store::refuse_name(name)?;
        if self.table.snapshots.iter().any(|snapshot| snapshot.name == name) {
            return Err(ServeError::Refused(format!("{name}: there is such a snapshot; take another name")));
        }
        self.destage_for(name)?;
        self.snapshot_change(&Change::Snapshot { name: name.to_owned() }, name)
    }

    /// Reverts all volumes to a snapshot, and forgets later snapshots.
    ///
    /// # Errors
    /// There is no such snapshot, or a file of the store fails.
    pub fn revert(&mut self, name: &str) -> Result<(), ServeError> {
        if !self.table.snapshots.iter().any(|snapshot| snapshot.name == name) {
            let names: Vec<&str> = self.table.snapshots.iter().map(|snapshot| &snapshot.name[..]).collect();
            let have =
                if names.is_empty() { "there is none".to_owned() } else { format!("there are: {}", names.join(", ")) };
            return Err(ServeError::Refused(format!("{name}: no such snapshot; {have}")));
        }
        self.snapshot_change(&Change::Revert { name: name.to_owned() }, name)?;
        self.volatile.drop_all();
        Ok(())
    }

    /// Volume and place of each block that was written since a snapshot, which a revert changes.
    pub fn changed_since(&self, name: &str) -> Vec<(u16, u64)> {
        let since = self.table.snapshots.iter().skip_while(|snapshot| snapshot.name != name);
        let blocks: BTreeSet<u64> = since.flat_map(|snapshot| snapshot.before.keys().copied()).collect();
        let place = |block: u64| {
            let volume = self.volumes.partition_point(|first| *first <= block) - 1;
            (volume as u16, (block - self.volumes[volume]) * BLOCK_BYTES as u64)
        };
        blocks.into_iter().map(place).collect()
    }

    fn snapshot_change(&mut self, change: &Change, name: &str) -> Result<(), ServeError> {
        self.commit(change).map_err(|fault| ServeError::Refused(format!("{name}: cannot be written down: {fault}")))
    }

    pub fn snapshots(&self) -> Vec<SnapshotReading> {
        let snapshots = self.table.snapshots.iter();
        let bytes = |blocks: usize| (blocks * BLOCK_BYTES) as u64;
        snapshots
            .map(|snapshot| SnapshotReading { name: snapshot.name.clone(), bytes: bytes(snapshot.before.len()) })
            .collect()
    }
}
