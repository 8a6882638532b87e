//! Disks that go and come, and bytes that change silently.

use assay_array_live::StoreFault;

use crate::{
    proof::{Proof, content},
    proving::{BLOCK, Proving, VOLUME_BYTES},
};

#[test]
fn two_lost_disks_are_read_around_and_restored_on_the_others() {
    let mut proof = Proof::filled();
    proof.pull(3, true);
    proof.pull(8, true);
    assert!(proof.store().reading().missing_pieces > 0);
    assert_eq!(proof.check(), 0);
    proof.restore_all();
    assert_eq!(proof.store().reading().missing_pieces, 0);
    // Ten disks have all of it: two more may go.
    proof.pull(0, true);
    proof.pull(1, true);
    assert_eq!(proof.check(), 0);
    // Eight have no place for pieces of their own; new disks do.
    assert_eq!(proof.store().restorable(), 0);
    (0..2).for_each(|disk| proof.store().insert(disk).unwrap());
    proof.restore_all();
    assert_eq!(proof.store().reading().missing_pieces, 0);
    assert_eq!(proof.check(), 0);
}

#[test]
fn a_third_lost_disk_takes_those_blocks_that_lay_on_lost_disks_of_one_container() {
    let mut proof = Proof::filled();
    let places = proof.places();
    [2, 3, 4].into_iter().for_each(|disk| proof.pull(disk, false));
    let must_be_lost = places.values().filter(|place| {
        let gone = |disk: &Option<u16>| disk.is_some_and(|disk| (2..5).contains(&disk));
        gone(&place.disks[place.piece]) && place.disks.iter().filter(|disk| gone(disk)).count() == 3
    });
    let must_be_lost = must_be_lost.count() as u64;
    assert!(must_be_lost > 0);
    assert_eq!(proof.check(), must_be_lost);
    assert_eq!(proof.store().lost_contents(), must_be_lost);
    // A disk that comes brings nothing back, and what is written anew is there.
    (2..5).for_each(|disk| proof.store().insert(disk).unwrap());
    proof.restore_all();
    assert_eq!(proof.check(), must_be_lost);
    proof.write(0, 0, &content(19, VOLUME_BYTES)).unwrap();
    proof.write(1, 0, &content(23, VOLUME_BYTES)).unwrap();
    assert_eq!(proof.check(), 0);
}

#[test]
fn fewer_disks_than_a_container_has_data_take_nothing_more() {
    let mut proof = Proof::filled();
    // The container before is full; this one is begun, and in memory.
    proof.write(0, 0, &content(31, BLOCK)).unwrap();
    (0..5).for_each(|disk| proof.pull(disk, false));
    // What memory still holds is not lost; a container that no disks could take is refused.
    let mut refused = 0;
    for number in 0..VOLUME_BYTES / BLOCK {
        let bytes = content(27, (number + 1) * BLOCK).split_off((number * BLOCK) as usize);
        match proof.write(0, number * BLOCK, &bytes) {
            Ok(()) => {}
            Err(StoreFault::Lost) => refused += 1,
            Err(fault) => panic!("{fault}"),
        }
    }
    assert!((1..VOLUME_BYTES / BLOCK).contains(&refused));
    proof.check();
    proof.kill();
    proof.check();
}

#[test]
fn silent_corruption_is_found_and_mended_beside_a_lost_disk() {
    let mut proof = Proof::filled();
    proof.store().corrupt(5, 0, VOLUME_BYTES).unwrap();
    proof.pull(9, true);
    assert_eq!(proof.check(), 0);
    assert!(proof.store().reading().healed_blocks > 0);
}

/// What is computed for a new disk from a corrupt one would be corrupt, too.
#[test]
fn restoring_finds_what_is_wrong_on_the_disks_that_it_reads() {
    let mut proof = Proof::filled();
    proof.store().corrupt(5, 0, VOLUME_BYTES).unwrap();
    proof.pull(9, true);
    proof.restore_all();
    assert!(proof.store().reading().healed_blocks > 0);
    // All data are right again, so that parity bears two more.
    assert_eq!(proof.check(), 0);
}

#[test]
fn blocks_that_are_corrupt_beyond_parity_are_errors_and_never_wrong_bytes() {
    let mut proof = Proof::filled();
    // The same change on three disks would cancel out in P.
    for disk in 0..2 {
        proof.store().corrupt(disk, 0, VOLUME_BYTES).unwrap();
    }
    proof.pull(2, false);
    let mut lost = 0;
    for (volume, at) in Proof::all_blocks() {
        let mut bytes = vec![0; BLOCK as usize];
        match proof.store().read(volume, at, &mut bytes) {
            Ok(()) => {
                assert!(bytes == proof.held.acknowledged[usize::from(volume)][at as usize..(at + BLOCK) as usize])
            }
            Err(StoreFault::Lost) => lost += 1,
            Err(fault) => panic!("{fault}"),
        }
    }
    assert!(lost > 0);
    // The same bytes written again are stored anew, not taken for those that are lost.
    let bytes = proof.held.acknowledged.clone();
    (0..2).for_each(|volume| proof.write(volume, 0, &bytes[usize::from(volume)]).unwrap());
    proof.kill();
    let mut whole = vec![0; VOLUME_BYTES as usize];
    proof.store().read(0, 0, &mut whole).unwrap();
    assert!(whole == bytes[0]);
}

#[test]
fn a_disk_that_is_pulled_or_inserted_while_files_fail_is_so_after_a_kill_too() {
    for changes in 0..6 {
        let mut proof = Proof::filled();
        proof.store().end_changes_after(changes, true);
        let is_pulled = proof.store().pull(3, true).is_ok();
        proof.store().end_changes_after(u64::MAX, false);
        assert_eq!(proof.store().is_present(3), !is_pulled, "{changes} changes");
        proof.write(0, 0, &content(31, 32 * BLOCK)).unwrap();
        proof.kill();
        assert_eq!(proof.store().is_present(3), !is_pulled, "{changes} changes");
        assert_eq!(proof.check(), 0);
        if !is_pulled {
            proof.store().pull(3, true).unwrap();
        }
        proof.store().end_changes_after(changes, true);
        let is_inserted = proof.store().insert(3).is_ok();
        proof.store().end_changes_after(u64::MAX, false);
        assert_eq!(proof.store().is_present(3), is_inserted, "{changes} changes");
        proof.kill();
        assert_eq!(proof.store().is_present(3), is_inserted, "{changes} changes");
        proof.restore_all();
        assert_eq!(proof.check(), 0);
    }
}
