//! Members that joined a store, and how many pieces of volumes lie on each.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use assay_array::{ArrayModel, ArrayPlan};

use crate::ServeError;

/// Members that joined since the store was made.
#[derive(Debug)]
pub(super) struct Growth {
    pub(super) added: u32,
    /// Whether the last of them is being filled.
    pub(super) is_filling: bool,
    /// Pieces moved onto each of them, in 8 bytes each.
    moves: File,
}

impl Growth {
    /// Makes the model of an array what the store has become since it was made.
    pub(super) fn restore(
        folder: &Path,
        moves: File,
        added: u32,
        plan: &ArrayPlan,
        model: &mut ArrayModel,
    ) -> Result<Self, ServeError> {
        for number in 0..added {
            let mut moved = [0; 8];
            moves.read_exact_at(&mut moved, u64::from(number) * 8).map_err(|error| ServeError::at(folder, error))?;
            model.add_member(plan, u64::from_le_bytes(moved))?;
        }
        Ok(Self { added, is_filling: model.rebalance_reading().is_some(), moves })
    }

    pub(super) fn note(&self, number: u32, pieces: u64) -> std::io::Result<()> {
        self.moves.write_all_at(&pieces.to_le_bytes(), u64::from(number) * 8)
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
