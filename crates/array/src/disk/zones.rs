//! Where bytes lie on the platters.

use super::seek::CYLINDERS;

/// Pieces into which the capacity is cut; between their ends, cylinders are interpolated.
const PIECES: u64 = 1 << 12;

/// Bytes to cylinder, track length and angle. The density of tracks falls linearly from the outermost cylinder to the
/// innermost, as the data sheet's transfer rates say.
#[derive(Debug, Clone)]
pub(super) struct Zones {
    piece_bytes: u64,
    pieces: Box<[Piece]>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    cylinder: u32,
    track_bytes: u32,
    start_bytes: u64,
}

/// A place under the heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) cylinder: u32,
    /// Where on the track, of 2^32.
    pub(super) angle: u32,
    pub(super) track_bytes: u32,
}

impl Zones {
    pub(super) fn new(capacity_bytes: u64, revolution_ns: u64, outer_bytes_per_s: f64, inner_bytes_per_s: f64) -> Self {
        let ratio = inner_bytes_per_s / outer_bytes_per_s;
        let falls = 1.0 - ratio;
        let piece_bytes = capacity_bytes.div_ceil(PIECES).max(1);
        let pieces = (0..=PIECES)
            .map(|piece| {
                let share = piece as f64 / PIECES as f64;
                // Bytes up to stroke x are x - falls x^2 / 2, and 1 - falls / 2 in all.
                let bytes = share * (1.0 - falls / 2.0);
                let stroke = if falls > 0.0 { (1.0 - (1.0 - 2.0 * falls * bytes).sqrt()) / falls } else { bytes };
                let rate = outer_bytes_per_s * (1.0 - falls * stroke);
                Piece {
                    cylinder: (stroke * f64::from(CYLINDERS - 1)) as u32,
                    track_bytes: (rate * revolution_ns as f64 / 1e9) as u32,
                    start_bytes: piece * piece_bytes,
                }
            })
            .collect();
        Self { piece_bytes, pieces }
    }

    #[inline]
    pub(super) fn spot(&self, at_bytes: u64) -> Spot {
        let index = ((at_bytes / self.piece_bytes) as usize).min(self.pieces.len() - 2);
        let (piece, next) = (self.pieces[index], self.pieces[index + 1]);
        let within = at_bytes - piece.start_bytes;
        let cylinders = u64::from(next.cylinder - piece.cylinder);
        let on_track = (within % u64::from(piece.track_bytes)) << 32;
        Spot {
            cylinder: piece.cylinder + (cylinders * within / self.piece_bytes) as u32,
            angle: (on_track / u64::from(piece.track_bytes)) as u32,
            track_bytes: piece.track_bytes,
        }
    }
}
