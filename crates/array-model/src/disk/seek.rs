//! Time of a seek by its distance.

/// Cylinders are numbered 0 (outermost) to this.
pub(super) const CYLINDERS: u32 = 1 << 16;
/// Steps to which distances are rounded, finer than the width of a track in time.
const STEPS: u32 = 1 << 12;

/// Seek times: `a + b sqrt(d) + c d` with `d` the share of the stroke, the curve of Ruemmler and Wilkes ("An introduction to
/// disk drive modeling", 1994) with one piece. `a`, `b`, `c` follow from three data-sheet values: the shortest seek, the longest, and
/// the mean over random pairs of cylinders, for which E sqrt(d) = 8/15 and E d = 1/3.
#[derive(Debug, Clone)]
pub(super) struct SeekCurve {
    time_ns: Box<[u32]>,
}

impl SeekCurve {
    pub(super) fn new(track_ns: u64, average_ns: u64, full_ns: u64) -> Self {
        let (track, average, full) = (track_ns as f64, average_ns as f64, full_ns as f64);
        // a = track; b + c = full - track; 8/15 b + 1/3 c = average - track.
        let b = ((average - track) - (full - track) / 3.0) * 5.0;
        let c = (full - track) - b;
        let time_ns = (0..=STEPS)
            .map(|step| {
                let share = f64::from(step) / f64::from(STEPS);
                // A track-to-track seek is the least that any distance takes.
                (track + b * share.sqrt() + c * share).max(track) as u32
            })
            .collect();
        Self { time_ns }
    }

    /// Time to move the arms; none when they stand there already.
    #[inline]
    pub(super) fn time_ns(&self, from: u32, to: u32) -> u64 {
        let distance = from.abs_diff(to);
        if distance == 0 {
            return 0;
        }
        u64::from(self.time_ns[(distance / (CYLINDERS / STEPS)) as usize])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn seeks_rise_with_the_distance_and_have_the_mean_asked(
            track in 100_000_u64..2_000_000, range in 100_000_u64..30_000_000, share in 5.0_f64 / 15.0..11.0 / 15.0,
        ) {
            let average = track + (range as f64 * share) as u64;
            let curve = SeekCurve::new(track, average, track + range);
            let times: Vec<u64> = (0..CYLINDERS).map(|distance| curve.time_ns(0, distance)).collect();
            prop_assert!(times.is_sorted());
            prop_assert_eq!(times[0], 0);
            prop_assert_eq!(times[1], track);
            prop_assert!(times[CYLINDERS as usize - 1].abs_diff(track + range) <= range / 1000);
            prop_assert_eq!(curve.time_ns(700, 200), times[500]);
            // Of all pairs of cylinders, 2 (n - d) lie d apart.
            let n = f64::from(CYLINDERS);
            let mean: f64 = times.iter().enumerate().map(|(d, time)| 2.0 * (n - d as f64) / (n * n) * *time as f64).sum();
            prop_assert!((mean / average as f64 - 1.0).abs() < 0.01, "{} is not {}", mean, average);
        }
    }
}
