//! Snapshots of all volumes, and going back to one.

use std::ops::Range;

use super::{
    Cached, Store,
    snapshot::{BLOCK_BYTES, GRAIN_BYTES, Snapshot, SnapshotReading, file_name},
};
use crate::{ServeError, StoreFault};

impl Store {
    /// Keeps the contents of blocks before their first write since the last snapshot.
    pub(super) fn keep_for_snapshot(&mut self, member: u32, at_bytes: u64, bytes: u64) -> Result<(), StoreFault> {
        for grain in at_bytes / GRAIN_BYTES..(at_bytes + bytes).div_ceil(GRAIN_BYTES) {
            let inside = self.inside_bytes(member, grain);
            let Some(snapshot) = self.snapshots.last_mut() else { return Ok(()) };
            if snapshot.has(member, grain) {
                continue;
            }
            let (mut held, mut lost) = (vec![0; GRAIN_BYTES as usize], 0);
            let disks = &mut self.members[member as usize];
            match disks.read(grain * GRAIN_BYTES, &mut held[..inside]) {
                Ok(()) => {}
                Err(StoreFault::Lost) => {
                    for (number, part) in blocks(inside) {
                        let at_bytes = grain * GRAIN_BYTES + part.start as u64;
                        match disks.read(at_bytes, &mut held[part]) {
                            Ok(()) => {}
                            Err(StoreFault::Lost) => lost |= 1 << number,
                            Err(fault) => return Err(fault),
                        }
                    }
                }
                Err(fault) => return Err(fault),
            }
            snapshot.keep(member, grain, &held, lost)?;
        }
        Ok(())
    }

    /// Takes a snapshot of all volumes.
    ///
    /// # Errors
    /// There is such a snapshot, the name is none, or a file of the store fails.
    pub fn snapshot(&mut self, name: &str) -> Result<(), ServeError> {
        super::refuse_name(name)?;
        if self.snapshots.iter().any(|snapshot| snapshot.name == name) {
            return Err(ServeError::refused(format!("{name}: there is such a snapshot; take another name")));
        }
        self.growth.refuse_snapshot(name)?;
        self.flush_for(name)?;
        // A server that was killed may have left one of this name that was forgotten.
        let snapshot = Snapshot::make(&self.folder, name, &self.era(), &self.supply)?;
        self.snapshots.push(snapshot);
        let written = self.write_state();
        if written.is_err() {
            self.snapshots.pop();
        }
        written
    }

    pub(super) fn flush_for(&mut self, name: &str) -> Result<(), ServeError> {
        let ended = self.settle().and_then(|()| self.destage_to(0));
        ended.map_err(|fault| ServeError::refused(format!("{name}: the cache cannot be written: {fault}")))
    }

    /// Reverts all volumes to a snapshot, and forgets later snapshots.
    ///
    /// # Errors
    /// There is no such snapshot, or bytes cannot be written; then volumes go back before anything else is done with them.
    pub fn revert(&mut self, name: &str) -> Result<(), ServeError> {
        if !self.snapshots.iter().any(|snapshot| snapshot.name == name) {
            let names: Vec<&str> = self.snapshots.iter().map(|snapshot| &snapshot.name[..]).collect();
            let have =
                if names.is_empty() { "there is none".to_owned() } else { format!("there are: {}", names.join(", ")) };
            return Err(ServeError::refused(format!("{name}: no such snapshot; {have}")));
        }
        let failed = |fault: StoreFault| ServeError::refused(format!("{name}: cannot be gone back to: {fault}"));
        self.settle().map_err(failed)?;
        let mut involved = self.snapshots.iter().skip_while(|snapshot| snapshot.name != name);
        let checked = involved.try_for_each(Snapshot::check);
        checked.map_err(|error| failed(error.into()))?;
        self.volatile.drop_all();
        self.reverting = Some(name.to_owned());
        self.write_state()?;
        self.go_back().map_err(failed)
    }

    /// Goes back to a snapshot, from its beginning.
    pub(super) fn go_back(&mut self) -> Result<(), StoreFault> {
        let position = self.snapshots.iter().position(|snapshot| Some(&snapshot.name) == self.reverting.as_ref());
        if let Some(position) = position {
            // Older ones know what was before their successor was taken; going back to that changes nothing for them.
            let snapshots = std::mem::take(&mut self.snapshots);
            let written = snapshots[position..].iter().rev().try_for_each(|snapshot| self.write_back(snapshot));
            self.snapshots = snapshots;
            written?;
        }
        // Later ones count on what this one keeps: they are forgotten first.
        let later = position.map_or_else(Vec::new, |position| self.snapshots.split_off(position + 1));
        let reverted = self.reverting.take();
        if let Err(fault) = self.write_marks() {
            self.snapshots.extend(later);
            self.reverting = reverted;
            return Err(fault);
        }
        for snapshot in later {
            let _ = self.folder.remove(&file_name(&snapshot.name));
        }
        // What it keeps is what volumes hold: forgetting it saves room, and nothing depends on it.
        if let Some(position) = position {
            self.snapshots[position].forget()?;
        }
        Ok(())
    }

    fn write_back(&mut self, snapshot: &Snapshot) -> Result<(), StoreFault> {
        for (member, grain) in snapshot.grains() {
            let (bytes, lost) = snapshot.read(member, grain)?;
            let inside = self.inside_bytes(member, grain);
            if lost == 0 {
                match self.put_on_disks(member, grain * GRAIN_BYTES, &bytes[..inside]) {
                    Err(StoreFault::Lost) => {}
                    Ok(()) => continue,
                    fault => return fault,
                }
            }
            for (number, part) in blocks(inside).filter(|(number, _)| lost & 1 << number == 0) {
                debug_assert!(number < 16, "a grain has sixteen blocks");
                match self.put_on_disks(member, grain * GRAIN_BYTES + part.start as u64, &bytes[part]) {
                    Ok(()) | Err(StoreFault::Lost) => {}
                    fault => return fault,
                }
            }
        }
        Ok(())
    }

    /// Bytes of a grain that lie on the member.
    fn inside_bytes(&self, member: u32, grain: u64) -> usize {
        (self.members[member as usize].bytes() - grain * GRAIN_BYTES).min(GRAIN_BYTES) as usize
    }

    pub fn snapshots(&self) -> Vec<SnapshotReading> {
        let reading = |snapshot: &Snapshot| SnapshotReading { name: snapshot.name.clone(), bytes: snapshot.bytes() };
        self.snapshots.iter().map(reading).collect()
    }
}

/// The blocks of a grain of which so many bytes are inside, by number.
fn blocks(inside: usize) -> impl Iterator<Item = (u32, Range<usize>)> {
    let block = BLOCK_BYTES as usize;
    (0..inside.div_ceil(block)).map(move |number| (number as u32, number * block..((number + 1) * block).min(inside)))
}
