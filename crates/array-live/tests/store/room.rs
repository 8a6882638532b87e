//! What a store refuses, and what it has room for.

use assay_array_live::{Durability, Store, StoreFault};
use assay_array_model::{ArrayModel, RaidPolicy};

use crate::{
    proof::{Layout, Proof, filled, plan},
    proving::{Folder, KIB, VOLUME_BYTES},
};

#[test]
fn two_servers_on_one_store_and_a_store_of_another_array_are_refused() {
    let mut proof = filled(RaidPolicy::Raid5, Durability::Battery, false);
    assert!(proof.open().err().unwrap().to_string().contains("another server has this store"));
    let Proof { folder, store, .. } = proof;
    drop(store);
    let other = plan(RaidPolicy::Raid6, Layout::InPlace);
    let model = ArrayModel::new(&other).unwrap();
    let refused = Store::open(&folder.0, &other, &mut model.clone(), Durability::Battery, false, None).err().unwrap();
    assert!(refused.to_string().contains("RAID 5") && refused.to_string().contains("RAID 6"), "{refused}");
    ["store.json", "store.copy"].iter().for_each(|name| std::fs::remove_file(folder.0.join(name)).unwrap());
    let refused = Store::open(&folder.0, &other, &mut model.clone(), Durability::Battery, false, None).err().unwrap();
    assert!(refused.to_string().contains("not empty"), "{refused}");
}

#[test]
fn a_store_without_room_answers_so_and_keeps_what_it_has() {
    let plan = plan(RaidPolicy::Raid5, Layout::InPlace);
    let model = ArrayModel::new(&plan).unwrap();
    let folder = Folder::new();
    let mut store =
        Store::open(&folder.0, &plan, &mut model.clone(), Durability::Battery, false, Some(512 * KIB)).unwrap();
    let mut written = Vec::new();
    let mut fault = None;
    for at in (0..VOLUME_BYTES).step_by(8192) {
        for part in model.parts(0, at, 8192) {
            match store.write(part, &vec![7; part.bytes as usize]) {
                Ok(()) => written.push(part),
                Err(full) => fault = Some(full),
            }
        }
    }
    assert!(matches!(fault, Some(StoreFault::Full)) && !written.is_empty());
    for part in written {
        let mut bytes = vec![0; part.bytes as usize];
        store.read(part, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}

#[test]
fn what_others_fill_of_the_room_is_missing_for_writes_and_stays_so() {
    let plan = plan(RaidPolicy::Raid5, Layout::InPlace);
    let model = ArrayModel::new(&plan).unwrap();
    let folder = Folder::new();
    let open =
        || Store::open(&folder.0, &plan, &mut model.clone(), Durability::Battery, false, Some(1024 * KIB)).unwrap();
    let part = |at| model.parts(0, at, 4096).next().unwrap();
    let mut store = open();
    store.write(part(0), &[1; 4096]).unwrap();
    assert!(store.fill(99).unwrap());
    assert!(store.fill(50).unwrap_err().to_string().contains("is used already"));
    drop(store);
    let mut store = open();
    let full = (0..VOLUME_BYTES).step_by(4096).find_map(|at| store.write(part(at), &[2; 4096]).err());
    assert!(matches!(full, Some(StoreFault::Full)));
    drop(store);
    let mut store = Store::open(&folder.0, &plan, &mut model.clone(), Durability::Battery, false, None).unwrap();
    assert!(!store.fill(90).unwrap(), "a store that takes what it needs has no room to fill");
}
