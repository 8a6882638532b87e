//! Where bytes of a container lie in its pieces.

use std::ops::Range;

use assay_array_model::HostFlashPlan;

use super::block::BLOCK_BYTES;
use crate::ServeError;

/// Bytes of a piece after which a container goes on in the next one.
const UNIT_BYTES: u32 = 64 << 10;
/// P and Q.
pub(super) const PARITY_PIECES: usize = 2;
/// A pool holds no fewer containers.
pub(super) const CONTAINERS_LEAST: u32 = 4;

/// Containers are rows of units, one in each piece. A block lies within a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) data_pieces: usize,
    pub(super) piece_bytes: u32,
    pub(super) unit_bytes: u32,
}

impl Shape {
    pub(super) fn new(plan: &HostFlashPlan) -> Result<Self, ServeError> {
        let log = &plan.log;
        if log.parity_pieces as usize != PARITY_PIECES {
            let message = format!(
                "log.parity_pieces: {}; an array is served with {PARITY_PIECES} pieces of parity",
                log.parity_pieces
            );
            return Err(ServeError::Refused(message));
        }
        let piece_bytes = (log.container_bytes / u64::from(log.data_pieces)) as u32;
        let unit_bytes = if piece_bytes.is_multiple_of(UNIT_BYTES) { UNIT_BYTES } else { BLOCK_BYTES as u32 };
        Ok(Self { data_pieces: log.data_pieces as usize, piece_bytes, unit_bytes })
    }

    pub(super) fn pieces(&self) -> usize {
        self.data_pieces + PARITY_PIECES
    }

    pub(super) fn container_bytes(&self) -> u32 {
        self.piece_bytes * self.data_pieces as u32
    }

    /// Data of a row.
    pub(super) fn row_bytes(&self) -> u32 {
        self.unit_bytes * self.data_pieces as u32
    }

    pub(super) fn rows(&self) -> u32 {
        self.piece_bytes / self.unit_bytes
    }

    /// Where the next block may lie in a container that is filled so far.
    pub(super) fn next(&self, end: u32, stored_bytes: u32) -> u32 {
        let left = self.unit_bytes - end % self.unit_bytes;
        if stored_bytes <= left { end } else { end + left }
    }

    /// The piece that bytes within a unit lie in, and where there.
    pub(super) fn place(&self, at: u32, bytes: u32) -> (usize, Range<u64>) {
        let unit = at / self.unit_bytes;
        let row = unit / self.data_pieces as u32;
        let within = u64::from(row * self.unit_bytes + at % self.unit_bytes);
        (unit as usize % self.data_pieces, within..within + u64::from(bytes))
    }
}
