//! A store beside what it must hold.

use std::collections::{BTreeMap, BTreeSet};

use assay_array_live::{Cached, DiskState, Durability, ServeError, Store, StoreFault};
use assay_array_model::{ArrayModel, ArrayPlan, Geometry, LayoutPlan, Part, Place, RaidPolicy, SpacePlan};

use crate::{
    plans,
    proving::{BLOCK, Folder, Held, KIB, Proving, VOLUME_BYTES},
};

/// How chunks lie on disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    InPlace,
    /// Other than pages by a sector.
    Misaligned,
    /// Writes go anywhere.
    Anywhere,
}

pub(crate) fn plan(policy: RaidPolicy, layout: Layout) -> ArrayPlan {
    let mut plan = plans::plan(policy);
    plan.page_bytes = 64 * KIB;
    plan.pools[0].members = 2;
    plan.pools[0].member.raid.chunk_bytes = 8 * KIB;
    plan.pools[0].member.raid.misalign_bytes = if layout == Layout::Misaligned { 512 } else { 0 };
    if layout == Layout::Anywhere {
        plan.pools[0].member.layout = LayoutPlan::WriteAnywhere {
            block_bytes: BLOCK,
            run_blocks: 8,
            read_realloc: false,
            space: SpacePlan::default(),
            reduction: 1.0,
        };
    }
    plan.pools[0].volumes.truncate(2);
    plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = VOLUME_BYTES);
    plan
}

/// A store, and what it must hold.
pub(crate) struct Proof {
    pub(crate) folder: Folder,
    pub(crate) plan: ArrayPlan,
    pub(crate) model: ArrayModel,
    pub(crate) sums: bool,
    pub(crate) store: Option<Store>,
    pub(crate) held: Held,
    /// Blocks that no disk holds: member, disk and number on the disk.
    pub(crate) gone: BTreeSet<(u32, u32, u64)>,
    pub(crate) absent: BTreeSet<(u32, u32)>,
    /// Places of blocks that moved: member and block.
    pub(crate) lies: BTreeMap<(u32, u64), u64>,
}

impl Proof {
    pub(crate) fn new(plan: ArrayPlan, durability: Durability, sums: bool) -> Self {
        let model = ArrayModel::new(&plan).unwrap();
        let mut proof = Self {
            folder: Folder::new(),
            plan,
            model,
            sums,
            store: None,
            held: Held::new(durability),
            gone: BTreeSet::new(),
            absent: BTreeSet::new(),
            lies: BTreeMap::new(),
        };
        proof.store = Some(proof.open().unwrap());
        proof
    }

    /// A server starts: with the model of the plan, which the store makes what it has become.
    pub(crate) fn open(&mut self) -> Result<Store, ServeError> {
        let mut model = ArrayModel::new(&self.plan).unwrap();
        let store = Store::open(&self.folder.0, &self.plan, &mut model, self.held.durability, self.sums, None)?;
        self.model = model;
        Ok(store)
    }

    pub(crate) fn store(&mut self) -> &mut Store {
        self.store.as_mut().unwrap()
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        self.model.geometry(0)
    }

    pub(crate) fn chunk_blocks(&self) -> u64 {
        self.geometry().chunk_bytes() / BLOCK
    }

    pub(crate) fn disks(&self) -> u32 {
        self.geometry().sets() * self.geometry().set_disks()
    }

    /// Cells of a row's set: data, then parity. A mirrored pair is its two disks.
    pub(crate) fn cells(&self, set: u32, row: u64) -> Vec<u32> {
        let geometry = self.geometry();
        let data = (0..geometry.columns()).map(|column| geometry.data_disk(set, row, column));
        data.chain((0..geometry.policy().parity_disks()).map(|which| geometry.parity_disk(set, row, which))).collect()
    }

    /// Whether a disk misses a block of a row, or of RAID-DP, whose diagonals go across the row, any of it.
    pub(crate) fn misses(&self, member: u32, disk: u32, block: u64) -> bool {
        let first = block / self.chunk_blocks() * self.chunk_blocks();
        let row = first..first + self.chunk_blocks();
        let blocks = if self.geometry().policy() == RaidPolicy::Dp { row } else { block..block + 1 };
        self.gone.range((member, disk, blocks.start)..(member, disk, blocks.end)).next().is_some()
    }

