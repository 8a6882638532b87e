//! A store beside what it must hold.

use std::collections::{BTreeMap, BTreeSet};

use assay_array_live::{Cached, Durability, LoggedStore, PlacedBlock, ServeError, StoreFault};
use assay_array_model::{DiskPlan, HostFlashPlan, MechanicalPlan};
use assay_load::SplitMix;

use crate::{
    plans::{MIB, host_flash, mechanical},
    proving::{BLOCK, Folder, Held, KIB, Proving, VOLUME_BYTES},
};

/// A container with its parity.
pub(crate) const CONTAINER_BYTES: u64 = 128 * KIB * 10 / 8;

/// Two small volumes, and containers of 32 blocks over twelve disks.
pub(crate) fn plan() -> HostFlashPlan {
    let mut plan = host_flash::plan();
    plan.volumes.truncate(2);
    plan.volumes.iter_mut().for_each(|volume| volume.bytes = VOLUME_BYTES);
    plan.log.container_bytes = 128 * KIB;
    plan.log.room_bytes = 64 * MIB;
    plan.node.disk = DiskPlan::Mechanical(MechanicalPlan { capacity_bytes: 16 * MIB, ..mechanical() });
    plan
}

/// Bytes to write: zeroes, blocks that are all the same, those that compress, or none of it.
pub(crate) fn content(fill: u8, count: u64) -> Vec<u8> {
    let mut random = SplitMix::new(fill.into());
    match fill % 4 {
        0 => vec![0; count as usize],
        1 => (0..count).map(|at| (at % BLOCK / 16) as u8 ^ fill).collect(),
        2 => (0..count).map(|at| (at / 7) as u8 ^ fill).collect(),
        _ => (0..count).map(|_| random.next() as u8).collect(),
    }
}

pub(crate) struct Proof {
    pub(crate) folder: Folder,
    pub(crate) plan: HostFlashPlan,
    pub(crate) room_bytes: Option<u64>,
    pub(crate) store: Option<LoggedStore>,
    pub(crate) held: Held,
}

impl Proof {
    pub(crate) fn new(durability: Durability, room_bytes: Option<u64>) -> Self {
        let mut proof =
            Self { folder: Folder::new(), plan: plan(), room_bytes, store: None, held: Held::new(durability) };
        proof.store = Some(proof.open().unwrap());
        proof
    }

    /// A store of which both volumes are full of blocks that differ and do not compress, all of them on disks.
    pub(crate) fn filled() -> Self {
        let mut proof = Self::new(Durability::Battery, None);
        for (volume, fill) in [(0, 3), (1, 7)] {
            proof.write(volume, 0, &content(fill, VOLUME_BYTES)).unwrap();
        }
        // The container that these began is the last of them.
        proof.write(0, 0, &content(11, 32 * BLOCK)).unwrap();
        proof
    }

    /// A server starts. Checkpoints come after a few dozens of blocks.
    pub(crate) fn open(&self) -> Result<LoggedStore, ServeError> {
        let mut store = LoggedStore::open(&self.folder.0, &self.plan, self.held.durability, self.room_bytes)?;
        store.set_checkpoints(200 * KIB);
        Ok(store)
    }

    pub(crate) fn store(&mut self) -> &mut LoggedStore {
        self.store.as_mut().unwrap()
    }

    pub(crate) fn write(&mut self, volume: u16, at: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        // Small ones go in whole or not at all.
        assert!(at + bytes.len() as u64 <= VOLUME_BYTES);
        self.store().write(volume, at, bytes)?;
        self.held.wrote(volume, at, bytes);
        Ok(())
    }

    /// Restores all that can be.
    pub(crate) fn restore_all(&mut self) {
        while self.store().restorable() > 0 {
            self.store().restore(u64::MAX, 64).unwrap();
        }
    }

    pub(crate) fn all_blocks() -> impl Iterator<Item = (u16, u64)> {
        (0..2).flat_map(|volume| (0..VOLUME_BYTES / BLOCK).map(move |block| (volume, block * BLOCK)))
    }

    /// Where each block lies that is on disks.
    pub(crate) fn places(&mut self) -> BTreeMap<(u16, u64), PlacedBlock> {
        let store = self.store();
        Self::all_blocks().filter_map(|(volume, at)| Some(((volume, at), store.place(volume, at)?))).collect()
    }

    /// Reads each block: as acknowledged, or lost where its piece is missing and too many others of its container are.
    /// Says how many are lost.
    pub(crate) fn check(&mut self) -> u64 {
        let places = self.places();
        let mut lost = 0;
        for (volume, at) in Self::all_blocks() {
            let mut bytes = vec![0; BLOCK as usize];
            let read = self.store().read(volume, at, &mut bytes);
            let must_be_lost = places.get(&(volume, at)).is_some_and(|place| {
                place.disks[place.piece].is_none() && place.disks.iter().filter(|disk| disk.is_none()).count() > 2
            });
            match read {
                Ok(()) => {
                    assert!(!must_be_lost, "volume {volume}, {at}: read although it is lost");
                    let expected = &self.held.acknowledged[usize::from(volume)][at as usize..(at + BLOCK) as usize];
                    assert!(bytes == expected, "volume {volume}, {at}: wrong bytes");
                }
                Err(StoreFault::Lost) if must_be_lost => lost += 1,
                Err(fault) => panic!("volume {volume}, {at}: {fault}"),
            }
        }
        lost
    }

    /// Reads across blocks: an array answers I/Os of every length.
    pub(crate) fn check_lengths(&mut self) {
        for (at, count) in [(0, 1), (4095, 2), (511, 9000), (VOLUME_BYTES - 1, 1), (8192, 20_480)] {
            let mut bytes = vec![0; count];
            self.store().read(1, at, &mut bytes).unwrap();
            assert!(bytes == self.held.acknowledged[1][at as usize..at as usize + count], "{count} bytes from {at}");
        }
    }
}

impl Proving for Proof {
    fn held(&mut self) -> &mut Held {
        &mut self.held
    }

    /// Writes; what is refused has changed nothing. Large writes are several of half a container.
    fn put(&mut self, volume: u16, at: u64, bytes: u64, fill: u8) {
        for (number, part) in content(fill, bytes).chunks(64 << 10).enumerate() {
            match self.write(volume, at + (number << 16) as u64, part) {
                Ok(()) => {}
                Err(StoreFault::Full) => assert!(self.room_bytes.is_some(), "there is room"),
                // A file failed, or a part of a block was to be written whose rest is lost, or there are too few disks.
                Err(StoreFault::Io(_) | StoreFault::Lost) => {}
            }
        }
    }

    fn put_until(&mut self, changes: u64, comes_back: bool, volume: u16, at: u64, bytes: u64, fill: u8) {
        self.store().end_changes_after(changes, comes_back);
        self.put(volume, at, bytes, fill);
        if comes_back {
            self.store().end_changes_after(u64::MAX, false);
        } else {
            self.kill();
        }
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

    fn takes_snapshots(&self) -> bool {
        true
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
