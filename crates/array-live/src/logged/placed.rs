//! Places of blocks and pieces.

use super::change::Piece;

/// A piece that is computed again, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Restoring {
    pub(super) container: u32,
    pub(super) number: usize,
    pub(super) piece: Piece,
    pub(super) row: u32,
}

/// The container of a block, its piece of it, and the disk of each piece that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedBlock {
    pub container: u32,
    pub piece: usize,
    pub disks: Vec<Option<u16>>,
}
