use std::iter;

/// Latencies above this are counted as this: longer than any time-out Assay waits for.
pub(crate) const LONGEST_NS: u64 = 3_600_000_000_000;
pub(crate) const SIGNIFICANT_DIGITS: u8 = 3;

/// Equal bins at the beginning and, half as many, in every doubling after that: three significant digits.
const BINS: u64 = 2048;
const BINS_OF_DOUBLING: usize = BINS as usize / 2;
/// As many bins as the doubling that holds [`LONGEST_NS`] has.
const BINS_MAX: usize = (shift(LONGEST_NS) as usize + 2) * BINS_OF_DOUBLING;

/// Bits by which a latency is finer than its bin.
#[inline]
const fn shift(latency_ns: u64) -> u32 {
    BINS.leading_zeros() + 1 - (latency_ns | (BINS - 1)).leading_zeros()
}

#[inline]
fn bin_of(latency_ns: u64) -> usize {
    let shift = shift(latency_ns);
    shift as usize * BINS_OF_DOUBLING + (latency_ns >> shift) as usize
}

/// The shortest latency of a bin, and how many latencies it holds.
fn latencies_of(bin: usize) -> (u64, u64) {
    let shift = (bin / BINS_OF_DOUBLING).saturating_sub(1);
    (((bin - shift * BINS_OF_DOUBLING) as u64) << shift, 1 << shift)
}

/// Counts in the bins of an HDR histogram of [`SIGNIFICANT_DIGITS`]. Only as many bins exist as the longest latency needs, and only those
/// between the shortest and the longest are looked at: a tick's latencies touch few of them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    counts: Vec<u64>,
    total: u64,
    first: usize,
    /// One beyond the last bin that holds something; 0 when none does.
    end: usize,
}

impl Counts {
    #[inline]
    pub(crate) fn record(&mut self, latency_ns: u64, count: u64) {
        self.add(bin_of(latency_ns), count);
    }

    #[inline]
    pub(crate) fn add(&mut self, bin: usize, count: u64) {
        let Some(counted) = self.counts.get_mut(bin) else {
            self.add_beyond(bin, count);
            return;
        };
        *counted += count;
        self.total += count;
        if self.first > bin || self.end == 0 {
            self.first = bin;
        }
        self.end = self.end.max(bin + 1);
    }

    #[cold]
    fn add_beyond(&mut self, bin: usize, count: u64) {
        let bin = if bin < BINS_MAX { bin } else { bin_of(LONGEST_NS) };
        let bins = (bin + 1).next_multiple_of(BINS_OF_DOUBLING);
        if bins > self.counts.len() {
            self.counts.resize(bins, 0);
        }
        self.add(bin, count);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.total == 0 {
            return;
        }
        // The last bin makes room for all before it.
        self.add(other.end - 1, 0);
        let range = other.first..other.end;
        for (counted, count) in iter::zip(&mut self.counts[range.clone()], &other.counts[range]) {
            *counted += count;
        }
        self.first = self.first.min(other.first);
        self.total += other.total;
    }

    pub(crate) fn clear(&mut self) {
        self.counts[self.first..self.end].fill(0);
        (self.total, self.first, self.end) = (0, 0, 0);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Bins with counts.
    pub(crate) fn bins(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = &self.counts[self.first..self.end];
        counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bin, count)| (self.first + bin, *count))
    }

    /// Middle of each bin with a count, and the count.
    pub(crate) fn middles(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins().map(|(bin, count)| {
            let (shortest_ns, width_ns) = latencies_of(bin);
            (shortest_ns + width_ns / 2, count)
        })
    }

    /// The longest latency of the bin that reaches a percentile; 0 when nothing was counted.
    pub(crate) fn percentile_ns(&self, percentile: f64) -> u64 {
        let wanted = ((percentile / 100.0).min(1.0) * self.total as f64).ceil().max(1.0) as u64;
        let mut reached = 0;
        let mut found = self.bins().skip_while(|(_, count)| {
            reached += count;
            reached < wanted
        });
        found.next().map_or(0, |(bin, _)| longest_ns(bin))
    }

    /// Shortest latency of the first bin that holds something; 0 when none does.
    pub(crate) fn min_ns(&self) -> u64 {
        latencies_of(self.first).0
    }

    /// Longest latency of the last bin that holds something; 0 when none does.
    pub(crate) fn max_ns(&self) -> u64 {
        self.end.checked_sub(1).map_or(0, longest_ns)
    }
}

fn longest_ns(bin: usize) -> u64 {
    let (shortest_ns, width_ns) = latencies_of(bin);
    shortest_ns + width_ns - 1
}

impl Clone for Counts {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.merge(self);
        copy
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    /// Latencies of every magnitude, and the ends of bins.
    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        let latency = (0_u32..64, any::<u64>(), -2_i64..3).prop_map(|(bits, any, near)| {
            if any % 3 == 0 { (1_u64 << bits).saturating_add_signed(near) } else { any >> bits }
        });
        prop::collection::vec(latency, 0..60)
    }

    fn both(latencies: &[u64]) -> (Counts, Histogram<u64>) {
        let mut counts = Counts::default();
        let mut hdr = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS).unwrap();
        for latency_ns in latencies {
            counts.record(*latency_ns, 1);
            hdr.saturating_record(*latency_ns);
        }
        (counts, hdr)
    }

    fn assert_equal(counts: &Counts, hdr: &Histogram<u64>) {
        assert_eq!(counts.total(), hdr.len());
        let middles: Vec<_> = hdr
            .iter_recorded()
            .map(|bin| (hdr.median_equivalent(bin.value_iterated_to()), bin.count_at_value()))
            .collect();
        assert_eq!(counts.middles().collect::<Vec<_>>(), middles);
        assert_eq!((counts.min_ns(), counts.max_ns()), (hdr.min(), hdr.max()));
        for percentile in [0.001, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0, 200.0] {
            assert_eq!(counts.percentile_ns(percentile), hdr.value_at_percentile(percentile), "{percentile} %");
        }
    }

    proptest! {
        #[test]
        fn bins_are_those_of_hdr_histograms(latencies in latencies()) {
            let (counts, hdr) = both(&latencies);
            assert_equal(&counts, &hdr);
            assert_equal(&counts.clone(), &hdr);
        }

        #[test]
        fn merging_and_clearing_leave_what_was_counted(left in latencies(), right in latencies()) {
            let (mut counts, mut hdr) = both(&left);
            let (other, other_hdr) = both(&right);
            counts.merge(&other);
            hdr.add(&other_hdr).unwrap();
            assert_equal(&counts, &hdr);
            counts.clear();
            assert_equal(&counts, &both(&[]).1);
            counts.merge(&other);
            assert_equal(&counts, &other_hdr);
        }
    }
}
