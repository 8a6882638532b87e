use hdrhistogram::{
    Histogram,
    serialization::{Deserializer, Serializer, V2DeflateSerializer},
};

use crate::{
    LoadError,
    counts::{Counts, LONGEST_NS, SIGNIFICANT_DIGITS},
};

/// A histogram of latencies in nanoseconds, 1 ns to 1 h within 0.1 %, and their exact sum.
///
/// HDR keeps three significant digits: 2,048 equal bins below 2,048 ns and 1,024 per doubling above, so a value is off
/// by at most half a bin, 1/2,048 of itself. The mean comes from the exact sum, not from the bins.
#[derive(Clone, Debug, Default)]
pub struct LatencyHistogram {
    counts: Counts,
    sum_ns: u128,
}

impl LatencyHistogram {
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.counts.record(latency_ns, 1);
        self.sum_ns += u128::from(latency_ns);
    }

    /// Counts a latency several times.
    pub fn record_n(&mut self, latency_ns: u64, count: u64) {
        self.counts.record(latency_ns, count);
        self.sum_ns += u128::from(latency_ns) * u128::from(count);
    }

    pub fn merge(&mut self, other: &Self) {
        if !other.is_empty() {
            self.counts.merge(&other.counts);
            self.sum_ns += other.sum_ns;
        }
    }

    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.counts.clear();
            self.sum_ns = 0;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.counts.total() == 0
    }

    pub fn count(&self) -> u64 {
        self.counts.total()
    }

    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Mean of the recorded values, or `None` without any.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Value at or below which `percentile` % of the latencies lie.
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        self.counts.percentile_ns(percentile)
    }

    pub fn min_ns(&self) -> u64 {
        self.counts.min_ns()
    }

    pub fn max_ns(&self) -> u64 {
        self.counts.max_ns()
    }

    /// Every bin that holds something: its middle value and its count.
    pub fn bins(&self) -> Vec<(u64, u64)> {
        self.counts.middles().collect()
    }

    /// HDR V2 with deflate, as other HDR libraries read and write it.
    pub fn to_hdr_v2(&self) -> Vec<u8> {
        let mut counts: Histogram<u64> = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that HDR accepts");
        self.counts.middles().for_each(|(latency_ns, count)| counts.saturating_record_n(latency_ns, count));
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&counts, &mut bytes).expect("writing to memory cannot fail");
        bytes
    }

    /// Reads the output of [`Self::to_hdr_v2`]; the mean is then that of the bins.
    ///
    /// # Errors
    /// [`LoadError::InvalidHistogram`] when the bytes are not an HDR V2 histogram.
    pub fn from_hdr_v2(bytes: &[u8]) -> Result<Self, LoadError> {
        let counts: Histogram<u64> = Deserializer::new()
            .deserialize(&mut &bytes[..])
            .map_err(|error| LoadError::InvalidHistogram(error.to_string()))?;
        let mut histogram = Self::new();
        for bin in counts.iter_recorded() {
            histogram.record_n(counts.median_equivalent(bin.value_iterated_to()), bin.count_at_value());
        }
        Ok(histogram)
    }
}

/// A histogram as the list of its bins that hold something, for keeping many.
#[derive(Debug, Clone, Default)]
pub struct Bins {
    bins: Box<[(u32, u64)]>,
    sum_ns: u128,
}

impl Bins {
    pub fn of(histogram: &LatencyHistogram) -> Self {
        let bins = histogram.counts.bins().map(|(bin, count)| (bin as u32, count)).collect();
        Self { bins, sum_ns: histogram.sum_ns }
    }

    pub fn add_to(&self, histogram: &mut LatencyHistogram) {
        self.bins.iter().for_each(|(bin, count)| histogram.counts.add(*bin as usize, *count));
        histogram.sum_ns += self.sum_ns;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn percentiles_are_within_a_tenth_of_a_percent_of_the_sorted_values(
            mut values in prop::collection::vec(1_u64..10_000_000_000, 1..400), percentile in 0.1_f64..100.0,
        ) {
            let mut histogram = LatencyHistogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            values.sort_unstable();
            let rank = ((percentile / 100.0 * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let found = histogram.percentile_ns(percentile) as f64;
            prop_assert!((found - exact).abs() <= exact * 0.001 + 1.0, "{found} is not {exact}");
        }

        #[test]
        fn merging_is_recording_together(left in prop::collection::vec(1_u64..u64::MAX, 0..50), right in prop::collection::vec(1_u64..1_000_000, 0..50)) {
            let mut merged = LatencyHistogram::new();
            let mut together = LatencyHistogram::new();
            let mut other = LatencyHistogram::new();
            left.iter().for_each(|value| { merged.record(*value); together.record(*value); });
            right.iter().for_each(|value| { other.record(*value); together.record(*value); });
            merged.merge(&other);
            prop_assert_eq!(merged.bins(), together.bins());
            prop_assert_eq!(merged.sum_ns(), together.sum_ns());
        }

        #[test]
        fn serialising_keeps_every_bin(values in prop::collection::vec(1_u64..100_000_000, 0..100)) {
            let mut histogram = LatencyHistogram::new();
            values.iter().for_each(|value| histogram.record(*value));
            prop_assert_eq!(LatencyHistogram::from_hdr_v2(&histogram.to_hdr_v2()).unwrap().bins(), histogram.bins());
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = LatencyHistogram::from_hdr_v2(&bytes);
        }
    }
}
