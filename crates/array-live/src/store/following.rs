//! Bytes follow the blocks that the model has moved.
//!
//! A block is copied to its new place, and lies there once that is noted, in the same change. What cannot follow stays where it
//! is: then the store's map differs from the model's until the next start, and no byte is lost.

use std::{collections::HashMap, ops::Range};

use assay_array_model::{ArrayModel, Moved};

use super::{
    Store,
    files::Supply,
    kept::Era,
    places::{Places, Spread},
};
use crate::{ServeError, StoreFault, folder::Folder};

/// Where the blocks of a member lie, if they move.
pub(super) fn open_places(
    folder: &Folder,
    model: &ArrayModel,
    member: u32,
    noted: &HashMap<u64, u64>,
    era: &Era,
    supply: &Supply,
) -> Result<Option<Places>, ServeError> {
    let Some(block_bytes) = model.moving_block_bytes(member) else { return Ok(None) };
    let (geometry, volumes_bytes) = (model.geometry(member), model.member_bytes(member));
    let chunk_bytes = geometry.chunk_bytes();
    let rows = |bytes| geometry.disk_bytes(bytes) / chunk_bytes;
    let places_bytes = model.places_bytes(member);
    let spread = Spread {
        block_bytes,
        volumes_bytes,
        chunk_bytes,
        places: places_bytes / block_bytes,
        first_rows: rows(volumes_bytes),
        rows_most: rows(places_bytes),
    };
    Places::open(folder, &format!("member{member}-places"), spread, noted, era, supply).map(Some)
}

impl Store {
    /// Blocks of a member that the model has moved lie at their new places, in this order.
    ///
    /// # Errors
    /// A file of the store fails.
    pub fn follow(&mut self, member: u32, moved: &[Moved]) -> Result<(), StoreFault> {
        for moved in moved {
            for part in self.members[member as usize].movable(*moved) {
                match self.move_part(member, part) {
                    Ok(()) => {}
                    Err(StoreFault::Full) => return Ok(()),
                    Err(StoreFault::Lost) => {
                        // What is lost stays where it is, and the others do not.
                        for block in self.members[member as usize].one_by_one(part) {
                            match self.move_part(member, block) {
                                Ok(()) | Err(StoreFault::Lost) => {}
                                Err(StoreFault::Full) => return Ok(()),
                                fault => return fault,
                            }
                        }
                    }
                    fault => return fault,
                }
            }
        }
        self.tidy(member, false)
    }

    /// Blocks of a member that moved, and their places. For proofs.
    pub fn moved(&self, member: u32) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.members[member as usize].moved()
    }

    fn move_part(&mut self, member: u32, part: Moved) -> Result<(), StoreFault> {
        self.ask_room(part.bytes)?;
        self.settle()?;
        let mut bytes = vec![0; part.bytes as usize];
        self.members[member as usize].read(part.at_bytes, &mut bytes)?;
        let mut written = 0;
        while written < bytes.len() {
            let (change, then) = self.members[member as usize].change_of_move(part, &bytes, written)?;
            self.commit(member, &change)?;
            written = then;
        }
        Ok(())
    }

    /// Zeroes what blocks left behind in chunks that have much of it, or in all, so that it takes no room.
    pub(super) fn tidy(&mut self, member: u32, all: bool) -> Result<(), StoreFault> {
        self.settle()?;
        while let Some(parts) = self.members[member as usize].untidy(all) {
            for part in parts {
                if self.zero(member, part.clone())? {
                    self.members[member as usize].punch_rest(&part);
                }
            }
        }
        Ok(())
    }

    /// Writes zeroes where nothing of volumes lies. Says whether they could be written: not where too much is lost.
    fn zero(&mut self, member: u32, mut part: Range<u64>) -> Result<bool, StoreFault> {
        while part.start < part.end {
            match self.members[member as usize].change_of_rest(&part) {
                Ok(Some((change, count))) => {
                    self.commit(member, &change)?;
                    part.start += count;
                }
                Ok(None) => return Ok(true),
                Err(StoreFault::Lost) => return Ok(false),
                Err(fault) => return Err(fault),
            }
        }
        Ok(true)
    }
}
