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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_lie_from_the_outside_in_and_tracks_get_shorter(
            capacity in 1_u64 << 30..1 << 44, outer in 50e6_f64..400e6, ratio in 0.3_f64..=1.0, mut places in prop::collection::vec(any::<u64>(), 50),
        ) {
            let zones = Zones::new(capacity, 4_000_000, outer, outer * ratio);
            places.iter_mut().for_each(|place| *place %= capacity);
            places.sort_unstable();
            let spots: Vec<Spot> = places.iter().map(|place| zones.spot(*place)).collect();
            for pair in spots.windows(2) {
                prop_assert!(pair[0].cylinder <= pair[1].cylinder && pair[0].track_bytes >= pair[1].track_bytes);
            }
            let (first, last) = (zones.spot(0), zones.spot(capacity - 1));
            prop_assert_eq!((first.cylinder, first.angle), (0, 0));
            prop_assert!(last.cylinder < CYLINDERS && last.cylinder >= CYLINDERS - 32);
            prop_assert!((f64::from(first.track_bytes) / (outer * 4e-3) - 1.0).abs() < 0.001);
            prop_assert!((f64::from(last.track_bytes) / (outer * ratio * 4e-3) - 1.0).abs() < 0.002);
        }

        #[test]
        fn the_tracks_hold_the_capacity(capacity in 1_u64 << 30..1 << 44, outer in 50e6_f64..400e6, ratio in 0.3_f64..=1.0) {
            let zones = Zones::new(capacity, 4_000_000, outer, outer * ratio);
            // Bytes between two places are cylinders times the length of a track there times the tracks of a cylinder.
            let held = |from: u64, to: u64| {
                let (from, to) = (zones.spot(from), zones.spot(to));
                f64::from(to.cylinder - from.cylinder) * f64::from(from.track_bytes + to.track_bytes) / 2.0
            };
            let parts: Vec<f64> = (0..32).map(|part| held(capacity / 32 * part, capacity / 32 * (part + 1) - 1)).collect();
            let mean = parts.iter().sum::<f64>() / 32.0;
            for part in parts {
                prop_assert!((part / mean - 1.0).abs() < 0.01, "{} is not {}", part, mean);
            }
        }
    }

    #[test]
    fn a_track_is_one_turn() {
        let zones = Zones::new(1 << 40, 4_000_000, 160e6, 160e6);
        assert_eq!(zones.spot(0).track_bytes, 640_000);
        let quarter = zones.spot(160_000).angle;
        assert!(quarter.abs_diff(1 << 30) <= 1);
        assert_eq!(zones.spot(640_000).angle, 0);
    }
}
