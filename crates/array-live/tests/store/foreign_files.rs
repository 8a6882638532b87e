//! A folder for a store that another user had first.

use std::fs;

use assay_array_live::{Durability, Store};
use assay_array_model::{ArrayModel, RaidPolicy};

use crate::{
    foreign::{Victim, refuses_folders, refuses_planted},
    proof::{Layout, Proof, filled, plan},
    proving::Folder,
};

fn open_at(path: &std::path::Path) -> Result<(), String> {
    let plan = plan(RaidPolicy::Raid5, Layout::InPlace);
    let mut model = ArrayModel::new(&plan).unwrap();
    let opened = Store::open(path, &plan, &mut model, Durability::Battery, true, None);
    opened.map(drop).map_err(|error| error.to_string())
}

/// `store.new` as a link had the server write its record over any file of root's.
#[test]
fn a_folder_with_planted_files_is_no_unused_one() {
    let folder = Folder::new();
    fs::create_dir(&folder.0).unwrap();
    refuses_planted(&folder.0, &["lock", "store.new"], || {
        let opened = open_at(&folder.0);
        if opened.is_ok() {
            fs::remove_dir_all(&folder.0).unwrap();
        }
        opened
    });
}

#[test]
fn every_file_of_a_store_that_is_planted_is_refused_by_name() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, true);
    proof.store().snapshot("monday").unwrap();
    proof.store = None;
    let folder = proof.folder.0.clone();
    let names = [
        "lock",
        "store.json",
        "store.copy",
        "store.new",
        "journal",
        "progress",
        "moves",
        "moves.copy",
        "member0-disk0.img",
        "member1-disk2.sums",
        "snapshot-monday.log",
    ];
    refuses_planted(&folder, &names, || open_at(&folder));
    fs::write(folder.join("unknown"), "").unwrap();
    assert!(open_at(&folder).unwrap_err().contains("\"unknown\""));
}

/// A change in the journal and an image that is a link: the server wrote the change into root's crontab.
#[test]
fn a_noted_change_is_not_made_on_a_file_that_a_link_leads_to() {
    let mut cut = 0;
    let mut replayed = false;
    while !replayed {
        let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
        proof.store().end_changes_after(cut, false);
        let part = proof.parts(0, 0, 4096)[0];
        let written = proof.store().write(part, &[0x33; 4096]);
        proof.store = None;
        let (folder, victim) = (proof.folder.0.clone(), Victim::new());
        for disk in 0..proof.disks() {
            let path = folder.join(format!("member{}-disk{disk}.img", part.member));
            let aside = folder.with_extension("aside");
            fs::rename(&path, &aside).unwrap();
            std::os::unix::fs::symlink(victim.path(), &path).unwrap();
            assert!(proof.open().err().unwrap().to_string().contains("is a link"));
            victim.check();
            fs::rename(&aside, &path).unwrap();
        }
        // Without the links it is made.
        proof.store = Some(proof.open().unwrap());
        let mut found = [0; 4096];
        proof.store().read(part, &mut found).unwrap();
        replayed = written.is_ok() || (cut > 1 && found == [0x33; 4096]);
        cut += 1;
    }
    assert!(cut > 1);
}

/// While a store is open, too, nothing is written through what was laid into its folder.
#[test]
fn what_an_attempt_left_behind_is_removed_and_not_written_through() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
    let victim = Victim::new();
    std::os::unix::fs::symlink(victim.path(), proof.folder.0.join("store.new")).unwrap();
    proof.store().set_attribute(0, "user.kind", Some(b"data")).unwrap();
    victim.check();
    assert!(fs::symlink_metadata(proof.folder.0.join("store.json")).unwrap().is_file());
    let Proof { folder, .. } = proof;
    assert!(!folder.0.join("store.new").exists());
}

#[test]
fn folders_that_are_not_the_owners_alone_are_refused() {
    refuses_folders(open_at);
}
