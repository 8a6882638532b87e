//! The proof of the enumeration: known faults of a write-ahead log are found, and a correct one is never accused.

mod toy;

use std::{collections::BTreeMap, sync::Arc};

use assay_crash::{Base, Contents, Course, Minimiser, Name, Order, Plan, Promises};
use toy::{FAULTS, Fault, Store, recover, value};

const TRANSACTIONS: u32 = 40;

/// A run of the toy, and what it may hold after each number of marks.
struct Toy {
    course: Course,
    fault: Fault,
    /// The committed transactions in order, and how many of them clients knew after each number of marks.
    committed: Vec<u32>,
    known: Vec<usize>,
    texts: Vec<String>,
}

impl Toy {
    fn new(fault: Fault, promises: Promises) -> Self {
        let mut store = Store::new(fault);
        let (mut committed, mut known) = (Vec::new(), vec![0, 0]);
        for transaction in 1..=TRANSACTIONS {
            let commits = !transaction.is_multiple_of(4);
            store.transact(transaction, commits);
            committed.extend(commits.then_some(transaction));
            known.push(committed.len());
            if transaction.is_multiple_of(5) {
                store.checkpoint();
            }
        }
        let log = Arc::new(store.log);
        let texts = log.marks(log.events()).unwrap();
        let contents = Arc::new(Contents::new(&log, &Base::Zeroes).unwrap());
        Self { course: Course::new(&log, &contents, promises).unwrap(), fault, committed, known, texts }
    }

    /// Whether a state is one that the toy may be in: the first committed transactions, at least those that clients knew.
    fn fails(&mut self, name: &Name) -> bool {
        let (pieces, chosen) = self.course.state(name).unwrap();
        let image = self.course.image(&pieces, &chosen);
        let bytes = self.course.bytes(&image, &Base::Zeroes).unwrap();
        let marks = self.course.points()[name.point].marks;
        let Some(found) = recover(&bytes, self.fault) else {
            // Before the store was made there is nothing that could be opened.
            return marks > 0;
        };
        let mut expected = BTreeMap::new();
        for count in 0..=self.committed.len() {
            if count > 0 {
                let transaction = self.committed[count - 1];
                let group = (transaction % 3) as u8 * 2;
                expected.insert(group, value(transaction));
                expected.insert(group + 1, value(transaction));
            }
            if count >= self.known[marks] && expected == found {
                return false;
            }
        }
        true
    }

    fn first_failing(&mut self, most: usize) -> Option<(usize, Name)> {
        let plan = Plan::new(&mut self.course, 7, most).unwrap();
        plan.states
            .iter()
            .enumerate()
            .find(|(_, state)| self.fails(&state.name))
            .map(|(at, state)| (at, state.name.clone()))
    }
}

#[test]
fn every_known_fault_is_found_within_a_thousand_states() {
    for fault in FAULTS {
        let found = Toy::new(fault, Promises::default()).first_failing(1000);
        assert!(found.is_some(), "{fault:?} was not found");
    }
}

#[test]
fn a_correct_log_is_never_accused() {
    // The whole number is tried by `make test-all`.
    let most = if std::env::var_os("ASSAY_ALL").is_some() { 20_000 } else { 4_000 };
    let mut toy = Toy::new(Fault::None, Promises::default());
    assert_eq!(toy.texts.len(), TRANSACTIONS as usize + 1);
    assert_eq!(toy.first_failing(most), None);
    for promises in [
        Promises { order: Order::Submitted, ..Promises::default() },
        Promises { atomic_bytes: Some(4096), ..Promises::default() },
        Promises { atomic_bytes: None, ..Promises::default() },
        Promises { volatile_cache: false, ..Promises::default() },
        Promises { fua: false, ..Promises::default() },
    ] {
        assert_eq!(Toy::new(Fault::None, promises).first_failing(1000), None, "{promises:?}");
    }
}

#[test]
fn a_drive_that_ignores_flushes_is_found_out() {
    let promises = Promises { flush: false, ..Promises::default() };
    assert!(Toy::new(Fault::None, promises).first_failing(1000).is_some());
}

#[test]
fn a_fault_needs_the_promise_it_relies_on() {
    // Without FUA a log relies on flushes alone; where nothing is volatile, no flush is needed.
    let durable = Promises { volatile_cache: false, ..Promises::default() };
    assert_eq!(Toy::new(Fault::NoFlush, durable).first_failing(1000), None);
    let ordered = Promises { order: Order::Submitted, ..Promises::default() };
    assert_eq!(Toy::new(Fault::SnapshotNotFlushed, ordered).first_failing(1000), None);
    let whole = Promises { atomic_bytes: None, ..Promises::default() };
    assert_eq!(Toy::new(Fault::TornDirectory, whole).first_failing(1000), None);
    assert!(Toy::new(Fault::TornDirectory, Promises::default()).first_failing(1000).is_some());
}

#[test]
fn the_smallest_failing_state_is_one_lost_write() {
    let mut toy = Toy::new(Fault::SnapshotNotFlushed, Promises::default());
    let (_, name) = toy.first_failing(1000).unwrap();
    let (_, chosen) = toy.course.state(&name).unwrap();
    let missing = (0..chosen.len()).filter(|piece| !chosen[*piece]).collect();
    let mut minimiser = Minimiser::new(missing);
    while let Some(missing) = minimiser.ask() {
        let smaller = Name { mask: assay_crash::Mask::missing(missing), ..name.clone() };
        let fails = toy.fails(&smaller);
        minimiser.answer(fails);
    }
    assert_eq!(minimiser.failing().len(), 1, "{name}");
}
