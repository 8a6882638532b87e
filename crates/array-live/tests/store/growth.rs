//! A member joins, and pieces of volumes move onto it.

use assay_array_live::Durability;
use assay_array_model::{Part, RaidPolicy};

use crate::{
    any_order::Act,
    proof::{Proof, filled},
    proving::Proving,
};

impl Proof {
    pub(crate) fn add_member(&mut self) {
        // Of eight pages a sixth member would get none.
        if self.model.members() == 5 {
            return;
        }
        // Nor does a group grow whose blocks move.
        if self.model.moving_block_bytes(0).is_some() {
            assert!(self.model.clone().add_member(&self.plan, 0).is_err());
            return;
        }
        let mut model = self.model.clone();
        let grown = model.add_member(&self.plan, 0);
        assert_eq!(grown.is_err(), self.model.rebalance_reading().is_some());
        if grown.is_ok() {
            let added = self.store().add_member(&model, 0);
            assert_eq!(added.is_err(), self.held.has_snapshots());
            if added.is_ok() {
                self.model = model;
            }
        }
    }

    /// So many pieces move onto the new member; then the server is killed where the next one is copied and not noted.
    pub(crate) fn move_pieces(&mut self, most: u64, killed: bool) {
        for _ in 0..most {
            let Some(reading) = self.model.rebalance_reading() else { return };
            let (from, to) = self.model.move_of(reading.pieces_moved);
            if !self.copy(from, to) {
                // What is lost does not move, and holds up the others.
                return;
            }
            self.store().set_moved(reading.pieces_moved + 1, reading.pieces, from, to).unwrap();
            self.model.set_moved(reading.pieces_moved + 1);
            // Zeroes are written where it was.
            self.is_written(from);
        }
        if killed && let Some(reading) = self.model.rebalance_reading() {
            let (from, to) = self.model.move_of(reading.pieces_moved);
            self.copy(from, to);
            self.kill();
        }
    }

    /// Copies a piece. Says whether it could be.
    fn copy(&mut self, from: Part, to: Part) -> bool {
        let is_lost = self.is_lost(from) || self.is_lost(to);
        let copied = self.store().copy_piece(from, to);
        if is_lost {
            return false;
        }
        if copied.unwrap() {
            self.is_written(to);
        }
        true
    }

    fn is_written(&mut self, part: Part) {
        for piece in Self::pieces(part) {
            self.takes_write(piece);
        }
    }
}

#[test]
fn a_store_that_has_grown_opens_with_its_members_and_frees_the_room_that_has_moved() {
    let mut proof = filled(RaidPolicy::Raid6, Durability::Battery, true);
    let before_bytes = proof.store().used_bytes();
    proof.happen(&Act::AddMember, true);
    proof.happen(&Act::Move { pieces: 11, killed: true }, true);
    assert_eq!((proof.store().members(), proof.model.rebalance_reading().unwrap().pieces_moved), (3, 11));
    proof.check();
    proof.happen(&Act::Move { pieces: u64::MAX, killed: false }, true);
    assert_eq!(proof.model.rebalance_reading(), None);
    proof.kill();
    assert_eq!((proof.store().members(), proof.model.rebalance_reading()), (3, None));
    proof.check();
    // Parity of what has moved away stays.
    let now_bytes = proof.store().used_bytes();
    assert!(now_bytes < before_bytes * 3 / 2, "{now_bytes} bytes, {before_bytes} before");
    // The same array with the member from the start deals out its pages otherwise.
    proof.store = None;
    proof.plan.pools[0].members = 3;
    let refused = proof.open().err().unwrap().to_string();
    assert!(refused.contains("members: 2, not 3") && refused.contains("before 1 joined"), "{refused}");
}

#[test]
fn what_is_lost_does_not_move_and_nothing_else_is_lost_with_it() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
    proof.happen(&Act::AddMember, true);
    proof.pull(0, 0);
    proof.pull(0, 1);
    proof.happen(&Act::Move { pieces: u64::MAX, killed: false }, false);
    let moved = proof.model.rebalance_reading().unwrap().pieces_moved;
    proof.check();
    proof.kill();
    assert_eq!(proof.model.rebalance_reading().unwrap().pieces_moved, moved);
    proof.check();
}
