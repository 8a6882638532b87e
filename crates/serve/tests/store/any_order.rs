//! Any order of I/Os, faults, rebuilds, cuts, kills, snapshots and reverts.

use std::collections::BTreeSet;

use assay_array::RaidPolicy;
use assay_serve::Durability;
use proptest::prelude::*;

use crate::proof::{Proof, VOLUME_BYTES, plan};

impl Proof {
    pub(crate) fn happen(&mut self, act: &Act, within_tolerance: bool) {
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
