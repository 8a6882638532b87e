//! Members that joined a store, how many pieces of volumes lie on each, and sizes that volumes were given.
//!
//! The numbers decide where bytes lie, so that they are kept in two files, one after the other. The larger number of both is right:
//! a piece is copied before it is noted, and its old place is taken away after both files say so.

use std::io;

use assay_array_model::{ArrayModel, ArrayPlan};

use super::{
    files::Supply,
    kept::{Era, Kept, Unfit},
    record::{Enlarged, MEMBERS_MOST, State},
};
use crate::{ServeError, folder::Folder};

const FILES: [&str; 2] = ["moves", "moves.copy"];
/// Pieces in 8 bytes, and a sum of them and the member.
const ENTRY_BYTES: u64 = 16;
const FILE_BYTES: u64 = MEMBERS_MOST as u64 * ENTRY_BYTES;

/// Members that joined since the store was made.
#[derive(Debug)]
pub(super) struct Growth {
    pub(super) added: u32,
    /// Whether the last of them is being filled.
    pub(super) is_filling: bool,
    /// Sizes that volumes were given, oldest first.
    pub(super) enlarged: Vec<Enlarged>,
    /// Pieces moved onto each of them.
    pieces: Vec<u64>,
    files: [Kept; 2],
}

impl Growth {
    /// Makes the model of an array what the store has become since it was made.
    pub(super) fn restore(
        folder: &Folder,
        state: &State,
        plan: &ArrayPlan,
        model: &mut ArrayModel,
        era: &Era,
        supply: &Supply,
    ) -> Result<Self, ServeError> {
        let (added, enlarged) = (state.added, state.enlarged.clone());
        let (mut pieces, mut whys) = (vec![None::<u64>; added as usize], Vec::new());
        let mut found = Vec::new();
        for name in FILES {
            let file = Kept::find_of(folder, name, era, FILE_BYTES, supply)?;
            match &file {
                Ok(file) => {
                    for (number, most) in (0..).zip(&mut pieces) {
                        *most = (*most).max(read(file, number).map_err(|error| folder.failed(name, error))?);
                    }
                }
                Err(Unfit::Newer) => return Err(super::record::refuse_newer(folder, name)),
                Err(why) => whys.push(format!("{name} {why}")),
            }
            found.push(file);
        }
        let Some(pieces) = pieces.into_iter().collect::<Option<Vec<u64>>>() else {
            let why = if whys.is_empty() {
                "the numbers in both do not agree with their sums".to_owned()
            } else {
                whys.join(", ")
            };
            let message = format!("which say where the bytes of joined members lie: {why}; put one back from a copy");
            return Err(folder.refused(FILES[0], format!("and {}, {message}", FILES[1])));
        };
        let mut sizes = enlarged.iter().peekable();
        for joined in 0..=added {
            while let Some(size) = sizes.next_if(|size| size.joined == joined) {
                model.grow_volume(plan, size.volume, size.bytes)?;
            }
            if let Some(moved) = pieces.get(joined as usize) {
                model.add_member(plan, *moved)?;
            }
        }
        let mut files = Vec::new();
        for (name, file) in FILES.into_iter().zip(found) {
            files.push(match file {
                Ok(file) => file,
                Err(_) => Kept::make(folder, name, era, FILE_BYTES, supply)?,
            });
        }
        let files = files.try_into().expect("there are two");
        let is_filling = model.rebalance_reading().is_some();
        let growth = Self { added, is_filling, enlarged, pieces, files };
        // What one of both lacks it has from now on.
        for (number, pieces) in (0..).zip(&growth.pieces) {
            growth.write(number, *pieces).map_err(|error| folder.failed(FILES[0], error))?;
        }
        Ok(growth)
    }

    pub(super) fn raise(&mut self, generation: u64) -> io::Result<()> {
        self.files.iter_mut().try_for_each(|file| file.raise(generation))
    }

    /// Notes how many pieces lie on a member that joined. Where that fails as many do as before.
    pub(super) fn note(&mut self, number: u32, pieces: u64) -> io::Result<()> {
        self.pieces.resize(self.pieces.len().max(number as usize + 1), 0);
        if let Err(error) = self.write(number, pieces) {
            let _ = self.write(number, self.pieces[number as usize]);
            return Err(error);
        }
        self.pieces[number as usize] = pieces;
        Ok(())
    }

    fn write(&self, number: u32, pieces: u64) -> io::Result<()> {
        let entry = entry(number, pieces);
        self.files.iter().try_for_each(|file| file.write_all_at(&entry, u64::from(number) * ENTRY_BYTES))
    }

    /// Refuses a snapshot while places change.
    pub(super) fn refuse_snapshot(&self, name: &str) -> Result<(), ServeError> {
        if self.is_filling {
            let message = format!("{name}: a member is being filled; take the snapshot once it has its share");
            return Err(ServeError::refused(message));
        }
        Ok(())
    }
}

fn entry(number: u32, pieces: u64) -> [u8; ENTRY_BYTES as usize] {
    let mut entry = [0; ENTRY_BYTES as usize];
    entry[..8].copy_from_slice(&pieces.to_le_bytes());
    entry[8..12].copy_from_slice(&number.to_le_bytes());
    let sum = crc32c::crc32c(&entry[..12]);
    entry[12..].copy_from_slice(&sum.to_le_bytes());
    entry
}

fn read(file: &Kept, number: u32) -> io::Result<Option<u64>> {
    let mut found = [0; ENTRY_BYTES as usize];
    file.read_exact_at(&mut found, u64::from(number) * ENTRY_BYTES)?;
    let pieces = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
    Ok((found == entry(number, pieces)).then_some(pieces))
}
