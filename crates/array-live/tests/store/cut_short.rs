//! Writes, reverts and rebuilds that end in the middle.

use assay_array_live::{DiskState, Durability, Store};
use assay_array_model::{ArrayModel, RaidPolicy};

use crate::{
    proof::{Layout, Proof, filled, plan},
    proving::{Folder, KIB, Proving, VOLUME_BYTES},
};

/// How much of a write is made before it is cut short goes from nothing to all of it.
#[test]
fn a_write_cut_short_anywhere_leaves_what_was_acknowledged_and_blocks_old_or_new() {
    let policies = [RaidPolicy::Raid0, RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Raid6, RaidPolicy::Dp];
    for (policy, sums) in policies.into_iter().flat_map(|policy| [(policy, false), (policy, true)]) {
        for pulled in 0..=policy.parity_disks().max(policy.copies() - 1) {
            for comes_back in [false, true] {
                let mut proof = filled(policy, Durability::Battery, sums);
                (0..pulled).for_each(|disk| proof.pull(0, disk * 2 + 1));
                let bears_more = pulled < policy.parity_disks() || (policy.copies() == 2 && pulled == 0);
                if sums && bears_more {
                    // Found by its sum, also where what is computed from it was being written.
                    (0..64).for_each(|row| drop(proof.store().corrupt(0, 0, row * 8 * KIB + 4 * KIB, 100)));
                }
                let mut changes = 0;
                loop {
                    let at = changes * 11 % 40 * 2560;
                    let bytes: Vec<u8> = (0..17_000).map(|byte| (byte / 64 + changes * 3 + 1) as u8).collect();
                    if proof.write_until(changes, comes_back, 0, at, &bytes) {
                        break;
                    }
                    changes += 1;
                }
                assert!(changes > 4, "{policy:?}: a write of {changes} changes");
                proof.check();
                if bears_more && !sums {
                    proof.pull(0, 0);
                    proof.check();
                }
            }
        }
    }
}

#[test]
fn going_back_to_a_snapshot_is_ended_where_it_was_cut_short() {
    for (policy, comes_back) in [(RaidPolicy::Raid5, false), (RaidPolicy::Raid5, true), (RaidPolicy::Dp, false)] {
        // One change may be that of a second copy, without which it goes on as well.
        let (mut changes, mut ended) = (0, 0);
        loop {
            let mut proof = filled(policy, Durability::Battery, true);
            let first = proof.held.acknowledged.clone();
            let write = |proof: &mut Proof, fill: u8, at: u64| proof.write(0, at, &[fill; 30_000]);
            proof.store().snapshot("first").unwrap();
            write(&mut proof, 1, 0);
            proof.store().snapshot("second").unwrap();
            write(&mut proof, 2, 20_000);
            write(&mut proof, 3, 200_000);
            proof.store().end_changes_after(changes, comes_back);
            let reverted = proof.store().revert("first");
            if !comes_back {
                proof.store = None;
                proof.store = Some(proof.open().unwrap());
            }
            proof.store().end_changes_after(u64::MAX, false);
            let names: Vec<String> = proof.store().snapshots().into_iter().map(|snapshot| snapshot.name).collect();
            let has_begun = reverted.is_ok() || names.len() == 1 || {
                let mut byte = [0];
                let part = proof.parts(0, 0, 1)[0];
                proof.store().read(part, &mut byte).unwrap();
                byte[0] == first[0][0]
            };
            if has_begun {
                proof.held.acknowledged = first.clone();
            }
            proof.check();
            // What is left of snapshots is as good as before.
            write(&mut proof, 4, 10_000);
            if !has_begun {
                proof.store().revert("second").unwrap();
                proof.held.acknowledged = first.clone();
                proof.held.acknowledged[0][..30_000].fill(1);
                proof.check();
            }
            proof.store().revert("first").unwrap();
            proof.held.acknowledged = first;
            proof.check();
            proof.store().snapshot("second").unwrap();
            ended = if reverted.is_ok() { ended + 1 } else { 0 };
            if ended > 2 {
                break;
            }
            changes += if crate::extent::tries_all() { 1 } else { 3 };
        }
        assert!(changes > 30, "{changes} changes");
    }
}

#[test]
fn a_store_that_was_cut_short_while_it_was_made_is_made_again() {
    let plan = plan(RaidPolicy::Raid5, Layout::InPlace);
    let model = ArrayModel::new(&plan).unwrap();
    let folder = Folder::new();
    std::fs::create_dir(&folder.0).unwrap();
    std::fs::write(folder.0.join("lock"), "").unwrap();
    std::fs::write(folder.0.join("store.new"), "{").unwrap();
    Store::open(&folder.0, &plan, &mut model.clone(), Durability::Battery, false, None).unwrap();
}

