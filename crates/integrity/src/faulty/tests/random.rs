//! The whole device against a plain model, and by the numbers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{truth::Why, *};

#[derive(Debug, Clone)]
enum Action {
    /// I/Os that are outstanding together: write or not, page, pages.
    Ios(Vec<(bool, u64, usize)>),
    Resize(u64),
}

const PAGES_MAX: u64 = 24;

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let io = (any::<bool>(), 0..PAGES_MAX, 1..5_usize);
    prop::collection::vec(
        prop_oneof![
            9 => prop::collection::vec(io, 1..6).prop_map(Action::Ios),
            1 => (8..=PAGES_MAX).prop_map(Action::Resize),
        ],
        1..40,
    )
}

fn files() -> impl Strategy<Value = FaultyFile> {
    (any::<bool>(), any::<bool>(), 0..3_u64).prop_map(|(log_file, scattered, base_pages)| {
        let file = if log_file { log(PAGES_MAX) } else { FaultyFile { scattered, ..data(PAGES_MAX) } };
        FaultyFile { base_bytes: base_pages * u64::from(file.page_bytes), ..file }
    })
}

/// Expected bytes, and the write of each: the generation of a page is the number of the request.
struct Model {
    bytes: Vec<u8>,
    generations: Vec<u64>,
    /// Wrong bytes that reached a read, by unit.
    seen: BTreeMap<u64, Vec<u8>>,
}

impl Model {
    fn resize(&mut self, size: usize) {
        self.bytes.resize(size, 0);
        self.generations.resize(size / UNIT_BYTES, 0);
    }
}

/// Performs actions and holds every claim of the device against the bytes.
fn compare(options: FaultyOptions, file: FaultyFile, actions: Vec<Action>) -> FaultyQueue<Memory> {
    let mut queue = device(options, &[file]);
    let page_bytes = file.page_bytes as usize;
    let mut model = Model { bytes: Vec::new(), generations: Vec::new(), seen: BTreeMap::new() };
    model.resize(file.size_bytes as usize);
    for action in actions {
        match action {
            Action::Resize(pages) => {
                let size = pages as usize * page_bytes;
                assert_eq!(queue.resize(0, file.base_bytes + size as u64), Ok(()));
                model.resize(size);
            }
            Action::Ios(ios) => {
                let mut requests: Vec<Request> = Vec::new();
                for (is_write, page, pages) in ios {
                    let op = if is_write { Op::Write } else { Op::Read };
                    let mut io = request(&file, op, 0, page, pages * page_bytes);
                    let end = page as usize * page_bytes + io.length_bytes as usize;
                    let apart = |other: &Request| {
                        io.offset_bytes >= other.offset_bytes + u64::from(other.length_bytes)
                            || other.offset_bytes >= io.offset_bytes + u64::from(io.length_bytes)
                    };
                    if end > model.bytes.len() || !requests.iter().all(apart) {
                        continue;
                    }
                    io.tag = requests.len() as u32;
                    io.buffer = io.tag * 4;
                    let number = queue.submitted + 1 + requests.len() as u64;
                    let bytes = match op {
                        Op::Write => content(&file, page, pages, number),
                        _ => vec![PATTERN; pages * page_bytes],
                    };
                    fill(&mut queue, &io, &bytes);
                    requests.push(io);
                }
                compare_ios(&mut queue, &requests, &mut model);
            }
        }
        compare_medium(&queue, &model);
    }
    queue
}

/// Submits I/Os and waits for each: what they do to the model is known only then.
fn compare_ios(queue: &mut FaultyQueue<Memory>, requests: &[Request], model: &mut Model) {
    let base_bytes = queue.files()[0].base_bytes;
    let first_number = queue.submitted + 1;
    queue.submit(requests).unwrap();
    // No two complete at once, so that the device can be looked at between them.
    let mut due = std::mem::take(&mut queue.due).into_sorted_vec();
    due.iter_mut().rev().zip(0..).for_each(|(Reverse(io), order)| io.0 += 1_000_000 * order);
    queue.due = due.into();
    for _ in requests {
        let before = queue.injections().to_vec();
        let mut completions = Vec::new();
        queue.wait(1, u64::MAX, &mut completions).unwrap();
        assert_eq!(completions.len(), 1);
        let Completion { tag, result, .. } = completions[0];
        let io = &requests[tag as usize];
        let number = first_number + u64::from(tag);
        let place =
            (io.offset_bytes - base_bytes) as usize..(io.offset_bytes - base_bytes) as usize + io.length_bytes as usize;
        let units = place.start / UNIT_BYTES..place.end / UNIT_BYTES;
        let bytes = bytes_of(queue, io);
        if result < 0 {
            assert_eq!(result, -libc::EIO);
        } else if io.op == Op::Write {
            model.bytes[place].copy_from_slice(&bytes);
            model.generations[units].fill(number);
        } else {
            // A fault counts as seen from now on if the units it spoilt came from where they belong, or it is this I/O's.
            let medium = queue.medium().volume(0)[place].chunks(UNIT_BYTES);
            let came: Vec<bool> = medium.zip(bytes.chunks(UNIT_BYTES)).map(|(medium, bytes)| medium == bytes).collect();
            let mut seen: Vec<Observed> = before.iter().map(|injection| injection.observed).collect();
            seen.resize(queue.injections().len(), Observed::OwnPlace);
            for (unit, injection, why) in queue.truth.wrong_units(0) {
                if units.contains(&(unit as usize)) && came[unit as usize - units.start] {
                    let at = if why == Why::Foreign { Observed::OtherPlace } else { Observed::OwnPlace };
                    seen[injection] = seen[injection].max(at);
                    let bytes = &bytes[(unit as usize - units.start) * UNIT_BYTES..][..UNIT_BYTES];
                    model.seen.insert(unit, bytes.to_vec());
                }
            }
            assert!(queue.injections().iter().map(|injection| injection.observed).eq(seen));
            let own = queue.injections().iter().filter(|injection| injection.operation == number).count();
            assert!(own == 1 || came.iter().all(|came| *came) && result as u32 == io.length_bytes);
        }
        for injection in &queue.injections()[before.len()..] {
            assert_eq!(injection.operation, number);
        }
    }
}

