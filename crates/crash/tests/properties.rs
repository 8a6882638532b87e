//! What holds of every log, every choice and every name.

use std::sync::Arc;

use assay_crash::{Base, Contents, Course, Kind, Log, Mask, Name, Order, Plan, Promises, Recorder, View, read_log};
use proptest::prelude::*;

const SECTORS: u64 = 64;

#[derive(Clone, Debug)]
enum Step {
    Write { sector: u64, sectors: u64, byte: u8, fua: bool },
    Flush,
    Discard { sector: u64, sectors: u64 },
    Mark,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || (0..SECTORS - 16, 1_u64..16);
    let step = prop_oneof![
        6 => (range(), 0..4_u8, proptest::bool::weighted(0.1))
            .prop_map(|((sector, sectors), byte, fua)| Step::Write { sector, sectors, byte, fua }),
        2 => Just(Step::Flush),
        1 => range().prop_map(|(sector, sectors)| Step::Discard { sector, sectors }),
        1 => Just(Step::Mark),
    ];
    proptest::collection::vec(step, 1..40)
}

fn logged(steps: &[Step]) -> Log {
    let mut log = Log::new(SECTORS * 512);
    for step in steps {
        match *step {
            Step::Write { sector, sectors, byte, fua } => {
                log.write(sector * 512, &vec![byte; (sectors * 512) as usize], fua);
            }
            Step::Flush => log.flush(),
            Step::Discard { sector, sectors } => log.discard(sector * 512, sectors * 512),
            Step::Mark => log.mark("told"),
        }
    }
    log
}

/// What a volume holds after the first steps, by doing them.
fn done(steps: &[Step]) -> Vec<u8> {
    let mut bytes = vec![0; (SECTORS * 512) as usize];
    for step in steps {
        if let Step::Write { sector, sectors, byte, .. } = *step {
            bytes[(sector * 512) as usize..((sector + sectors) * 512) as usize].fill(byte);
        }
        if let Step::Discard { sector, sectors } = *step {
            bytes[(sector * 512) as usize..((sector + sectors) * 512) as usize].fill(0);
        }
    }
    bytes
}

fn course(log: &Arc<Log>, promises: Promises) -> Course {
    let contents = Arc::new(Contents::new(log, &Base::Zeroes).unwrap());
    Course::new(log, &contents, promises).unwrap()
}

proptest! {
    #[test]
    fn everything_outstanding_gives_what_was_written(steps in steps()) {
        let log = Arc::new(logged(&steps));
        let mut course = course(&log, Promises::default());
        let last = course.points().len() - 1;
        let (pieces, chosen) = course.state(&Name { seed: 1, point: last, mask: Mask::All }).unwrap();
        let image = course.image(&pieces, &chosen);
        prop_assert_eq!(course.bytes(&image, &Base::Zeroes).unwrap(), done(&steps));
    }

    #[test]
    fn nothing_outstanding_gives_at_least_what_was_flushed(steps in steps()) {
        let log = Arc::new(logged(&steps));
        let mut course = course(&log, Promises::default());
        let flushed = steps.iter().rposition(|step| matches!(step, Step::Flush)).map_or(0, |at| at + 1);
        // Without FUA writes after the last flush, it is exactly that.
        prop_assume!(!steps[flushed..].iter().any(|step| matches!(step, Step::Write { fua: true, .. })));
        let last = course.points().len() - 1;
        let (pieces, chosen) = course.state(&Name { seed: 1, point: last, mask: Mask::None }).unwrap();
        let image = course.image(&pieces, &chosen);
        prop_assert_eq!(course.bytes(&image, &Base::Zeroes).unwrap(), done(&steps[..flushed]));
    }

    #[test]
    fn equal_numbers_mean_equal_contents(steps in steps(), seed in 0_u64..1000) {
        let log = Arc::new(logged(&steps));
        let mut course = course(&log, Promises { flush: false, ..Promises::default() });
        let mut seen: Vec<(u128, Vec<u8>)> = Vec::new();
        for random in 0..12 {
            let name = Name { seed, point: course.points().len() - 1, mask: Mask::Random(random) };
            let (pieces, chosen) = course.state(&name).unwrap();
            let number = course.number(&pieces, &chosen);
            let image = course.image(&pieces, &chosen);
            let bytes = course.bytes(&image, &Base::Zeroes).unwrap();
            for (other, others) in &seen {
                prop_assert_eq!(*other == number, *others == bytes);
            }
            seen.push((number, bytes));
        }
    }

    #[test]
    fn a_plan_is_the_same_for_a_seed_and_names_states_once(steps in steps(), seed in 0_u64..1000) {
        let log = Arc::new(logged(&steps));
        let mut course = course(&log, Promises::default());
        let plan = Plan::new(&mut course, seed, 60).unwrap();
        prop_assert_eq!(&Plan::new(&mut course, seed, 60).unwrap(), &plan);
        let mut numbers: Vec<u128> = plan.states.iter().map(|state| state.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), plan.states.len());
        for state in &plan.states {
            prop_assert_eq!(&state.name.to_string().parse::<Name>().unwrap(), &state.name);
            let (pieces, chosen) = course.state(&state.name).unwrap();
            prop_assert_eq!(course.number(&pieces, &chosen), state.number);
        }
    }

    #[test]
    fn in_order_a_later_write_never_survives_an_earlier_one(steps in steps(), seed in 0_u64..1000) {
        let log = Arc::new(logged(&steps));
        let mut course = course(&log, Promises { order: Order::Submitted, ..Promises::default() });
        for state in Plan::new(&mut course, seed, 60).unwrap().states {
            let (_, chosen) = course.state(&state.name).unwrap();
            prop_assert!(chosen.windows(2).all(|pair| pair[0] || !pair[1]));
        }
    }

    #[test]
    fn names_are_read_or_refused(text in "[0-9]{1,3}:[0-9]{1,3}:[-+<r]?[0-9,-]{0,8}|.{0,20}") {
        if let Ok(name) = text.parse::<Name>() {
            prop_assert_eq!(name.to_string().parse::<Name>().unwrap(), name);
        }
    }
}

