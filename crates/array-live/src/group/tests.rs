//! A rebuild that cannot go on waits, is told once, and goes on; bytes lie where the model has them.

use std::{collections::BTreeMap, path::Path};

use assay_array_model::{ArrayPlan, LayoutPlan, ModelPlan, RaidPolicy, SpacePlan};

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

fn open(plan: &ArrayPlan, folder: &Path) -> Group {
    let served = served(ModelPlan::Group(plan.clone()), folder, None);
    Group::open(&served, plan, served.store_folder().unwrap()).unwrap()
}

/// RAID 5 of six small disks; one of them is new, and to be rebuilt.
fn rebuilding(name: &str) -> Bench<Group> {
    let mut plan = plans::plan(RaidPolicy::Raid5);
    plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = 16 * MIB);
    let mut bench = Bench::new(name, |folder| open(&plan, folder));
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

/// A filer of small disks whose cache is destaged at once.
fn filer(folder: &Path) -> Group {
    let mut plan = plans::plan(RaidPolicy::Dp);
    let pool = &mut plan.pools[0];
    pool.volumes.iter_mut().for_each(|volume| volume.bytes = 16 * MIB);
    pool.member.cache.dirty_low = 0.0;
    pool.member.layout = LayoutPlan::WriteAnywhere {
        block_bytes: BLOCK,
        run_blocks: 16,
        read_realloc: false,
        space: SpacePlan::default(),
        reduction: 1.0,
    };
    open(&plan, folder)
}

const BLOCK: u64 = 4096;

/// Places of all blocks as the model has them, and as the store has.
fn places(group: &Group) -> (BTreeMap<u64, u64>, BTreeMap<u64, u64>) {
    let stored: BTreeMap<u64, u64> = group.store.moved(0).collect();
    let blocks = group.model.member_bytes(0) / BLOCK;
    let modelled =
        (0..blocks).map(|block| (block, group.model.place(0, block))).filter(|(block, place)| block != place);
    (modelled.collect(), stored)
}

#[test]
fn bytes_lie_where_the_model_has_moved_them_and_still_do_at_the_next_start() {
    let mut bench = Bench::new("filer", filer);
    let mut held = vec![0; 16 * MIB as usize];
    for number in 0..3000_u64 {
        let at = number * 7919 % (16 * MIB / BLOCK - 2) * BLOCK;
        let bytes = vec![(number % 251) as u8; (BLOCK * (1 + number % 2)) as usize];
        bench.writes(0, at, &bytes);
        held[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
        if number % 100 == 0 {
            bench.turns(1);
        }
    }
    bench.turns(10);
    let before = places(&bench.array);
    assert_eq!(before.0, before.1);
    assert!(before.0.len() > 2000, "{} blocks moved", before.0.len());
    let mut bench = bench.again(filer);
    assert_eq!(places(&bench.array), before);
    bench.obey(&Command::Pull { disk: "member0/disk0".into(), spare: false });
    bench.obey(&Command::Pull { disk: "member0/disk3".into(), spare: false });
    let mut found = vec![0; held.len()];
    bench.array.read(0, 0, &mut found).unwrap();
    assert!(found == held);
}

#[test]
fn blocks_that_cannot_follow_stay_where_they_are_and_lose_nothing() {
    let mut bench = Bench::new("following", filer);
    bench.writes(0, 0, &[1; 64 * BLOCK as usize]);
    bench.array.store.end_changes_after(1, false);
    assert_eq!(bench.turns(5).0, ["member0: blocks stay where they were: cut short for a proof"]);
    bench.array.store.end_changes_after(u64::MAX, false);
    bench.writes(0, 0, &[2; 64 * BLOCK as usize]);
    assert_eq!(bench.turns(5).0, ["member0: blocks move again"]);
    let mut found = vec![0; 64 * BLOCK as usize];
    bench.array.read(0, 0, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 2));
}

/// An image that is gone when a server starts is a pulled disk: told, and rebuilt onto a spare.
#[test]
fn a_disk_whose_file_is_gone_is_told_and_a_spare_takes_its_place() {
    for spares in [0, 1] {
        let mut plan = plans::plan(RaidPolicy::Raid5);
        plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = 16 * MIB);
        plan.pools[0].member.spares = spares;
        let mut bench = Bench::new(&format!("gone-{spares}"), |folder| open(&plan, folder));
        let bytes: Vec<u8> = (0..8 * MIB).map(|at| (at / 512 * 7 % 253) as u8).collect();
        bench.array.write(0, 0, &bytes).unwrap();
        let mut bench = bench.again(|folder| {
            std::fs::remove_file(folder.join("store/member0-disk2.img")).unwrap();
            open(&plan, folder)
        });
        let told: Vec<String> = bench.array.take_news().into_iter().map(|news| news.what).collect();
        assert_eq!(told[0], "member0/disk2: member0-disk2.img is missing: the disk counts as pulled");
        let mut found = vec![0; bytes.len()];
        bench.array.read(0, 0, &mut found).unwrap();
        assert!(found == bytes);
        if spares == 0 {
            assert_eq!((told.len(), bench.array.state()), (1, "degraded"));
            continue;
        }
        assert_eq!(
            (&told[1..], bench.array.state()),
            (&["member0/disk2: rebuild begins".to_owned()][..], "rebuilding")
        );
        assert_eq!(bench.turns(60).0, ["member0/disk2: rebuilt"]);
        bench.array.read(0, 0, &mut found).unwrap();
        assert!(found == bytes);
        // What is said is said once.
        let mut bench = bench.again(|folder| open(&plan, folder));
        assert!(bench.array.take_news().is_empty());
        assert_eq!(bench.array.state(), "healthy");
    }
}

/// The folder that was opened is the store's, whatever lies at its path by the time it is used.
#[test]
fn a_store_lies_in_the_folder_that_was_opened_and_not_at_its_path() {
    use std::os::fd::AsRawFd;

    let mut plan = plans::plan(RaidPolicy::Raid5);
    plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = 16 * MIB);
    let bench = Bench::new("descriptor", |folder| {
        let (at, moved, other) = (folder.join("store"), folder.join("moved"), folder.join("other"));
        std::fs::create_dir(&at).unwrap();
        std::fs::create_dir(&other).unwrap();
        let opened = std::fs::File::open(&at).unwrap();
        std::fs::rename(&at, &moved).unwrap();
        std::os::unix::fs::symlink(&other, &at).unwrap();
        let mut served = served(ModelPlan::Group(plan.clone()), folder, None);
        assert!(served.store_folder().is_err());
        served.store_descriptor = Some(opened.as_raw_fd());
        let group = Group::open(&served, &plan, served.store_folder().unwrap()).unwrap();
        assert_eq!(std::fs::read_dir(&other).unwrap().count(), 0);
        assert!(moved.join("store.json").exists());
        served.store_descriptor = Some(1 << 20);
        assert!(served.store_folder().is_err());
        group
    });
    assert_eq!(bench.array.state(), "healthy");
}
