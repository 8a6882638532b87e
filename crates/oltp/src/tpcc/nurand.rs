//! Random numbers and names as clauses 2.1 and 4.3 of the specification want them.

use crate::random::Random;

/// NURand's constant for last names of a strict run. Clause 2.1.6.1 allows its distance, 66, from the constant of the
/// load.
pub(super) const C_LAST_LOAD: u32 = 123;
/// NURand's constant for last names of a strict run: its distance from that of the load, 66, is one that clause 2.1.6.1 allows.
pub(super) const C_LAST_STRICT: u32 = 189;
const C_CUSTOMER: u32 = 259;
const C_ITEM: u32 = 7911;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// NURand(A, low, high) of clause 2.1.6.
#[inline]
fn skewed(random: &mut Random, a: u32, c: u32, low: u32, high: u32) -> u32 {
    let mixed = random.between(0, a) | random.between(low, high);
    (mixed + c) % (high - low + 1) + low
}

pub(super) fn customer(random: &mut Random) -> u32 {
    skewed(random, 1023, C_CUSTOMER, 1, 3000)
}

pub(super) fn skewed_item(random: &mut Random) -> u32 {
    skewed(random, 8191, C_ITEM, 1, 100_000)
}

/// Number of a last name, 0 to 999.
pub(super) fn last_name(random: &mut Random, c_last: u32) -> u32 {
    skewed(random, 255, c_last, 0, 999)
}

/// The last name of a number below 1,000: three syllables (clause 4.3.2.3).
pub(super) fn write_last_name(number: u32, out: &mut Vec<u8>) {
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
        fn numbers_stay_within_their_bounds(seed: u64) {
            let mut random = Random::of(seed, 1, 2);
            for _ in 0..50 {
                prop_assert!((1..=3000).contains(&customer(&mut random)));
                prop_assert!((1..=100_000).contains(&skewed_item(&mut random)));
                prop_assert!(last_name(&mut random, C_LAST_LOAD) < 1000);
            }
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
        let draws: Vec<u32> = (0..200_000).map(|_| skewed(&mut random, 1023, 0, 0, 4095)).collect();
        let set = draws.iter().filter(|value| **value & 1 == 1).count() as f64 / draws.len() as f64;
        assert!((set - 0.75).abs() < 0.01, "{set}");
    }

    #[test]
    fn the_constants_of_load_and_strict_run_are_as_far_apart_as_allowed() {
        let apart = C_LAST_STRICT.abs_diff(C_LAST_LOAD);
        assert!((65..=119).contains(&apart) && apart != 96 && apart != 112);
    }
}
