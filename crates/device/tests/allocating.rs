//! A file gets its size and its space, and one that has both is left alone.

#[allow(dead_code, reason = "each test file uses its part")]
mod scratch;

use std::fs::{self, File};

use assay_device::allocate;
use scratch::Scratch;

const FILE_BYTES: u64 = 1 << 20;

#[test]
fn a_file_that_has_its_size_and_its_space_is_asked_for_nothing() {
    let scratch = Scratch::new();
    let path = scratch.path("written");
    fs::write(&path, vec![1; FILE_BYTES as usize]).unwrap();
    let written = File::open(&path).unwrap();
    written.sync_all().unwrap();
    // Open for reading alone, it would refuse to be set to its own length.
    assert!(written.set_len(FILE_BYTES).is_err());
    allocate(&written, &path, FILE_BYTES).unwrap();
    assert!(allocate(&written, &path, FILE_BYTES + 1).is_err());
}

#[test]
fn a_file_of_another_size_gets_the_one_asked_for() {
    let scratch = Scratch::new();
    for before in [0, FILE_BYTES / 2, FILE_BYTES * 2] {
        let path = scratch.file("sized", before);
        let file = File::options().write(true).open(&path).unwrap();
        allocate(&file, &path, FILE_BYTES).unwrap();
        assert_eq!(file.metadata().unwrap().len(), FILE_BYTES);
    }
}
