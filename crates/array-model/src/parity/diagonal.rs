//! Row and diagonal parity by exclusive or alone: P. Corbett et al., "Row-Diagonal Parity for Double Disk Failure
//! Correction" (FAST 04).
//!
//! A prime p. Chunks are cut into p - 1 rows. Row parity is the sum of a row of the data and counts as column p - 1;
//! data columns that are missing are zero. Row i of column j is on diagonal (i + j) mod p. The chunk of diagonal parity
//! holds diagonals 0 to p - 2 in this order; diagonal p - 1 is not stored.

use std::ops::Range;

use super::xor;

/// The primes in use. Less one they are powers of two and divide every chunk.
const FERMAT_PRIMES: [u32; 3] = [5, 17, 257];

/// One less than the largest prime in use.
pub(super) const MAX_COLUMNS: u32 = 256;

/// The smallest prime in use for `columns` columns of data.
pub(super) fn prime_for(columns: u32) -> Option<u32> {
    FERMAT_PRIMES.into_iter().find(|prime| columns < *prime)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Diagonals {
    prime: usize,
    row_bytes: usize,
}

impl Diagonals {
    /// `prime` is one, and less one divides the chunk.
    pub(super) fn new(prime: usize, chunk_bytes: usize) -> Self {
        Self { prime, row_bytes: chunk_bytes / (prime - 1) }
    }

    /// Column that row parity counts as.
    pub(super) fn row_parity(&self) -> usize {
        self.prime - 1
    }

    fn rows(&self) -> usize {
        self.prime - 1
    }

    /// Bytes of a row.
    fn row(&self, row: usize) -> Range<usize> {
        row * self.row_bytes..(row + 1) * self.row_bytes
    }

    /// Row of a column that is on a diagonal; none if the column misses it.
    fn row_on(&self, diagonal: usize, column: usize) -> Option<usize> {
        let row = (diagonal + self.prime - column) % self.prime;
        (row < self.rows()).then_some(row)
    }

    /// Diagonal of a row of a column; none for the diagonal that is not stored.
    fn diagonal_of(&self, row: usize, column: usize) -> Option<usize> {
        let diagonal = (row + column) % self.prime;
        (diagonal < self.rows()).then_some(diagonal)
    }

    /// All diagonals of data columns and row parity. A chunk of length zero is lost and counts as zeros.
    pub(super) fn sums(&self, data: &[&[u8]], row_parity: &[u8], diagonals: &mut [u8]) {
        for diagonal in 0..self.rows() {
            self.sum(diagonal, &(0..self.row_bytes), data, row_parity, &mut diagonals[self.row(diagonal)]);
        }
    }

    /// Some bytes of one diagonal, counted from the beginning of its rows.
    fn sum(&self, diagonal: usize, bytes: &Range<usize>, data: &[&[u8]], row_parity: &[u8], sum: &mut [u8]) {
        let columns = data.iter().copied().enumerate().chain([(self.row_parity(), row_parity)]);
        let parts = columns.filter_map(|(column, chunk)| {
            let row = self.row_on(diagonal, column).filter(|_| !chunk.is_empty())?;
            Some(&chunk[self.row(row)][bytes.clone()])
        });
        xor::sum_from(sum, parts);
    }

    /// Computes the diagonals again that a write of these bytes of any column changes. Row parity is as after the
    /// write.
    pub(super) fn reconstruct(&self, range: &Range<usize>, data: &[&[u8]], row_parity: &[u8], diagonals: &mut [u8]) {
        if range.is_empty() {
            return;
        }
        let rows = range.start / self.row_bytes..(range.end - 1) / self.row_bytes + 1;
        let first = range.start - rows.start * self.row_bytes;
        let bytes = if rows.len() == 1 { first..first + range.len() } else { 0..self.row_bytes };
        let columns = || (0..data.len()).chain([self.row_parity()]);
        for diagonal in 0..self.rows() {
            let touched = |column| self.row_on(diagonal, column).is_some_and(|row| rows.contains(&row));
            if columns().any(touched) {
                self.sum(diagonal, &bytes, data, row_parity, &mut diagonals[self.row(diagonal)][bytes.clone()]);
            }
        }
    }

    /// Diagonals after a write to a column, row parity among them: what differs between old and new is added.
    pub(super) fn update(&self, diagonals: &mut [u8], column: usize, offset: usize, old: &[u8], new: &[u8]) {
        for (from, to) in self.shifts(column, &(offset..offset + old.len())) {
            let within = from.start - offset..from.end - offset;
            xor::add_change(&mut diagonals[to], &old[within.clone()], &new[within]);
        }
    }

    /// Where bytes of a column lie in the chunk of diagonals: as a column is shifted by whole rows, up to two runs. The
    /// row on the diagonal that is not stored is in none.
    fn shifts(&self, column: usize, range: &Range<usize>) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let down = column * self.row_bytes;
        let missing = self.row(self.prime - 1 - column);
        let up = missing.end;
        let before = range.start..range.end.min(missing.start);
        let after = range.start.max(missing.end)..range.end;
        let lower = (before.clone(), before.start + down..before.end + down);
        let upper = (!after.is_empty()).then(|| (after.clone(), after.start - up..after.end - up));
        [Some(lower).filter(|(from, _)| !from.is_empty()), upper].into_iter().flatten()
    }

    /// From the first to the last byte of the diagonals that a write of these bytes of a column changes, by the column
    /// itself and by row parity.
    pub(super) fn hull(&self, column: usize, range: &Range<usize>) -> Range<usize> {
        let of_column = self.shifts(column, range).chain(self.shifts(self.row_parity(), range));
        of_column.map(|(_, to)| to).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
    }

    /// Rebuilds two columns, the second of which may be row parity. `x` holds the sums of rows and `diagonals` the sums
    /// of diagonals over what is left, parity included; `x` becomes the first column and `y` the second.
    ///
    /// A diagonal that misses one of the columns gives a row of the other, the row gives that of the first, whose
    /// diagonal gives the next row of the other, until the diagonal that is not stored. Each column begins such a chain.
    pub(super) fn solve_two(&self, [first, second]: [usize; 2], x: &mut [u8], y: &mut [u8], diagonals: &mut [u8]) {
        for (known, other) in [(first, second), (second, first)] {
            let mut next = self.diagonal_of(self.rows(), other);
            while let Some(diagonal) = next {
                let Some(row) = self.row_on(diagonal, known) else { break };
                let (x, y) = (&mut x[self.row(row)], &mut y[self.row(row)]);
                y.copy_from_slice(&diagonals[self.row(diagonal)]);
                xor::add(x, y);
                next = self.diagonal_of(row, other);
                if let Some(next) = next {
                    xor::add(&mut diagonals[self.row(next)], x);
                }
                if known == first {
                    x.swap_with_slice(y);
                }
            }
        }
    }
}
