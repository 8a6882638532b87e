//! Parity over real bytes: the arithmetic of the layouts whose chunks [`Geometry`] places.
//!
//! A row is some data chunks, called columns, and one or two chunks of parity of the same length. RAID 5 has the sum of
//! the columns, RAID 6 a second sum with weights, DP sums of diagonals.

mod diagonal;
mod gf;
mod xor;

use std::{mem, ops::Range};

use crate::{ArrayError, Geometry, RaidPolicy};
use diagonal::Diagonals;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// P.
    Single,
    /// P and Q.
    Double,
    /// Row and diagonal parity.
    Diagonal(Diagonals),
}

/// How one row of chunks is made safe: pure functions of the bytes given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    kind: Kind,
    columns: usize,
    chunk_bytes: usize,
}

impl Code {
    /// Code of a policy for so many data chunks in a row.
    ///
    /// # Errors
    /// The policy has no parity, or does not bear so many columns or chunks of this length.
    pub fn new(policy: RaidPolicy, columns: u32, chunk_bytes: u64) -> Result<Self, ArrayError> {
        let most = match policy {
            RaidPolicy::Raid0 | RaidPolicy::Raid1 | RaidPolicy::Raid10 => {
                return Err(ArrayError::invalid("raid", format!("RAID {} has no parity", policy.name())));
            }
            RaidPolicy::Raid5 | RaidPolicy::Raid50 => return Self::of_kind(Kind::Single, columns, chunk_bytes),
            RaidPolicy::Raid6 | RaidPolicy::Raid60 if columns <= gf::MAX_COLUMNS => {
                return Self::of_kind(Kind::Double, columns, chunk_bytes);
            }
            RaidPolicy::Raid6 | RaidPolicy::Raid60 => gf::MAX_COLUMNS,
            RaidPolicy::Dp => match diagonal::prime_for(columns) {
                Some(prime) => return Self::diagonal(prime, columns, chunk_bytes),
                None => diagonal::MAX_COLUMNS,
            },
        };
        let message = format!("RAID {} of {columns} data disks: at most {most} in a set", policy.name());
        Err(ArrayError::invalid("raid", message))
    }

