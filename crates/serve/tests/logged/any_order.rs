//! Any order of I/Os, faults, restoring, reclamation, cuts, kills, snapshots and reverts.

use std::collections::BTreeSet;

use assay_serve::{Durability, StoreFault};
use proptest::prelude::*;

use crate::proof::{CONTAINER_BYTES, Proof, VOLUME_BYTES, content};

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
        disk: u32,
        restores: bool,
    },
    Insert {
        disk: u32,
    },
    Restore {
        pieces: u64,
        rows: u32,
    },
    Reclaim {
        most: usize,
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

fn act() -> impl Strategy<Value = Act> {
    let written = || (0..2_u16, any::<u64>(), 1..20_000_u64, any::<u8>());
    prop_oneof![
        12 => written().prop_map(|(volume, at, bytes, fill)| Act::Write { volume, at: at / 512 * 512, bytes, fill }),
        // Much at once, so that containers fill.
        12 => (0..2_u16, 0..4_u64, any::<u8>()).prop_map(|(volume, part, fill)| {
            Act::Write { volume, at: part * VOLUME_BYTES / 4, bytes: VOLUME_BYTES / 4, fill: fill | 3 }
        }),
        3 => (written(), 0..30_u64, any::<bool>()).prop_map(|((volume, at, bytes, fill), changes, comes_back)| {
            Act::CutShort { volume, at: at / 512 * 512, bytes, fill, changes, comes_back }
        }),
        3 => (0..12_u32, any::<bool>()).prop_map(|(disk, restores)| Act::Pull { disk, restores }),
        2 => (0..12_u32).prop_map(|disk| Act::Insert { disk }),
        4 => (1..40_u64, 1..60_u32).prop_map(|(pieces, rows)| Act::Restore { pieces, rows }),
        3 => (1..80_usize).prop_map(|most| Act::Reclaim { most }),
        1 => Just(Act::Flush),
        1 => Just(Act::Cut),
        2 => Just(Act::Kill),
        1 => (0..3_u8).prop_map(|name| Act::Snapshot { name }),
        1 => (0..3_u8).prop_map(|name| Act::Revert { name }),
    ]
}

impl Proof {
    fn happen(&mut self, act: &Act, within_tolerance: bool) {
        match act {
            Act::Write { volume, at, bytes, fill } => {
                let at = if *bytes < 20_000 { at % (VOLUME_BYTES - 20_000) } else { *at };
                self.try_write(*volume, at, &content(*fill, *bytes));
            }
            Act::CutShort { volume, at, bytes, fill, changes, comes_back } => {
                if self.durability == Durability::Battery {
                    self.store().end_changes_after(*changes, *comes_back);
                    self.try_write(*volume, at % (VOLUME_BYTES - 20_000), &content(*fill, *bytes));
                    if *comes_back {
                        self.store().end_changes_after(u64::MAX, false);
                    } else {
                        self.kill();
                    }
                }
            }
            Act::Pull { disk, restores } => {
                if self.store().is_present(*disk) && (!within_tolerance || self.bears(*disk)) {
                    self.pull(*disk, *restores);
                }
            }
            Act::Insert { disk } => {
                let is_present = self.store().is_present(*disk);
                assert_eq!(self.store().insert(*disk).is_ok(), !is_present);
            }
            Act::Restore { pieces, rows } => {
                let restored = self.store().restore(*pieces, *rows).unwrap();
                assert!(restored <= *pieces);
            }
            Act::Reclaim { most } => {
                self.store().reclaim(*most).unwrap();
            }
            Act::Flush => self.flush(),
            Act::Cut => {
                self.store().cut();
                self.acknowledged = self.durable.clone();
            }
            Act::Kill => self.kill(),
            Act::Snapshot { name } => {
                let name = format!("s{name}");
                let is_new = !self.snapshots.contains_key(&name);
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

    /// Writes; what is refused has changed nothing. Large writes are several of half a container.
    fn try_write(&mut self, volume: u16, at: u64, bytes: &[u8]) {
        for (number, part) in bytes.chunks(64 << 10).enumerate() {
            match self.write(volume, at + (number << 16) as u64, part) {
                Ok(()) => {}
                Err(StoreFault::Full) => assert!(self.room_bytes.is_some(), "there is room"),
                // A file failed, or a part of a block was to be written whose rest is lost, or there are too few disks.
                Err(StoreFault::Io(_) | StoreFault::Lost) => {}
            }
        }
    }

    /// Whether parity makes up for a disk, beside what is missing already.
    fn bears(&mut self, disk: u32) -> bool {
        let present = (0..12).filter(|disk| self.store.as_ref().unwrap().is_present(*disk)).count();
        present > 10
            && self.store().lost_with(disk) == 0
            && self.store().reading().lost == 0
            && self.misses_at_most_one()
    }

    fn misses_at_most_one(&mut self) -> bool {
        self.places().values().all(|place| place.disks.iter().filter(|disk| disk.is_none()).count() <= 1)
            && self.snapshots.is_empty()
            || self.store().reading().missing_pieces == 0
    }

    /// Pulls a disk: exactly the pieces on it are missing then.
    pub(crate) fn pull(&mut self, disk: u32, restores: bool) {
        let before = self.places();
        let will_lose = self.store().lost_with(disk);
        let were_lost = self.store().lost_contents();
        assert_eq!(self.store().pull(disk, restores).unwrap(), were_lost + will_lose);
        let after = self.places();
        for (block, mut place) in before {
            place.disks.iter_mut().for_each(|of| *of = of.filter(|of| u32::from(*of) != disk));
            assert_eq!(after.get(&block), Some(&place), "pull of {disk}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn within_the_tolerance_every_acknowledged_byte_is_there(
        durability in prop::sample::select(vec![Durability::Battery, Durability::Volatile, Durability::Lying]),
        acts in prop::collection::vec(act(), 1..50),
    ) {
        let mut proof = Proof::new(durability, None);
        for act in &acts {
            proof.happen(act, true);
        }
        prop_assert_eq!(proof.check(), 0);
        proof.check_lengths();
        proof.kill();
        prop_assert_eq!(proof.check(), 0);
    }

    #[test]
    fn a_small_pool_is_reclaimed_and_refuses_what_does_not_fit(
        containers in 8_u64..20,
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let mut proof = Proof::new(Durability::Battery, Some(containers * CONTAINER_BYTES));
        for act in &acts {
            proof.happen(act, true);
            prop_assert!(u64::from(proof.store().reading().containers) < containers);
        }
        prop_assert_eq!(proof.check(), 0);
        proof.kill();
        prop_assert_eq!(proof.check(), 0);
    }

    #[test]
    fn beyond_the_tolerance_exactly_those_blocks_are_lost_that_must_be(
        acts in prop::collection::vec(act(), 1..50),
    ) {
        let mut proof = Proof::new(Durability::Battery, None);
        for act in &acts {
            proof.happen(act, false);
        }
        let lost = proof.check();
        proof.kill();
        prop_assert_eq!(proof.check(), lost);
    }
}
