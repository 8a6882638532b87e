//! The bytes of a modelled array are those that were acknowledged, whatever happens that its policy bears; and exactly those
//! are lost that must be when more happens.

#[path = "../../array/tests/plans/mod.rs"]
mod plans;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use assay_array::{ArrayModel, ArrayPlan, Geometry, Part, Place, RaidPolicy};
use assay_serve::{DiskState, Durability, ServeError, Store, StoreFault};
use proptest::prelude::*;

const KIB: u64 = 1024;
const BLOCK: u64 = 4 * KIB;
const CHUNK_BLOCKS: u64 = 2;
const VOLUME_BYTES: u64 = 512 * KIB;

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("assay-store-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn plan(policy: RaidPolicy, misaligned: bool) -> ArrayPlan {
    let mut plan = plans::plan(policy);
    plan.page_bytes = 64 * KIB;
    plan.pools[0].members = 2;
    plan.pools[0].member.raid.chunk_bytes = 8 * KIB;
    plan.pools[0].member.raid.misalign_bytes = if misaligned { 512 } else { 0 };
    plan.pools[0].volumes.truncate(2);
    plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = VOLUME_BYTES);
    plan
}

/// A store, and what it must hold.
struct Proof {
    folder: Folder,
    plan: ArrayPlan,
    model: ArrayModel,
    durability: Durability,
    sums: bool,
    store: Option<Store>,
    /// What was acknowledged, and what of it would survive a power cut, by volume.
    acknowledged: Vec<Vec<u8>>,
    durable: Vec<Vec<u8>>,
    snapshots: BTreeMap<String, Vec<Vec<u8>>>,
    /// Blocks that no disk holds: member, disk and number on the disk.
    gone: BTreeSet<(u32, u32, u64)>,
    absent: BTreeSet<(u32, u32)>,
}

impl Proof {
    fn new(plan: ArrayPlan, durability: Durability, sums: bool) -> Self {
        let model = ArrayModel::new(&plan).unwrap();
        let empty = vec![vec![0; VOLUME_BYTES as usize]; 2];
        let mut proof = Self {
            folder: Folder::new(),
            plan,
            model,
            durability,
            sums,
            store: None,
            acknowledged: empty.clone(),
            durable: empty,
            snapshots: BTreeMap::new(),
            gone: BTreeSet::new(),
            absent: BTreeSet::new(),
        };
        proof.store = Some(proof.open().unwrap());
        proof
    }

    /// A server starts: with the model of the plan, which the store makes what it has become.
    fn open(&mut self) -> Result<Store, ServeError> {
        let mut model = ArrayModel::new(&self.plan).unwrap();
        let store = Store::open(&self.folder.0, &self.plan, &mut model, self.durability, self.sums, None)?;
        self.model = model;
        Ok(store)
    }

    fn store(&mut self) -> &mut Store {
        self.store.as_mut().unwrap()
    }

    fn geometry(&self) -> &Geometry {
        self.model.geometry(0)
    }

    fn disks(&self) -> u32 {
        self.geometry().sets() * self.geometry().set_disks()
    }

    /// Cells of a row's set: data, then parity. A mirrored pair is its two disks.
    fn cells(&self, set: u32, row: u64) -> Vec<u32> {
        let geometry = self.geometry();
        let data = (0..geometry.columns()).map(|column| geometry.data_disk(set, row, column));
        data.chain((0..geometry.policy().parity_disks()).map(|which| geometry.parity_disk(set, row, which))).collect()
    }

    /// Whether a disk misses a block of a row, or of RAID-DP, whose diagonals go across the row, any of it.
    fn misses(&self, member: u32, disk: u32, block: u64) -> bool {
        let first = block / CHUNK_BLOCKS * CHUNK_BLOCKS;
        let blocks =
            if self.geometry().policy() == RaidPolicy::Dp { first..first + CHUNK_BLOCKS } else { block..block + 1 };
        self.gone.range((member, disk, blocks.start)..(member, disk, blocks.end)).next().is_some()
    }

    /// The set, the disk and the block on it of a member's address, and its column.
    fn block_of(&self, at_bytes: u64) -> (Place, u64) {
        let place = self.geometry().place(at_bytes / self.geometry().chunk_bytes());
        (place, place.row * CHUNK_BLOCKS + at_bytes / BLOCK % CHUNK_BLOCKS)
    }

