//! Pieces of outstanding writes.

use std::ops::Range;

/// A part of an outstanding write, which a crash keeps whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of the write or discard in the log.
    pub request: usize,
    /// Its sectors.
    pub sectors: Range<u64>,
}
