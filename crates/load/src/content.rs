//! Bytes for writes: random unless asked otherwise, so that neither compression nor deduplication flatters the device.

use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Data are made, compressed and stamped in units of this many bytes.
pub const UNIT_BYTES: usize = 4096;

/// A device tears blocks into sectors of this size; each says on its own that Assay wrote it.
pub const SECTOR_BYTES: usize = 512;
/// Place of `MARK` in a sector, behind the bytes that `stamp` writes.
pub const MARK_AT: usize = 16;
/// Mark of every sector that is not all zeros: 1.6 % of the sector that is alike everywhere.
pub const MARK: [u8; 8] = [0xa5, 0x5a, 0x79, 0xe1, 0x0d, 0xc4, 0x93, 0xb6];

/// Fills `buffer` with random bytes; the last `compressible_share` of every unit is zeros. Sectors carry the mark by
/// which [`is_marked`] knows them again.
pub fn fill(buffer: &mut [u8], compressible_share: f64, seed: u64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    for unit in buffer.chunks_mut(UNIT_BYTES) {
        let random_bytes = ((unit.len() as f64 * (1.0 - compressible_share)).round() as usize).min(unit.len());
        rng.fill_bytes(&mut unit[..random_bytes]);
        unit[random_bytes..].fill(0);
        // The head of a unit is stamped even where all of it is zeros.
        let marked_bytes = random_bytes.max(1);
        for sector in unit[..].chunks_mut(SECTOR_BYTES).take(marked_bytes.div_ceil(SECTOR_BYTES)) {
            if let Some(place) = sector.get_mut(MARK_AT..MARK_AT + MARK.len()) {
                place.copy_from_slice(&MARK);
            }
        }
    }
}

/// Whether every sector of `bytes` is all zeros or was made by [`fill`].
pub fn is_marked(bytes: &[u8]) -> bool {
    bytes
        .chunks(SECTOR_BYTES)
        .all(|sector| sector.get(MARK_AT..MARK_AT + MARK.len()) == Some(&MARK) || sector.iter().all(|byte| *byte == 0))
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
    fn every_sector_is_known_again_and_no_other_is() {
        for share in [0.0, 0.3, 0.5, 0.97, 1.0] {
            for bytes in [512, 4096, 3 * UNIT_BYTES] {
                let mut block = vec![7; bytes];
                assert!(!is_marked(&block));
                fill(&mut block, share, 1);
                stamp(&mut block, 9);
                assert!(is_marked(&block), "{share} {bytes}");
                block[bytes - SECTOR_BYTES..].fill(7);
                assert!(!is_marked(&block));
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
