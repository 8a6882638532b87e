//! A member joins the store: its disks, and the pieces of volumes that are copied onto it one after the other.
//!
//! A piece is copied first, and noted as moved in one number of eight bytes then. Until that is written every byte is read from
//! its old place, so that whatever happens in between loses nothing.

use assay_array_model::{ArrayModel, Part};

use super::{
    Store,
    disk::{Disk, DiskSize},
    disk_file,
    member::Member,
    record::MEMBERS_MOST,
    volatile,
};
use crate::{Durability, ServeError, StoreFault};

impl Store {
    /// Makes the disks of the member that joined the model last.
    ///
    /// # Errors
    /// There are snapshots, or a file fails.
    pub fn add_member(&mut self, model: &ArrayModel, spares: u32) -> Result<(), ServeError> {
        if let Some(snapshot) = self.snapshots.first() {
            let message =
                format!("snapshot {} keeps the places that chunks have now; none may be there", snapshot.name);
            return Err(ServeError::refused(message));
        }
        if self.growth.added >= MEMBERS_MOST {
            return Err(ServeError::refused(format!("{MEMBERS_MOST} members have joined; no store takes more")));
        }
        let number = self.members();
        assert_eq!(number + 1, model.members(), "one member has joined");
        let geometry = model.geometry(number).clone();
        let disk_bytes = geometry.disk_bytes(model.places_bytes(number));
        let has_sums = self.members[0].has_sums();
        let size = DiskSize { bytes: disk_bytes, chunk_bytes: geometry.chunk_bytes(), has_sums };
        let era = self.era();
        // What a killed server may have left of them is gone then.
        let disks = (0..geometry.sets() * geometry.set_disks())
            .map(|disk| Disk::make(&self.folder, &disk_file(number, disk), size, &era, &self.supply))
            .collect::<Result<Vec<_>, _>>()?;
        let begun = self.growth.note(self.growth.added, 0);
        begun.map_err(|error| ServeError::at(self.folder.shown(), error))?;
        // What writes anywhere joins no group.
        let places = None;
        self.members.push(Member::new(geometry, disks, has_sums, places)?);
        self.spares.push(spares);
        self.growth.added += 1;
        self.growth.is_filling = true;
        let written = self.write_state();
        if written.is_err() {
            self.members.pop();
            self.spares.pop();
            self.growth.added -= 1;
            self.growth.is_filling = false;
        }
        written
    }

    /// Copies a piece to where it is to lie; it is read from its old place until [`Self::set_moved`] says otherwise. Says
    /// whether there was something to write.
    ///
    /// # Errors
    /// Bytes of it are lost, the new place cannot keep them, the store has no room, or a file of it fails.
    pub fn copy_piece(&mut self, from: Part, to: Part) -> Result<bool, StoreFault> {
        self.ask_room(from.bytes)?;
        self.settle()?;
        let mut durable = vec![0; from.bytes as usize];
        self.members[from.member as usize].read(from.at_bytes, &mut durable)?;
        let mut there = vec![0; to.bytes as usize];
        self.members[to.member as usize].read(to.at_bytes, &mut there)?;
        // What was never written takes no room there either.
        let differs = durable != there;
        if differs {
            self.write_to_disks(to.member, to.at_bytes, &durable)?;
        }
        Ok(differs)
    }

    /// Notes that the first `pieces` of all pieces lie on the member that joined last. The last of them was copied.
    ///
    /// # Errors
    /// A file of the store fails.
    pub fn set_moved(&mut self, pieces: u64, all: u64, from: Part, to: Part) -> Result<(), StoreFault> {
        // What only the cache knows comes along in it.
        let cached = self.cached_of(from)?;
        if let Some(bytes) = cached {
            self.write(to, &bytes)?;
        }
        self.growth.note(self.growth.added - 1, pieces)?;
        self.growth.is_filling = pieces < all;
        self.forget(from);
        Ok(())
    }

    /// A part as it was last acknowledged, where that is more than disks have.
    fn cached_of(&mut self, part: Part) -> Result<Option<Vec<u8>>, StoreFault> {
        let blocks = part.at_bytes / volatile::BLOCK_BYTES..=(part.at_bytes + part.bytes - 1) / volatile::BLOCK_BYTES;
        if !blocks.into_iter().any(|block| self.volatile.get((part.member, block)).is_some()) {
            return Ok(None);
        }
        debug_assert_ne!(self.durability, Durability::Battery);
        let mut bytes = vec![0; part.bytes as usize];
        self.read(part, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// What nothing is read from any more takes no room.
    fn forget(&mut self, part: Part) {
        let first = part.at_bytes.div_ceil(volatile::BLOCK_BYTES);
        for block in first..(part.at_bytes + part.bytes) / volatile::BLOCK_BYTES {
            self.volatile.remove((part.member, block));
        }
        let zeroes = vec![0; part.bytes as usize];
        // Where they cannot be written, they are no harm.
        if self.write_to_disks(part.member, part.at_bytes, &zeroes).is_ok() {
            self.members[part.member as usize].punch(part.at_bytes, part.bytes);
        }
    }
}
