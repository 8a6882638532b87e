//! Files and folders of stores are their owner's alone, whatever the umask. A test by itself: the umask is that of the process.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use assay_array_live::{Durability, LoggedStore, Store};
use assay_array_model::{ArrayModel, RaidPolicy};

#[path = "../../array-model/tests/plans/mod.rs"]
mod plans;

fn group(path: &Path) {
    let mut plan = plans::plan(RaidPolicy::Raid5);
    plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = 16 * plans::MIB);
    let mut model = ArrayModel::new(&plan).unwrap();
    let mut store = Store::open(path, &plan, &mut model, Durability::Battery, true, None).unwrap();
    if store.snapshots().is_empty() {
        store.snapshot("one").unwrap();
    }
    store.close().unwrap();
}

fn hosts_with_flash(path: &Path) {
    let mut store = LoggedStore::open(path, &plans::host_flash::plan(), Durability::Battery, None).unwrap();
    store.set_checkpoints(1);
    store.set_attribute(0, "user.kind", Some(b"data")).unwrap();
    store.close().unwrap();
}

/// Says how many files there are, each of which is the owner's alone.
fn check(folder: &Path) -> usize {
    assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.inspect(|path| assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600, "{}", path.display())).count()
}

#[test]
fn files_and_folders_of_a_store_are_their_owners_alone_whatever_the_umask() {
    let folder = std::env::temp_dir().join(format!("assay-umask-{}", std::process::id()));
    for open in [group, hosts_with_flash] {
        for mask in [0, 0o027, 0o177] {
            let _ = fs::remove_dir_all(&folder);
            // SAFETY: takes a number and cannot fail.
            let before = unsafe { libc::umask(mask) };
            open(&folder);
            // SAFETY: as above.
            unsafe { libc::umask(before) };
            assert!(check(&folder) > 5);
        }
        // Those of an earlier time are from then on.
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(0o644)).unwrap();
        }
        open(&folder);
        check(&folder);
    }
    fs::remove_dir_all(folder).unwrap();
}
