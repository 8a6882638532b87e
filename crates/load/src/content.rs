//! Bytes for writes: random unless asked otherwise, so that neither compression nor deduplication flatters the device.

use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Data are made, compressed and stamped in units of this many bytes.
pub const UNIT_BYTES: usize = 4096;

/// Fills `buffer` with random bytes; the last `compressible_share` of every unit is zeros.
pub fn fill(buffer: &mut [u8], compressible_share: f64, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    for unit in buffer.chunks_mut(UNIT_BYTES) {
        let random_bytes = ((unit.len() as f64 * (1.0 - compressible_share)).round() as usize).min(unit.len());
        rng.fill_bytes(&mut unit[..random_bytes]);
        unit[random_bytes..].fill(0);
    }
}

/// Makes every unit of a block unlike any other written before by putting `serial` at its head.
#[inline]
pub fn stamp(block: &mut [u8], serial: u64) {
    for (index, unit) in block.chunks_mut(UNIT_BYTES).enumerate() {
        if let Some(head) = unit.first_chunk_mut::<16>() {
            head[..8].copy_from_slice(&serial.to_le_bytes());
            head[8..].copy_from_slice(&(index as u64).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn stamped_units_are_all_different() {
        let mut block = vec![0; 4 * UNIT_BYTES];
        fill(&mut block, 0.5, 7);
        let mut seen = HashSet::new();
        for serial in 0..100 {
            stamp(&mut block, serial);
            for unit in block.chunks(UNIT_BYTES) {
                assert!(seen.insert(unit.to_vec()));
            }
        }
    }

    #[test]
    fn the_compressible_share_is_zeros() {
        let mut block = vec![1; 2 * UNIT_BYTES];
        fill(&mut block, 0.25, 1);
        let zeros = block.iter().filter(|byte| **byte == 0).count() as f64 / block.len() as f64;
        assert!((0.25..0.26).contains(&zeros), "{zeros}");
    }
}
