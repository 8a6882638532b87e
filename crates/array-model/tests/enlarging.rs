//! A volume grows while the array runs: what it had keeps its place, and what is new has places of its own.

mod plans;

use assay_array_model::{ArrayModel, ArrayPlan, LayoutPlan, Part, RaidPolicy, SpacePlan};
use assay_load::{Completion, Op, Request, Simulated};
use plans::{MIB, SECOND, plan, request};
use proptest::prelude::*;

fn small(members: u32) -> ArrayPlan {
    let mut plan = plan(RaidPolicy::Raid5);
    plan.pools[0].members = members;
    plan.page_bytes = MIB;
    plan.pools[0].member.raid.misalign_bytes = 512;
    plan.pools[0].volumes[0].bytes = 20 * MIB + 4096;
    plan.pools[0].volumes[1].bytes = 7 * MIB;
    plan
}

/// Parts of a volume, one for each page.
fn parts(model: &ArrayModel, volume: u16) -> Vec<Part> {
    model.parts(volume, 0, model.volume_bytes(usize::from(volume)).unwrap()).collect()
}

fn assert_apart(model: &ArrayModel) {
    let mut all: Vec<Part> = (0..2).flat_map(|volume| parts(model, volume)).collect();
    assert!(all.iter().all(|part| part.at_bytes + part.bytes <= model.member_bytes(part.member)));
    all.sort_unstable_by_key(|part| (part.member, part.at_bytes));
    for pair in all.windows(2) {
        let is_apart = pair[0].member != pair[1].member || pair[0].at_bytes + pair[0].bytes <= pair[1].at_bytes;
        assert!(is_apart, "{pair:?}");
    }
}

/// Result of an I/O that begins at a time and is over within the next ten seconds.
fn result(model: &mut ArrayModel, at_ns: u64, asked: &Request) -> i32 {
    let mut completions: Vec<Completion> = Vec::new();
    model.submit(at_ns, asked);
    while model.advance(at_ns + 10 * SECOND, &mut completions) < at_ns + 10 * SECOND && completions.is_empty() {}
    completions[0].result
}

fn join(model: &mut ArrayModel, plan: &ArrayPlan) {
    model.add_member(plan, 0).unwrap();
    model.set_moved(model.rebalance_reading().unwrap().pieces);
}

proptest! {
    #[test]
    fn what_a_volume_had_stays_and_what_is_new_has_places_of_its_own(
        members in 1_u32..4, steps in prop::collection::vec((0_u16..3, 1_u64..9 << 11), 1..6),
    ) {
        let plan = small(members);
        let mut model = ArrayModel::new(&plan).unwrap();
        for (volume, sectors) in steps {
            // The third is no volume: a member joins.
            if volume == 2 {
                join(&mut model, &plan);
                assert_apart(&model);
                continue;
            }
            let before = model.volume_bytes(usize::from(volume)).unwrap();
            let had: Vec<Part> = model.parts(volume, 0, before).collect();
            model.grow_volume(&plan, volume, before + sectors * 512).unwrap();
            prop_assert_eq!(&had, &model.parts(volume, 0, before).collect::<Vec<_>>());
            assert_apart(&model);
        }
    }
}

#[test]
fn new_pages_go_on_in_turn_over_the_members() {
    let plan = small(3);
    let mut model = ArrayModel::new(&plan).unwrap();
    model.grow_volume(&plan, 1, 16 * MIB).unwrap();
    let turns: Vec<u32> = parts(&model, 1).iter().map(|part| part.member).collect();
    assert_eq!(turns, (0..16).map(|page| (page + 1) % 3).collect::<Vec<u32>>());
}

#[test]
fn what_was_beyond_the_end_can_be_written_and_read() {
    let plan = small(2);
    let mut model = ArrayModel::new(&plan).unwrap();
    assert!(result(&mut model, 0, &request(Op::Write, 1, 10 * MIB, 8192, 0)) < 0);
    model.grow_volume(&plan, 1, 12 * MIB).unwrap();
    for (op, begin) in [(Op::Write, 1), (Op::Read, 2), (Op::Flush, 3)] {
        assert_eq!(result(&mut model, begin * 100 * SECOND, &request(op, 1, 10 * MIB, 8192, 0)), 8192, "{op:?}");
    }
}

#[test]
fn what_cannot_grow_stays_as_it_is() {
    let plan = small(2);
    let mut model = ArrayModel::new(&plan).unwrap();
    let before = parts(&model, 0);
    let mut refused = |volume, bytes, why: &str| {
        let error = model.grow_volume(&plan, volume, bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(0, 20 * MIB, "volumes only grow");
    refused(7, 20 * MIB, "no such volume");
    refused(0, 30 * MIB + 1, "no multiple of 512");
    refused(0, 1 << 49, "of a member that holds");
    assert_eq!(parts(&model, 0), before);
    model.add_member(&plan, 0).unwrap();
    assert!(model.grow_volume(&plan, 0, 40 * MIB).unwrap_err().to_string().contains("being filled"));

    let mut anywhere = small(1);
    anywhere.pools[0].member.raid.misalign_bytes = 0;
    anywhere.pools[0].member.layout = LayoutPlan::WriteAnywhere {
        reduction: 1.0,
        block_bytes: 4096,
        run_blocks: 16,
        read_realloc: false,
        space: SpacePlan::default(),
    };
    let mut model = ArrayModel::new(&anywhere).unwrap();
    assert!(model.grow_volume(&anywhere, 0, 40 * MIB).unwrap_err().to_string().contains("writes anywhere"));
}
