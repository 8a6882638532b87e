//! Time of a seek by its distance.

/// Cylinders are numbered 0 (outermost) to this.
pub(super) const CYLINDERS: u32 = 1 << 16;
/// Distances are rounded to so many steps, finer than a track is wide in time.
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
