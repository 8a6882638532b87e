//! Any order of I/Os, faults, restoring, reclamation, cuts, kills, snapshots and reverts.

use assay_array_live::Durability;
use proptest::prelude::*;

use crate::{
    proof::{CONTAINER_BYTES, Proof},
    proving::{self, Proving, VOLUME_BYTES},
};

#[derive(Debug, Clone)]
enum Act {
    OfAny(proving::Act),
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
    /// One of those above while a file fails, for good until the store is opened anew, or once.
    CutShort {
        changes: u64,
        comes_back: bool,
        act: Box<Act>,
    },
}

fn of_disks() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..12_u32, any::<bool>()).prop_map(|(disk, restores)| Act::Pull { disk, restores }),
        2 => (0..12_u32).prop_map(|disk| Act::Insert { disk }),
        4 => (1..40_u64, 1..60_u32).prop_map(|(pieces, rows)| Act::Restore { pieces, rows }),
        3 => (1..80_usize).prop_map(|most| Act::Reclaim { most }),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = VOLUME_BYTES / 4;
    prop_oneof![
        22 => proving::act().prop_map(Act::OfAny),
        // Much at once, so that containers fill.
        12 => (0..2_u16, 0..4_u64, any::<u8>()).prop_map(move |(volume, part, fill)| {
            Act::OfAny(proving::Act::Write { volume, at: part * bytes, bytes, fill: fill | 3 })
        }),
        12 => of_disks(),
        4 => (0..12_u64, any::<bool>(), of_disks()).prop_map(|(changes, comes_back, act)| {
            Act::CutShort { changes, comes_back, act: Box::new(act) }
        }),
    ]
}

impl Proof {
    fn happen(&mut self, act: &Act, within_tolerance: bool) {
        match act {
            Act::OfAny(act) => self.happens(act),
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
            Act::CutShort { changes, comes_back, act } => {
                let is_borne = match **act {
                    Act::Pull { disk, .. } => !within_tolerance || !self.store().is_present(disk) || self.bears(disk),
                    _ => true,
                };
                if is_borne {
                    self.cut_short(*changes, *comes_back, act);
                }
            }
        }
    }

    /// What fails has been done or has not; bytes are the same either way, and so are the disks after a kill.
    fn cut_short(&mut self, changes: u64, comes_back: bool, act: &Act) {
        let store = self.store();
        store.end_changes_after(changes, comes_back);
        let before: Vec<bool> = (0..12).map(|disk| store.is_present(disk)).collect();
        let is_done = match act {
            Act::Pull { disk, restores } => store.pull(*disk, *restores).is_ok(),
            Act::Insert { disk } => store.insert(*disk).is_ok(),
            Act::Restore { pieces, rows } => store.restore(*pieces, *rows).is_ok(),
            Act::Reclaim { most } => store.reclaim(*most).is_ok(),
            _ => unreachable!("only what is done to disks is cut short here"),
        };
        let after: Vec<bool> = (0..12).map(|disk| store.is_present(disk)).collect();
        assert!(is_done || before == after, "{act:?} was refused and done");
        if comes_back {
            store.end_changes_after(u64::MAX, false);
        } else {
            self.kill();
        }
        let present: Vec<bool> = (0..12).map(|disk| self.store.as_ref().unwrap().is_present(disk)).collect();
        assert_eq!(present, after);
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
            && !self.held.has_snapshots()
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
    #![proptest_config(ProptestConfig { cases: crate::extent::cases(150), failure_persistence: None, ..ProptestConfig::default() })]

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
