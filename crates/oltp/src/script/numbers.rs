//! Random numbers, hashes and permutations, value for value as pgbench has them since version 15: the same seed gives the
//! same run. The generator is xoroshiro128** of Blackman and Vigna, seeded by splitmix64.

use assay_load::SplitMix;

/// Knuth's constants, in place of a state that would never change.
const NEVER_ZERO: [u64; 2] = [0x5851_f42d_4c95_7f2d, 0x1405_7b7e_f767_814f];

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
const MURMUR: u64 = 0xc6a4_a793_5bd1_e995;
const MURMUR_SHIFT: u32 = 47;
/// [`MURMUR`] times the eight bytes of a number.
const MURMUR_OF_LENGTH: u64 = MURMUR.wrapping_mul(8);

/// Least parameter of a normal distribution that is cut at both ends.
pub(crate) const GAUSSIAN_MIN: f64 = 2.0;
pub(crate) const ZIPFIAN_RANGE: std::ops::RangeInclusive<f64> = 1.001..=1000.0;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Stream([u64; 2]);

impl Stream {
    pub(crate) fn new(seed: u64) -> Self {
        let mut mix = SplitMix::new(seed);
        let state = [mix.next(), mix.next()];
        Self(if state == [0, 0] { NEVER_ZERO } else { state })
    }

    pub(crate) fn next(&mut self) -> u64 {
        let [first, second] = self.0;
        let mixed = second ^ first;
        self.0 = [first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)];
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A number from 0 to `last`, both included.
    fn up_to(&mut self, last: u64) -> u64 {
        if last == 0 {
            return 0;
        }
        let shift = last.leading_zeros();
        loop {
            let drawn = self.next() >> shift;
            if drawn <= last {
                return drawn;
            }
        }
    }

    /// At least 0 and below 1, a multiple of 2 to the power of -52.
    fn share(&mut self) -> f64 {
        (self.next() >> 12) as f64 / (1_u64 << 52) as f64
    }

    /// A number from `low` to `high`, both included, which are less than 2 to the power of 63 apart.
    pub(crate) fn uniform(&mut self, low: i64, high: i64) -> i64 {
        low.wrapping_add(self.up_to(high.wrapping_sub(low) as u64) as i64)
    }

    /// Exponential, cut where its density is `exp(-parameter)` of the first.
    pub(crate) fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.share();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        scaled(low, high, share)
    }

    /// Normal, cut at `parameter` standard deviations on both sides of the middle.
    pub(crate) fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        loop {
            // Box and Muller.
            let (first, second) = (1.0 - self.share(), 1.0 - self.share());
            let deviation = (-2.0 * first.ln()).sqrt() * (2.0 * std::f64::consts::PI * second).sin();
            if (-parameter..parameter).contains(&deviation) {
                return scaled(low, high, (deviation + parameter) / (parameter * 2.0));
            }
        }
    }

    /// Zipfian by rejection (Devroye, Non-Uniform Random Variate Generation, page 550).
    pub(crate) fn zipfian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let count = high.wrapping_sub(low).wrapping_add(1);
        if count <= 1 {
            return low;
        }
        let base = 2.0_f64.powf(parameter - 1.0);
        loop {
            let (first, second) = (self.share(), self.share());
            let rank = first.powf(-1.0 / (parameter - 1.0)).floor();
            let ratio = (1.0 + 1.0 / rank).powf(parameter - 1.0);
            if second * rank * (ratio - 1.0) / (base - 1.0) <= ratio / base && rank <= count as f64 {
                return low.wrapping_sub(1).wrapping_add(rank as i64);
            }
        }
    }
}

/// The number that a share of a range stands for.
fn scaled(low: i64, high: i64, share: f64) -> i64 {
    let count = high.wrapping_sub(low).wrapping_add(1) as f64;
    low.wrapping_add((count * share) as i64)
}

/// FNV-1a of the bytes of a number.
pub(crate) fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    let bytes = value.to_le_bytes();
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
    bytes.iter().fold(FNV_OFFSET ^ seed as u64, hash) as i64
}

