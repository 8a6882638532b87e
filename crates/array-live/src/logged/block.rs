//! A block of a volume as it is stored: fingerprinted, and compressed where that makes it smaller.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use twox_hash::XxHash3_128;

pub(crate) const BLOCK_BYTES: usize = 4096;

pub(super) type Block = [u8; BLOCK_BYTES];

/// Fingerprint of a block: equal blocks have equal fingerprints, and damaged bytes another one.
pub(super) fn fingerprint(block: &Block) -> u128 {
    XxHash3_128::oneshot(block)
}

/// The stored form of a block; one of a block's own length is the block.
pub(super) fn compressed(block: &Block) -> Vec<u8> {
    let mut stored = vec![0; get_maximum_output_size(BLOCK_BYTES)];
    match compress_into(block, &mut stored) {
        Ok(count) if count < BLOCK_BYTES => {
            stored.truncate(count);
            stored
        }
        _ => block.to_vec(),
    }
}

/// The block of a stored form, if its fingerprint agrees.
pub(super) fn block_of(stored: &[u8], print: u128) -> Option<Block> {
    let mut block = [0; BLOCK_BYTES];
    if stored.len() == BLOCK_BYTES {
        block.copy_from_slice(stored);
    } else if decompress_into(stored, &mut block).ok() != Some(BLOCK_BYTES) {
        return None;
    }
    (fingerprint(&block) == print).then_some(block)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_stored_is_the_block_and_nothing_else_is(
            seed in any::<u64>(), distinct in 1_usize..BLOCK_BYTES, place in any::<usize>(), change in 1_u8..,
        ) {
            let mut random = assay_load::SplitMix::new(seed);
            let drawn: Vec<u8> = (0..distinct).map(|_| random.next() as u8).collect();
            let mut block = [0; BLOCK_BYTES];
            block.iter_mut().zip(drawn.iter().cycle()).for_each(|(byte, drawn)| *byte = *drawn);
            let (print, mut stored) = (fingerprint(&block), compressed(&block));
            prop_assert!(stored.len() <= BLOCK_BYTES);
            prop_assert_eq!(block_of(&stored, print), Some(block));
            let place = place % stored.len();
            stored[place] ^= change;
            // Another form of the same block would be as good; any other block is told.
            prop_assert!(block_of(&stored, print).is_none_or(|found| found == block));
        }
    }
}
