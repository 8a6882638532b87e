//! Random numbers from streams that begin anywhere.

use assay_load::SplitMix;

const ALPHANUMERIC: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZxy";

/// A stream of random numbers for one thing: a row, a chunk, a user.
#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix);

impl Random {
    /// The stream of a thing, from the seed, what kind it is of, and its key.
    pub(crate) fn of(seed: u64, kind: u64, key: u64) -> Self {
        let mut mix = SplitMix::new(seed ^ kind.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Self(SplitMix::new(mix.next() ^ key.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A whole number from `low` to `high`, both included.
    #[inline]
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.0.below(u64::from(high - low) + 1) as u32
    }

    /// True once in `of` draws.
    #[inline]
    pub(crate) fn one_in(&mut self, of: u32) -> bool {
        self.0.below(u64::from(of)) == 0
    }

    #[inline]
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.0.below(100) < u64::from(percent)
    }

    /// Above 0 and at most 1.
    #[inline]
    pub(crate) fn share(&mut self) -> f64 {
        ((self.0.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Letters and digits, `low` to `high` of them, appended.
    pub(crate) fn text(&mut self, low: u32, high: u32, out: &mut Vec<u8>) {
        let mut left = self.between(low, high);
        while left > 0 {
            let mut bits = self.0.next();
            for _ in 0..left.min(10) {
                out.push(ALPHANUMERIC[(bits & 63) as usize]);
                bits >>= 6;
            }
            left -= left.min(10);
        }
    }

    /// Appends `count` digits.
    pub(crate) fn digits(&mut self, count: u32, out: &mut Vec<u8>) {
        out.extend((0..count).map(|_| b'0' + self.between(0, 9) as u8));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_stay_within_their_bounds(seed: u64, low in 0_u32..1000, width in 0_u32..1000) {
            let mut random = Random::of(seed, 1, 2);
            for _ in 0..50 {
                prop_assert!((low..=low + width).contains(&random.between(low, low + width)));
                let share = random.share();
                prop_assert!(share > 0.0 && share <= 1.0);
            }
        }

        #[test]
        fn texts_have_the_length_asked_for(seed: u64, low in 0_u32..50, more in 0_u32..50) {
            let mut text = Vec::new();
            Random::of(seed, 0, 0).text(low, low + more, &mut text);
            prop_assert!((low as usize..=(low + more) as usize).contains(&text.len()));
            prop_assert!(text.iter().all(u8::is_ascii_alphanumeric));
        }
    }
}
