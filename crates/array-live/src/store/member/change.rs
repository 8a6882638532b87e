//! Changes of a write: data, and its copies or parity.

use std::ops::Range;

use assay_array_model::Place;

use super::Member;
use crate::{
    StoreFault,
    store::{
        disk::{BLOCK_BYTES, blocks},
        journal::{Change, Step},
    },
};

impl Member {
    /// Change for the first of these bytes, and how many bytes it covers.
    pub(in crate::store) fn change(&mut self, at_bytes: u64, bytes: &[u8]) -> Result<(Change, usize), StoreFault> {
        let (at_bytes, together) = self.together(at_bytes, bytes.len());
        self.change_at(at_bytes, &bytes[..together])
    }

    /// The same where the bytes lie, as the geometry spreads them over disks.
    pub(super) fn change_at(&mut self, at_bytes: u64, bytes: &[u8]) -> Result<(Change, usize), StoreFault> {
        let (place, within, count) = self.piece(at_bytes, bytes.len());
        let range = within..within + count as u64;
        if !self.is_torn(place, &range) {
            match self.change_of(place, within, &bytes[..count]) {
                Err(StoreFault::Lost) => {}
                change => return Ok((change?, count)),
            }
        }
        // Block by block where some of them are lost.
        let first = count.min((BLOCK_BYTES - within % BLOCK_BYTES) as usize);
        match self.change_of(place, within, &bytes[..first]) {
            Err(StoreFault::Lost) if first as u64 == BLOCK_BYTES => {
                Ok((self.change_of_lost(place, within, &bytes[..first])?, first))
            }
            change => Ok((change?, first)),
        }
    }

    /// Makes a change; a second time it changes nothing.
    pub(in crate::store) fn make(&mut self, change: &Change) -> Result<(), StoreFault> {
        for (step, disk, at_bytes, bytes) in change.steps() {
            let disk = &mut self.disks[disk];
            match step {
                Step::Put | Step::Copy => disk.write(at_bytes.start, bytes)?,
                Step::Good => disk.record.bad.remove(blocks(&at_bytes)),
                Step::Bad => disk.record.bad.insert(blocks(&at_bytes)),
            }
        }
        for (block, place) in change.moves() {
            if let Some(places) = &mut self.places {
                places.set(*block, *place)?;
            }
        }
        Ok(())
    }

    /// Whether a part of a row may be held in part only.
    fn is_torn(&self, place: Place, range: &Range<u64>) -> bool {
        let torn = |disk: usize| self.disks[disk].takes(place.row) && self.disks[disk].has_bad(place.row, range);
        if self.has_parity {
            self.cells(place.set, place.row).into_iter().any(torn)
        } else {
            self.copies(place).any(torn)
        }
    }

    fn on_disk(&self, row: u64, range: &Range<u64>) -> Range<u64> {
        let first = row * self.chunk_bytes();
        first + range.start..first + range.end
    }

    /// A write within a chunk. Where there are sums, whole blocks are written.
    fn change_of(&mut self, place: Place, within: u64, bytes: &[u8]) -> Result<Change, StoreFault> {
        let whole = self.outward(within..within + bytes.len() as u64);
        if whole.end - whole.start > bytes.len() as u64 {
            let mut blocks = vec![0; (whole.end - whole.start) as usize];
            self.read_piece(place, whole.start, &mut blocks)?;
            blocks[(within - whole.start) as usize..][..bytes.len()].copy_from_slice(bytes);
            return self.change_of(place, whole.start, &blocks);
        }
        if self.has_parity {
            self.change_of_parity(place, within, bytes)
        } else {
            self.change_of_copies(place, within, bytes)
        }
    }

    fn change_of_copies(&self, place: Place, within: u64, bytes: &[u8]) -> Result<Change, StoreFault> {
        let (mut change, row) = (Change::default(), place.row);
        let range = within..within + bytes.len() as u64;
        let is_whole = within.is_multiple_of(BLOCK_BYTES) && (bytes.len() as u64).is_multiple_of(BLOCK_BYTES);
        let mut written = false;
        for disk in self.copies(place) {
            let holds = self.disks[disk].holds(row, &range);
            if holds || (is_whole && self.disks[disk].takes(row)) {
                let at_bytes = self.on_disk(row, &range);
                if written {
                    change.copy(disk, at_bytes.clone());
                } else {
                    change.put(disk, at_bytes.start, bytes);
                }
                written = true;
                if !holds {
                    change.good(disk, at_bytes);
                }
            }
        }
        if written { Ok(change) } else { Err(StoreFault::Lost) }
    }

