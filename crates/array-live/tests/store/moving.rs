//! Blocks of write-anywhere layouts move to other places.

use assay_array_live::{Durability, Store, StoreFault};
use assay_array_model::{ArrayModel, Moved, Part, RaidPolicy};

use crate::{
    proof::{Layout, Proof, filled_of, plan},
    proving::{BLOCK, Folder, Proving, VOLUME_BYTES},
};

/// Rows that blocks move within: some more than volumes take at first.
const ROWS: u64 = 40;

impl Proof {
    fn blocks(&self, member: u32) -> u64 {
        self.model.member_bytes(member).div_ceil(BLOCK)
    }

    /// Places to which blocks of a member may go here.
    fn places(&self, member: u32) -> u64 {
        let row = self.chunk_blocks() * u64::from(self.geometry().columns() * self.geometry().sets());
        (self.model.places_bytes(member) / BLOCK).min(ROWS * row)
    }

    /// What the store knows of where blocks lie.
    fn learn(&mut self) {
        let members = self.model.members();
        let store = self.store.as_ref().unwrap();
        let moved =
            (0..members).flat_map(|member| store.moved(member).map(move |(block, place)| ((member, block), place)));
        self.lies = moved.collect();
    }

    /// Blocks go to places that follow each other, or those do whose places no other block has. Files may fail after so many
    /// changes, once or until another server comes.
    pub(crate) fn follow(&mut self, member: u32, block: u64, place: u64, count: u64, fails_after: Option<(u64, bool)>) {
        let (blocks, places) = (self.blocks(member), self.places(member));
        if self.model.moving_block_bytes(member).is_none() || blocks == 0 {
            return;
        }
        let (block, place) = (block % blocks, place % places);
        let count = count.min(blocks - block).min(places - place);
        let moved = Moved { at_bytes: block * BLOCK, place_bytes: place * BLOCK, bytes: count * BLOCK };
        if let Some((changes, comes_back)) = fails_after {
            self.store().end_changes_after(changes, comes_back);
            let _ = self.store().follow(member, &[moved]);
            if comes_back {
                self.store().end_changes_after(u64::MAX, false);
                // What is under way is ended before anything is read.
                self.store().read(Part { member, at_bytes: 0, bytes: BLOCK }, &mut [0; BLOCK as usize]).unwrap();
            } else {
                self.kill();
            }
            self.learn();
            return;
        }
        let has = |proof: &Self, place: u64| {
            (0..blocks).any(|block| proof.lies.get(&(member, block)).copied().unwrap_or(block) == place)
        };
        let free: Vec<u64> = (0..count).filter(|number| !has(self, place + number)).collect();
        self.store().follow(member, &[moved]).unwrap();
        self.lies.extend(free.into_iter().map(|number| ((member, block + number), place + number)));
        let expected = self.lies.clone();
        self.learn();
        assert_eq!(self.lies, expected);
    }
}

fn moved_about(policy: RaidPolicy) -> Proof {
    let mut proof = filled_of(plan(policy, Layout::Anywhere), Durability::Battery, false);
    let columns = u64::from(proof.geometry().columns());
    for member in 0..2 {
        // Here and there, so that neighbours lie in different rows.
        for number in 0..proof.blocks(member) / 3 {
            let place = proof.blocks(member) + number * 13 % (columns * proof.chunk_blocks() * 3);
            proof.follow(member, number * 3, place, 1 + number % 2, None);
        }
    }
    assert!(proof.lies.len() > 40, "{policy:?}");
    proof.check();
    proof
}

#[test]
fn exactly_those_blocks_are_lost_that_lie_where_too_much_is_gone() {
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Raid6, RaidPolicy::Dp] {
        let mut proof = moved_about(policy);
        for disk in 0..policy.parity_disks() + 1 + u32::from(policy == RaidPolicy::Raid10) {
            proof.pull(0, disk);
        }
        let lost = proof.store().lost_chunks(0);
        proof.check();
        proof.kill();
        proof.check();
        assert!(lost > 0 && proof.store().lost_chunks(0) == lost, "{policy:?}");
        // What is lost stays where it is; what is not goes on moving.
        let before = proof.lies.clone();
        let rest = proof.blocks(0) + 300;
        let all = Moved { at_bytes: 0, place_bytes: rest * BLOCK, bytes: proof.blocks(0) * BLOCK };
        proof.store().follow(0, &[all]).unwrap();
        proof.learn();
        let lost: Vec<u64> =
            (0..proof.blocks(0)).filter(|block| proof.lies.get(&(0, *block)) == before.get(&(0, *block))).collect();
        assert!(!lost.is_empty() && (lost.len() as u64) < proof.blocks(0), "{policy:?}");
    }
}