    /// Code of the rows of a geometry.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of(geometry: &Geometry) -> Result<Self, ArrayError> {
        Self::new(geometry.policy(), geometry.columns(), geometry.chunk_bytes())
    }

    /// DP with a prime of one's own: it is more than the columns, and less one it divides the chunk.
    ///
    /// # Errors
    /// It is no such prime.
    pub fn diagonal(prime: u32, columns: u32, chunk_bytes: u64) -> Result<Self, ArrayError> {
        let is_prime = prime > 2 && (2..prime).take_while(|d| d * d <= prime).all(|d| !prime.is_multiple_of(d));
        if !is_prime || prime <= columns || !chunk_bytes.is_multiple_of(u64::from(prime) - 1) {
            let message = format!("{columns} columns of {chunk_bytes} bytes cannot have diagonals by {prime}");
            return Err(ArrayError::invalid("raid", message));
        }
        let diagonals = Diagonals::new(prime as usize, chunk_bytes as usize);
        Self::of_kind(Kind::Diagonal(diagonals), columns, chunk_bytes)
    }

    fn of_kind(kind: Kind, columns: u32, chunk_bytes: u64) -> Result<Self, ArrayError> {
        if columns == 0 || chunk_bytes == 0 {
            let message = format!("{columns} columns of {chunk_bytes} bytes are nothing to protect");
            return Err(ArrayError::invalid("raid", message));
        }
        Ok(Self { kind, columns: columns as usize, chunk_bytes: chunk_bytes as usize })
    }

    /// Chunks of parity in a row, and chunks of the row that may be lost.
    pub fn parity_chunks(&self) -> usize {
        if self.kind == Kind::Single { 1 } else { 2 }
    }

    /// Parity of whole columns.
    ///
    /// # Errors
    /// Chunks are missing or have another length.
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), ArrayError> {
        self.check_row(data, parity)?;
        match (self.kind, parity) {
            (Kind::Single, [p]) => xor::sum(p, data),
            (Kind::Double, [p, q]) => gf::sums(data, p, q),
            (Kind::Diagonal(diagonals), [row, diagonal]) => {
                xor::sum(row, data);
                diagonals.sums(data, row, diagonal);
            }
            _ => unreachable!("the number of parity chunks has been checked"),
        }
        Ok(())
    }

    /// Parity after a write to one column from the bytes before and after it: the other columns are not looked at. A
    /// write to several columns is one call each.
    ///
    /// # Errors
    /// `old` and `new` differ in length or do not lie in the column, or parity is missing.
    pub fn update(
        &self,
        parity: &mut [&mut [u8]],
        column: u32,
        offset: u64,
        old: &[u8],
        new: &[u8],
    ) -> Result<(), ArrayError> {
        self.check(parity.len(), self.parity_chunks(), parity.iter().map(|chunk| chunk.len()))?;
        let range = self.check_range(offset, old.len() as u64)?;
        let column = column as usize;
        if column >= self.columns || new.len() != old.len() {
            let message = format!("{} bytes become {} in column {column}", old.len(), new.len());
            return Err(ArrayError::invalid("parity", message));
        }
        match (self.kind, parity) {
            (Kind::Single, [p]) => xor::add_change(&mut p[range], old, new),
            (Kind::Double, [p, q]) => {
                xor::add_change(&mut p[range.clone()], old, new);
                gf::add_change(&mut q[range], column, old, new);
            }
            (Kind::Diagonal(diagonals), [row, diagonal]) => {
                xor::add_change(&mut row[range.clone()], old, new);
                // What changes in a row of the data changes in its row parity.
                for column in [column, diagonals.row_parity()] {
                    diagonals.update(diagonal, column, range.start, old, new);
                }
            }
            _ => unreachable!("the number of parity chunks has been checked"),
        }
        Ok(())
    }

    /// Parity after a write of the same bytes of any number of columns, computed anew from all data as they are after it.
    ///
    /// # Errors
    /// Chunks are missing or have another length, or the bytes do not lie in them.
    pub fn reconstruct(
        &self,
        data: &[&[u8]],
        parity: &mut [&mut [u8]],
        offset: u64,
        bytes: u64,
    ) -> Result<(), ArrayError> {
        self.check_row(data, parity)?;
        let range = self.check_range(offset, bytes)?;
        let parts: Vec<&[u8]> = data.iter().map(|chunk| &chunk[range.clone()]).collect();
        match (self.kind, parity) {
            (Kind::Single, [p]) => xor::sum(&mut p[range], &parts),
            (Kind::Double, [p, q]) => gf::sums(&parts, &mut p[range.clone()], &mut q[range]),
            (Kind::Diagonal(diagonals), [row, diagonal]) => {
                xor::sum(&mut row[range.clone()], &parts);
                diagonals.reconstruct(&range, data, row, diagonal);
            }
            _ => unreachable!("the number of parity chunks has been checked"),
        }
        Ok(())
    }

    /// Restores lost chunks of a row: the columns, then P or row parity, then Q or diagonal parity. What lost chunks hold
    /// is not looked at.
    ///
    /// # Errors
    /// More are lost than the code bears, or chunks are missing or have another length.
    pub fn rebuild(&self, chunks: &mut [&mut [u8]], lost: &[u32]) -> Result<(), ArrayError> {
        self.check(chunks.len(), self.columns + self.parity_chunks(), chunks.iter().map(|chunk| chunk.len()))?;
        let mut lost: Vec<usize> = lost.iter().map(|chunk| *chunk as usize).collect();
        lost.sort_unstable();
        lost.dedup();
        if lost.len() > self.parity_chunks() || lost.last().is_some_and(|last| *last >= chunks.len()) {
            let (all, bears) = (chunks.len(), self.parity_chunks());
            let message = format!("chunks {lost:?} of {all} are lost, and the code bears {bears}");
            return Err(ArrayError::invalid("parity", message));
        }
        let (row, second) = (self.columns, self.columns + 1);
        match (lost[..].first().copied(), lost.get(1).copied()) {
            (None, _) => {}
            (Some(first), None) if first < second => self.rebuild_by_row(chunks, first),
            (Some(first), Some(last)) if last < second => match self.kind {
                Kind::Double if last == row => self.rebuild_by_q(chunks, first),
                Kind::Double => self.rebuild_two(chunks, [first, last]),
                Kind::Diagonal(diagonals) => self.rebuild_by_chains(diagonals, chunks, [first, last]),
                Kind::Single => unreachable!("bears one lost chunk"),
            },
            (Some(first), _) => {
                if first < second {
                    self.rebuild_by_row(chunks, first);
                }
                self.rebuild_second(chunks);
            }
        }
        Ok(())
    }

    /// Bytes of each chunk of parity that a partial write of so many bytes of a column must read and write, as
    /// [`Self::update`] does: of P and Q the same as of the column, of diagonal parity from the first to the last one
    /// changed. A chunk that the code has not is empty. The bytes lie in a column.
    pub fn affected_parity(&self, column: u32, offset: u64, bytes: u64) -> [Range<u64>; 2] {
        debug_assert!((column as usize) < self.columns && offset + bytes <= self.chunk_bytes as u64);
        let same = offset..offset + bytes;
        match self.kind {
            Kind::Single => [same, 0..0],
            Kind::Double => [same.clone(), same],
            Kind::Diagonal(diagonals) => {
                let hull = diagonals.hull(column as usize, &(offset as usize..(offset + bytes) as usize));
                [same, hull.start as u64..hull.end as u64]
            }
        }
    }

    /// A column or P as the sum of the others.
    fn rebuild_by_row(&self, chunks: &mut [&mut [u8]], lost: usize) {
        let out = mem::take(&mut chunks[lost]);
        xor::sum(out, &shared(&chunks[..=self.columns]));
        chunks[lost] = out;
    }

    /// A column and P from Q.
    fn rebuild_by_q(&self, chunks: &mut [&mut [u8]], column: usize) {
        let (x, p) = (mem::take(&mut chunks[column]), mem::take(&mut chunks[self.columns]));
        gf::sums(&shared(&chunks[..self.columns]), p, x);
        gf::solve_one(column, x, p, chunks[self.columns + 1]);
        (chunks[column], chunks[self.columns]) = (x, p);
    }

    /// Two columns from P and Q.
    fn rebuild_two(&self, chunks: &mut [&mut [u8]], [first, second]: [usize; 2]) {
        let (x, y) = (mem::take(&mut chunks[first]), mem::take(&mut chunks[second]));
        gf::sums(&shared(&chunks[..self.columns]), x, y);
        gf::solve_two([first, second], x, y, chunks[self.columns], chunks[self.columns + 1]);
        (chunks[first], chunks[second]) = (x, y);
    }

    /// Two columns, or one and row parity, from what is left of rows and diagonals.
    fn rebuild_by_chains(&self, diagonals: Diagonals, chunks: &mut [&mut [u8]], [first, second]: [usize; 2]) {
        let (x, y) = (mem::take(&mut chunks[first]), mem::take(&mut chunks[second]));
        let left = shared(chunks);
        let (data, row_parity, stored) = (&left[..self.columns], left[self.columns], left[self.columns + 1]);
        xor::sum(x, &left[..=self.columns]);
        let mut sums = vec![0; self.chunk_bytes];
        diagonals.sums(data, row_parity, &mut sums);
        xor::add(&mut sums, stored);
        let second_column = if second == self.columns { diagonals.row_parity() } else { second };
        diagonals.solve_two([first, second_column], x, y, &mut sums);
        (chunks[first], chunks[second]) = (x, y);
    }

    /// Q or diagonal parity from the columns and the first parity.
    fn rebuild_second(&self, chunks: &mut [&mut [u8]]) {
        let out = mem::take(&mut chunks[self.columns + 1]);
        let left = shared(&chunks[..=self.columns]);
        match self.kind {
            Kind::Single => unreachable!("has one chunk of parity"),
            Kind::Double => gf::sums(&left[..self.columns], &mut vec![0; self.chunk_bytes], out),
            Kind::Diagonal(diagonals) => diagonals.sums(&left[..self.columns], left[self.columns], out),
        }
        chunks[self.columns + 1] = out;
    }

    fn check_row(&self, data: &[&[u8]], parity: &[&mut [u8]]) -> Result<(), ArrayError> {
        self.check(data.len(), self.columns, data.iter().map(|chunk| chunk.len()))?;
        self.check(parity.len(), self.parity_chunks(), parity.iter().map(|chunk| chunk.len()))
    }

    fn check(&self, chunks: usize, needed: usize, lengths: impl Iterator<Item = usize>) -> Result<(), ArrayError> {
        if chunks != needed {
            return Err(ArrayError::invalid("parity", format!("{chunks} chunks given, {needed} needed")));
        }
        for length in lengths {
            if length != self.chunk_bytes {
                let message = format!("a chunk of {length} bytes among those of {}", self.chunk_bytes);
                return Err(ArrayError::invalid("parity", message));
            }
        }
        Ok(())
    }

    fn check_range(&self, offset: u64, bytes: u64) -> Result<Range<usize>, ArrayError> {
        let chunk_bytes = self.chunk_bytes as u64;
        if offset > chunk_bytes || bytes > chunk_bytes - offset {
            let message = format!("{bytes} bytes from {offset} do not lie in a chunk of {chunk_bytes}");
            return Err(ArrayError::invalid("parity", message));
        }
        Ok(offset as usize..(offset + bytes) as usize)
    }
}

fn shared<'a>(chunks: &'a [&mut [u8]]) -> Vec<&'a [u8]> {
    chunks.iter().map(|chunk| &**chunk).collect()
}
