//! A volume grows.

use assay_array_live::{DiskState, Durability};
use assay_array_model::RaidPolicy;

use crate::{
    any_order::Act,
    proof::{Proof, filled},
    proving::{BLOCK, Proving, VOLUME_BYTES},
};

/// Volumes of proofs grow no further.
const GROWN_MOST: u64 = 4 * VOLUME_BYTES;

impl Proof {
    /// Gives a volume so many more sectors, or has a file fail after so many changes meanwhile.
    pub(crate) fn grow(&mut self, volume: u16, sectors: u64, fails_after: Option<(u64, bool)>) {
        let before = self.volume_bytes(volume);
        let bytes = before + sectors * 512;
        let mut model = self.model.clone();
        let grows = model.grow_volume(&self.plan, volume, bytes).is_ok();
        assert_eq!(grows, self.model.moving_block_bytes(0).is_none() && self.model.rebalance_reading().is_none());
        if !grows || bytes > GROWN_MOST {
            return;
        }
        let rows: Vec<u64> = (0..self.model.members()).map(|member| self.rows(member)).collect();
        if let Some((changes, comes_back)) = fails_after {
            self.store().end_changes_after(changes, comes_back);
        }
        let grown = self.store().grow_volume(&model, volume, bytes);
        if grown.is_ok() {
            self.model = model;
        }
        if let Some((_, comes_back)) = fails_after {
            if !comes_back {
                self.kill();
            }
            self.store().end_changes_after(u64::MAX, false);
        }
        assert!(fails_after.is_some() || grown.is_ok());
        assert_eq!(self.volume_bytes(volume), if grown.is_ok() { bytes } else { before });
        if grown.is_ok() {
            self.is_grown(volume, bytes, &rows);
            // The last sector is there.
            self.put(volume, bytes - 512, 512, 9);
        }
    }

    fn volume_bytes(&self, volume: u16) -> u64 {
        self.model.volume_bytes(usize::from(volume)).unwrap()
    }

    /// What is new holds zeroes; disks that were gone do not have it.
    fn is_grown(&mut self, volume: u16, bytes: u64, rows: &[u64]) {
        let held = &mut self.held;
        for all in [&mut held.acknowledged, &mut held.durable].into_iter().chain(held.snapshots.values_mut()) {
            all[usize::from(volume)].resize(bytes as usize, 0);
        }
        let chunk_blocks = self.chunk_blocks();
        for (member, before) in (0..).zip(rows) {
            let new = before * chunk_blocks..self.rows(member) * chunk_blocks;
            for disk in 0..self.disks() {
                if self.store.as_ref().unwrap().disk_state(member, disk) != DiskState::Present {
                    self.gone.extend(new.clone().map(|block| (member, disk, block)));
                }
            }
        }
    }
}

#[test]
fn a_volume_that_has_grown_is_as_large_after_a_restart_with_and_without_members_that_joined() {
    let mut proof = filled(RaidPolicy::Raid6, Durability::Battery, true);
    proof.grow(0, 2 * VOLUME_BYTES / 512, None);
    proof.grow(1, 1, None);
    proof.happen(&Act::AddMember, true);
    proof.happen(&Act::Move { pieces: u64::MAX, killed: false }, true);
    proof.grow(1, VOLUME_BYTES / 512, None);
    proof.put(0, 2 * VOLUME_BYTES, 100 * BLOCK, 7);
    proof.kill();
    assert_eq!((proof.volume_bytes(0), proof.volume_bytes(1)), (3 * VOLUME_BYTES, 2 * VOLUME_BYTES + 512));
    proof.check();
    proof.pull(0, 1);
    proof.pull(2, 0);
    proof.check();
    // A plan with the size that the volume has now would deal out its pages otherwise.
    proof.store = None;
    proof.plan.pools[0].volumes[0].bytes = 3 * VOLUME_BYTES;
    let refused = proof.open().err().unwrap().to_string();
    assert!(refused.contains("before 1 joined, before volumes grew"), "{refused}");
}

#[test]
fn a_growth_that_is_cut_short_anywhere_changes_nothing_or_all() {
    let ends: Vec<bool> = (0..80)
        .map(|changes| {
            let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, true);
            proof.grow(0, 999, Some((changes, false)));
            proof.check();
            proof.grow(1, 3, None);
            proof.check();
            proof.volume_bytes(0) > VOLUME_BYTES
        })
        .collect();
    assert!(!ends[0] && ends[79] && ends.is_sorted(), "{ends:?}");
}
