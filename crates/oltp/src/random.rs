//! Random numbers as clauses 2.1 and 4.3 of the specification want them, from streams that begin anywhere.

use assay_load::SplitMix;

/// NURand's constant for last names while loading, and while running with the same skew as HammerDB, which uses one for both.
pub(crate) const C_LAST_LOAD: u32 = 123;
/// NURand's constant for last names of a strict run: its distance from that of the load, 66, is one that clause 2.1.6.1 allows.
pub(crate) const C_LAST_STRICT: u32 = 189;
const C_CUSTOMER: u32 = 259;
const C_ITEM: u32 = 7911;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
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

    /// Whether one of `of` comes true.
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

    /// NURand(A, low, high) of clause 2.1.6.
    #[inline]
    fn skewed(&mut self, a: u32, c: u32, low: u32, high: u32) -> u32 {
        let mixed = self.between(0, a) | self.between(low, high);
        (mixed + c) % (high - low + 1) + low
    }

    pub(crate) fn customer(&mut self) -> u32 {
        self.skewed(1023, C_CUSTOMER, 1, 3000)
    }

    pub(crate) fn skewed_item(&mut self) -> u32 {
        self.skewed(8191, C_ITEM, 1, 100_000)
    }

    /// Number of a last name, 0 to 999.
    pub(crate) fn last_name(&mut self, c_last: u32) -> u32 {
        self.skewed(255, c_last, 0, 999)
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

    /// Digits, so many of them, appended.
    pub(crate) fn digits(&mut self, count: u32, out: &mut Vec<u8>) {
        out.extend((0..count).map(|_| b'0' + self.between(0, 9) as u8));
    }
}

/// The last name of a number below 1,000: three syllables (clause 4.3.2.3).
pub(crate) fn write_last_name(number: u32, out: &mut Vec<u8>) {
    for place in [100, 10, 1] {
        out.extend_from_slice(SYLLABLES[(number / place % 10) as usize].as_bytes());
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
                prop_assert!((1..=3000).contains(&random.customer()));
                prop_assert!((1..=100_000).contains(&random.skewed_item()));
                prop_assert!(random.last_name(C_LAST_LOAD) < 1000);
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

    #[test]
    fn last_names_are_those_of_the_specification() {
        let name = |number| {
            let mut out = Vec::new();
            write_last_name(number, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(name(371), "PRICALLYOUGHT"); // The example of clause 4.3.2.3.
        assert_eq!(name(0), "BARBARBAR");
        assert_eq!(name(999), "EINGEINGEING");
    }

    #[test]
    fn nurand_is_skewed_as_its_definition_says() {
        // The larger of two numbers is favoured by the OR: bits of A are set with probability 3/4.
        let mut random = Random::of(7, 0, 0);
        let draws: Vec<u32> = (0..200_000).map(|_| random.skewed(1023, 0, 0, 4095)).collect();
        let set = draws.iter().filter(|value| **value & 1 == 1).count() as f64 / draws.len() as f64;
        assert!((set - 0.75).abs() < 0.01, "{set}");
    }

    #[test]
    fn the_constants_of_load_and_strict_run_are_as_far_apart_as_allowed() {
        let apart = C_LAST_STRICT.abs_diff(C_LAST_LOAD);
        assert!((65..=119).contains(&apart) && apart != 96 && apart != 112);
    }
}
