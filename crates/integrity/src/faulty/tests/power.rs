//! Bytes that survive a power cut.

use proptest::prelude::*;

use super::*;

const PAGES: u64 = 8;
const CACHED: FaultyOptions = FaultyOptions { volatile_cache: true, ..CLEAN };

fn two_files() -> [FaultyFile; 2] {
    [data(PAGES), FaultyFile { write_through: true, ..data(PAGES) }]
}

#[derive(Debug, Clone)]
enum Action {
    Write { volume: u16, page: u64, pages: usize },
    Flush { volume: u16 },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let write = (0..2_u16, 0..PAGES - 1, 1..3_usize);
    prop::collection::vec(
        prop_oneof![
            5 => write.prop_map(|(volume, page, pages)| Action::Write { volume, page, pages }),
            1 => (0..2_u16).prop_map(|volume| Action::Flush { volume }),
        ],
        1..60,
    )
}

/// Of every page the newest generation that was written, and that must outlive a power cut.
#[derive(Default, Clone, Copy)]
struct Generations {
    newest: u64,
    durable: u64,
}

/// Performs actions, cuts the power while some writes are outstanding, and returns written and surviving generations.
fn cut(options: FaultyOptions, actions: &[Action]) -> ([[Generations; PAGES as usize]; 2], FaultyQueue<Memory>) {
    let files = two_files();
    let mut queue = device(options, &files);
    let mut pages = [[Generations::default(); PAGES as usize]; 2];
    let outstanding_from = actions.len().saturating_sub(3);
    for (index, action) in actions.iter().enumerate() {
        let generation = index as u64 + 1;
        match *action {
            Action::Write { volume, page, pages: count } => {
                let file = &files[usize::from(volume)];
                let bytes = content(file, page, count, generation);
                let mut io = request(file, Op::Write, volume, page, bytes.len());
                let completes = index < outstanding_from;
                if completes {
                    assert_eq!(write(&mut queue, volume, page, &bytes), bytes.len() as i32);
                } else {
                    io.tag = (index - outstanding_from) as u32;
                    io.buffer = io.tag * 2;
                    fill(&mut queue, &io, &bytes);
                    queue.submit(&[io]).unwrap();
                }
                for page in &mut pages[usize::from(volume)][page as usize..][..count] {
                    page.newest = generation;
                    if file.write_through && completes {
                        page.durable = generation;
                    }
                }
            }
            Action::Flush { volume } if index < outstanding_from => {
                assert_eq!(flush(&mut queue, volume), 0);
                pages[usize::from(volume)].iter_mut().for_each(|page| page.durable = page.newest);
            }
            Action::Flush { .. } => {}
        }
    }
    queue.cut_power().unwrap();
    (pages, queue)
}

/// The generations of the units of a page, 0 for what was there before; panics if one is none of `0..=newest`.
fn generations(queue: &FaultyQueue<Memory>, volume: usize, page: u64, newest: u64) -> Vec<u64> {
    let file = &queue.files()[volume];
    let mut known = vec![vec![0; PAGE as usize]];
    known.extend((1..=newest).map(|generation| content(file, page, 1, generation)));
    let units = on_medium(queue, volume, page).chunks(UNIT_BYTES).enumerate();
    let holds = |(unit, bytes): (usize, &[u8])| {
        let place = unit * UNIT_BYTES..(unit + 1) * UNIT_BYTES;
        known.iter().position(|known| &known[place.clone()] == bytes).expect("bytes that were written") as u64
    };
    units.map(holds).collect()
}

proptest! {
    #[test]
    fn an_honest_device_keeps_what_it_promised(seed: u64, atomic in prop::bool::ANY, actions in actions()) {
        let atomic_unit_bytes = if atomic { PAGE } else { SECTOR };
        let (pages, queue) = cut(FaultyOptions { seed, atomic_unit_bytes, ..CACHED }, &actions);
        for (volume, pages) in pages.iter().enumerate() {
            for (page, written) in pages.iter().enumerate() {
                let mut units = generations(&queue, volume, page as u64, written.newest);
                prop_assert!(units.iter().all(|unit| (written.durable..=written.newest).contains(unit)), "{:?}", units);
                units.sort_unstable();
                units.dedup();
                prop_assert!(units.len() <= if atomic { 1 } else { 2 }, "{:?}", units);
            }
        }
    }
}

#[test]
fn a_lying_device_loses_flushed_and_write_through_writes() {
    let mut lost = [0; 2];
    for seed in 0..20 {
        let mut actions: Vec<Action> =
            (0..16).map(|io| Action::Write { volume: io as u16 % 2, page: io / 2 % (PAGES - 1), pages: 1 }).collect();
        actions.extend([0, 1].map(|volume| Action::Flush { volume }));
        actions.extend([0; 3].map(|volume| Action::Flush { volume }));
        let (pages, queue) = cut(FaultyOptions { seed, ignores_flush: true, ..CACHED }, &actions);
        for (volume, pages) in pages.iter().enumerate() {
            for (page, written) in pages.iter().enumerate() {
                let units = generations(&queue, volume, page as u64, written.newest);
                lost[volume] += usize::from(units.iter().any(|unit| *unit < written.durable));
            }
        }
    }
    assert!(lost.iter().all(|lost| *lost > 10), "{lost:?}");
}

