//! Files of a store that are damaged, or planted, while no server has it.

use std::{fs, path::Path};

use assay_array_live::{Durability, LoggedStore, StoreFault};
use proptest::prelude::*;

use crate::{
    damage::{Damage, copy, damage, files},
    foreign::{refuses_folders, refuses_planted},
    proof::{Proof, content, plan},
    proving::{BLOCK, Folder, Proving, VOLUME_BYTES},
};

/// What a store has been through.
#[derive(Debug, Clone)]
struct Past {
    snapshot: bool,
    /// A disk was pulled, and its pieces are restored in part.
    restoring: bool,
    /// How the last server ended: it closed the store, or was killed after so many changes of files of a write.
    killed: Option<u64>,
}

fn past() -> impl Strategy<Value = Past> {
    let killed = prop::option::of(0..25_u64);
    (any::<[bool; 2]>(), killed).prop_map(|([snapshot, restoring], killed)| Past { snapshot, restoring, killed })
}

struct Left {
    proof: Proof,
    older: Folder,
    /// Blocks of the first volume that a write was about to write, and with what.
    under_way: Vec<u8>,
}

const UNDER_WAY_AT: u64 = 40 * BLOCK;

impl Past {
    fn make(&self) -> Left {
        let (mut proof, older) = (Proof::filled(), Folder::new());
        if self.restoring {
            proof.pull(4, true);
            proof.store().restore(10, 10).unwrap();
        }
        if self.snapshot {
            proof.store().snapshot("before").unwrap();
        }
        proof.store.take().unwrap().close().unwrap();
        copy(&proof.folder.0, &older.0);
        proof.store = Some(proof.open().unwrap());
        proof.write(0, 8 * BLOCK, &content(15, 20 * BLOCK)).unwrap();
        proof.write(1, 0, &content(19, 50 * BLOCK)).unwrap();
        if self.restoring {
            proof.store().restore(5, 20).unwrap();
        }
        let mut under_way = Vec::new();
        match self.killed {
            None => proof.store.take().unwrap().close().unwrap(),
            Some(changes) => {
                under_way = content(23, 12 * BLOCK);
                proof.store().end_changes_after(changes, false);
                let _ = proof.store().write(0, UNDER_WAY_AT, &under_way);
                proof.store = None;
            }
        }
        Left { proof, older, under_way }
    }
}

impl Left {
    /// Reads all: says how many blocks cannot be had.
    fn read(&mut self) -> u64 {
        let mut lost = 0;
        for (volume, at) in Proof::all_blocks() {
            let mut found = vec![0; BLOCK as usize];
            match self.proof.store().read(volume, at, &mut found) {
                Ok(()) => {
                    let held = &self.proof.held.acknowledged[usize::from(volume)][at as usize..][..BLOCK as usize];
                    let begun = at.checked_sub(UNDER_WAY_AT).filter(|_| volume == 0);
                    let new = begun.and_then(|from| self.under_way.get(from as usize..from as usize + BLOCK as usize));
                    assert!(found == held || new == Some(&found[..]), "volume {volume} at {at}: wrong bytes");
                }
                Err(StoreFault::Lost | StoreFault::Io(_)) => lost += 1,
                Err(fault) => panic!("{fault}"),
            }
        }
        lost
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::extent::cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_lose_no_byte_or_are_an_error_and_never_a_wrong_byte(
        past in past(),
        which in any::<[prop::sample::Index; 2]>(),
        what in [damage(), damage()],
        both in any::<bool>(),
    ) {
        let mut left = past.make();
        let folder = left.proof.folder.0.clone();
        let names: Vec<String> = files(&folder).into_keys().collect();
        let foreign = Proof::filled();
        let mut images = 0;
        for (which, what) in which.iter().zip(&what).take(1 + usize::from(both)) {
            let name = which.get(&names);
            if !folder.join(name).exists() {
                continue;
            }
            what.happens(&folder, &left.older.0, &foreign.folder.0, name);
            images += if !name.ends_with(".img") { 100 } else { 1 + u32::from(matches!(what, Damage::Swapped(_))) };
        }
        match left.proof.open() {
            Err(error) => {
                let text = error.to_string();
                prop_assert!(!text.contains('\n') && text.contains(&folder.display().to_string()), "{}", text);
                prop_assert!(images >= 2, "{}", text);
            }
            Ok(store) => {
                left.proof.store = Some(store);
                let lost = left.read();
                prop_assert!(images + u32::from(past.restoring) > 2 || lost == 0, "{} lost of {:?}", lost, what);
                left.proof.restore_all();
                prop_assert_eq!(left.read(), lost);
                // What is written anew is there, as long as a container has disks.
                let anew = content(27, 8 * BLOCK);
                let (written, mut found) = (left.proof.store().write(0, 0, &anew), vec![0; anew.len()]);
                if images <= 2 {
                    written.unwrap();
                    left.proof.store().read(0, 0, &mut found).unwrap();
                    prop_assert!(found == anew);
                }
            }
        }
    }
}

#[test]
fn images_that_are_not_those_they_were_count_as_pulled_and_are_restored() {
    let mut proof = Proof::filled();
    proof.store.take().unwrap().close().unwrap();
    let older = Folder::new();
    copy(&proof.folder.0, &older.0);
    proof.store = Some(proof.open().unwrap());
    proof.write(0, 0, &content(15, VOLUME_BYTES / 2)).unwrap();
    proof.store.take().unwrap().close().unwrap();
    let folder = proof.folder.0.clone();
    fs::remove_file(folder.join("node0-disk3.img")).unwrap();
    fs::copy(older.0.join("node0-disk5.img"), folder.join("node0-disk5.img")).unwrap();
    proof.store = Some(proof.open().unwrap());
    let said: Vec<String> = proof.store().findings().iter().map(|finding| finding.what.clone()).collect();
    assert!(
        said[0].starts_with("node0/disk3: its file is missing") && said[1].contains("is an older copy"),
        "{said:?}"
    );
    assert!(!proof.store().is_present(3) && !proof.store().is_present(5));
    assert_eq!(proof.check(), 0);
    proof.restore_all();
    assert_eq!(proof.store().reading().missing_pieces, 0);
    // It is told once.
    proof.kill();
    assert!(proof.store().findings().is_empty());
    (3..6).step_by(2).for_each(|disk| proof.store().insert(disk).unwrap());
    proof.pull(0, true);
    proof.pull(1, true);
    assert_eq!(proof.check(), 0);
    proof.kill();
    assert_eq!(proof.check(), 0);
}

fn open_at(path: &Path) -> Result<(), String> {
    let opened = LoggedStore::open(path, &plan(), Durability::Battery, None);
    opened.map(drop).map_err(|error| error.to_string())
}

#[test]
fn every_file_of_a_store_that_is_planted_is_refused_by_name() {
    let mut proof = Proof::filled();
    proof.store = None;
    let folder = proof.folder.0.clone();
    assert!(folder.join("checkpoint").exists());
    let names =
        ["lock", "pool.json", "pool.copy", "pool.new", "journal", "checkpoint", "checkpoint.new", "node0-disk0.img"];
    refuses_planted(&folder, &names, || open_at(&folder));
    refuses_folders(open_at);
}