#[test]
fn a_rebuild_cut_short_anywhere_goes_on_and_leaves_nothing_old_on_the_new_disk() {
    for (policy, sums) in
        [(RaidPolicy::Raid10, false), (RaidPolicy::Raid5, true), (RaidPolicy::Raid6, false), (RaidPolicy::Dp, false)]
    {
        let mut proof = filled(policy, Durability::Battery, sums);
        proof.store().pull(0, 1).unwrap();
        proof.store().replace(0, 1).unwrap();
        let rows = proof.rows(0);
        let mut changes = 0;
        loop {
            proof.store().end_changes_after(changes, changes % 2 == 0);
            let rebuilt = proof.store().rebuild_to(0, 1, rows, u64::MAX);
            proof.store().end_changes_after(u64::MAX, false);
            if rebuilt.is_ok() {
                break;
            }
            proof.store = None;
            proof.store = Some(proof.open().unwrap());
            // What the new disk had of the row that was cut short is not what belongs there now.
            let DiskState::Rebuilding { rows: reached } = proof.store().disk_state(0, 1) else { panic!("no rebuild") };
            let row_bytes = 8 * KIB * u64::from(proof.geometry().columns());
            proof.write(0, (reached * row_bytes / 2).min(VOLUME_BYTES - row_bytes), &vec![0; row_bytes as usize]);
            changes += 1;
        }
        assert!(changes > 4, "{policy:?}: {changes}");
        proof.store().end_rebuild(0, 1).unwrap();
        proof.check();
        proof.store().pull(0, 0).unwrap();
        proof.check();
    }
}

/// A pull that failed and had taken the disk out until the next start would bring back what was on it since then.
#[test]
fn a_disk_that_is_pulled_or_inserted_while_files_fail_is_so_after_a_kill_too() {
    for (policy, sums) in [(RaidPolicy::Raid10, false), (RaidPolicy::Raid5, true), (RaidPolicy::Dp, false)] {
        for changes in 0..12 {
            let mut proof = filled(policy, Durability::Battery, sums);
            proof.store().end_changes_after(changes, true);
            let is_pulled = proof.store().pull(0, 1).is_ok();
            proof.store().end_changes_after(u64::MAX, false);
            let state = if is_pulled { DiskState::Absent } else { DiskState::Present };
            assert_eq!(proof.store().disk_state(0, 1), state, "{changes} changes");
            proof.write(0, 0, &[9; 30_000]);
            proof.kill();
            assert_eq!(proof.store().disk_state(0, 1), state, "{changes} changes");
            proof.check();
            if !is_pulled {
                proof.store().pull(0, 1).unwrap();
            }
            proof.store().end_changes_after(changes, true);
            let is_inserted = proof.store().replace(0, 1).is_ok();
            proof.store().end_changes_after(u64::MAX, false);
            let state = if is_inserted { DiskState::Rebuilding { rows: 0 } } else { DiskState::Absent };
            assert_eq!(proof.store().disk_state(0, 1), state, "{changes} changes");
            proof.kill();
            assert_eq!(proof.store().disk_state(0, 1), state, "{changes} changes");
            if !is_inserted {
                proof.store().replace(0, 1).unwrap();
            }
            let rows = proof.rows(0);
            assert!(proof.store().rebuild_to(0, 1, rows, u64::MAX).unwrap());
            proof.store().end_rebuild(0, 1).unwrap();
            proof.check();
            proof.store().pull(0, 0).unwrap();
            proof.check();
        }
    }
}

/// The files get a later generation one after the other; where that ends in between, none of them is an older copy.
#[test]
fn a_close_cut_short_anywhere_leaves_all_files_usable() {
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Dp] {
        let mut proof = filled(policy, Durability::Battery, true);
        proof.store().snapshot("one").unwrap();
        for changes in 0.. {
            proof.write(0, changes % 40 * 8192, &[changes as u8; 6000]);
            proof.store().end_changes_after(changes, false);
            let closed = proof.store.take().unwrap().close();
            proof.store = Some(proof.open().unwrap());
            assert_eq!(proof.store().findings(), [], "{policy:?}: {changes} changes");
            proof.check();
            if closed.is_ok() {
                assert!(changes > 20, "{policy:?}: {changes} changes");
                break;
            }
        }
    }
}