    /// New data and the parity that follows from old data, old parity and them.
    fn change_of_parity(&mut self, place: Place, within: u64, bytes: &[u8]) -> Result<Change, StoreFault> {
        let cells = self.cells(place.set, place.row);
        let (row, column) = (place.row, place.column as usize);
        let parity = self.geometry.policy().parity_disks() as usize;
        let range = within..within + bytes.len() as u64;
        let mut old = vec![0; bytes.len()];
        self.read_cell(place, column, within, &mut old)?;
        let span = self.span(range.clone());
        let mut sums = vec![vec![0; (span.end - span.start) as usize]; parity];
        let protecting = &cells[cells.len() - parity..];
        for (which, sum) in sums.iter_mut().enumerate() {
            if self.disks[protecting[which]].holds(row, &span) {
                self.read_cell(place, cells.len() - parity + which, span.start, sum)?;
            }
        }
        let before = sums.clone();
        let mut parts: Vec<&mut [u8]> = sums.iter_mut().map(|sum| &mut sum[..]).collect();
        self.code_of(span.end - span.start)?.update(&mut parts, place.column, within - span.start, &old, bytes)?;
        let mut change = Change::default();
        for ((disk, before), sum) in protecting.iter().zip(&before).zip(&sums) {
            if self.disks[*disk].holds(row, &span) {
                // A few bytes change parity on few diagonals.
                let only = if span == range { 0..sum.len() } else { differing(before, sum) };
                change.put(*disk, self.on_disk(row, &span).start + only.start as u64, &sum[only]);
            }
        }
        let disk = cells[column];
        if self.disks[disk].holds(row, &range) {
            change.put(disk, self.on_disk(row, &range).start, bytes);
        } else if self.disks[disk].takes(row) && range.end - range.start == BLOCK_BYTES {
            change.put(disk, self.on_disk(row, &range).start, bytes);
            change.good(disk, self.on_disk(row, &range));
        }
        Ok(change)
    }

    /// A block in place of a lost one, or of one whose parity is lost with others. Parity is good again once all data that it
    /// protects are.
    fn change_of_lost(&mut self, place: Place, within: u64, bytes: &[u8]) -> Result<Change, StoreFault> {
        let row = place.row;
        if !self.has_parity || !self.disks[place.disk as usize].takes(row) {
            return Err(StoreFault::Lost);
        }
        let cells = self.cells(place.set, row);
        let columns = self.geometry.columns() as usize;
        let range = within..within + bytes.len() as u64;
        let span = self.span(range.clone());
        let mut change = Change::default();
        change.put(place.disk as usize, self.on_disk(row, &range).start, bytes);
        change.good(place.disk as usize, self.on_disk(row, &range));
        let mut data = vec![vec![0; (span.end - span.start) as usize]; columns];
        let mut is_complete = true;
        for (column, chunk) in data.iter_mut().enumerate() {
            if column != place.column as usize {
                is_complete &= self.sound(cells[column], row, span.start, chunk)?;
                continue;
            }
            let (start, end) = ((range.start - span.start) as usize, (range.end - span.start) as usize);
            is_complete &= start == 0 || self.sound(cells[column], row, span.start, &mut chunk[..start])?;
            is_complete &= end == chunk.len() || self.sound(cells[column], row, range.end, &mut chunk[end..])?;
            chunk[start..end].copy_from_slice(bytes);
        }
        let mut sums = vec![vec![0; (span.end - span.start) as usize]; cells.len() - columns];
        if is_complete {
            let parts: Vec<&[u8]> = data.iter().map(|chunk| &chunk[..]).collect();
            let mut sums: Vec<&mut [u8]> = sums.iter_mut().map(|sum| &mut sum[..]).collect();
            self.code_of(span.end - span.start)?.encode(&parts, &mut sums)?;
        }
        for (disk, sum) in cells[columns..].iter().zip(&sums) {
            if !self.disks[*disk].takes(row) {
                continue;
            }
            if is_complete {
                change.put(*disk, self.on_disk(row, &span).start, sum);
                change.good(*disk, self.on_disk(row, &span));
            } else {
                change.bad(*disk, self.on_disk(row, &span));
            }
        }
        Ok(change)
    }
}

/// Blocks from the first to the last that differ.
fn differing(before: &[u8], after: &[u8]) -> Range<usize> {
    let block = BLOCK_BYTES as usize;
    let differs: Vec<bool> = before.chunks(block).zip(after.chunks(block)).map(|(one, other)| one != other).collect();
    let first = differs.iter().position(|differs| *differs).unwrap_or(0);
    let end = differs.iter().rposition(|differs| *differs).map_or(first, |last| last + 1);
    first * block..(end * block).min(after.len())
}