    /// Whether bytes of a part cannot be had any more.
    fn is_lost(&self, part: Part) -> bool {
        let policy = self.geometry().policy();
        (part.at_bytes / BLOCK..=(part.at_bytes + part.bytes - 1) / BLOCK).any(|number| {
            let (place, block) = self.block_of(number * BLOCK);
            let gone = |disk: u32| self.gone.contains(&(part.member, disk, block));
            if policy.parity_disks() == 0 {
                return (place.disk..place.disk + policy.copies()).all(gone);
            }
            let cells = self.cells(place.set, place.row);
            let missing = cells.into_iter().filter(|disk| self.misses(part.member, *disk, block)).count();
            gone(place.disk) && missing > policy.parity_disks() as usize
        })
    }

    /// Whether a disk takes what is written into a row.
    fn takes(&self, member: u32, disk: u32, row: u64) -> bool {
        match self.store.as_ref().unwrap().disk_state(member, disk) {
            DiskState::Present => true,
            DiskState::Absent => false,
            DiskState::Rebuilding { rows } => row < rows,
        }
    }

    /// Whether a write of a part within one block must succeed; notes which blocks are held after it.
    fn takes_write(&mut self, part: Part) -> bool {
        let policy = self.geometry().policy();
        let (member, covers) = (part.member, part.at_bytes.is_multiple_of(BLOCK) && part.bytes == BLOCK);
        let (place, block) = self.block_of(part.at_bytes);
        let is_lost = self.is_lost(part);
        let is_whole = covers || (self.sums && !is_lost);
        if policy.parity_disks() == 0 {
            let copies = place.disk..place.disk + policy.copies();
            let takers: Vec<u32> = copies.filter(|disk| is_whole && self.takes(member, *disk, place.row)).collect();
            for disk in &takers {
                self.gone.remove(&(member, *disk, block));
            }
            return !is_lost || !takers.is_empty();
        }
        if !is_lost {
            return true;
        }
        if !is_whole || !self.takes(member, place.disk, place.row) {
            return false;
        }
        self.gone.remove(&(member, place.disk, block));
        let cells = self.cells(place.set, place.row);
        let (data, parity) = cells.split_at(self.geometry().columns() as usize);
        let is_complete = data.iter().all(|disk| !self.misses(member, *disk, block));
        let first = place.row * CHUNK_BLOCKS;
        let blocks = if policy == RaidPolicy::Dp { first..first + CHUNK_BLOCKS } else { block..block + 1 };
        for disk in parity {
            for block in blocks.clone().filter(|_| self.takes(member, *disk, place.row)).collect::<Vec<_>>() {
                if is_complete {
                    self.gone.remove(&(member, *disk, block));
                } else {
                    self.gone.insert((member, *disk, block));
                }
            }
        }
        true
    }

    fn parts(&self, volume: u16, at: u64, bytes: u64) -> Vec<Part> {
        self.model.parts(volume, at, bytes).collect()
    }

