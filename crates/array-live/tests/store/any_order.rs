//! Any order of I/Os, faults, rebuilds, cuts, kills, snapshots and reverts.

use assay_array_live::Durability;
use assay_array_model::RaidPolicy;
use proptest::prelude::*;

use crate::{
    proof::{Layout, Proof, plan},
    proving::{self, Proving, SMALL_BYTES, VOLUME_BYTES},
};

#[derive(Debug, Clone)]
pub(crate) enum Act {
    OfAny(proving::Act),
    Pull {
        member: u32,
        disk: u32,
    },
    Rebuild {
        member: u32,
        disk: u32,
        share: f64,
    },
    AddMember,
    /// A volume gets more sectors; a file may fail meanwhile.
    Grow {
        volume: u16,
        sectors: u64,
        fails_after: Option<(u64, bool)>,
    },
    Move {
        pieces: u64,
        killed: bool,
    },
    /// Blocks of write-anywhere layouts go to other places, or some of them do before a file fails.
    Follow {
        member: u32,
        block: u64,
        place: u64,
        count: u64,
        fails_after: Option<(u64, bool)>,
    },
}

impl Proof {
    pub(crate) fn happen(&mut self, act: &Act, within_tolerance: bool) {
        match act {
            Act::OfAny(act) => self.happens(act),
            Act::AddMember => self.add_member(),
            Act::Grow { volume, sectors, fails_after } => self.grow(*volume, *sectors, *fails_after),
            Act::Move { pieces, killed } => self.move_pieces(*pieces, *killed),
            Act::Follow { member, block, place, count, fails_after } => {
                self.follow(member % self.model.members(), *block, *place, *count, *fails_after);
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
        }
    }
}

impl Act {
    fn is_of_snapshots(&self) -> bool {
        matches!(self, Self::OfAny(proving::Act::Snapshot { .. } | proving::Act::Revert { .. }))
    }
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        16 => proving::act().prop_map(Act::OfAny),
        // Within a sector, at any byte.
        2 => (0..2_u16, 0..VOLUME_BYTES - SMALL_BYTES, 1..7_u64, any::<u8>())
            .prop_map(|(volume, at, bytes, fill)| Act::OfAny(proving::Act::Write { volume, at, bytes, fill })),
        1 => Just(Act::AddMember),
        1 => (0..2_u16, 1..600_u64, prop::option::weighted(0.3, (0..60_u64, any::<bool>())))
            .prop_map(|(volume, sectors, fails_after)| Act::Grow { volume, sectors, fails_after }),
        3 => (1..80_u64, any::<bool>()).prop_map(|(pieces, killed)| Act::Move { pieces, killed }),
        8 => (0..4_u32, any::<u64>(), any::<u64>(), 1..40_u64, prop::option::weighted(0.2, (0..30_u64, any::<bool>()))).prop_map(
            |(member, block, place, count, fails_after)| Act::Follow { member, block, place, count, fails_after }
        ),
        3 => (0..4_u32, any::<u32>()).prop_map(|(member, disk)| Act::Pull { member, disk }),
        3 => (0..4_u32, any::<u32>(), prop_oneof![Just(1.0), 0.0..1.0])
            .prop_map(|(member, disk, share)| Act::Rebuild { member, disk, share }),
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
    #![proptest_config(ProptestConfig { cases: crate::extent::cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn within_the_tolerance_every_acknowledged_byte_is_there(
        policy in policy(),
        layout in prop::sample::select(vec![Layout::InPlace, Layout::Misaligned, Layout::Anywhere]),
        sums in any::<bool>(),
        durability in prop::sample::select(vec![Durability::Battery, Durability::Volatile, Durability::Lying]),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let mut proof = Proof::new(plan(policy, layout), durability, sums);
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
        let mut proof = Proof::new(plan(policy, Layout::InPlace), Durability::Battery, sums);
        for act in acts.iter().filter(|act| !act.is_of_snapshots()) {
            proof.happen(act, false);
        }
        proof.check();
    }
}