fn scratch(name: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_recorded_log_is_read_back_and_shown() {
    let folder = scratch("view");
    let (base, path) = (folder.join("base"), folder.join("log"));
    let mut view = View::new(&base, SECTORS * 512).unwrap();
    view.write(0, &[1; 1024], false).unwrap();
    view.record(&path).unwrap();
    // A write that is no whole sector becomes one.
    view.write(100, &[2; 600], false).unwrap();
    view.flush().unwrap();
    view.mark("told").unwrap();
    view.discard(512, 512).unwrap();
    let mut now = [9; 1024];
    view.read(0, &mut now).unwrap();
    assert_eq!((now[99], now[100], now[511], now[512]), (1, 2, 2, 0));
    view.finish().unwrap();
    let log = Arc::new(read_log(&path).unwrap());
    assert_eq!(log.marks(log.events()).unwrap(), ["told"]);
    let kinds: Vec<Kind> = log.entries().iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Write { fua: false }, Kind::Flush, Kind::Mark, Kind::Discard]);
    let base = Base::File(std::fs::File::open(&base).unwrap());
    let contents = Arc::new(Contents::new(&log, &base).unwrap());
    let mut course = Course::new(&log, &contents, Promises::default()).unwrap();
    let (pieces, chosen) = course.state(&"1:0:none".parse().unwrap()).unwrap();
    view.show(&log, course.image(&pieces, &chosen));
    view.write(3, &[7], false).unwrap();
    view.read(0, &mut now).unwrap();
    assert_eq!((now[3], now[100], now[600]), (7, 1, 1));
    let (pieces, chosen) = course.state(&"1:1:none".parse().unwrap()).unwrap();
    view.show(&log, course.image(&pieces, &chosen));
    view.read(0, &mut now).unwrap();
    assert_eq!((now[3], now[100], now[699], now[700]), (1, 2, 2, 1));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_log_that_was_cut_short_ends_with_its_last_whole_event_and_damage_is_no_fault() {
    let folder = scratch("cut");
    let path = folder.join("log");
    let mut recorder = Recorder::new(&path, SECTORS * 512).unwrap();
    for sector in 0..4 {
        let number = recorder.submit(Kind::Write { fua: false }, sector * 512, 512, &[1; 512]).unwrap();
        recorder.complete(number).unwrap();
    }
    recorder.finish().unwrap();
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(read_log(&path).is_ok(), length >= 32);
    }
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x40;
        std::fs::write(&path, damaged).unwrap();
        if let Ok(log) = read_log(&path) {
            assert!(log.entries().len() <= 4);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Two writes to the same sectors, both under way when the power fails: AA over sectors 0 and 1, BB over 1 and 2.
fn overlapping(second_begins_after_the_first: bool) -> Arc<Log> {
    let mut log = Log::new(SECTORS * 512);
    let first = log.submit_write(0, &[b'A'; 1024], false);
    if second_begins_after_the_first {
        log.complete(first);
    }
    log.submit_write(512, &[b'B'; 1024], false);
    Arc::new(log)
}

/// The first letters of the first three sectors in every state that promises allow.
fn beginnings(log: &Arc<Log>, atomic_bytes: Option<u64>) -> Vec<String> {
    let mut course = course(log, Promises { atomic_bytes, ..Promises::default() });
    let last = course.points().len() - 1;
    course.go_to(last);
    let pieces = course.pieces();
    let mut found: Vec<String> = (0..1 << pieces.len())
        .map(|bits| {
            let chosen: Vec<bool> = (0..pieces.len()).map(|piece| bits >> piece & 1 == 1).collect();
            let bytes = course.bytes(&course.image(&pieces, &chosen), &Base::Zeroes).unwrap();
            let letter = |sector: usize| if bytes[sector * 512] == 0 { '-' } else { char::from(bytes[sector * 512]) };
            (0..3).map(letter).collect()
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn of_two_writes_under_way_to_one_sector_either_may_be_last() {
    let found = beginnings(&overlapping(false), Some(512));
    for order in ["AAB", "ABB"] {
        assert!(found.contains(&order.to_owned()), "{order} is none of {found:?}");
    }
    // Whichever is there alone, too; a sector is never of both.
    assert_eq!(found.len(), 12, "{found:?}");
}

#[test]
fn with_whole_writes_the_order_of_submission_is_assumed() {
    assert_eq!(beginnings(&overlapping(false), None), ["---", "-BB", "AA-", "ABB"]);
}

#[test]
fn a_write_that_began_after_another_had_ended_may_be_lost_and_is_never_overtaken_by_it_where_whole() {
    assert_eq!(beginnings(&overlapping(true), None), ["---", "-BB", "AA-", "ABB"]);
}