    /// Pieces of a part, within a block each.
    fn pieces(part: Part) -> impl Iterator<Item = Part> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let at_bytes = part.at_bytes + done;
            let bytes = (BLOCK - at_bytes % BLOCK).min(part.bytes - done);
            done += bytes;
            (bytes > 0).then_some(Part { member: part.member, at_bytes, bytes })
        })
    }

    fn write(&mut self, volume: u16, at: u64, bytes: &[u8]) {
        let mut done = 0;
        for part in self.parts(volume, at, bytes.len() as u64) {
            // Piece by piece where some of it is lost, as a lost block may take others of the same write with it.
            let pieces = if self.is_lost(part) { Self::pieces(part).collect() } else { vec![part] };
            for piece in pieces {
                let taken: Vec<bool> = Self::pieces(piece).map(|block| self.takes_write(block)).collect();
                let must = taken.iter().all(|taken| *taken);
                let piece_bytes = &bytes[done..done + piece.bytes as usize];
                match self.store().write(piece, piece_bytes) {
                    Ok(()) => {
                        assert!(must, "{piece:?} was written to a lost block");
                        let to = at as usize + done;
                        self.acknowledged[volume as usize][to..to + piece_bytes.len()].copy_from_slice(piece_bytes);
                    }
                    Err(StoreFault::Lost) => assert!(!must, "{piece:?} is refused"),
                    Err(fault) => panic!("{fault}"),
                }
                done += piece.bytes as usize;
            }
        }
        if self.durability == Durability::Battery {
            self.durable = self.acknowledged.clone();
        }
    }

    /// Writes while files fail after so many changes. Says whether the write was acknowledged; if not, blocks of it are old or
    /// new.
    fn write_until(&mut self, changes: u64, comes_back: bool, volume: u16, at: u64, bytes: &[u8]) -> bool {
        assert_eq!(self.durability, Durability::Battery);
        let parts = self.parts(volume, at, bytes.len() as u64);
        // Whether a copy that is lost alone is there again is not asked here.
        let has_lost_copy = |part: &Part| {
            let (place, block) = self.block_of(part.at_bytes);
            let copies = place.disk..place.disk + self.geometry().policy().copies();
            copies
                .into_iter()
                .any(|disk| self.gone.contains(&(part.member, disk, block)) && self.takes(part.member, disk, place.row))
        };
        if parts.iter().any(|part| self.is_lost(*part) || Self::pieces(*part).any(|piece| has_lost_copy(&piece))) {
            return true;
        }
        self.store().end_changes_after(changes, comes_back);
        let mut done = 0;
        let written = parts.iter().try_for_each(|part| {
            let piece = &bytes[done..done + part.bytes as usize];
            done += part.bytes as usize;
            self.store().write(*part, piece)
        });
        if !comes_back {
            // What a server does after it was killed is nothing.
            self.store = None;
            self.store = Some(self.open().unwrap());
        }
        self.store().end_changes_after(u64::MAX, false);
        let mut done = 0;
        for part in parts {
            for piece in Self::pieces(part) {
                let mut found = vec![0; piece.bytes as usize];
                self.store().read(piece, &mut found).unwrap();
                let to = at as usize + done..at as usize + done + found.len();
                let (old, new) = (&self.acknowledged[volume as usize][to.clone()], &bytes[done..done + found.len()]);
                assert!(found == new || (written.is_err() && found == old), "{piece:?} is neither old nor new");
                self.acknowledged[volume as usize][to].copy_from_slice(&found);
                done += found.len();
            }
        }
        self.durable = self.acknowledged.clone();
        written.is_ok()
    }

    /// Every byte is as it was acknowledged, or cannot be had because it is lost.
    fn check(&mut self) {
        for volume in 0..2_u16 {
            for at in (0..VOLUME_BYTES).step_by(4096) {
                let mut done = 0;
                for part in self.parts(volume, at, 4096) {
                    let mut bytes = vec![0; part.bytes as usize];
                    let is_lost = self.is_lost(part);
                    let found = self.store().read(part, &mut bytes);
                    let from = at as usize + done;
                    match found {
                        Ok(()) => {
                            assert!(!is_lost, "volume {volume} at {at}: read although lost");
                            let must = &self.acknowledged[volume as usize][from..from + bytes.len()];
                            assert!(bytes == must, "volume {volume} at {from}: other bytes than acknowledged");
                        }
                        Err(StoreFault::Lost) => assert!(is_lost, "volume {volume} at {at}: lost"),
                        Err(fault) => panic!("{fault}"),
                    }
                    done += part.bytes as usize;
                }
            }
        }
    }

    /// Whether the policy bears the loss of one more disk.
    fn bears(&self, member: u32, disk: u32) -> bool {
        let geometry = self.geometry();
        let missing = |other: u32| self.gone.range((member, other, 0)..(member, other, u64::MAX)).next().is_some();
        let set = disk / geometry.set_disks();
        match geometry.policy().parity_disks() {
            0 => geometry.policy().copies() == 2 && !missing(disk ^ 1),
            parity => {
                let disks = set * geometry.set_disks()..(set + 1) * geometry.set_disks();
                disks.filter(|other| *other != disk && missing(*other)).count() < parity as usize
            }
        }
    }

    fn rows(&self, member: u32) -> u64 {
        self.geometry().disk_bytes(self.model.member_bytes(member)) / self.geometry().chunk_bytes()
    }

    fn pull(&mut self, member: u32, disk: u32) {
        if self.absent.contains(&(member, disk)) {
            assert!(self.store().pull(member, disk).is_err());
            return;
        }
        self.store().pull(member, disk).unwrap();
        self.absent.insert((member, disk));
        self.gone.extend((0..self.rows(member) * CHUNK_BLOCKS).map(|block| (member, disk, block)));
    }

    /// Rebuilds a disk as far as some row.
    fn rebuild(&mut self, member: u32, disk: u32, share: f64) {
        if self.absent.remove(&(member, disk)) {
            self.store().replace(member, disk).unwrap();
        }
        let rows = self.rows(member);
        let to = (rows as f64 * share) as u64;
        assert!(self.store().rebuild_to(member, disk, to, u64::MAX).unwrap());
        let geometry = self.geometry().clone();
        let set = disk / geometry.set_disks();
        for row in 0..to {
            for block in row * CHUNK_BLOCKS..(row + 1) * CHUNK_BLOCKS {
                let bears = match geometry.policy().parity_disks() {
                    0 => geometry.policy().copies() == 2 && !self.gone.contains(&(member, disk ^ 1, block)),
                    parity => {
                        let cells = self.cells(set, row);
                        cells.iter().filter(|other| self.misses(member, **other, block)).count() <= parity as usize
                    }
                };
                if bears {
                    self.gone.remove(&(member, disk, block));
                }
            }
        }
        if to == rows {
            self.store().end_rebuild(member, disk).unwrap();
        }
    }

    fn add_member(&mut self) {
        // Of eight pages a sixth member would get none.
        if self.model.members() == 5 {
            return;
        }
        let mut model = self.model.clone();
        let grown = model.add_member(&self.plan, 0);
        assert_eq!(grown.is_err(), self.model.rebalance_reading().is_some());
        if grown.is_ok() {
            let added = self.store().add_member(&model, 0);
            assert_eq!(added.is_err(), !self.snapshots.is_empty());
            if added.is_ok() {
                self.model = model;
            }
        }
    }

    /// So many pieces move onto the new member; then the server is killed where the next one is copied and not noted.
    fn move_pieces(&mut self, most: u64, killed: bool) {
        for _ in 0..most {
            let Some(reading) = self.model.rebalance_reading() else { return };
            let (from, to) = self.model.move_of(reading.pieces_moved);
            let copied = self.store().copy_piece(from, to);
            if self.is_lost(from) || self.is_lost(to) {
                // What is lost does not move, and holds up the others.
                return;
            }
            copied.unwrap();
            self.store().set_moved(reading.pieces_moved + 1, reading.pieces, from, to).unwrap();
            self.model.set_moved(reading.pieces_moved + 1);
        }
        if killed && let Some(reading) = self.model.rebalance_reading() {
            let (from, to) = self.model.move_of(reading.pieces_moved);
            let _ = self.store().copy_piece(from, to);
            self.happen(&Act::Kill, true);
        }
    }

    fn happen(&mut self, act: &Act, within_tolerance: bool) {
        match act {
            Act::AddMember => self.add_member(),
            Act::Move { pieces, killed } => self.move_pieces(*pieces, *killed),
            Act::Write { volume, at, bytes, fill } => {
                let at = at % (VOLUME_BYTES - 20_000);
                let bytes: Vec<u8> = (0..*bytes).map(|byte| (byte % 251) as u8 ^ fill).collect();
                self.write(*volume, at, &bytes);
            }
            Act::CutShort { volume, at, bytes, fill, changes, comes_back } => {
                if self.durability == Durability::Battery {
                    let bytes: Vec<u8> = (0..*bytes).map(|byte| (byte % 241) as u8 ^ fill).collect();
                    self.write_until(*changes, *comes_back, *volume, at % (VOLUME_BYTES - 20_000), &bytes);
                }
            }
            Act::Pull { member, disk } => {
                let (member, disk) = (member % self.model.members(), disk % self.disks());
                if !within_tolerance || self.bears(member, disk) {
                    self.pull(member, disk);
                }
            }
            Act::Rebuild { member, disk, share } => {
                self.rebuild(member % self.model.members(), disk % self.disks(), *share);
            }
            Act::Flush => {
                self.store().flush().unwrap();
                if self.durability != Durability::Lying {
                    self.durable = self.acknowledged.clone();
                }
            }
            Act::Cut => {
                self.store().cut();
                self.acknowledged = self.durable.clone();
            }
            Act::Kill => {
                // What a killed server had in memory is lost as with the power, but a cache with a battery has all on disk.
                self.store = None;
                self.acknowledged = self.durable.clone();
                self.store = Some(self.open().unwrap());
            }
            Act::Snapshot { name } => {
                let name = format!("s{name}");
                let is_new = !self.snapshots.contains_key(&name) && self.model.rebalance_reading().is_none();
                assert_eq!(self.store().snapshot(&name).is_ok(), is_new);
                if is_new {
                    self.durable = self.acknowledged.clone();
                    self.snapshots.insert(name, self.acknowledged.clone());
                }
            }
            Act::Revert { name } => {
                let name = format!("s{name}");
                let held = self.snapshots.get(&name).cloned();
                assert_eq!(self.store().revert(&name).is_ok(), held.is_some());
                if let Some(held) = held {
                    let kept: BTreeSet<String> =
                        self.store().snapshots().into_iter().map(|snapshot| snapshot.name).collect();
                    self.snapshots.retain(|name, _| kept.contains(name));
                    (self.acknowledged, self.durable) = (held.clone(), held);
                }
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Act {
    Write {
        volume: u16,
        at: u64,
        bytes: u64,
        fill: u8,
    },
    /// A write in which a file fails, for good until the store is opened anew, or once.
    CutShort {
        volume: u16,
        at: u64,
        bytes: u64,
        fill: u8,
        changes: u64,
        comes_back: bool,
    },
    Pull {
        member: u32,
        disk: u32,
    },
    Rebuild {
        member: u32,
        disk: u32,
        share: f64,
    },
    Flush,
    Cut,
    Kill,
    Snapshot {
        name: u8,
    },
    Revert {
        name: u8,
    },
    AddMember,
    Move {
        pieces: u64,
        killed: bool,
    },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..2_u16, any::<u64>(), 1..20_000_u64, any::<u8>())
            .prop_map(|(volume, at, bytes, fill)| Act::Write { volume, at: at / 512 * 512, bytes, fill }),
        2 => (0..2_u16, any::<u64>(), 1..7_u64, any::<u8>())
            .prop_map(|(volume, at, bytes, fill)| Act::Write { volume, at, bytes, fill }),
        3 => (0..2_u16, any::<u64>(), 1..20_000_u64, any::<u8>(), 0..30_u64, any::<bool>()).prop_map(
            |(volume, at, bytes, fill, changes, comes_back)| {
                Act::CutShort { volume, at: at / 512 * 512, bytes, fill, changes, comes_back }
            }
        ),
        1 => Just(Act::AddMember),
        3 => (1..80_u64, any::<bool>()).prop_map(|(pieces, killed)| Act::Move { pieces, killed }),
        3 => (0..4_u32, any::<u32>()).prop_map(|(member, disk)| Act::Pull { member, disk }),
        3 => (0..4_u32, any::<u32>(), prop_oneof![Just(1.0), 0.0..1.0])
            .prop_map(|(member, disk, share)| Act::Rebuild { member, disk, share }),
        1 => Just(Act::Flush),
        1 => Just(Act::Cut),
        1 => Just(Act::Kill),
        1 => (0..3_u8).prop_map(|name| Act::Snapshot { name }),
        1 => (0..3_u8).prop_map(|name| Act::Revert { name }),
    ]
}

fn policy() -> impl Strategy<Value = RaidPolicy> {
    prop::sample::select(vec![
        RaidPolicy::Raid10,
        RaidPolicy::Raid5,
        RaidPolicy::Raid50,
        RaidPolicy::Raid6,
        RaidPolicy::Raid60,
        RaidPolicy::Dp,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn within_the_tolerance_every_acknowledged_byte_is_there(
        policy in policy(),
        misaligned in any::<bool>(),
        sums in any::<bool>(),
        durability in prop::sample::select(vec![Durability::Battery, Durability::Volatile, Durability::Lying]),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let mut proof = Proof::new(plan(policy, misaligned), durability, sums);
        for act in &acts {
            proof.happen(act, true);
        }
        proof.check();
    }

    #[test]
    fn beyond_the_tolerance_exactly_those_blocks_are_lost_that_must_be(
        policy in policy(),
        sums in any::<bool>(),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let mut proof = Proof::new(plan(policy, false), Durability::Battery, sums);
        for act in acts.iter().filter(|act| !matches!(act, Act::Snapshot { .. } | Act::Revert { .. })) {
            proof.happen(act, false);
        }
        proof.check();
    }
}

fn filled(policy: RaidPolicy, durability: Durability, sums: bool) -> Proof {
    let mut proof = Proof::new(plan(policy, false), durability, sums);
    let bytes: Vec<u8> = (0..VOLUME_BYTES).map(|at| (at / 512 * 7 % 253) as u8).collect();
    proof.write(0, 0, &bytes);
    proof.write(1, 0, &bytes);
    proof
}

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
    for comes_back in [false, true] {
        let mut changes = 0;
        loop {
            let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, true);
            let first = proof.acknowledged.clone();
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
                proof.acknowledged = first.clone();
            }
            proof.check();
            // What is left of snapshots is as good as before.
            write(&mut proof, 4, 10_000);
            if !has_begun {
                proof.store().revert("second").unwrap();
                proof.acknowledged = first.clone();
                proof.acknowledged[0][..30_000].fill(1);
                proof.check();
            }
            proof.store().revert("first").unwrap();
            proof.acknowledged = first;
            proof.check();
            proof.store().snapshot("second").unwrap();
            if reverted.is_ok() {
                break;
            }
            changes += 1;
        }
        assert!(changes > 4);
    }
}

