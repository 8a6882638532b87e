//! Files of a store that are damaged while no server has it: every byte is the one that was acknowledged, or an error.

use std::{fs, ops::Range, path::Path};

use assay_array_live::{DiskState, Durability, StoreFault};
use assay_array_model::RaidPolicy;
use proptest::prelude::*;

use crate::{
    any_order::Act,
    damage::{Damage, copy, damage, files},
    proof::{Layout, Proof, filled, filled_of, plan},
    proving::{BLOCK, Folder, Proving, VOLUME_BYTES},
};

/// What a store has been through.
#[derive(Debug, Clone)]
struct Past {
    policy: RaidPolicy,
    layout: Layout,
    sums: bool,
    grown: bool,
    snapshot: bool,
    rebuilding: bool,
    /// How the last server ended: it closed the store, or was killed after so many changes of files.
    killed: Option<(u64, Amid)>,
}

/// What a server was killed amid.
#[derive(Debug, Clone, Copy)]
enum Amid {
    Write,
    Move,
    Rebuild,
    Snapshot,
    Close,
}

fn past() -> impl Strategy<Value = Past> {
    let policies = vec![RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Raid6, RaidPolicy::Dp];
    (
        prop::sample::select(policies),
        prop::sample::select(vec![Layout::InPlace, Layout::Anywhere]),
        any::<[bool; 4]>(),
        prop::option::of((
            0..30_u64,
            prop::sample::select(vec![
                Amid::Write,
                Amid::Write,
                Amid::Move,
                Amid::Rebuild,
                Amid::Snapshot,
                Amid::Close,
            ]),
        )),
    )
        .prop_map(|(policy, layout, [sums, grown, snapshot, rebuilding], killed)| Past {
            policy,
            layout,
            sums,
            grown,
            snapshot,
            rebuilding,
            killed,
        })
}

/// A store after its past, closed or as a killed server leaves it.
struct Left {
    proof: Proof,
    older: Folder,
    /// What the write may have written that was under way when the server was killed.
    under_way: Option<(Range<usize>, Vec<u8>)>,
}

impl Past {
    fn make(&self) -> Left {
        let mut proof = filled_of(plan(self.policy, self.layout), Durability::Battery, self.sums);
        let older = Folder::new();
        if self.layout == Layout::Anywhere {
            (0..20).for_each(|number| proof.follow(0, number * 5, 400 + number * 3, 2, None));
        }
        if self.rebuilding {
            proof.pull(0, 1);
            proof.rebuild(0, 1, 0.4);
        }
        if self.grown {
            proof.happen(&Act::AddMember, true);
            proof.happen(&Act::Move { pieces: 5, killed: false }, true);
        }
        if self.snapshot && proof.takes_snapshots() {
            proof.store().snapshot("before").unwrap();
        }
        // An older copy of each file is that of an earlier end.
        proof.store.take().unwrap().close().unwrap();
        copy(&proof.folder.0, &older.0);
        proof.store = Some(proof.open().unwrap());
        let bytes: Vec<u8> = (0..VOLUME_BYTES / 2).map(|at| (at / 100 % 251) as u8 ^ 0x5a).collect();
        proof.write(0, 30_000, &bytes);
        proof.write(1, 0, &bytes);
        if self.layout == Layout::Anywhere {
            (0..10).for_each(|number| proof.follow(0, number * 7, 500 + number * 3, 2, None));
        }
        if self.grown {
            proof.happen(&Act::Move { pieces: 4, killed: false }, true);
        }
        if self.rebuilding {
            proof.rebuild(0, 1, 0.7);
        }
        let mut under_way = None;
        match self.killed {
            None => proof.store.take().unwrap().close().unwrap(),
            Some((changes, amid)) => {
                proof.store().end_changes_after(changes, false);
                under_way = amid.begin(&mut proof);
                proof.store = None;
            }
        }
        Left { proof, older, under_way }
    }
}