#[test]
fn each_write_survives_or_is_lost_or_is_cut_in_pieces() {
    let (mut kept, mut lost, mut cut_up) = (0, 0, 0);
    for seed in 0..60 {
        let actions: Vec<Action> = (0..4).map(|page| Action::Write { volume: 0, page, pages: 1 }).collect();
        let (_, queue) = cut(FaultyOptions { seed, ..CACHED }, &actions);
        for page in 0..4 {
            let units = generations(&queue, 0, page, page + 1);
            match units.iter().filter(|unit| **unit > 0).count() {
                0 => lost += 1,
                16 => kept += 1,
                _ => cut_up += 1,
            }
        }
    }
    assert!(kept > 50 && lost > 20 && cut_up > 20, "{kept} {lost} {cut_up}");
}

#[test]
fn a_flush_covers_what_completed_before_it_was_submitted() {
    let file = data(PAGES);
    let mut lost = [0; 2];
    for seed in 0..80 {
        let mut queue = device(FaultyOptions { seed, atomic_unit_bytes: PAGE, ..CACHED }, &[file]);
        let ios = [0, 1].map(|page| {
            let io = Request { tag: page, buffer: page, ..request(&file, Op::Write, 0, page.into(), PAGE as usize) };
            fill(&mut queue, &io, &content(&file, page.into(), 1, 1));
            io
        });
        finish(&mut queue, ios[0]);
        // Both are outstanding together; of interest is the flush that ends after the write.
        queue.submit(&[Request { op: Op::Flush, tag: 0, ..ios[0] }, ios[1]]).unwrap();
        let mut completions = Vec::new();
        queue.wait(2, u64::MAX, &mut completions).unwrap();
        if completions[1].tag == 0 {
            queue.cut_power().unwrap();
            for page in 0..2 {
                lost[page as usize] += u32::from(on_medium(&queue, 0, page) != content(&file, page, 1, 1));
            }
        }
    }
    assert!(lost[0] == 0 && lost[1] > 5, "{lost:?}");
}

#[test]
fn after_the_cut_nothing_answers_and_the_medium_can_be_opened_again() {
    let file = data(PAGES);
    let mut queue = device(FaultyOptions { power_cut_after: Some(3), ..CLEAN }, &[file]);
    let bytes = content(&file, 0, 1, 1);
    assert_eq!(write(&mut queue, 0, 0, &bytes), PAGE as i32);
    assert_eq!(write(&mut queue, 0, 1, &content(&file, 1, 1, 1)), PAGE as i32);
    assert!(!queue.power_is_cut());
    let now_ns = queue.now_ns();
    assert_eq!(write(&mut queue, 0, 0, &content(&file, 0, 1, 2)), -libc::EIO);
    assert!(queue.power_is_cut());
    assert_eq!(read(&mut queue, 0, 1, 1), (-libc::EIO, vec![PATTERN; PAGE as usize]));
    assert_eq!(flush(&mut queue, 0), -libc::EIO);
    assert_eq!(queue.resize(0, 0), Err(-libc::EIO));
    assert_eq!((queue.now_ns(), queue.injected().total()), (now_ns, 0));

    let files = queue.files().to_vec();
    let medium = queue.into_medium();
    let mut queue = FaultyQueue::new(CLEAN, files, medium, FaultyClock::virtual_time(), 16, FRAMES, PAGE).unwrap();
    let units = generations(&queue, 0, 0, 2);
    assert!(units.iter().all(|unit| [1, 2].contains(unit)));
    assert_eq!(read(&mut queue, 0, 1, 1).1, content(&file, 1, 1, 1));
}

#[test]
fn reads_see_what_is_cached() {
    let file = data(PAGES);
    let mut queue = device(FaultyOptions { ignores_flush: true, ..CACHED }, &[file]);
    for generation in 1..100 {
        let page = generation * 3 % PAGES;
        write(&mut queue, 0, page, &content(&file, page, 1, generation));
        assert_eq!(read(&mut queue, 0, page, 1).1, content(&file, page, 1, generation));
    }
}

#[test]
fn of_many_writes_to_a_page_the_newest_few_are_in_doubt() {
    let file = data(PAGES);
    for seed in 0..20 {
        let mut queue = device(FaultyOptions { seed, ..CACHED }, &[file]);
        for generation in 1..=100 {
            write(&mut queue, 0, 0, &content(&file, 0, 1, generation));
        }
        queue.cut_power().unwrap();
        assert!(generations(&queue, 0, 0, 100).iter().all(|unit| *unit >= 92));
    }
}

#[test]
fn what_was_cut_off_or_is_invalid_does_not_survive() {
    let file = data(PAGES);
    let mut queue = device(CACHED, &[file]);
    write(&mut queue, 0, 4, &content(&file, 4, 4, 1));
    queue.resize(0, 4 * u64::from(PAGE)).unwrap();
    queue.submit(&[request(&file, Op::Write, 0, 3, 2 * PAGE as usize)]).unwrap();
    queue.cut_power().unwrap();
    assert_eq!(queue.medium().volume(0), vec![0; 4 * PAGE as usize]);
}
