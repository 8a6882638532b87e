//! Pulled and inserted disks, and pieces that are computed again on the disks present.

use std::ops::Range;

use super::{
    LoggedStore,
    change::{Change, Piece},
    pieces::rebuild,
    placed::{PlacedBlock, Restoring},
    shape::PARITY_PIECES,
    table::{Container, Content},
};
use crate::{ServeError, StoreFault};

impl LoggedStore {
    /// Where a block lies, if it is on disks. For proofs.
    pub fn place(&self, volume: u16, offset_bytes: u64) -> Option<PlacedBlock> {
        let (block, _) = self.blocks(volume, offset_bytes, 1).next()?;
        let content = self.table.contents.get(self.table.map.get(block) as usize)?;
        let container = self.table.containers.get(&content.container)?;
        let disks = container.pieces.iter().map(|piece| piece.as_ref().map(|piece| piece.disk)).collect();
        Some(PlacedBlock { container: content.container, piece: self.shape.place(content.at, 0).0, disks })
    }

    pub fn disks(&self) -> u32 {
        self.disks.len() as u32
    }

    /// Whether a slot has a disk.
    pub fn is_present(&self, disk: u32) -> bool {
        self.table.disks[disk as usize]
    }

    /// Pulls a disk out: its bytes are gone. Its pieces are computed again on other disks, or wait for a new one. Says how
    /// many contents are lost now.
    ///
    /// # Errors
    /// There is no disk, or a file of the store fails.
    pub fn pull(&mut self, disk: u32, restores: bool) -> Result<u64, ServeError> {
        if !self.is_present(disk) {
            return Err(ServeError::Refused("is pulled already".to_owned()));
        }
        self.commit(&Change::Pull { disk: disk as u16, restores }).map_err(failed)?;
        if self.open_pieces.iter().flatten().flatten().any(|piece| u32::from(piece.disk) == disk) {
            self.place_anew();
        }
        if let Some(at) = self.restoring.take() {
            self.slots.give_back(at.piece);
        }
        self.slots.empty(disk as usize);
        // The disk is gone. What cannot be wiped now is before a disk takes its place, or at the next start.
        let _ = self.disks[disk as usize].empty();
        Ok(self.lost_contents())
    }

    /// Puts an empty disk into an empty slot; missing pieces are restored from now on.
    ///
    /// # Errors
    /// The slot has a disk, or a file of the store fails.
    pub fn insert(&mut self, disk: u32) -> Result<(), ServeError> {
        if self.is_present(disk) {
            return Err(ServeError::Refused("the slot has a disk; pull it first".to_owned()));
        }
        self.disks[disk as usize].wipe().map_err(|error| failed(error.into()))?;
        self.commit(&Change::Insert { disk: disk as u16 }).map_err(failed)
    }

    /// Contents that cannot be had: their piece is missing, and too many others of its container.
    pub fn lost_contents(&self) -> u64 {
        self.lost_without(|_| false)
    }

    /// Contents that would be lost with a disk, besides contents lost already.
    pub fn lost_with(&self, disk: u32) -> u64 {
        self.lost_without(|piece| u32::from(piece.disk) == disk) - self.lost_contents()
    }

    fn lost_without(&self, is_gone: impl Fn(&Piece) -> bool) -> u64 {
        let is_missing = |piece: &Option<Piece>| piece.as_ref().is_none_or(&is_gone);
        let lost = |(number, container): (&u32, &Container)| {
            if container.pieces.iter().filter(|piece| is_missing(piece)).count() <= PARITY_PIECES {
                return 0;
            }
            let place = |at| self.shape.place(at, 0).0;
            self.table.contents_of(*number).filter(|(at, _)| is_missing(&container.pieces[place(*at)])).count() as u64
        };
        self.table.containers.iter().map(lost).sum()
    }

    /// Pieces that are missing, can be computed, and have a disk to go to; none where they are not to be restored.
    pub fn restorable(&self) -> u64 {
        if !self.table.restores {
            return 0;
        }
        let present = self.table.disks.iter().filter(|disk| **disk).count();
        let of = |container: &Container| match container.missing() {
            missing @ 1..=PARITY_PIECES => missing.min(present.saturating_sub(container.pieces.len() - missing)),
            _ => 0,
        };
        self.table.containers.values().map(of).sum::<usize>() as u64
    }

    /// Computes missing pieces again, at most `rows` rows and at most `pieces` pieces. Returns the pieces restored.
    ///
    /// # Errors
    /// No disk has room for the first of them, or a file of the store fails.
    pub fn restore(&mut self, pieces: u64, rows: u32) -> Result<u64, StoreFault> {
        let mut restored = 0;
        for _ in 0..rows {
            if restored == pieces {
                break;
            }
            match self.restore_next_row() {
                Ok(Some(is_whole)) => restored += u64::from(is_whole),
                // It fails again when no piece is restored before it.
                Err(fault) if restored == 0 => return Err(fault),
                Ok(None) | Err(_) => break,
            }
        }
        Ok(restored)
    }