/// Every unit is known to be wrong or is right, and what is wrong with it shows in its bytes.
fn compare_medium(queue: &FaultyQueue<Memory>, model: &Model) {
    let mut wrong = queue.truth.wrong_units(0);
    let units = queue.medium().volume(0).chunks(UNIT_BYTES).zip(model.bytes.chunks(UNIT_BYTES));
    for (number, (unit, _)) in (0..).zip(units).filter(|(_, (unit, right))| unit != right) {
        let (found, injection, why) = wrong.next().expect("a wrong unit that the device knows");
        assert_eq!(found, number);
        let injection = &queue.injections()[injection];
        let newest = model.generations[number as usize];
        let word = u64::from_le_bytes(unit[..8].try_into().unwrap());
        let whole = unit.chunks(8).all(|bytes| bytes == word.to_le_bytes());
        let (owner, generation) = (word >> 32, word & 0xffff_ffff);
        if why == Why::Stale && model.seen.get(&number).is_some_and(|seen| seen == unit) {
            assert_eq!(injection.operation, newest);
        } else if !whole {
            assert_eq!((why, injection.fault), (Why::Corrupt, Fault::Corrupt));
        } else if word == 0 || owner == number {
            assert_eq!((why, injection.operation), (Why::Stale, newest));
            assert!(generation < newest);
        } else {
            assert_eq!((why, injection.fault), (Why::Foreign, Fault::MisdirectedWrite));
            assert_eq!(generation, injection.operation);
        }
    }
    assert_eq!(wrong.next(), None);
}

proptest! {
    #[test]
    fn a_clean_device_never_alters_bytes(seed: u64, file in files(), actions in actions()) {
        let queue = compare(FaultyOptions { seed, ..CLEAN }, file, actions);
        prop_assert_eq!(queue.injected().total(), 0);
    }

    #[test]
    fn a_faulty_device_knows_every_wrong_unit(seed: u64, file in files(), actions in actions()) {
        let options = FaultyOptions {
            seed,
            torn: 0.1,
            lost: 0.1,
            misdirected_write: 0.1,
            misdirected_read: 0.1,
            corrupt: 0.1,
            short_read: 0.1,
            log_break: 0.1,
            io_error: 0.1,
            long_io: 0.05,
            ..CLEAN
        };
        let queue = compare(options, file, actions);
        let (injected, observable) = (queue.injected().total(), queue.observable().total());
        prop_assert_eq!(injected, observable + queue.masked().total());
        prop_assert_eq!(injected, queue.injections().len() as u64);
    }
}

/// Writes and reads pages in an order that `seed` does not change.
fn exercise(options: FaultyOptions, ios: u64) -> FaultyQueue<Memory> {
    let file = data(64);
    let mut queue = device(options, &[file, log(64)]);
    for io in 0..ios {
        let volume = (io / 2 % 2) as u16;
        let page = io * 7 % 64;
        if io % 2 == 0 {
            let file = queue.files()[usize::from(volume)];
            write(&mut queue, volume, page, &content(&file, page, 1, io + 1));
        } else {
            read(&mut queue, volume, page, 1);
        }
    }
    queue
}

const SOME: FaultyOptions = FaultyOptions {
    seed: 7,
    torn: 0.02,
    lost: 0.02,
    misdirected_write: 0.02,
    misdirected_read: 0.02,
    corrupt: 0.02,
    short_read: 0.02,
    log_break: 0.02,
    io_error: 0.02,
    long_io: 0.02,
    ..CLEAN
};

#[test]
fn a_seed_repeats_a_device() {
    let (a, b) = (exercise(SOME, 2000), exercise(SOME, 2000));
    assert!(!a.injections().is_empty());
    assert_eq!(a.injections(), b.injections());
    assert_eq!(a.medium(), b.medium());
    let other = exercise(FaultyOptions { seed: 8, ..SOME }, 2000);
    assert_ne!(a.injections(), other.injections());
}

#[test]
fn faults_come_as_often_as_asked() {
    let ios = 40_000;
    let injected = exercise(SOME, ios).injected();
    for fault in Fault::ALL {
        // Half the I/Os are writes, half of either go to the log, whose blocks have one unit.
        let share = match fault {
            Fault::Torn | Fault::Lost | Fault::LogBreak => 0.25,
            Fault::MisdirectedWrite | Fault::MisdirectedRead | Fault::ShortRead => 0.5,
            Fault::Corrupt | Fault::IoError | Fault::LongIo => 1.0,
        };
        let trials = ios as f64 * share;
        let (mean, deviation) = (trials * 0.02, (trials * 0.02 * 0.98).sqrt());
        let count = injected[fault] as f64;
        assert!((count - mean).abs() < 5.0 * deviation, "{}: {count}, not {mean}", fault.name());
    }
}
