//! The record of a store, and the generations of its files.

use super::{
    Store,
    disk::DiskRecord,
    finding::Finding,
    kept::Era,
    member::Member,
    record::{RECORDS, State},
};
use crate::ServeError;

impl Store {
    pub(super) fn write_state(&self) -> Result<(), ServeError> {
        let disks =
            |member: &Member| -> Vec<DiskRecord> { member.disks.iter().map(|disk| disk.record.clone()).collect() };
        let mut record = self.record.borrow_mut();
        record.state = State {
            disks: self.members.iter().map(disks).collect(),
            spares: self.spares.clone(),
            snapshots: self.snapshots.iter().map(|snapshot| snapshot.name.clone()).collect(),
            reverting: self.reverting.clone(),
            filled_percent: self.filled_percent,
            filled_bytes: self.filled_bytes,
            attributes: self.attributes.clone(),
            added: self.growth.added,
            enlarged: self.growth.enlarged.clone(),
        };
        record.written += 1;
        RECORDS.write(&self.folder, &*record, &self.supply)
    }

    /// Faults in files of the store, found when it was opened.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Gives all files a later generation: what was copied of them before is told from them then.
    pub(super) fn raise(&mut self, is_closed: bool) -> Result<(), ServeError> {
        let generation = {
            let mut record = self.record.borrow_mut();
            record.is_closed = false;
            record.issue()
        };
        self.write_state()?;
        let raised = self.raise_files(generation);
        raised.map_err(|error| ServeError::at(self.folder.shown(), error))?;
        self.record.borrow_mut().settle(is_closed);
        self.write_state()
    }

    fn raise_files(&mut self, generation: u64) -> std::io::Result<()> {
        self.journal.raise(generation)?;
        self.progress.raise(generation)?;
        self.growth.raise(generation)?;
        self.members.iter_mut().try_for_each(|member| member.raise(generation))?;
        self.snapshots.iter_mut().try_for_each(|snapshot| snapshot.raise(generation))
    }

    /// Which generation files have that are made now.
    pub(super) fn era(&self) -> Era {
        self.record.borrow().era().expect("a store that is open has numbers")
    }
}
