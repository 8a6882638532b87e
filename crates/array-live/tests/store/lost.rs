//! What is corrupt or lost, found by sums, and written again.

use assay_array_live::{Durability, StoreFault};
use assay_array_model::{Part, RaidPolicy};

use crate::{
    proof::{Proof, filled},
    proving::{KIB, VOLUME_BYTES},
};

#[test]
fn silent_corruption_is_found_and_mended_where_there_are_sums_and_read_where_there_are_none() {
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Raid6, RaidPolicy::Dp] {
        let mut with = filled(policy, Durability::Battery, true);
        let mut without = filled(policy, Durability::Battery, false);
        for proof in [&mut with, &mut without] {
            (0..proof.disks()).for_each(|disk| {
                // Far from each other, so that no row loses two.
                proof.store().corrupt(0, disk, u64::from(disk) * 16 * KIB, 512).unwrap();
            });
        }
        with.check();
        assert!(with.store().healed(0) > 0, "{policy:?}");
        let wrong = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| without.check()));
        assert!(wrong.is_err(), "{policy:?}: corruption went unnoticed by the test itself");
    }
}

#[test]
fn blocks_written_in_place_of_lost_ones_are_there_again_and_safe() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
    proof.pull(0, 0);
    proof.pull(0, 1);
    proof.rebuild(0, 0, 1.0);
    proof.rebuild(0, 1, 1.0);
    proof.check();
    assert!(!proof.gone.is_empty());
    // All of both volumes, a block at a time.
    let bytes: Vec<u8> = (0..VOLUME_BYTES).map(|at| (at / 512 * 11 % 241) as u8).collect();
    proof.write(0, 0, &bytes);
    proof.write(1, 0, &bytes);
    assert!(proof.gone.is_empty());
    proof.check();
    proof.pull(0, 2);
    proof.check();
}

/// Blocks of one stripe are corrupt beyond what parity makes up for: only they are lost, and writing them heals the stripe.
#[test]
fn blocks_that_are_corrupt_beyond_the_tolerance_are_lost_until_they_are_written() {
    for policy in [RaidPolicy::Raid0, RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Raid6, RaidPolicy::Dp] {
        let mut proof = filled(policy, Durability::Battery, true);
        let cells = proof.cells(0, 1);
        let parity = policy.parity_disks() as usize;
        let columns = cells.len() - parity;
        // One chunk more than the code bears: data and, of those with parity, all of it; both copies of a mirror.
        let corrupt: Vec<u32> = match parity {
            0 => (cells[0]..cells[0] + policy.copies()).collect(),
            _ => cells[columns..].iter().copied().chain([cells[0]]).collect(),
        };
        for disk in &corrupt {
            let at_bytes = 8 * KIB;
            assert_eq!(proof.store().corrupt(0, *disk, at_bytes, 4096).unwrap(), at_bytes, "{policy:?}");
        }
        let chunk_of = |proof: &Proof, column: u32| proof.geometry().chunk(0, 1, column) * 8 * KIB;
        let block = |at_bytes| Part { member: 0, at_bytes, bytes: 4096 };
        let (lost, other) = (block(chunk_of(&proof, 0)), block(chunk_of(&proof, 1)));
        let mut bytes = vec![0; 4096];
        assert!(matches!(proof.store().read(lost, &mut bytes), Err(StoreFault::Lost)), "{policy:?}");
        let inside = Part { bytes: 512, ..lost };
        assert!(matches!(proof.store().write(inside, &[1; 512]), Err(StoreFault::Lost)), "{policy:?}");
        // A sound block beside it is written and read, although no parity can follow.
        proof.store().write(other, &[5; 4096]).unwrap();
        proof.store().read(other, &mut bytes).unwrap();
        assert_eq!(bytes, [5; 4096]);
        assert!(matches!(proof.store().read(lost, &mut bytes), Err(StoreFault::Lost)), "{policy:?}");
        proof.store().write(lost, &[6; 4096]).unwrap();
        proof.store().read(lost, &mut bytes).unwrap();
        assert_eq!(bytes, [6; 4096], "{policy:?}");
        if policy == RaidPolicy::Raid0 {
            continue;
        }
        // All that the stripe held is safe again.
        proof.store().pull(0, cells[0]).unwrap();
        for (part, fill) in [(lost, 6), (other, 5)] {
            proof.store().read(part, &mut bytes).unwrap();
            assert_eq!(bytes, [fill; 4096], "{policy:?}");
        }
    }
}

#[test]
fn what_a_disk_would_take_with_it_is_known_before_it_is_pulled() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
    assert_eq!(proof.store().lost_with(0, 1).unwrap(), 0);
    proof.pull(0, 0);
    let lost = proof.store().lost_with(0, 1).unwrap();
    assert!(lost > 0);
    proof.check();
    proof.pull(0, 1);
    assert_eq!(proof.store().lost_chunks(0), lost);
}
