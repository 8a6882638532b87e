//! What the proofs of all stores share: a folder, what a store must hold, and what may happen to any store.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use assay_array_live::Durability;
use proptest::prelude::*;

pub(crate) const KIB: u64 = 1024;
pub(crate) const BLOCK: u64 = 4 * KIB;
pub(crate) const VOLUME_BYTES: u64 = 512 * KIB;
const VOLUMES: usize = 2;
/// Small writes are shorter.
pub(crate) const SMALL_BYTES: u64 = 20_000;

/// A folder of its own, gone at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
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

/// What a store must hold.
pub(crate) struct Held {
    pub(crate) durability: Durability,
    /// What was acknowledged, by volume.
    pub(crate) acknowledged: Vec<Vec<u8>>,
    /// What of it would survive a power cut.
    pub(crate) durable: Vec<Vec<u8>>,
    pub(crate) snapshots: BTreeMap<String, Vec<Vec<u8>>>,
}

impl Held {
    pub(crate) fn new(durability: Durability) -> Self {
        let empty = vec![vec![0; VOLUME_BYTES as usize]; VOLUMES];
        Self { durability, acknowledged: empty.clone(), durable: empty, snapshots: BTreeMap::new() }
    }

    /// A write was acknowledged.
    pub(crate) fn wrote(&mut self, volume: u16, at: u64, bytes: &[u8]) {
        let (volume, range) = (usize::from(volume), at as usize..at as usize + bytes.len());
        self.acknowledged[volume][range.clone()].copy_from_slice(bytes);
        if self.durability == Durability::Battery {
            self.durable[volume][range].copy_from_slice(bytes);
        }
    }

    pub(crate) fn flushed(&mut self) {
        if self.durability != Durability::Lying {
            self.durable = self.acknowledged.clone();
        }
    }

    /// The cache is lost.
    pub(crate) fn cut(&mut self) {
        self.acknowledged = self.durable.clone();
    }

    pub(crate) fn has_snapshots(&self) -> bool {
        !self.snapshots.is_empty()
    }
}

/// What may happen to any store.
#[derive(Debug, Clone)]
pub(crate) enum Act {
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
    Flush,
    Cut,
    Kill,
    Snapshot {
        name: u8,
    },
    Revert {
        name: u8,
    },
}

/// Where a small write begins and how long it is: volume, place, bytes and what they are.
pub(crate) fn small_writes() -> impl Strategy<Value = (u16, u64, u64, u8)> {
    let places = prop::sample::select(vec![1, 512, BLOCK])
        .prop_flat_map(|unit| (0..(VOLUME_BYTES - SMALL_BYTES) / unit).prop_map(move |number| number * unit));
    (0..VOLUMES as u16, places, 1..SMALL_BYTES, any::<u8>())
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => small_writes().prop_map(|(volume, at, bytes, fill)| Act::Write { volume, at, bytes, fill }),
        4 => (small_writes(), 0..30_u64, any::<bool>()).prop_map(|((volume, at, bytes, fill), changes, comes_back)| {
            Act::CutShort { volume, at, bytes, fill, changes, comes_back }
        }),
        1 => Just(Act::Flush),
        1 => Just(Act::Cut),
        2 => Just(Act::Kill),
        1 => (0..3_u8).prop_map(|name| Act::Snapshot { name }),
        1 => (0..3_u8).prop_map(|name| Act::Revert { name }),
    ]
}

/// A store beside what it must hold.
pub(crate) trait Proving {
    fn held(&mut self) -> &mut Held;

    /// Writes bytes that follow from `fill`.
    fn put(&mut self, volume: u16, at: u64, bytes: u64, fill: u8);

    /// Writes such bytes while files fail after so many changes.
    fn put_until(&mut self, changes: u64, comes_back: bool, volume: u16, at: u64, bytes: u64, fill: u8);

    fn flush_store(&mut self);

    fn cut_store(&mut self);

    /// A server ends without a word, and another one starts.
    fn open_anew(&mut self);

    /// Whether a snapshot can be taken now, if the name is new.
    fn takes_snapshots(&self) -> bool;

    /// Says whether it was taken.
    fn take_snapshot(&mut self, name: &str) -> bool;

    /// Says whether the store went back.
    fn go_back(&mut self, name: &str) -> bool;

    fn snapshot_names(&mut self) -> BTreeSet<String>;

    fn flush(&mut self) {
        self.flush_store();
        self.held().flushed();
    }

    /// What a killed server had in memory is lost as with the power, but a cache with a battery has all on disk.
    fn kill(&mut self) {
        self.held().cut();
        self.open_anew();
    }

    fn happens(&mut self, act: &Act) {
        match act {
            Act::Write { volume, at, bytes, fill } => self.put(*volume, *at, *bytes, *fill),
            Act::CutShort { volume, at, bytes, fill, changes, comes_back } => {
                if self.held().durability == Durability::Battery {
                    self.put_until(*changes, *comes_back, *volume, *at, *bytes, *fill);
                }
            }
            Act::Flush => self.flush(),
            Act::Cut => {
                self.cut_store();
                self.held().cut();
            }
            Act::Kill => self.kill(),
            Act::Snapshot { name } => {
                let name = format!("s{name}");
                let is_new = !self.held().snapshots.contains_key(&name) && self.takes_snapshots();
                assert_eq!(self.take_snapshot(&name), is_new);
                if is_new {
                    let held = self.held();
                    held.durable = held.acknowledged.clone();
                    held.snapshots.insert(name, held.acknowledged.clone());
                }
            }
            Act::Revert { name } => {
                let name = format!("s{name}");
                let then = self.held().snapshots.get(&name).cloned();
                assert_eq!(self.go_back(&name), then.is_some());
                if let Some(then) = then {
                    let kept = self.snapshot_names();
                    let held = self.held();
                    held.snapshots.retain(|name, _| kept.contains(name));
                    (held.acknowledged, held.durable) = (then.clone(), then);
                }
            }
        }
    }
}
