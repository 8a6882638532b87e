//! Files of a store whose sums are right and whose contents cannot be: refused, and never a panic.

use std::{fs, path::PathBuf};

use assay_array_model::{ArrayModel, RaidPolicy};
use proptest::prelude::*;

use super::{Store, journal::Change, kept::HEAD_BYTES};
use crate::{
    Durability, ServeError,
    bench::plans::{self, KIB, MIB},
};

struct Bench {
    at: PathBuf,
    plan: assay_array_model::ArrayPlan,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.at);
    }
}

impl Bench {
    fn new(name: &str) -> Self {
        let at = std::env::temp_dir().join(format!("assay-hostile-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&at);
        let mut plan = plans::plan(RaidPolicy::Raid5);
        plan.page_bytes = 64 * KIB;
        plan.pools[0].members = 2;
        plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = MIB);
        Self { at, plan }
    }

    fn open(&self) -> Result<Store, ServeError> {
        let mut model = ArrayModel::new(&self.plan).unwrap();
        Store::open(&self.at, &self.plan, &mut model, Durability::Battery, true, None)
    }

    /// Writes a record with a right sum.
    fn put_record(&self, text: &[u8]) {
        let sum = crc32c::crc32c(text);
        let whole = [text, format!("\nsum {sum:08x}\n").as_bytes()].concat();
        ["store.json", "store.copy"].iter().for_each(|name| fs::write(self.at.join(name), &whole).unwrap());
    }
}

/// A planted journal could name an index out of bounds, or claim gigabytes.
#[test]
fn a_noted_change_that_is_none_of_the_array_is_refused() {
    let bench = Bench::new("journal");
    type Fill = fn(&mut Change);
    let changes: [(u32, Fill); 7] = [
        (0, |change| change.put(0, 1 << 40, &[1; 4096])),
        (9, |change| change.put(0, 0, &[1; 4096])),
        (0, |change| change.put(99, 0, &[1; 4096])),
        // With sums whole blocks are written.
        (0, |change| change.put(0, 100, &[1; 10])),
        (0, |change| change.copy(1, 0..4096)),
        (0, |change| change.bad(1, 0..u64::MAX)),
        (0, |change| change.moved(3, 4)),
    ];
    for (number, (member, fill)) in changes.into_iter().enumerate() {
        let mut store = bench.open().unwrap();
        let mut change = Change::default();
        fill(&mut change);
        store.journal.note(member, &change).unwrap();
        drop(store);
        let refused = bench.open().err().unwrap().to_string();
        assert!(
            refused.contains("journal: is damaged: what is noted is no change of this array"),
            "{number}: {refused}"
        );
        fs::remove_dir_all(&bench.at).unwrap();
    }
}

#[test]
fn a_note_that_says_that_it_is_larger_than_its_file_is_refused() {
    let bench = Bench::new("length");
    for at in [16, 24, 32] {
        let path = bench.at.join("journal");
        let mut store = bench.open().unwrap();
        let mut change = Change::default();
        change.put(0, 0, &[1; 4096]);
        store.journal.note(0, &change).unwrap();
        drop(store);
        let mut bytes = fs::read(&path).unwrap();
        let head = &mut bytes[HEAD_BYTES as usize..HEAD_BYTES as usize + 48];
        head[at..at + 8].copy_from_slice(&(u64::MAX / 3).to_le_bytes());
        let sum = crc32c::crc32c(&head[8..]);
        head[4..8].copy_from_slice(&sum.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let refused = bench.open().err().unwrap().to_string();
        assert!(refused.contains("journal: is damaged: the length of a note"), "{refused}");
        fs::remove_dir_all(&bench.at).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    /// Numbers of the record are replaced by others, with a sum that agrees.
    #[test]
    fn a_record_with_other_numbers_is_refused_or_opens(
        which in any::<prop::sample::Index>(),
        number in prop_oneof![Just("-1".to_owned()), Just("null".to_owned()), Just("[]".to_owned()),
            any::<u64>().prop_map(|number| number.to_string()), (0..9_u64).prop_map(|number| number.to_string())],
    ) {
        let bench = Bench::new("record");
        let mut store = bench.open().unwrap();
        store.pull(0, 1).unwrap();
        store.replace(0, 1).unwrap();
        store.rebuild_to(0, 1, 3, 3).unwrap();
        store.snapshot("one").unwrap();
        drop(store);
        let text = fs::read_to_string(bench.at.join("store.json")).unwrap();
        let text = text.rsplit_once("\nsum ").unwrap().0;
        let begins: Vec<usize> = (1..text.len())
            .filter(|at| text.as_bytes()[*at].is_ascii_digit() && matches!(text.as_bytes()[at - 1], b' ' | b'[' | b':'))
            .collect();
        let begin = *which.get(&begins);
        let digits = text[begin..].bytes().take_while(u8::is_ascii_digit).count();
        bench.put_record(format!("{}{number}{}", &text[..begin], &text[begin + digits..]).as_bytes());
        match bench.open() {
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
            Ok(mut store) => {
                let _ = store.lost_chunks(0);
                let mut bytes = vec![0; 65536];
                let _ = store.read(assay_array_model::Part { member: 0, at_bytes: 0, bytes: 65536 }, &mut bytes);
                let _ = store.revert("one");
                let _ = store.close();
            }
        }
    }
}

#[test]
fn what_joined_members_hold_is_read_from_no_more_than_there_is() {
    let bench = Bench::new("added");
    drop(bench.open().unwrap());
    let text = fs::read_to_string(bench.at.join("store.json")).unwrap();
    let text = text.rsplit_once("\nsum ").unwrap().0;
    for added in ["1", "3", "4294967295"] {
        bench.put_record(text.replace("\"added\": 0", &format!("\"added\": {added}")).as_bytes());
        let refused = bench.open().err().unwrap().to_string();
        assert!(refused.contains("what it says of the array cannot be"), "{refused}");
    }
    bench.put_record(text.replace("\"snapshots\": []", "\"snapshots\": [\"../../etc/cron\"]").as_bytes());
    assert!(bench.open().err().unwrap().to_string().contains("what it says of the array cannot be"));
}

/// A server that is killed while it makes a store leaves some of its files; nothing was ever kept in them.
#[test]
fn a_store_whose_making_was_cut_short_is_made_again() {
    let bench = Bench::new("unmade");
    drop(bench.open().unwrap());
    let text = fs::read_to_string(bench.at.join("store.json")).unwrap();
    let text = text.rsplit_once("\nsum ").unwrap().0;
    let settled = text.lines().find(|line| line.contains("\"settled\"")).unwrap();
    bench.put_record(text.replace(settled, "\"settled\": 0,").as_bytes());
    for name in ["journal", "moves", "member1-disk2.img", "member0-disk0.sums"] {
        fs::remove_file(bench.at.join(name)).unwrap();
    }
    fs::write(bench.at.join("member0-disk3.img"), "half").unwrap();
    let store = bench.open().unwrap();
    assert!(store.findings().is_empty());
    drop(store);
    assert!(bench.open().unwrap().findings().is_empty());
}