impl Amid {
    /// Begins what fails after a while. Gives back what a write has written then or has not.
    fn begin(self, proof: &mut Proof) -> Option<(Range<usize>, Vec<u8>)> {
        match self {
            Self::Write => {
                let (at, bytes) = (70_000, vec![0xc3; 50_000]);
                let mut done = 0;
                for part in proof.parts(1, at, bytes.len() as u64) {
                    let count = part.bytes as usize;
                    if proof.store().write(part, &bytes[done..done + count]).is_err() {
                        break;
                    }
                    done += count;
                }
                return Some((at as usize..at as usize + bytes.len(), bytes));
            }
            Self::Move => {
                while let Some(reading) = proof.model.rebalance_reading() {
                    let (from, to) = proof.model.move_of(reading.pieces_moved);
                    let copied = proof.store().copy_piece(from, to).is_ok();
                    let after = reading.pieces_moved + 1;
                    if !copied || proof.store().set_moved(after, reading.pieces, from, to).is_err() {
                        break;
                    }
                    proof.model.set_moved(after);
                }
            }
            Self::Rebuild => {
                let rows = proof.store().rows(0);
                let _ = proof.store().rebuild_to(0, 1, rows, u64::MAX);
                let _ = proof.store().end_rebuild(0, 1);
            }
            Self::Snapshot => {
                let _ = proof.store().snapshot("amid");
                let part = proof.parts(0, 0, 4096)[0];
                let mut same = vec![0; part.bytes as usize];
                if proof.store().read(part, &mut same).is_ok() {
                    let _ = proof.store().write(part, &same);
                }
            }
            Self::Close => drop(proof.store.take().map(assay_array_live::Store::close)),
        }
        None
    }
}

impl Left {
    /// Reads all: says how many blocks cannot be had. What the write was about to write is there, or what was there before.
    fn read(&mut self) -> u64 {
        let mut lost = 0;
        for volume in 0..2_u16 {
            for at in (0..VOLUME_BYTES as usize).step_by(512) {
                let mut done = at;
                for part in self.proof.parts(volume, at as u64, 512) {
                    let mut found = vec![0; part.bytes as usize];
                    let here = done..done + found.len();
                    done = here.end;
                    match self.proof.store().read(part, &mut found) {
                        Ok(()) => {
                            let was = found == self.proof.held.acknowledged[usize::from(volume)][here.clone()];
                            let is = self.is_under_way(volume, &here, &found);
                            assert!(was || is, "volume {volume} at {at}: wrong bytes");
                        }
                        Err(StoreFault::Lost) => lost += 1,
                        Err(StoreFault::Io(_)) => lost += 1,
                        Err(fault) => panic!("{fault}"),
                    }
                }
            }
        }
        lost
    }

    fn is_under_way(&self, volume: u16, here: &Range<usize>, found: &[u8]) -> bool {
        let Some((there, bytes)) = self.under_way.as_ref().filter(|_| volume == 1) else { return false };
        let held = &self.proof.held.acknowledged[1];
        here.clone()
            .zip(found)
            .all(|(at, byte)| *byte == held[at] || (there.contains(&at) && *byte == bytes[at - there.start]))
    }

    /// New disks take the places of those that are gone, one after the other.
    fn rebuild(&mut self) {
        for member in 0..self.proof.store().members() {
            for disk in 0..self.proof.store().disks(member) {
                if self.proof.store().disk_state(member, disk) == DiskState::Absent {
                    self.proof.store().replace(member, disk).unwrap();
                }
                if self.proof.store().disk_state(member, disk) != DiskState::Present {
                    let rows = self.proof.store().rows(member);
                    assert!(self.proof.store().rebuild_to(member, disk, rows, u64::MAX).unwrap());
                    self.proof.store().end_rebuild(member, disk).unwrap();
                }
            }
        }
    }
}

