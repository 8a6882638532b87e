//! A volume of the store grows: its members' disks are longer from then on, and hold zeroes there.
//!
//! The files are made longer first, and the size is noted in the record then. A file that is longer than the record says holds
//! nothing there.

use assay_array_model::ArrayModel;

use super::{
    Store,
    record::{ENLARGED_MOST, Enlarged},
};
use crate::{ServeError, StoreFault};

impl Store {
    /// Gives a volume the size that it has in the model already.
    ///
    /// # Errors
    /// A file of the store fails; the volume has its size before then.
    pub fn grow_volume(&mut self, model: &ArrayModel, volume: u16, bytes: u64) -> Result<(), ServeError> {
        self.settle().map_err(|fault| ServeError::refused(format!("a write before cannot be ended: {fault}")))?;
        let disk_bytes = |member: u32| model.geometry(member).disk_bytes(model.places_bytes(member));
        let sizes: Vec<u64> = (0..self.members()).map(disk_bytes).collect();
        for (member, bytes) in self.members.iter_mut().zip(&sizes) {
            let reserved = member.disks.iter_mut().try_for_each(|disk| disk.reserve(*bytes));
            reserved.map_err(|error| ServeError::refused(StoreFault::Io(error).to_string()))?;
        }
        let before = self.growth.enlarged.clone();
        self.note_size(Enlarged { volume, bytes, joined: self.growth.added })?;
        if let Err(error) = self.write_state() {
            self.growth.enlarged = before;
            return Err(error);
        }
        for (member, bytes) in self.members.iter_mut().zip(sizes) {
            member.disks.iter_mut().for_each(|disk| disk.set_bytes(bytes));
        }
        Ok(())
    }

    fn note_size(&mut self, size: Enlarged) -> Result<(), ServeError> {
        let all = &mut self.growth.enlarged;
        if let Some(last) = all.last_mut().filter(|last| (last.volume, last.joined) == (size.volume, size.joined)) {
            // Both together lie as one growth would.
            last.bytes = size.bytes;
        } else if all.len() < ENLARGED_MOST {
            all.push(size);
        } else {
            return Err(ServeError::refused(format!("volumes have grown {ENLARGED_MOST} times; no store keeps more")));
        }
        Ok(())
    }
}
