//! Names out of syllables: no list of anybody's.

use crate::random::Random;

const SYLLABLES: [&str; 48] = [
    "al", "an", "ar", "bel", "ber", "bor", "cal", "cor", "dal", "dan", "del", "dor", "el", "en", "er", "fal", "fen",
    "gar", "gor", "hal", "hel", "il", "in", "kal", "kel", "lan", "lin", "lor", "mar", "mel", "mon", "nal", "nor", "ol",
    "or", "pel", "ran", "ren", "sal", "sen", "sol", "tal", "ten", "tor", "ul", "val", "ven", "wil",
];

/// Appends a word of `syllables` syllables, its first letter large.
pub(crate) fn write_name(random: &mut Random, syllables: u32, out: &mut Vec<u8>) {
    let at = out.len();
    for _ in 0..syllables {
        out.extend_from_slice(SYLLABLES[random.between(0, SYLLABLES.len() as u32 - 1) as usize].as_bytes());
    }
    out[at].make_ascii_uppercase();
}

/// A word that belongs to a number alone, below 110,592, appended.
pub(crate) fn write_numbered(number: u32, out: &mut Vec<u8>) {
    let at = out.len();
    let count = SYLLABLES.len() as u32;
    let mut left = number;
    for _ in 0..3 {
        out.extend_from_slice(SYLLABLES[(left % count) as usize].as_bytes());
        left /= count;
    }
    out[at].make_ascii_uppercase();
}
