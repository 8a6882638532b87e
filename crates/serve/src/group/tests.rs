//! A rebuild that cannot go on waits, is told once, and goes on.

use assay_array::{ModelPlan, RaidPolicy};

use super::Group;
use crate::{
    array::Array,
    bench::{
        Bench,
        plans::{self, MIB},
        served,
    },
    command::Command,
};

/// RAID 5 of six small disks; one of them is new, and to be rebuilt.
fn rebuilding(name: &str) -> Bench<Group> {
    let mut plan = plans::plan(RaidPolicy::Raid5);
    plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = 16 * MIB);
    let mut bench =
        Bench::new(name, |folder| Group::open(&served(ModelPlan::Group(plan.clone()), folder, None), &plan).unwrap());
    bench.obey(&Command::Pull { disk: "member0/disk1".into(), spare: false });
    bench.obey(&Command::Insert { disk: None });
    bench
}

#[test]
fn a_rebuild_whose_files_fail_is_told_once_and_goes_on_once_they_do_not() {
    let mut bench = rebuilding("failing-rebuild");
    bench.array.write(0, 0, &vec![7; 8 * MIB as usize]).unwrap();
    bench.array.store.end_changes_after(5, false);
    assert_eq!(bench.turns(30).0, ["member0/disk1: cannot be rebuilt: cut short for a proof"]);
    assert_eq!(bench.turns(30), (Vec::new(), 0));
    bench.array.store.end_changes_after(u64::MAX, false);
    assert_eq!(bench.turns(30).0, ["member0/disk1: rebuild goes on", "member0/disk1: rebuilt"]);
    assert_eq!(bench.array.state(), "healthy");
}

#[test]
fn a_rebuild_whose_end_cannot_be_written_down_is_told_once_and_ends_later() {
    let mut bench = rebuilding("failing-end");
    // Where nothing was written a row is one change: how far the rebuild is.
    bench.array.store.end_changes_after(bench.array.store.rows(0), false);
    let (told, _) = bench.turns(60);
    assert_eq!((told.len(), bench.array.state()), (1, "rebuilding"), "{told:?}");
    assert!(told[0].contains("cut short for a proof"), "{told:?}");
    bench.array.store.end_changes_after(u64::MAX, false);
    assert_eq!(bench.turns(30).0, ["member0/disk1: rebuilt"]);
    assert_eq!(bench.array.state(), "healthy");
}