    /// The set, the disk and the block on it of a member's address, and its column.
    pub(crate) fn block_of(&self, member: u32, at_bytes: u64) -> (Place, u64) {
        let block = at_bytes / BLOCK;
        let lies = self.lies.get(&(member, block)).copied().unwrap_or(block);
        let place = self.geometry().place(lies / self.chunk_blocks());
        (place, place.row * self.chunk_blocks() + lies % self.chunk_blocks())
    }

    /// Whether bytes of a part cannot be had any more.
    pub(crate) fn is_lost(&self, part: Part) -> bool {
        let policy = self.geometry().policy();
        (part.at_bytes / BLOCK..=(part.at_bytes + part.bytes - 1) / BLOCK).any(|number| {
            let (place, block) = self.block_of(part.member, number * BLOCK);
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
    pub(crate) fn takes(&self, member: u32, disk: u32, row: u64) -> bool {
        match self.store.as_ref().unwrap().disk_state(member, disk) {
            DiskState::Present => true,
            DiskState::Absent => false,
            DiskState::Rebuilding { rows } => row < rows,
        }
    }

    /// Whether a write of a part within one block must succeed; notes which blocks are held after it.
    pub(crate) fn takes_write(&mut self, part: Part) -> bool {
        let policy = self.geometry().policy();
        let (member, covers) = (part.member, part.at_bytes.is_multiple_of(BLOCK) && part.bytes == BLOCK);
        let (place, block) = self.block_of(part.member, part.at_bytes);
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
        let first = place.row * self.chunk_blocks();
        let blocks = if policy == RaidPolicy::Dp { first..first + self.chunk_blocks() } else { block..block + 1 };
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

    pub(crate) fn parts(&self, volume: u16, at: u64, bytes: u64) -> Vec<Part> {
        self.model.parts(volume, at, bytes).collect()
    }

    /// Pieces of a part, within a block each.
    pub(crate) fn pieces(part: Part) -> impl Iterator<Item = Part> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let at_bytes = part.at_bytes + done;
            let bytes = (BLOCK - at_bytes % BLOCK).min(part.bytes - done);
            done += bytes;
            (bytes > 0).then_some(Part { member: part.member, at_bytes, bytes })
        })
    }

    pub(crate) fn write(&mut self, volume: u16, at: u64, bytes: &[u8]) {
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
                        self.held.wrote(volume, at + done as u64, piece_bytes);
                    }
                    Err(StoreFault::Lost) => assert!(!must, "{piece:?} is refused"),
                    Err(fault) => panic!("{fault}"),
                }
                done += piece.bytes as usize;
            }
        }
    }

    /// Writes while files fail after so many changes. Says whether the write was acknowledged; if not, blocks of it are old or
    /// new.
    pub(crate) fn write_until(&mut self, changes: u64, comes_back: bool, volume: u16, at: u64, bytes: &[u8]) -> bool {
        assert_eq!(self.held.durability, Durability::Battery);
        let parts = self.parts(volume, at, bytes.len() as u64);
        // Whether a copy that is lost alone is there again is not asked here.
        let has_lost_copy = |part: &Part| {
            let (place, block) = self.block_of(part.member, part.at_bytes);
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
                let (old, new) =
                    (&self.held.acknowledged[volume as usize][to.clone()], &bytes[done..done + found.len()]);
                assert!(found == new || (written.is_err() && found == old), "{piece:?} is neither old nor new");
                self.held.wrote(volume, to.start as u64, &found);
                done += found.len();
            }
        }
        written.is_ok()
    }

    /// Every byte is as it was acknowledged, or cannot be had because it is lost.
    pub(crate) fn check(&mut self) {
        for volume in 0..2_u16 {
            let held_bytes = self.held.acknowledged[usize::from(volume)].len() as u64;
            for at in (0..held_bytes).step_by(4096) {
                let mut done = 0;
                for part in self.parts(volume, at, 4096.min(held_bytes - at)) {
                    let mut bytes = vec![0; part.bytes as usize];
                    let is_lost = self.is_lost(part);
                    let found = self.store().read(part, &mut bytes);
                    let from = at as usize + done;
                    match found {
                        Ok(()) => {
                            assert!(!is_lost, "volume {volume} at {at}: read although lost");
                            let must = &self.held.acknowledged[volume as usize][from..from + bytes.len()];
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
    pub(crate) fn bears(&self, member: u32, disk: u32) -> bool {
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

    /// Rows of the disks of a member.
    pub(crate) fn rows(&self, member: u32) -> u64 {
        self.geometry().disk_bytes(self.model.places_bytes(member)) / self.geometry().chunk_bytes()
    }

    pub(crate) fn pull(&mut self, member: u32, disk: u32) {
        if self.absent.contains(&(member, disk)) {
            assert!(self.store().pull(member, disk).is_err());
            return;
        }
        self.store().pull(member, disk).unwrap();
        self.absent.insert((member, disk));
        let blocks = self.rows(member) * self.chunk_blocks();
        self.gone.extend((0..blocks).map(|block| (member, disk, block)));
    }

    /// Rebuilds a disk as far as some row.
    pub(crate) fn rebuild(&mut self, member: u32, disk: u32, share: f64) {
        if self.absent.remove(&(member, disk)) {
            self.store().replace(member, disk).unwrap();
        }
        // Rows in which nothing ever lay are as they must be on any disk.
        let rows = self.store().rows(member);
        let to = (rows as f64 * share) as u64;
        assert!(self.store().rebuild_to(member, disk, to, u64::MAX).unwrap());
        let geometry = self.geometry().clone();
        let set = disk / geometry.set_disks();
        for row in 0..to {
            for block in row * self.chunk_blocks()..(row + 1) * self.chunk_blocks() {
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
            let blank = (member, disk, rows * self.chunk_blocks())..(member, disk, u64::MAX);
            for block in self.gone.range(blank).copied().collect::<Vec<_>>() {
                self.gone.remove(&block);
            }
        }
    }
}

pub(crate) fn filled(policy: RaidPolicy, durability: Durability, sums: bool) -> Proof {
    filled_of(plan(policy, Layout::InPlace), durability, sums)
}

pub(crate) fn filled_of(plan: ArrayPlan, durability: Durability, sums: bool) -> Proof {
    let mut proof = Proof::new(plan, durability, sums);
    let bytes: Vec<u8> = (0..VOLUME_BYTES).map(|at| (at / 512 * 7 % 253) as u8).collect();
    proof.write(0, 0, &bytes);
    proof.write(1, 0, &bytes);
    proof
}

impl Proving for Proof {
    fn held(&mut self) -> &mut Held {
        &mut self.held
    }

    fn put(&mut self, volume: u16, at: u64, bytes: u64, fill: u8) {
        let bytes: Vec<u8> = (0..bytes).map(|byte| (byte % 251) as u8 ^ fill).collect();
        self.write(volume, at, &bytes);
    }

    fn put_until(&mut self, changes: u64, comes_back: bool, volume: u16, at: u64, bytes: u64, fill: u8) {
        let bytes: Vec<u8> = (0..bytes).map(|byte| (byte % 241) as u8 ^ fill).collect();
        self.write_until(changes, comes_back, volume, at, &bytes);
    }

    fn flush_store(&mut self) {
        self.store().flush().unwrap();
    }

    fn cut_store(&mut self) {
        self.store().cut();
    }

    fn open_anew(&mut self) {
        self.store = None;
        self.store = Some(self.open().unwrap());
    }

    /// Chunks that move onto a member are in no snapshot.
    fn takes_snapshots(&self) -> bool {
        self.model.rebalance_reading().is_none()
    }

    fn take_snapshot(&mut self, name: &str) -> bool {
        self.store().snapshot(name).is_ok()
    }

    fn go_back(&mut self, name: &str) -> bool {
        self.store().revert(name).is_ok()
    }

    fn snapshot_names(&mut self) -> BTreeSet<String> {
        self.store().snapshots().into_iter().map(|snapshot| snapshot.name).collect()
    }
}