/// Whether the store itself tells when a byte of a file changes: not of an image without sums, nor of a sum that says itself.
fn is_told(name: &str) -> bool {
    !name.ends_with(".img") && !name.ends_with(".sums")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::extent::cases(80), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_loses_no_byte_or_is_an_error_and_is_never_a_wrong_byte(
        past in past(),
        which in any::<prop::sample::Index>(),
        what in damage(),
    ) {
        let mut left = past.make();
        let folder = left.proof.folder.0.clone();
        let names: Vec<String> = files(&folder).into_keys().collect();
        let name = which.get(&names);
        prop_assume!(is_told(name) || !matches!(what, Damage::Byte(..)));
        let foreign = filled_of(plan(past.policy, past.layout), Durability::Battery, past.sums);
        prop_assume!(what.happens(&folder, &left.older.0, &foreign.folder.0, name));
        match left.proof.open() {
            Err(error) => {
                let text = error.to_string();
                prop_assert!(!text.contains('\n') && text.contains(&folder.display().to_string()), "{}", text);
                prop_assert!(!name.ends_with(".img") || matches!(what, Damage::Swapped(_)), "{}: {}", name, text);
            }
            Ok(store) => {
                left.proof.store = Some(store);
                let lost = left.read();
                // One disk of a member with no other one missing is made up for.
                let is_borne = !past.rebuilding && !matches!(what, Damage::Swapped(_));
                prop_assert!(!is_borne || lost == 0, "{} {:?}: {} lost", name, what, lost);
                left.rebuild();
                prop_assert_eq!(left.read(), lost);
            }
        }
    }

    #[test]
    fn two_damaged_images_lose_nothing_under_two_parities(
        policy in prop::sample::select(vec![RaidPolicy::Raid6, RaidPolicy::Dp]),
        past in past(),
        which in (0..8_u32, 1..8_u32),
        what in [damage(), damage()],
    ) {
        let mut left = Past { policy, rebuilding: false, ..past }.make();
        let folder = left.proof.folder.0.clone();
        let disks = left.proof.disks();
        let foreign = filled_of(plan(policy, left_layout(&left)), Durability::Battery, left.proof.sums);
        let (first, second) = (which.0 % disks, (which.0 + which.1 % (disks - 1) + 1) % disks);
        for (disk, what) in [first, second].into_iter().zip(&what) {
            let what = match what {
                Damage::Byte(..) | Damage::Swapped(_) => &Damage::Deleted,
                what => what,
            };
            what.happens(&folder, &left.older.0, &foreign.folder.0, &format!("member0-disk{disk}.img"));
        }
        left.proof.store = Some(left.proof.open().unwrap());
        let findings = left.proof.store().findings().to_vec();
        prop_assert!(findings.iter().all(|finding| finding.what.contains("the disk counts as pulled")));
        prop_assert_eq!(findings.len(), 2);
        prop_assert_eq!(left.read(), 0);
        left.rebuild();
        prop_assert_eq!(left.read(), 0);
    }
}

fn left_layout(left: &Left) -> Layout {
    if left.proof.model.moving_block_bytes(0).is_some() { Layout::Anywhere } else { Layout::InPlace }
}

/// Puts a file in the place of a disk's.
fn put(file: &Path, folder: &Path) {
    fs::copy(file, folder.join("member0-disk1.img")).unwrap();
}

