//! Containers on disks: pieces with their parity, read around missing and wrong pieces.

use std::ops::Range;

use assay_array_model::{Code, RaidPolicy};

use super::{
    LoggedStore,
    block::{Block, block_of},
    change::{Change, Piece},
    shape::PARITY_PIECES,
    table::Content,
};
use crate::StoreFault;

impl LoggedStore {
    /// A content in its stored form, and its block.
    pub(super) fn fetch(&mut self, content: u32) -> Result<(Vec<u8>, Block), StoreFault> {
        let Content { print, container, at, stored_bytes, .. } = self.table.contents[content as usize];
        if container == self.table.open.number {
            let stored = self.table.open.bytes[at as usize..][..usize::from(stored_bytes)].to_vec();
            let block = block_of(&stored, print).ok_or(StoreFault::Lost)?;
            return Ok((stored, block));
        }
        let pieces = self.table.containers[&container].pieces.clone();
        let (number, within) = self.shape.place(at, stored_bytes.into());
        if let Some(piece) = pieces[number] {
            let mut stored = vec![0; usize::from(stored_bytes)];
            self.read_piece(piece, &within, &mut stored)?;
            if let Some(block) = block_of(&stored, print) {
                return Ok((stored, block));
            }
        }
        self.compute(&pieces, number, &within, print)
    }

    /// Computes bytes of a piece from others: without those that are missing, and where these do not give what was written
    /// without others that may be wrong, too. What was wrong is written again.
    fn compute(
        &mut self,
        pieces: &[Option<Piece>],
        number: usize,
        within: &Range<u64>,
        print: u128,
    ) -> Result<(Vec<u8>, Block), StoreFault> {
        let is_left_out = |piece: usize| pieces[piece].is_none() || piece == number;
        let left_out: Vec<usize> = (0..pieces.len()).filter(|piece| is_left_out(*piece)).collect();
        let mut read = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let mut bytes = vec![0; (within.end - within.start) as usize];
            if let Some(piece) = piece {
                self.read_piece(*piece, within, &mut bytes)?;
            }
            read.push(bytes);
        }
        let code = self.code(read[0].len());
        let none_more = std::iter::once(None);
        let one_more = (0..pieces.len()).filter(|piece| !left_out.contains(piece)).map(Some);
        for more in none_more.chain(one_more) {
            let lost: Vec<usize> = left_out.iter().copied().chain(more).collect();
            if lost.len() > PARITY_PIECES {
                break;
            }
            let mut computed = read.clone();
            rebuild(&code, &mut computed, &lost);
            let Some(block) = block_of(&computed[number], print) else { continue };
            for (piece, wrong) in lost.iter().filter_map(|lost| Some((pieces[*lost]?, *lost))) {
                self.write_piece(piece, within.start, &computed[wrong])?;
                self.counts.healed += 1;
            }
            return Ok((computed.swap_remove(number), block));
        }
        Err(StoreFault::Lost)
    }

    pub(super) fn code(&self, bytes: usize) -> Code {
        Code::new(RaidPolicy::Raid6, self.shape.data_pieces as u32, bytes as u64).expect("the shape has been checked")
    }

    pub(super) fn read_piece(&self, piece: Piece, within: &Range<u64>, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let at_bytes = u64::from(piece.slot) * u64::from(self.shape.piece_bytes) + within.start;
        self.disks[usize::from(piece.disk)].read(at_bytes, bytes)?;
        Ok(())
    }

    pub(super) fn write_piece(&mut self, piece: Piece, within: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        let at_bytes = u64::from(piece.slot) * u64::from(self.shape.piece_bytes) + within;
        Ok(self.disks[usize::from(piece.disk)].write(at_bytes, bytes)?)
    }

    /// Writes rows of the open container that are full, or all that have bytes, with their parity.
    pub(super) fn write_rows(&mut self, all: bool) -> Result<(), StoreFault> {
        let row_bytes = self.shape.row_bytes();
        let end = self.table.open.end;
        let rows = if all { end.div_ceil(row_bytes) } else { end / row_bytes };
        if self.open_rows >= rows {
            return Ok(());
        }
        let pieces = self.place_open()?;
        let unit = self.shape.unit_bytes as usize;
        let code = self.code(unit);
        let mut parity = vec![vec![0; unit]; PARITY_PIECES];
        while self.open_rows < rows {
            let first = (self.open_rows * row_bytes) as usize;
            let bytes = self.table.open.bytes[first..first + row_bytes as usize].to_vec();
            let data: Vec<&[u8]> = bytes.chunks_exact(unit).collect();
            let mut sums: Vec<&mut [u8]> = parity.iter_mut().map(|bytes| &mut bytes[..]).collect();
            code.encode(&data, &mut sums).expect("units have one length");
            let units = data.into_iter().chain(parity.iter().map(|bytes| &bytes[..]));
            for (piece, unit_bytes) in pieces.iter().zip(units) {
                if let Some(piece) = piece {
                    self.write_piece(*piece, u64::from(self.open_rows) * unit as u64, unit_bytes)?;
                }
            }
            self.open_rows += 1;
        }
        Ok(())
    }

    /// Where the pieces of the open container lie.
    fn place_open(&mut self) -> Result<Vec<Option<Piece>>, StoreFault> {
        if let Some(pieces) = &self.open_pieces {
            return Ok(pieces.clone());
        }
        let pieces = self.slots.take_row(&self.table.disks, self.shape.pieces());
        if pieces.iter().flatten().count() < self.shape.data_pieces {
            pieces.into_iter().flatten().for_each(|piece| self.slots.give_back(piece));
            // A container that no disks hold is lost at once.
            let disks = self.table.disks.iter().filter(|is_there| **is_there).count();
            return Err(if disks < self.shape.data_pieces { StoreFault::Lost } else { StoreFault::Full });
        }
        self.open_pieces = Some(pieces.clone());
        Ok(pieces)
    }

    /// The open container goes elsewhere: a disk of it is gone.
    pub(super) fn place_anew(&mut self) {
        for piece in self.open_pieces.take().into_iter().flatten().flatten() {
            self.slots.give_back(piece);
        }
        self.open_rows = 0;
    }

    /// Puts the open container on disks, and begins another one.
    pub(super) fn seal(&mut self) -> Result<(), StoreFault> {
        if self.table.open.end == 0 {
            return Ok(());
        }
        self.write_rows(true)?;
        let pieces = self.place_open()?;
        // Where that fails the last row may still get more.
        let full_rows = self.table.open.end / self.shape.row_bytes();
        let is_short = pieces.contains(&None);
        self.commit(&Change::Seal(pieces)).inspect_err(|_| self.open_rows = full_rows)?;
        (self.open_pieces, self.open_rows) = (None, 0);
        self.sealed_short |= is_short;
        Ok(())
    }

    /// Whether since this was asked last a container went to disks that had no room for all of its pieces.
    pub fn take_sealed_short(&mut self) -> bool {
        std::mem::take(&mut self.sealed_short)
    }
}

/// Computes pieces that are lost from the others.
pub(super) fn rebuild(code: &Code, pieces: &mut [Vec<u8>], lost: &[usize]) {
    let lost: Vec<u32> = lost.iter().map(|piece| *piece as u32).collect();
    let mut chunks: Vec<&mut [u8]> = pieces.iter_mut().map(|bytes| &mut bytes[..]).collect();
    code.rebuild(&mut chunks, &lost).expect("no more are lost than there is parity, and all have one length");
}
