//! Duplicates are stored once, what compresses is smaller, and what nothing names any more is given back.

use assay_array_live::Durability;

use crate::{
    proof::{CONTAINER_BYTES, Proof, content},
    proving::{BLOCK, Proving, VOLUME_BYTES},
};

#[test]
fn equal_blocks_are_stored_once_and_zeroes_not_at_all() {
    let mut proof = Proof::new(Durability::Battery, None);
    proof.write(0, 0, &content(1, VOLUME_BYTES)).unwrap();
    let reading = proof.store().reading();
    assert_eq!((reading.used_bytes, reading.unique_bytes), (VOLUME_BYTES, BLOCK));
    assert!(reading.stored_bytes < BLOCK / 2 && reading.deduplication == (VOLUME_BYTES / BLOCK) as f64);
    proof.write(1, 0, &content(3, 8 * BLOCK)).unwrap();
    let reading = proof.store().reading();
    assert_eq!(reading.unique_bytes, 9 * BLOCK);
    // Those of the other volume are the same, at another place.
    proof.write(0, 16 * BLOCK, &content(3, 8 * BLOCK)).unwrap();
    assert_eq!(proof.store().reading().unique_bytes, 9 * BLOCK);
    (0..2).for_each(|volume| proof.write(volume, 0, &content(0, VOLUME_BYTES)).unwrap());
    let reading = proof.store().reading();
    assert_eq!((reading.used_bytes, reading.unique_bytes, reading.stored_bytes), (0, 0, 0));
    assert_eq!(proof.check(), 0);
}

#[test]
fn snapshots_hold_blocks_and_share_those_that_do_not_change() {
    let mut proof = Proof::new(Durability::Battery, None);
    proof.write(0, 0, &content(3, VOLUME_BYTES)).unwrap();
    proof.store().snapshot("before").unwrap();
    assert_eq!(proof.store().reading().unique_bytes, VOLUME_BYTES);
    proof.write(0, 0, &content(7, 16 * BLOCK)).unwrap();
    assert_eq!(proof.store().reading().unique_bytes, VOLUME_BYTES + 16 * BLOCK);
    proof.write(1, 5 * BLOCK, &content(9, BLOCK)).unwrap();
    let changed: Vec<(u16, u64)> = (0..16).map(|block| (0, block * BLOCK)).chain([(1, 5 * BLOCK)]).collect();
    assert_eq!(proof.store().changed_since("before"), changed);
    proof.store().revert("before").unwrap();
    assert_eq!(proof.store().reading().unique_bytes, VOLUME_BYTES);
    proof.held.acknowledged[0] = content(3, VOLUME_BYTES);
    proof.held.acknowledged[1] = content(0, VOLUME_BYTES);
    assert_eq!(proof.check(), 0);
}

/// A pool of which half is live takes writes without end; reclamation begins at three quarters.
#[test]
fn overwriting_goes_on_in_a_small_pool_because_live_blocks_are_moved() {
    let mut proof = Proof::new(Durability::Battery, Some(16 * CONTAINER_BYTES));
    let mut random = assay_load::SplitMix::new(1);
    for round in 0..4000_u64 {
        let (volume, block) = ((round % 2) as u16, random.below(VOLUME_BYTES / BLOCK));
        let bytes: Vec<u8> = (0..BLOCK).map(|_| random.next() as u8).collect();
        proof.write(volume, block * BLOCK, &bytes).unwrap();
        while proof.store().is_reclaiming() {
            proof.store().reclaim(32).unwrap();
        }
        assert!(proof.store().reading().containers <= 12);
    }
    let reading = proof.store().reading();
    assert!(reading.moved_bytes > 0 && reading.reclaimed_containers > 0);
    assert!(reading.appended_bytes == 4000 * BLOCK);
    assert_eq!(proof.check(), 0);
    proof.kill();
    assert_eq!(proof.check(), 0);
}