/// What read as zeroes without an error: an image that was deleted, cut, exchanged, or put back from a copy.
#[test]
fn an_image_that_is_not_the_one_it_was_counts_as_pulled_and_is_said_so() {
    type Act = fn(&Path, &Path);
    let acts: [(Act, &str); 6] = [
        (|at, _| fs::remove_file(at.join("member0-disk1.img")).unwrap(), "is missing"),
        (|at, _| fs::write(at.join("member0-disk1.img"), "").unwrap(), "is overwritten where it says what it is"),
        (
            |at, _| {
                let file = fs::File::options().write(true).open(at.join("member0-disk1.img")).unwrap();
                file.set_len(file.metadata().unwrap().len() - 1).unwrap();
            },
            "bytes of",
        ),
        (|at, older| put(&older.join("member0-disk1.img"), at), "is an older copy"),
        (|at, _| put(&at.join("member1-disk1.img"), at), "holds member1-disk1.img"),
        (
            |at, _| {
                let other = filled(RaidPolicy::Raid5, Durability::Battery, false);
                put(&other.folder.0.join("member0-disk1.img"), at);
            },
            "is of another store",
        ),
    ];
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid5, RaidPolicy::Raid6, RaidPolicy::Dp] {
        for (act, why) in &acts {
            let mut proof = filled(policy, Durability::Battery, false);
            proof.store.take().unwrap().close().unwrap();
            let older = Folder::new();
            copy(&proof.folder.0, &older.0);
            proof.store = Some(proof.open().unwrap());
            proof.write(0, 0, &[9; 100_000]);
            proof.store.take().unwrap().close().unwrap();
            act(&proof.folder.0, &older.0);
            proof.store = Some(proof.open().unwrap());
            let [finding] = proof.store().findings() else { panic!("{policy:?}: nothing is said of {why}") };
            assert!(finding.what.starts_with("member0/disk1: member0-disk1.img") && finding.what.contains(why));
            assert_eq!((finding.disk, proof.store().disk_state(0, 1)), (Some((0, 1)), DiskState::Absent));
            let blocks = proof.rows(0) * proof.chunk_blocks();
            proof.absent.insert((0, 1));
            proof.gone.extend((0..blocks).map(|block| (0, 1, block)));
            proof.check();
            proof.rebuild(0, 1, 1.0);
            proof.check();
            // A second one is borne by what the rebuild wrote.
            proof.pull(0, 0);
            proof.check();
        }
    }
}

/// More than the policy bears: blocks that are lost are errors, and none reads as zeroes.
#[test]
fn images_that_are_gone_beyond_the_tolerance_are_errors_and_no_zeroes() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
    proof.store.take().unwrap().close().unwrap();
    for disk in 0..2 {
        fs::remove_file(proof.folder.0.join(format!("member0-disk{disk}.img"))).unwrap();
    }
    proof.store = Some(proof.open().unwrap());
    assert!(proof.store().findings().iter().all(|finding| finding.what.contains("chunks of data")));
    let blocks = proof.rows(0) * proof.chunk_blocks();
    for disk in 0..2 {
        proof.absent.insert((0, disk));
        proof.gone.extend((0..blocks).map(|block| (0, disk, block)));
    }
    proof.check();
    assert!(proof.store().lost_chunks(0) > 0);
    // A sound block is still written in place of a lost one once there are disks.
    proof.rebuild(0, 0, 1.0);
    proof.rebuild(0, 1, 1.0);
    proof.write(0, 0, &[7; 8 * BLOCK as usize]);
    proof.check();
}

/// A record that went on elsewhere, or a folder that is not there: to take all disks for pulled would lose all for good.
#[test]
fn a_store_without_any_disk_is_refused_and_loses_nothing() {
    let mut proof = filled(RaidPolicy::Raid6, Durability::Battery, false);
    proof.store.take().unwrap().close().unwrap();
    let (folder, aside) = (proof.folder.0.clone(), Folder::new());
    copy(&folder, &aside.0);
    for name in files(&folder).into_keys().filter(|name| name.ends_with(".img")) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    let refused = proof.open().err().unwrap().to_string();
    assert!(refused.contains("of no disk the files can be used") && refused.contains("is missing"), "{refused}");
    copy(&aside.0, &folder);
    proof.store = Some(proof.open().unwrap());
    proof.check();
}