#[test]
fn a_disk_that_is_rebuilt_holds_what_moved_meanwhile() {
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Raid6, RaidPolicy::Dp] {
        let mut proof = moved_about(policy);
        proof.pull(0, 1);
        proof.rebuild(0, 1, 0.4);
        let (blocks, places) = (proof.blocks(0), proof.places(0));
        // Into rows that the new disk has not reached, and into those in which nothing ever lay.
        proof.follow(0, 0, places - blocks, blocks, None);
        proof.check();
        proof.rebuild(0, 1, 1.0);
        proof.pull(0, 0);
        proof.check();
    }
}

#[test]
fn what_blocks_leave_behind_takes_no_room_for_long() {
    let mut proof = filled_of(plan(RaidPolicy::Dp, Layout::Anywhere), Durability::Battery, true);
    let first_bytes = proof.store().used_bytes();
    // All of it goes round several times.
    for round in 1..12 {
        for member in 0..2 {
            let blocks = proof.blocks(member);
            proof.follow(member, 0, blocks * (1 + round % 2), blocks, None);
        }
        proof.check();
        let bytes = proof.store().used_bytes();
        assert!(bytes <= first_bytes * 2, "round {round}: {bytes} bytes, {first_bytes} at first");
    }
}

#[test]
fn a_store_that_is_full_takes_back_what_blocks_left_behind() {
    let plan = plan(RaidPolicy::Raid5, Layout::Anywhere);
    let mut model = ArrayModel::new(&plan).unwrap();
    let folder = Folder::new();
    let mut store = Store::open(&folder.0, &plan, &mut model, Durability::Battery, false, None).unwrap();
    let parts: Vec<Part> = model.parts(0, 0, VOLUME_BYTES).collect();
    let bytes = |fill: u8, part: &Part| vec![fill; part.bytes as usize];
    parts.iter().for_each(|part| store.write(*part, &bytes(1, part)).unwrap());
    // One block of four, so that no chunk is tidied by itself.
    for member in 0..2 {
        let blocks = model.member_bytes(member) / BLOCK;
        for number in 0..blocks / 4 {
            let (at_bytes, place_bytes) = (number * 4 * BLOCK, (blocks + number) * BLOCK);
            store.follow(member, &[Moved { at_bytes, place_bytes, bytes: BLOCK }]).unwrap();
        }
    }
    let room_bytes = store.used_bytes();
    store.close().unwrap();
    let open = |room_bytes| {
        let mut model = ArrayModel::new(&plan).unwrap();
        Store::open(&folder.0, &plan, &mut model, Durability::Battery, false, Some(room_bytes)).unwrap()
    };
    let mut store = open(room_bytes);
    assert!(parts.iter().any(|part| matches!(store.write(*part, &bytes(2, part)), Err(StoreFault::Full))));
    drop(store);
    let mut store = open(room_bytes + 64 * BLOCK);
    for member in 0..2 {
        let blocks = model.member_bytes(member) / BLOCK;
        for number in 0..blocks / 4 {
            let (at_bytes, place_bytes) = ((number * 4 + 1) * BLOCK, (blocks * 2 + number) * BLOCK);
            store.follow(member, &[Moved { at_bytes, place_bytes, bytes: BLOCK }]).unwrap();
        }
    }
    for part in &parts {
        store.write(*part, &bytes(3, part)).unwrap();
    }
    let mut found = vec![0; BLOCK as usize];
    for part in parts {
        store.read(Part { bytes: BLOCK, ..part }, &mut found).unwrap();
        assert_eq!(found, [3; BLOCK as usize]);
    }
}

/// A note of zeroes is whole with half of it written: what the server does then, the next one finds.
#[test]
fn a_note_that_failed_is_made_or_forgotten_before_anything_is_read() {
    let mut proof = Proof::new(plan(RaidPolicy::Raid10, Layout::Anywhere), Durability::Volatile, false);
    for changes in 0..6 {
        proof.follow(0, 50, 144 + changes * 8, 3, Some((changes, true)));
        let learned = proof.lies.clone();
        proof.kill();
        proof.learn();
        assert_eq!(learned, proof.lies, "{changes} changes");
    }
}
