//! The field of 256 elements and the two parities of RAID 6: P = sum of D(i), Q = sum of 2^i D(i).
//!
//! Polynomial 0x11D, generator 2, formulas of H. P. Anvin, "The mathematics of RAID-6" (2004). Addition is exclusive or.
//! Doubling is a shift and a mask in every byte by itself, so that whole vectors double at once and no table is needed;
//! multiplication by a constant is eight doublings.

use std::ops::Range;

use super::xor::TILE;

/// The polynomial less its highest term.
const POLYNOMIAL: u8 = 0x1D;

/// Powers of 2 that differ.
pub(super) const MAX_COLUMNS: u32 = 255;

static ZEROS: [u8; TILE] = [0; TILE];

#[inline(always)]
const fn double(x: u8) -> u8 {
    (x << 1) ^ (((x as i8) >> 7) as u8 & POLYNOMIAL)
}

/// A constant to multiply by.
#[derive(Clone, Copy)]
struct Factor([u8; 8]);

impl Factor {
    /// All ones for every bit that is set, from the highest.
    fn new(value: u8) -> Self {
        Self(std::array::from_fn(|bit| if value >> (7 - bit) & 1 == 1 { 0xFF } else { 0 }))
    }

    /// 2 to this power.
    fn power(exponent: usize) -> Self {
        Self::new((0..exponent % 255).fold(1, |x, _| double(x)))
    }

    #[inline(always)]
    fn times(&self, x: u8) -> u8 {
        self.0.iter().fold(0, |product, mask| double(product) ^ (x & mask))
    }

    fn value(&self) -> u8 {
        self.times(1)
    }

    /// The inverse: the power 254, as the power 255 is 1.
    fn inverse(&self) -> Self {
        Self::new((0..254).fold(1, |x, _| self.times(x)))
    }
}

/// P and Q of all columns by Horner's rule. A column of length zero is lost and counts as zeros.
pub(super) fn sums(columns: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
    let (fours, ones) = columns.split_at(columns.len() / 4 * 4);
    for (index, (p, q)) in p.chunks_mut(TILE).zip(q.chunks_mut(TILE)).enumerate() {
        let tile = index * TILE..index * TILE + p.len();
        let part = |column: usize| part(columns[column], &tile);
        p.fill(0);
        q.fill(0);
        for column in (fours.len()..fours.len() + ones.len()).rev() {
            add_one(p, q, part(column));
        }
        for first in (0..fours.len()).step_by(4).rev() {
            add_four(p, q, [part(first), part(first + 1), part(first + 2), part(first + 3)]);
        }
    }
}

fn part<'a>(column: &'a [u8], tile: &Range<usize>) -> &'a [u8] {
    if column.is_empty() { &ZEROS[..tile.len()] } else { &column[tile.clone()] }
}

fn add_one(p: &mut [u8], q: &mut [u8], column: &[u8]) {
    for ((p, q), x) in p.iter_mut().zip(q).zip(column) {
        *p ^= x;
        *q = double(*q) ^ x;
    }
}

/// Four columns at a time: P and Q are loaded and stored once for all of them.
fn add_four(p: &mut [u8], q: &mut [u8], [a, b, c, d]: [&[u8]; 4]) {
    for (((((p, q), a), b), c), d) in p.iter_mut().zip(q).zip(a).zip(b).zip(c).zip(d) {
        *p ^= a ^ b ^ c ^ d;
        *q = double(double(double(double(*q) ^ d) ^ c) ^ b) ^ a;
    }
}

/// Q after a write to one column: `q ^= 2^column (old ^ new)`.
pub(super) fn add_change(q: &mut [u8], column: usize, old: &[u8], new: &[u8]) {
    let factor = Factor::power(column);
    for ((q, old), new) in q.iter_mut().zip(old).zip(new) {
        *q ^= factor.times(old ^ new);
    }
}

/// Data of a column from Q, which is lost together with P. `x` holds Q without the column, P without it is `p`; both
/// become what they were.
pub(super) fn solve_one(column: usize, x: &mut [u8], p: &mut [u8], q: &[u8]) {
    let factor = Factor::power(255 - column);
    for ((x, p), q) in x.iter_mut().zip(p).zip(q) {
        *x = factor.times(*x ^ q);
        *p ^= *x;
    }
}

/// Data of two lost columns. `x` holds P and `y` holds Q without them; they become the first and the second column:
/// with p = P ^ `x` and q = Q ^ `y`, D(second) = (2^-first q ^ p) / (1 ^ 2^(second - first)), D(first) = p ^ D(second).
pub(super) fn solve_two([first, second]: [usize; 2], x: &mut [u8], y: &mut [u8], p: &[u8], q: &[u8]) {
    let divisor = Factor::new(1 ^ Factor::power(second - first).value()).inverse();
    let of_q = Factor::new(divisor.times(Factor::power(255 - first).value()));
    for (((x, y), p), q) in x.iter_mut().zip(y).zip(p).zip(q) {
        let p = *x ^ p;
        *y = divisor.times(p) ^ of_q.times(*y ^ q);
        *x = p ^ *y;
    }
}
