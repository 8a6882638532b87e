//! Distributions of times in little memory: sixteen equal bins for each doubling, so a value is off by 3.2 % at most.

const BINS_EACH: u32 = 16;

#[derive(Debug, Default, Clone)]
pub(crate) struct Sketch {
    bins: Vec<u32>,
    count: u64,
    sum_ns: f64,
    max_ns: u64,
}

fn bin_of(value_ns: u64) -> usize {
    let value = value_ns.max(1);
    let doublings = value.ilog2();
    let within = if doublings >= 4 { (value >> (doublings - 4)) & 15 } else { (value << (4 - doublings)) & 15 };
    (doublings * BINS_EACH) as usize + within as usize
}

/// The middle of a bin.
fn value_of(bin: usize) -> f64 {
    let (doublings, within) = (bin as u32 / BINS_EACH, bin as u32 % BINS_EACH);
    2f64.powi(doublings as i32) * (1.0 + (f64::from(within) + 0.5) / f64::from(BINS_EACH))
}

impl Sketch {
    pub(crate) fn record(&mut self, value_ns: u64) {
        let bin = bin_of(value_ns);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] = self.bins[bin].saturating_add(1);
        self.count += 1;
        self.sum_ns += value_ns as f64;
        self.max_ns = self.max_ns.max(value_ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.bins.len() > self.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        self.bins.iter_mut().zip(&other.bins).for_each(|(mine, other)| *mine = mine.saturating_add(*other));
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn max_ns(&self) -> u64 {
        self.max_ns
    }

    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns / self.count as f64)
    }

    /// The value that this share of all does not exceed.
    pub(crate) fn quantile_ns(&self, share: f64) -> Option<f64> {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let place = self.bins.iter().position(|count| {
            seen += u64::from(*count);
            seen >= wanted
        })?;
        Some(value_of(place).min(self.max_ns as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_within_their_bins() {
        let mut sketch = Sketch::default();
        (1..=100_000_u64).for_each(|value| sketch.record(value * 100));
        for (share, value) in [(0.5, 5e6), (0.95, 9.5e6), (0.99, 9.9e6)] {
            let found = sketch.quantile_ns(share).unwrap();
            assert!((found / value - 1.0).abs() < 0.035, "{share}: {found}");
        }
        assert_eq!(sketch.max_ns(), 10_000_000);
        assert_eq!(Sketch::default().quantile_ns(0.5), None);
        let mut both = sketch.clone();
        both.merge(&sketch);
        assert_eq!((both.count(), both.mean_ns()), (200_000, sketch.mean_ns()));
    }
}