    /// Computes the next row of a missing piece. Says whether the piece is whole with it; nothing where none is to be restored.
    fn restore_next_row(&mut self) -> Result<Option<bool>, StoreFault> {
        let Some(at) = self.restoring.take().filter(|at| self.goes_on(*at)).or_else(|| self.next_missing()) else {
            // There are disks for pieces that are missing, and all of them are full.
            return if self.restorable() > 0 { Err(StoreFault::Full) } else { Ok(None) };
        };
        // One that fails begins anew.
        self.restore_row(at).inspect_err(|_| self.slots.give_back(at.piece))?;
        if at.row + 1 < self.shape.rows() {
            self.restoring = Some(Restoring { row: at.row + 1, ..at });
            return Ok(Some(false));
        }
        let change = Change::Restore { container: at.container, number: at.number as u16, piece: at.piece };
        self.commit(&change).inspect_err(|_| self.slots.give_back(at.piece))?;
        self.counts.restored += 1;
        Ok(Some(true))
    }

    /// Whether a piece is restored in part.
    pub fn is_restoring(&self) -> bool {
        self.restoring.is_some()
    }

    /// Pieces that are missing.
    pub fn missing_pieces(&self) -> u64 {
        self.table.containers.values().map(|container| container.missing() as u64).sum()
    }

    /// Whether the piece that is being restored is still needed.
    fn goes_on(&mut self, at: Restoring) -> bool {
        let is_there = self.table.containers.contains_key(&at.container);
        if !is_there {
            self.slots.give_back(at.piece);
        }
        is_there
    }

    fn next_missing(&mut self) -> Option<Restoring> {
        if !self.table.restores {
            return None;
        }
        let slots = &mut self.slots;
        self.table.containers.iter().find_map(|(number, container)| {
            if !(1..=PARITY_PIECES).contains(&container.missing()) {
                return None;
            }
            let missing = container.pieces.iter().position(Option::is_none)?;
            let holds = |disk: usize| container.pieces.iter().flatten().any(|piece| usize::from(piece.disk) == disk);
            // Free space is spread, and so is what is restored into it.
            let first = *number as usize;
            let disks = (0..self.table.disks.len()).map(|next| (first + next) % self.table.disks.len());
            let piece =
                disks.filter(|disk| self.table.disks[*disk] && !holds(*disk)).find_map(|disk| slots.take(disk))?;
            Some(Restoring { container: *number, number: missing, piece, row: 0 })
        })
    }

    fn restore_row(&mut self, at: Restoring) -> Result<(), StoreFault> {
        let shape = self.shape;
        let pieces = self.table.containers[&at.container].pieces.clone();
        let unit = u64::from(shape.unit_bytes);
        let within = u64::from(at.row) * unit..u64::from(at.row + 1) * unit;
        let mut row = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            let mut bytes = vec![0; unit as usize];
            if let Some(piece) = piece {
                self.read_piece(*piece, &within, &mut bytes)?;
            }
            row.push(bytes);
        }
        let code = self.code(unit as usize);
        let missing: Vec<usize> = (0..pieces.len()).filter(|number| pieces[*number].is_none()).collect();
        rebuild(&code, &mut row, &missing);
        // What is silently wrong on another disk would be wrong in this piece, too.
        let first = at.row * shape.row_bytes();
        for (place, content) in self.table.contents_within(at.container, first..first + shape.row_bytes()) {
            let Content { stored_bytes, print, .. } = self.table.contents[content as usize];
            let (number, lies) = shape.place(place, stored_bytes.into());
            let there = unit_range(&lies, within.start);
            if super::block::block_of(&row[number][there.clone()], print).is_some() {
                continue;
            }
            match self.fetch(content) {
                Ok((stored, _)) => row[number][there].copy_from_slice(&stored),
                Err(StoreFault::Lost) => {}
                Err(fault) => return Err(fault),
            }
        }
        if at.number >= shape.data_pieces {
            let (data, parity) = row.split_at_mut(shape.data_pieces);
            let data: Vec<&[u8]> = data.iter().map(|bytes| &bytes[..]).collect();
            let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(|bytes| &mut bytes[..]).collect();
            code.encode(&data, &mut parity).expect("units have one length");
        }
        self.write_piece(at.piece, within.start, &row[at.number])
    }

    /// Changes `bytes` written bytes of a disk without a trace, from the first written byte at or after a place.
    /// Returns the place.
    ///
    /// # Errors
    /// Nothing was written there, or a file fails.
    pub fn corrupt(&mut self, disk: u32, from_bytes: u64, bytes: u64) -> Result<u64, ServeError> {
        let slot = &mut self.disks[disk as usize];
        let Some(at_bytes) = slot.first_data(from_bytes) else {
            return Err(ServeError::Refused("nothing was written there that could be corrupted".to_owned()));
        };
        slot.corrupt(at_bytes, bytes).map_err(|error| failed(error.into()))?;
        Ok(at_bytes)
    }
}

/// Where bytes of a piece lie in a unit of it that begins so far in.
fn unit_range(lies: &Range<u64>, unit: u64) -> Range<usize> {
    (lies.start - unit) as usize..(lies.end - unit) as usize
}

fn failed(fault: StoreFault) -> ServeError {
    ServeError::Refused(fault.to_string())
}