/// A record of an earlier end would have disks be there that were pulled since, and bytes lie where they no longer do.
#[test]
fn records_of_the_store_are_taken_from_each_other_and_older_ones_are_refused() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, true);
    proof.store.take().unwrap().close().unwrap();
    let older = Folder::new();
    copy(&proof.folder.0, &older.0);
    proof.store = Some(proof.open().unwrap());
    proof.pull(0, 1);
    proof.write(0, 0, &[9; 100_000]);
    proof.kill();
    proof.store = None;
    let folder = proof.folder.0.clone();
    for (name, other) in [("store.json", "store.copy"), ("store.copy", "store.json")] {
        for with in [None, Some(fs::read(older.0.join(name)).unwrap()), Some(b"{".to_vec()), Some(vec![0; 5000])] {
            match with {
                None => fs::remove_file(folder.join(name)).unwrap(),
                Some(bytes) => fs::write(folder.join(name), bytes).unwrap(),
            }
            proof.store = Some(proof.open().unwrap());
            proof.check();
            proof.store = None;
            assert_eq!(fs::read(folder.join(name)).unwrap(), fs::read(folder.join(other)).unwrap());
        }
    }
    for name in ["store.json", "store.copy"] {
        fs::copy(older.0.join(name), folder.join(name)).unwrap();
    }
    let refused = proof.open().err().unwrap().to_string();
    assert!(refused.contains("is newer than the record of the store"), "{refused}");
    for name in ["store.json", "store.copy"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let refused = proof.open().err().unwrap().to_string();
    assert!(refused.contains("store.json is damaged") && refused.contains("put one back from a copy"), "{refused}");
    // As a store of version 2 begins.
    fs::write(folder.join("store.json"), r#"{"version": 2, "seed": 1}"#).unwrap();
    let refused = proof.open().err().unwrap().to_string();
    assert!(refused.contains("was written by an earlier version of Assay"), "{refused}");
}

/// "failed to fill whole buffer" was all that was said.
#[test]
fn moves_that_are_missing_are_taken_from_their_copy_or_named() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
    proof.happen(&Act::AddMember, true);
    proof.happen(&Act::Move { pieces: 7, killed: false }, true);
    proof.store = None;
    let folder = proof.folder.0.clone();
    for name in ["moves", "moves.copy"] {
        fs::remove_file(folder.join(name)).unwrap();
        proof.store = Some(proof.open().unwrap());
        assert_eq!(proof.model.rebalance_reading().unwrap().pieces_moved, 7);
        proof.check();
        proof.store = None;
    }
    for name in ["moves", "moves.copy"] {
        fs::write(folder.join(name), "").unwrap();
    }
    let refused = proof.open().err().unwrap().to_string();
    assert!(refused.contains("moves") && refused.contains("put one back from a copy"), "{refused}");
}

#[test]
fn a_snapshot_whose_log_is_gone_is_forgotten_with_those_that_count_on_it() {
    let mut proof = filled(RaidPolicy::Raid6, Durability::Battery, false);
    for (number, name) in ["one", "two", "three"].into_iter().enumerate() {
        proof.store().snapshot(name).unwrap();
        proof.write(0, number as u64 * 8192, &[number as u8; 8192]);
    }
    let then = proof.held.acknowledged.clone();
    proof.write(0, 0, &[0x77; 100_000]);
    proof.store.take().unwrap().close().unwrap();
    let log = proof.folder.0.join("snapshot-two.log");
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.set_len(file.metadata().unwrap().len() - 70_000).unwrap();
    proof.store = Some(proof.open().unwrap());
    let [finding] = proof.store().findings() else { panic!("nothing is said") };
    assert!(
        finding.what.starts_with("snapshot two: snapshot-two.log has") && finding.what.contains("all that are older")
    );
    let names: Vec<String> = proof.store().snapshots().into_iter().map(|snapshot| snapshot.name).collect();
    assert_eq!(names, ["three"]);
    proof.check();
    proof.store().revert("three").unwrap();
    proof.held.acknowledged = then;
    proof.held.acknowledged[0][16384..24576].copy_from_slice(&filled_bytes()[16384..24576]);
    proof.check();
}

fn filled_bytes() -> Vec<u8> {
    (0..VOLUME_BYTES).map(|at| (at / 512 * 7 % 253) as u8).collect()
}
