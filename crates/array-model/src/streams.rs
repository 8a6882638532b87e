//! Sequential streams among the reads of a member.

/// How far reads of one stream may be out of order, or skip: so many of their own lengths, and never more than these bytes.
/// A wide window would take random reads of a small area for streams.
const WINDOW_READS: u64 = 16;
const WINDOW_BYTES: u64 = 1 << 19;
const REGION_SHIFT: u32 = 20;
const SLOTS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Stream {
    region: u64,
    next_bytes: u64,
    count: u32,
    prefetched_bytes: u64,
}

const NO_STREAM: Stream = Stream { region: u64::MAX, next_bytes: 0, count: 0, prefetched_bytes: 0 };

/// Recent reads by place; a read near the end of one continues it.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    slots: Box<[Stream]>,
    after: u32,
    prefetch_bytes: u64,
}

impl Streams {
    pub(crate) fn new(sequential_after: u32, prefetch_bytes: u64) -> Self {
        Self { slots: vec![NO_STREAM; SLOTS].into(), after: sequential_after.max(1), prefetch_bytes }
    }

    #[inline]
    fn slot(region: u64) -> usize {
        (region.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % SLOTS
    }

    /// Notes a read; returns the range to be read ahead now, if it continues a stream, as far as `end_bytes`.
    #[inline]
    pub(crate) fn note(&mut self, at_bytes: u64, bytes: u64, end_bytes: u64) -> Option<(u64, u64)> {
        let region = at_bytes >> REGION_SHIFT;
        let window_bytes = (bytes * WINDOW_READS).min(WINDOW_BYTES);
        let near = |stream: &Stream, region: u64| {
            stream.region == region && at_bytes.abs_diff(stream.next_bytes) <= window_bytes
        };
        let home = Self::slot(region);
        let before = region.checked_sub(1).map(|before| (Self::slot(before), before));
        let found = if near(&self.slots[home], region) {
            Some(home)
        } else {
            before.filter(|(slot, before)| near(&self.slots[*slot], *before)).map(|(slot, _)| slot)
        };
        let Some(found) = found else {
            let end = at_bytes + bytes;
            self.slots[home] = Stream { region, next_bytes: end, count: 0, prefetched_bytes: end };
            return None;
        };
        let mut stream = self.slots[found];
        self.slots[found] = NO_STREAM;
        stream.count += 1;
        stream.next_bytes = stream.next_bytes.max(at_bytes + bytes);
        // Regions are named by where the stream will go on, so that its next read finds it.
        stream.region = (stream.next_bytes - 1) >> REGION_SHIFT;
        stream.prefetched_bytes = stream.prefetched_bytes.max(stream.next_bytes);
        let until = (stream.next_bytes + self.prefetch_bytes).min(end_bytes);
        let ahead =
            (stream.count >= self.after && stream.prefetched_bytes < until).then_some((stream.prefetched_bytes, until));
        if let Some((_, until)) = ahead {
            stream.prefetched_bytes = until;
        }
        self.slots[Self::slot(stream.region)] = stream;
        ahead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    #[test]
    fn a_stream_is_read_ahead_without_gap_and_without_overlap() {
        let mut streams = Streams::new(2, 512 * KIB);
        let mut reached = None;
        for read in 0..1000_u64 {
            if let Some((from, until)) = streams.note(read * 64 * KIB, 64 * KIB, u64::MAX) {
                assert!(read >= 2);
                assert_eq!(from, reached.unwrap_or(from));
                assert_eq!(until, (read + 1) * 64 * KIB + 512 * KIB);
                reached = Some(until);
            }
        }
        assert_eq!(reached, Some(1000 * 64 * KIB + 512 * KIB));
    }

    #[test]
    fn random_reads_are_no_stream() {
        let mut streams = Streams::new(2, 512 * KIB);
        let mut place = 1_u64;
        for _ in 0..10_000 {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            assert_eq!(streams.note((place >> 20) & !8191, 8192, u64::MAX), None);
        }
    }
}