#[test]
fn a_store_that_was_cut_short_while_it_was_made_is_made_again() {
    let plan = plan(RaidPolicy::Raid5, false);
    let model = ArrayModel::new(&plan).unwrap();
    let folder = Folder::new();
    std::fs::create_dir(&folder.0).unwrap();
    std::fs::write(folder.0.join("lock"), "").unwrap();
    std::fs::write(folder.0.join("store.new"), "{").unwrap();
    Store::open(&folder.0, &plan, &mut model.clone(), Durability::Battery, false, None).unwrap();
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

#[test]
fn two_servers_on_one_store_and_a_store_of_another_array_are_refused() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
    assert!(proof.open().err().unwrap().to_string().contains("another server has this store"));
    let Proof { folder, store, .. } = proof;
    drop(store);
    let other = plan(RaidPolicy::Raid6, false);
    let mut model = ArrayModel::new(&other).unwrap();
    let refused = Store::open(&folder.0, &other, &mut model, Durability::Battery, false, None).err().unwrap();
    assert!(refused.to_string().contains("RAID 5") && refused.to_string().contains("RAID 6"), "{refused}");
    std::fs::remove_file(folder.0.join("store.json")).unwrap();
    let refused = Store::open(&folder.0, &other, &mut model, Durability::Battery, false, None).err().unwrap();
    assert!(refused.to_string().contains("not empty"), "{refused}");
}