/// Murmur2 of a number (Appleby).
pub(crate) fn hash_murmur2(value: i64, seed: i64) -> i64 {
    let mut key = (value as u64).wrapping_mul(MURMUR);
    key = (key ^ (key >> MURMUR_SHIFT)).wrapping_mul(MURMUR);
    let mut hash = ((seed as u64 ^ MURMUR_OF_LENGTH) ^ key).wrapping_mul(MURMUR);
    hash = (hash ^ (hash >> MURMUR_SHIFT)).wrapping_mul(MURMUR);
    (hash ^ (hash >> MURMUR_SHIFT)) as i64
}

/// The place of a number in a permutation of `0..size`, which the seed decides: six rounds of multiplying by an odd
/// number, flipping bits and rotating, on both overlapping halves, each with a shift of the whole.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let (size, mut stream) = (size as u64, Stream::new(seed as u64));
    let mut place = value as u64 % size;
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    let turned = |half: u64, factor: u64, flips: u64| {
        let mixed = (half.wrapping_mul(factor) ^ flips) & mask;
        ((mixed << 1) & mask) | (mixed >> (bits - 1))
    };
    for _ in 0..6 {
        let (factor, flips) = ((stream.next() & mask) | 1, stream.next() & mask);
        if place <= mask {
            place = turned(place, factor, flips);
        }
        let (factor, flips) = ((stream.next() & mask) | 1, stream.next() & mask);
        let upper = size - 1 - place;
        if upper <= mask {
            place = size - 1 - turned(upper, factor, flips);
        }
        let shift = stream.up_to(size - 1);
        place = (place + shift) % size;
    }
    place as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hashes_are_the_known_ones() {
        assert_eq!(hash_murmur2(10, 5432), -5_817_877_081_768_721_676);
        assert_eq!(hash_fnv1a(10, 5432), -7_793_829_335_365_542_153);
    }

    #[test]
    fn permutations_are_the_known_ones() {
        assert_eq!([0, 1].map(|value| permute(value, 2, 5431)), [0, 1]);
        assert_eq!([0, 1].map(|value| permute(value, 2, 5433)), [1, 0]);
        let size = i64::MAX - 10;
        let known = [
            520_382_784_483_822_430,
            1_143_715_004_660_802_862,
            447_293_596_416_496_998,
            916_527_772_266_572_956,
            2_763_809_008_686_028_849,
            8_648_551_549_198_294_572,
            4_542_876_852_200_565_125,
        ];
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|back| permute(size - back, size, 5432)), known);
    }

    #[test]
    fn a_seed_gives_the_known_numbers() {
        // The first user of a run draws from a stream that the run's own seeds.
        let mut stream = Stream::new(Stream::new(5432).next());
        assert_eq!(stream.uniform(10, 19), 17);
        assert_eq!(stream.exponential(100, 199, 10.0), 104);
        assert_eq!(stream.gaussian(1000, 1999, 10.0), 1498);
        assert_eq!(stream.zipfian(1, 9, 1.3), 3);
    }

    proptest! {
        #[test]
        fn draws_stay_within_their_bounds(seed: u64, low in -1000_i64..1000, width in 0_i64..1000) {
            let (mut stream, bounds) = (Stream::new(seed), low..=low + width);
            for _ in 0..20 {
                prop_assert!(bounds.contains(&stream.uniform(low, low + width)));
                prop_assert!(bounds.contains(&stream.exponential(low, low + width, 3.0)));
                prop_assert!(bounds.contains(&stream.gaussian(low, low + width, GAUSSIAN_MIN)));
                prop_assert!(bounds.contains(&stream.zipfian(low, low + width, 1.2)));
            }
        }

        #[test]
        fn a_permutation_has_every_number_once(size in 1_i64..200, seed: i64) {
            let mut places: Vec<_> = (0..size).map(|value| permute(value, size, seed)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..size).collect::<Vec<_>>());
        }
    }
}
