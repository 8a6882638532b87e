//! Changes that are whole, cut short, or damaged.

use std::{fs, path::PathBuf};

use super::*;
use crate::store::kept;

const NEW: Era = Era { store: [7; 16], settled: 0, issued: 5 };
const ERA: Era = Era { settled: 5, ..NEW };

struct Bench(PathBuf);

impl Bench {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("assay-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn open(&self, era: Era, supply: &Supply) -> Result<(Journal, Held), ServeError> {
        Journal::open(Folder::at(&self.0).unwrap(), era, supply)
    }

    fn path(&self) -> PathBuf {
        self.0.join(JOURNAL)
    }

    /// Zeroes what lies after so many bytes of changes.
    fn tear(&self, whole: &[u8], at: usize) {
        let mut torn = whole.to_vec();
        torn[kept::HEAD_BYTES as usize + at..].fill(0);
        fs::write(self.path(), torn).unwrap();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A change that is not filled up with zeroes.
const FIRST: &str = "one, which is as long as that";

fn change(name: &str) -> Change {
    Change::Snapshot { name: name.to_owned() }
}

#[test]
fn what_was_cut_short_anywhere_is_no_change_and_those_before_it_are() {
    let (bench, supply) = (Bench::new("cut"), Supply::default());
    let (mut journal, _) = bench.open(NEW, &supply).unwrap();
    journal.note(&change(FIRST)).unwrap();
    let first_bytes = journal.bytes;
    journal.note(&change("another, which is a little longer than that")).unwrap();
    let bytes = journal.bytes;
    let whole = fs::read(bench.path()).unwrap();
    // One that lacks no more than its end is as good as whole.
    for cut in 0..bytes - TAIL.len() as u64 {
        bench.tear(&whole, cut as usize);
        let (mut journal, Held { changes, .. }) = bench.open(ERA, &supply).unwrap();
        let left = if cut < first_bytes - TAIL.len() as u64 { 0 } else { 1 };
        assert_eq!(changes, [change(FIRST)][..left], "{cut} bytes");
        // What follows is found, and nothing of what was cut short.
        journal.note(&change("later")).unwrap();
        let (_, Held { changes, .. }) = bench.open(ERA, &supply).unwrap();
        assert_eq!(changes.last(), Some(&change("later")), "{cut} bytes");
        assert_eq!(changes.len(), left + 1);
    }
}

/// A journal that lost its end would give what was acknowledged up for lost without a word.
#[test]
fn a_journal_that_is_shorter_than_it_was_or_has_another_byte_is_refused() {
    let (bench, supply) = (Bench::new("short"), Supply::default());
    let (mut journal, _) = bench.open(NEW, &supply).unwrap();
    for name in ["one", "another", "a third"] {
        journal.note(&change(name)).unwrap();
    }
    let bytes = kept::HEAD_BYTES + journal.bytes;
    let whole = fs::read(bench.path()).unwrap();
    for cut in (0..whole.len()).step_by(997).chain([bytes as usize, whole.len() - 1]) {
        fs::write(bench.path(), &whole[..cut]).unwrap();
        assert!(bench.open(ERA, &supply).is_err(), "{cut} bytes");
    }
    for at in kept::HEAD_BYTES..bytes {
        for with in [1, 0x80] {
            let mut other = whole.clone();
            other[at as usize] ^= with;
            fs::write(bench.path(), &other).unwrap();
            let opened = bench.open(ERA, &supply).map(|(_, held)| held.changes.len());
            assert!(opened.is_err() || opened.unwrap() == 3, "byte {at}");
        }
    }
}

#[test]
fn changes_before_a_checkpoint_are_not_done_again_where_the_journal_could_not_be_emptied() {
    let (bench, supply) = (Bench::new("checkpoint"), Supply::default());
    let (mut journal, _) = bench.open(NEW, &supply).unwrap();
    journal.note(&change("one")).unwrap();
    // The checkpoint is written and put in its place; emptying the journal fails.
    supply.end_after(2, true);
    assert!(journal.checkpoint(|body| body.word(7)).is_err());
    let state = Some(7_u32.to_le_bytes().to_vec());
    let (_, held) = bench.open(ERA, &supply).unwrap();
    assert_eq!(held, Held { state: state.clone(), changes: Vec::new() });
    journal.note(&change("two")).unwrap();
    let (_, held) = bench.open(ERA, &supply).unwrap();
    assert_eq!(held, Held { state, changes: vec![change("two")] });
}

#[test]
fn a_checkpoint_that_is_missing_or_older_than_the_journal_is_refused() {
    let (bench, supply) = (Bench::new("older"), Supply::default());
    let (mut journal, _) = bench.open(NEW, &supply).unwrap();
    journal.note(&change("one")).unwrap();
    journal.checkpoint(|body| body.word(7)).unwrap();
    let older = fs::read(bench.0.join(CHECKPOINT)).unwrap();
    journal.note(&change("two")).unwrap();
    journal.checkpoint(|body| body.word(8)).unwrap();
    let newest = fs::read(bench.0.join(CHECKPOINT)).unwrap();
    for (bytes, why) in [(Some(&older), "is an older copy"), (None, "is missing"), (Some(&newest), "")] {
        fs::remove_file(bench.0.join(CHECKPOINT)).unwrap();
        bytes.iter().for_each(|bytes| fs::write(bench.0.join(CHECKPOINT), bytes).unwrap());
        match bench.open(ERA, &supply) {
            Ok((_, held)) => assert_eq!((held.state, why), (Some(8_u32.to_le_bytes().to_vec()), "")),
            Err(error) => {
                assert!(!why.is_empty() && error.to_string().contains(&format!("checkpoint: {why}")), "{error}");
                fs::write(bench.0.join(CHECKPOINT), "").unwrap();
            }
        }
    }
}

#[test]
fn a_note_that_failed_is_no_change_whatever_failed_of_it() {
    let (bench, supply) = (Bench::new("rest"), Supply::default());
    let (mut journal, _) = bench.open(NEW, &supply).unwrap();
    journal.note(&change(FIRST)).unwrap();
    for changes in 0.. {
        supply.end_after(changes % 4, true);
        let noted = journal.note(&change("another"));
        supply.end_after(u64::MAX, false);
        if noted.is_ok() {
            assert!(changes > 2);
            break;
        }
        let (_, Held { changes: found, .. }) = bench.open(ERA, &supply).unwrap();
        assert_eq!(found, [change(FIRST)], "{changes} changes");
    }
    let (_, Held { changes, .. }) = bench.open(ERA, &supply).unwrap();
    assert_eq!(changes, [change(FIRST), change("another")]);
}