#[test]
fn a_store_without_room_answers_so_and_keeps_what_it_has() {
    let plan = plan(RaidPolicy::Raid5, false);
    let mut model = ArrayModel::new(&plan).unwrap();
    let folder = Folder::new();
    let mut store = Store::open(&folder.0, &plan, &mut model, Durability::Battery, false, Some(512 * KIB)).unwrap();
    let mut written = Vec::new();
    let mut fault = None;
    for at in (0..VOLUME_BYTES).step_by(8192) {
        for part in model.parts(0, at, 8192) {
            match store.write(part, &vec![7; part.bytes as usize]) {
                Ok(()) => written.push(part),
                Err(full) => fault = Some(full),
            }
        }
    }
    assert!(matches!(fault, Some(StoreFault::Full)) && !written.is_empty());
    for part in written {
        let mut bytes = vec![0; part.bytes as usize];
        store.read(part, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7));
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
    proof.happen(&Act::Kill, true);
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
    proof.happen(&Act::Kill, true);
    assert_eq!(proof.model.rebalance_reading().unwrap().pieces_moved, moved);
    proof.check();
}

#[test]
fn what_others_fill_of_the_room_is_missing_for_writes_and_stays_so() {
    let plan = plan(RaidPolicy::Raid5, false);
    let model = ArrayModel::new(&plan).unwrap();
    let folder = Folder::new();
    let open =
        || Store::open(&folder.0, &plan, &mut model.clone(), Durability::Battery, false, Some(1024 * KIB)).unwrap();
    let part = |at| model.parts(0, at, 4096).next().unwrap();
    let mut store = open();
    store.write(part(0), &[1; 4096]).unwrap();
    assert!(store.fill(99).unwrap());
    assert!(store.fill(50).unwrap_err().to_string().contains("is used already"));
    drop(store);
    let mut store = open();
    let full = (0..VOLUME_BYTES).step_by(4096).find_map(|at| store.write(part(at), &[2; 4096]).err());
    assert!(matches!(full, Some(StoreFault::Full)));
    drop(store);
    let mut store = Store::open(&folder.0, &plan, &mut model.clone(), Durability::Battery, false, None).unwrap();
    assert!(!store.fill(90).unwrap(), "a store that takes what it needs has no room to fill");
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
