//! What cannot go on in the background waits, is told once, and goes on.

use assay_array_model::{DiskPlan, MechanicalPlan, ModelPlan};
use assay_load::SplitMix;

use super::HostFlash;
use crate::{
    array::Array,
    bench::{
        Bench,
        plans::{KIB, MIB, host_flash, mechanical},
        served,
    },
    command::Command,
};

/// Containers of eight pieces of data and two of parity over twelve disks.
const CONTAINER_BYTES: u64 = 128 * KIB;
const PIECE_BYTES: u64 = CONTAINER_BYTES / 8;

/// Disks of `disk_pieces` pieces each, and room for `room_containers` containers.
fn bench(name: &str, disk_pieces: u64, room_containers: Option<u64>) -> Bench<HostFlash> {
    let mut plan = host_flash::plan();
    plan.volumes.truncate(2);
    plan.volumes.iter_mut().for_each(|volume| volume.bytes = 16 * MIB);
    plan.log.container_bytes = CONTAINER_BYTES;
    plan.log.room_bytes = 64 * MIB;
    let capacity_bytes = disk_pieces * PIECE_BYTES;
    plan.node.disk = DiskPlan::Mechanical(MechanicalPlan { capacity_bytes, ..mechanical() });
    let room_bytes = room_containers.map(|count| count * 10 * PIECE_BYTES);
    Bench::new(name, |folder| {
        let array = ModelPlan::HostFlash(Box::new(plan.clone()));
        let served = served(array, folder, room_bytes);
        HostFlash::open(&served, &plan, served.store_folder().unwrap()).unwrap()
    })
}

/// Writes blocks that differ and do not compress, from the beginning of a volume.
fn write(array: &mut HostFlash, volume: u16, containers: u64) {
    for place in 0..2 * containers {
        array.write(volume, place * CONTAINER_BYTES / 2, &half_a_container(volume, place)).unwrap();
    }
}

fn half_a_container(volume: u16, place: u64) -> Vec<u8> {
    let mut random = SplitMix::new(u64::from(volume) << 32 | place);
    (0..CONTAINER_BYTES / 2).map(|_| random.next() as u8).collect()
}

fn pull(disk: u32) -> Command {
    Command::Pull { disk: format!("node0/disk{disk}"), spare: true }
}

const FULL: &str = "a missing piece cannot be restored: the store has no room left";

#[test]
fn pieces_for_which_no_disk_has_room_wait_and_are_restored_once_there_is_some() {
    // Twelve disks of 64 pieces hold 76 containers of ten pieces, ten disks hold 64.
    let mut bench = bench("no-room", 64, None);
    write(&mut bench.array, 0, 70);
    assert_eq!(bench.array.store.reading().missing_pieces, 0);
    (0..2).for_each(|disk| bench.obey(&pull(disk)));
    let (told, behind) = bench.turns(100);
    let missing = bench.array.store.reading().missing_pieces;
    assert!(missing > 0, "{told:?}");
    assert_eq!(told.iter().filter(|what| *what == FULL).count(), 1, "{told:?}");
    // Nothing is done in vain: each turn with more to do was one with rows to write.
    let (told, behind_then) = bench.turns(100);
    assert_eq!((told, behind_then), (Vec::new(), 0), "before: {behind}");
    assert_eq!(bench.array.state(), "rebuilding");

    // Containers whose blocks are zeroes now give their places back.
    bench.array.write(0, 0, &vec![0; 20 * CONTAINER_BYTES as usize]).unwrap();
    let (told, _) = bench.turns(100);
    assert_eq!(told, ["missing pieces are restored again", "restored: no piece is missing any more"]);
    assert_eq!(bench.array.store.reading().missing_pieces, 0);
}

#[test]
fn files_that_fail_are_told_once_and_work_goes_on_once_they_do_not() {
    let mut bench = bench("failing", 100, Some(16));
    write(&mut bench.array, 0, 6);
    bench.obey(&pull(0));
    bench.array.store.end_changes_after(1, false);
    let (told, _) = bench.turns(20);
    assert_eq!(told, ["a missing piece cannot be restored: cut short for a proof"]);
    bench.array.store.end_changes_after(u64::MAX, false);
    let (told, _) = bench.turns(20);
    assert_eq!(told, ["missing pieces are restored again", "restored: no piece is missing any more"]);

    // Of twelve containers of sixteen reclamation takes those that are worth it.
    write(&mut bench.array, 1, 8);
    (0..64).for_each(|pair| bench.array.write(1, pair * 8192, &[0; 4096]).unwrap());
    assert!(bench.array.store.is_reclaiming());
    bench.array.store.end_changes_after(1, false);
    let (told, _) = bench.turns(20);
    assert_eq!(told, ["space cannot be reclaimed: cut short for a proof"]);
    bench.array.store.end_changes_after(u64::MAX, false);
    assert_eq!(bench.turns(20).0, ["space is reclaimed again"]);
    assert!(!bench.array.store.is_reclaiming());
}

#[test]
fn a_container_that_finds_no_disk_for_a_piece_is_whole_once_there_is_room() {
    // Pieces of a pulled disk fill free places unevenly, so that the last containers find fewer disks with room than they have pieces.
    let mut bench = bench("short", 64, None);
    write(&mut bench.array, 0, 6);
    bench.obey(&pull(0));
    assert_eq!(bench.turns(100).0, ["restored: no piece is missing any more"]);
    let mut told = Vec::new();
    for place in 0.. {
        if bench.array.write(1, place * CONTAINER_BYTES / 2, &half_a_container(1, place)).is_err() {
            break;
        }
        told.extend(bench.turns(1).0);
    }
    assert_eq!(told, ["restoring begins: 2 pieces are missing and can be computed", FULL]);
    assert_eq!((bench.array.state(), bench.array.store.reading().missing_pieces), ("rebuilding", 2));

    bench.array.write(0, 0, &vec![0; 6 * CONTAINER_BYTES as usize]).unwrap();
    let (told, _) = bench.turns(100);
    assert_eq!(told, ["missing pieces are restored again", "restored: no piece is missing any more"]);
    assert_eq!(bench.array.store.reading().missing_pieces, 0);
}
