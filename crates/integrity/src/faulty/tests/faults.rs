//! Each fault: its effect on bytes, and when it counts as observable.

use super::*;

/// Eight pages of generation 1, and from now on these options.
fn prepared(file: FaultyFile, options: FaultyOptions) -> FaultyQueue<Memory> {
    let file = FaultyFile { size_bytes: 8 * u64::from(file.page_bytes), ..file };
    let mut queue = device(CLEAN, &[file]);
    for page in 0..8 {
        write(&mut queue, 0, page, &content(&file, page, 1, 1));
    }
    queue.options = options;
    queue
}

/// Writes generation `generation` of a page with these options, and none after it.
fn write_with(queue: &mut FaultyQueue<Memory>, options: FaultyOptions, page: u64, generation: u64) -> i32 {
    let file = queue.files()[0];
    queue.options = options;
    let result = write(queue, 0, page, &content(&file, page, 1, generation));
    queue.options = CLEAN;
    result
}

fn read_with(queue: &mut FaultyQueue<Memory>, options: FaultyOptions, page: u64, pages: usize) -> (i32, Vec<u8>) {
    queue.options = options;
    let answer = read(queue, 0, page, pages);
    queue.options = CLEAN;
    answer
}

/// For each unit of a page the generation it holds, 0 where it is none of these two.
fn generations(file: &FaultyFile, page: u64, bytes: &[u8], generations: [u64; 2]) -> Vec<u64> {
    let known = generations.map(|generation| (generation, content(file, page, 1, generation)));
    let units = bytes.chunks(UNIT_BYTES).enumerate();
    let holds = |(index, unit): (usize, &[u8])| {
        let place = index * UNIT_BYTES..(index + 1) * UNIT_BYTES;
        known.iter().find(|(_, bytes)| &bytes[place.clone()] == unit).map_or(0, |(generation, _)| *generation)
    };
    units.map(holds).collect()
}

fn bits_apart(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

const LOST: FaultyOptions = FaultyOptions { lost: 1.0, ..CLEAN };
const LOG_BREAK: FaultyOptions = FaultyOptions { log_break: 1.0, ..CLEAN };
const TORN: FaultyOptions = FaultyOptions { torn: 1.0, ..CLEAN };
const CORRUPT: FaultyOptions = FaultyOptions { corrupt: 1.0, ..CLEAN };
const MISDIRECTED_WRITE: FaultyOptions = FaultyOptions { misdirected_write: 1.0, ..CLEAN };
const MISDIRECTED_READ: FaultyOptions = FaultyOptions { misdirected_read: 1.0, ..CLEAN };
const SHORT_READ: FaultyOptions = FaultyOptions { short_read: 1.0, ..CLEAN };

#[test]
fn torn_writes_store_some_units() {
    let (mut prefixes, mut others) = (0, 0);
    for seed in 0..100 {
        let mut queue = prepared(data(8), CLEAN);
        assert_eq!(write_with(&mut queue, FaultyOptions { seed, ..TORN }, 3, 2), PAGE as i32);
        let units = generations(&data(8), 3, on_medium(&queue, 0, 3), [1, 2]);
        assert!(units.contains(&1) && units.contains(&2) && !units.contains(&0), "{units:?}");
        if units.is_sorted_by(|a, b| a >= b) {
            prefixes += 1
        } else {
            others += 1
        }
        assert_observable(&queue, &[]);
        assert_eq!(named(&queue.masked()), [(Fault::Torn, 1)]);
        read(&mut queue, 0, 3, 1);
        assert_observable(&queue, &[(Fault::Torn, 1)]);
        assert_eq!(queue.masked().total(), 0);
    }
    assert!(prefixes > others && others > 10, "{prefixes} {others}");
}

#[test]
fn lost_writes_change_nothing() {
    let mut queue = prepared(data(8), CLEAN);
    assert_eq!(write_with(&mut queue, LOST, 3, 2), PAGE as i32);
    assert_eq!(on_medium(&queue, 0, 3), content(&data(8), 3, 1, 1));
    let injection = &queue.injections()[0];
    assert_eq!((injection.fault, injection.operation, injection.page), (Fault::Lost, 9, 3));
    read(&mut queue, 0, 2, 1);
    read(&mut queue, 0, 4, 4);
    assert_observable(&queue, &[]);
    read(&mut queue, 0, 0, 8);
    assert_observable(&queue, &[(Fault::Lost, 1)]);
    read(&mut queue, 0, 3, 1);
    assert_observable(&queue, &[(Fault::Lost, 1)]);
}

#[test]
fn lost_log_writes_break_the_log() {
    let mut queue = prepared(log(8), CLEAN);
    write_with(&mut queue, LOG_BREAK, 3, 2);
    write_with(&mut queue, LOST, 4, 2);
    assert_eq!(on_medium(&queue, 0, 3), content(&log(8), 3, 1, 1));
    assert_eq!(on_medium(&queue, 0, 4), content(&log(8), 4, 1, 2));
    read(&mut queue, 0, 0, 8);
    assert_observable(&queue, &[(Fault::LogBreak, 1)]);
}

#[test]
fn one_page_of_an_io_is_hit() {
    for (options, wrong) in [(LOST, 1), (TORN, 1), (CORRUPT, 1), (MISDIRECTED_WRITE, 2)] {
        let mut queue = prepared(data(8), options);
        write(&mut queue, 0, 2, &content(&data(8), 2, 4, 2));
        assert_eq!(queue.injections().len(), 1);
        let generation = |page: u64| if (2..6).contains(&page) { 2 } else { 1 };
        let right = |page: &u64| on_medium(&queue, 0, *page) == content(&data(8), *page, 1, generation(*page));
        assert_eq!((0..8).filter(right).count(), 8 - wrong);
    }
}

#[test]
fn a_later_write_masks_what_nobody_read() {
    for options in [TORN, LOST, CORRUPT] {
        let mut queue = prepared(data(8), CLEAN);
        write_with(&mut queue, options, 3, 2);
        write_with(&mut queue, CLEAN, 3, 3);
        assert_eq!(read(&mut queue, 0, 3, 1).1, content(&data(8), 3, 1, 3));
        assert_observable(&queue, &[]);
        assert_eq!(queue.masked().total(), 1);
    }
}

#[test]
fn a_later_fault_supersedes_an_earlier_one() {
    let mut queue = prepared(data(8), CLEAN);
    write_with(&mut queue, TORN, 3, 2);
    write_with(&mut queue, LOST, 3, 3);
    read(&mut queue, 0, 3, 1);
    assert_observable(&queue, &[(Fault::Lost, 1)]);
    assert_eq!(named(&queue.masked()), [(Fault::Torn, 1)]);
    write_with(&mut queue, TORN, 3, 4);
    read(&mut queue, 0, 3, 1);
    assert_observable(&queue, &[(Fault::Torn, 1), (Fault::Lost, 1)]);
}

#[test]
fn foreign_and_corrupt_bytes_stay_where_nothing_is_stored() {
    let mut queue = prepared(data(8), CLEAN);
    write_with(&mut queue, MISDIRECTED_WRITE, 3, 2);
    let other = queue.injections()[0].other_page.unwrap();
    write_with(&mut queue, LOST, other, 2);
    read(&mut queue, 0, other, 1);
    assert_observable(&queue, &[(Fault::MisdirectedWrite, 1)]);

    // Whichever units a torn write leaves, the corrupt ones among them are not its own.
    for seed in 0..50 {
        let mut queue = prepared(data(8), CLEAN);
        write_with(&mut queue, FaultyOptions { seed, ..CORRUPT }, 3, 2);
        write_with(&mut queue, FaultyOptions { seed, ..TORN }, 3, 3);
        let units = generations(&data(8), 3, on_medium(&queue, 0, 3), [2, 3]);
        read(&mut queue, 0, 3, 1);
        let observable = queue.observable();
        assert_eq!(observable[Fault::Corrupt], u64::from(units.contains(&0)), "{units:?}");
        assert_eq!(observable[Fault::Torn], u64::from(units.contains(&2)), "{units:?}");
    }
}

#[test]
fn misdirected_writes_are_named_by_what_was_read() {
    for (file, own_name) in [(data(8), Fault::Lost), (log(8), Fault::LogBreak)] {
        let start = || {
            let mut queue = prepared(file, CLEAN);
            write_with(&mut queue, MISDIRECTED_WRITE, 3, 2);
            let other = queue.injections()[0].other_page.unwrap();
            assert_ne!(other, 3);
            assert_eq!(on_medium(&queue, 0, 3), content(&file, 3, 1, 1));
            assert_eq!(on_medium(&queue, 0, other), content(&file, 3, 1, 2));
            (queue, other)
        };
        let (mut queue, other) = start();
        read(&mut queue, 0, 3, 1);
        assert_observable(&queue, &[(own_name, 1)]);
        read(&mut queue, 0, other, 1);
        assert_observable(&queue, &[(Fault::MisdirectedWrite, 1)]);

        let (mut queue, other) = start();
        read(&mut queue, 0, other, 1);
        read(&mut queue, 0, 3, 1);
        assert_observable(&queue, &[(Fault::MisdirectedWrite, 1)]);

        let (mut queue, other) = start();
        write_with(&mut queue, CLEAN, other, 2);
        read(&mut queue, 0, other, 1);
        read(&mut queue, 0, 3, 1);
        assert_observable(&queue, &[(own_name, 1)]);

        let (mut queue, other) = start();
        write_with(&mut queue, CLEAN, other, 2);
        write_with(&mut queue, CLEAN, 3, 3);
        read(&mut queue, 0, 0, 8);
        assert_observable(&queue, &[]);
        assert_eq!(named(&queue.masked()), [(Fault::MisdirectedWrite, 1)]);
    }
}

#[test]
fn corrupt_writes_flip_bits_on_the_medium() {
    for seed in 0..50 {
        let mut queue = prepared(data(8), CLEAN);
        write_with(&mut queue, FaultyOptions { seed, ..CORRUPT }, 3, 2);
        let bits = bits_apart(on_medium(&queue, 0, 3), &content(&data(8), 3, 1, 2));
        assert!((1..=8).contains(&bits), "{bits}");
        assert_observable(&queue, &[]);
        read(&mut queue, 0, 3, 1);
        assert_observable(&queue, &[(Fault::Corrupt, 1)]);
    }
}

#[test]
fn corrupt_reads_flip_bits_on_the_way() {
    for seed in 0..50 {
        let mut queue = prepared(data(8), CLEAN);
        let (result, bytes) = read_with(&mut queue, FaultyOptions { seed, ..CORRUPT }, 2, 2);
        assert_eq!(result, 2 * PAGE as i32);
        let bits = bits_apart(&bytes, &content(&data(8), 2, 2, 1));
        assert!((1..=8).contains(&bits), "{bits}");
        assert_observable(&queue, &[(Fault::Corrupt, 1)]);
        assert_eq!(read(&mut queue, 0, 2, 2).1, content(&data(8), 2, 2, 1));
    }
}

#[test]
fn flipped_bits_hide_what_was_wrong_before() {
    let mut queue = prepared(log(8), CLEAN);
    write_with(&mut queue, LOG_BREAK, 3, 2);
    read_with(&mut queue, CORRUPT, 3, 1);
    assert_observable(&queue, &[(Fault::Corrupt, 1)]);
    read(&mut queue, 0, 3, 1);
    assert_observable(&queue, &[(Fault::Corrupt, 1), (Fault::LogBreak, 1)]);

    let mut queue = prepared(data(8), CLEAN);
    write_with(&mut queue, LOST, 3, 2);
    read_with(&mut queue, CORRUPT, 3, 1);
    assert_observable(&queue, &[(Fault::Lost, 1), (Fault::Corrupt, 1)]);
}

#[test]
fn short_reads_leave_the_end_of_a_page() {
    let (mut whole, mut cut) = (0, 0);
    for seed in 0..100 {
        let mut queue = prepared(data(8), CLEAN);
        let (result, bytes) = read_with(&mut queue, FaultyOptions { seed, ..SHORT_READ }, 2, 3);
        let page = (queue.injections()[0].page - 2) as usize * PAGE as usize;
        let right = content(&data(8), 2, 3, 1);
        let kept = bytes.iter().zip(&right).take_while(|(a, b)| a == b).count();
        assert!(kept > page && kept < page + PAGE as usize && kept.is_multiple_of(UNIT_BYTES));
        let mut end = page + PAGE as usize;
        if result == 3 * PAGE as i32 {
            whole += 1;
            assert_eq!(bytes[end..], right[end..]);
        } else {
            cut += 1;
            assert_eq!(result as usize, kept);
            end = bytes.len();
        }
        assert!(bytes[kept..end].iter().all(|byte| *byte == PATTERN));
        assert_observable(&queue, &[(Fault::ShortRead, 1)]);
    }
    assert!(whole > 20 && cut > 20);
}

#[test]
fn short_reads_of_small_blocks_leave_all_of_them() {
    for seed in 0..20 {
        let mut queue = prepared(log(8), CLEAN);
        write_with(&mut queue, LOG_BREAK, 3, 2);
        let (result, bytes) = read_with(&mut queue, FaultyOptions { seed, ..SHORT_READ }, 3, 1);
        assert!(result == 0 || result == SECTOR as i32);
        assert_eq!(bytes, [PATTERN; SECTOR as usize]);
        assert_observable(&queue, &[(Fault::ShortRead, 1)]);
    }
}

#[test]
fn misdirected_reads_return_another_page() {
    for seed in 0..50 {
        let mut queue = prepared(data(8), CLEAN);
        write_with(&mut queue, LOST, 3, 2);
        let (result, bytes) = read_with(&mut queue, FaultyOptions { seed, ..MISDIRECTED_READ }, 3, 1);
        assert_eq!(result, PAGE as i32);
        let other = queue.injections()[1].other_page.unwrap();
        assert_ne!(other, 3);
        assert_eq!(bytes, content(&data(8), other, 1, 1));
        assert_observable(&queue, &[(Fault::MisdirectedRead, 1)]);
    }
}

#[test]
fn misdirected_reads_come_from_pages_that_are_right() {
    let file = data(8);
    let mut queue = device(CLEAN, &[file]);
    for page in 0..4 {
        write(&mut queue, 0, page, &content(&file, page, 1, 1));
    }
    // Pages 4 to 7 were never written, page 7 not since it came back.
    write(&mut queue, 0, 7, &content(&file, 7, 1, 1));
    queue.resize(0, 7 * u64::from(PAGE)).unwrap();
    queue.resize(0, 8 * u64::from(PAGE)).unwrap();
    write_with(&mut queue, CORRUPT, 1, 2);
    write_with(&mut queue, LOST, 2, 2);
    for _ in 0..50 {
        read_with(&mut queue, MISDIRECTED_READ, 0, 1);
    }
    assert!(queue.injections().len() > 10);
    assert!(queue.injections()[2..].iter().all(|injection| injection.other_page == Some(3)));
}

#[test]
fn errors_transfer_nothing() {
    let options = FaultyOptions { io_error: 1.0, ..CLEAN };
    let mut queue = prepared(data(8), CLEAN);
    assert_eq!(write_with(&mut queue, options, 3, 2), -libc::EIO);
    assert_eq!(on_medium(&queue, 0, 3), content(&data(8), 3, 1, 1));
    assert_observable(&queue, &[(Fault::IoError, 1)]);
    write_with(&mut queue, LOST, 3, 2);
    assert_eq!(read_with(&mut queue, options, 3, 1), (-libc::EIO, vec![PATTERN; PAGE as usize]));
    assert_observable(&queue, &[(Fault::IoError, 2)]);
}

#[test]
fn long_ios_come_late_and_right() {
    let mut queue = prepared(data(8), FaultyOptions { long_io: 1.0, ..CLEAN });
    let before_ns = queue.now_ns();
    write(&mut queue, 0, 3, &content(&data(8), 3, 1, 2));
    let took_ns = queue.now_ns() - before_ns;
    assert!((16_000_050_000..16_000_500_000).contains(&took_ns), "{took_ns}");
    assert_eq!(read(&mut queue, 0, 3, 1).1, content(&data(8), 3, 1, 2));
    assert_observable(&queue, &[(Fault::LongIo, 2)]);
}

#[test]
fn what_makes_no_difference_is_no_fault() {
    for options in [LOST, TORN] {
        let mut queue = prepared(data(8), CLEAN);
        write_with(&mut queue, options, 3, 1);
        assert_eq!(queue.injected().total(), 0);
    }
    let mut queue = device(CLEAN, &[data(8)]);
    write(&mut queue, 0, 3, &content(&data(8), 3, 1, 1));
    queue.options = MISDIRECTED_WRITE;
    write(&mut queue, 0, 3, &[0; PAGE as usize]);
    assert_eq!(queue.medium().volume(0), vec![0; 8 * PAGE as usize]);
    assert_eq!(queue.injected().total(), 0);
    let mut queue = device(MISDIRECTED_READ, &[data(8)]);
    queue.written[0].fill(true);
    assert_eq!(read(&mut queue, 0, 3, 1), (PAGE as i32, vec![0; PAGE as usize]));
    assert_eq!(queue.injected().total(), 0);
}

#[test]
fn the_place_of_another_io_is_never_a_victim() {
    let file = data(2);
    for options in [MISDIRECTED_WRITE, MISDIRECTED_READ] {
        let mut queue = device(CLEAN, &[file]);
        for page in 0..2 {
            write(&mut queue, 0, page, &content(&file, page, 1, 1));
        }
        queue.options = options;
        let op = if options == MISDIRECTED_WRITE { Op::Write } else { Op::Read };
        // The write that comes last finds the other page free.
        let ios = [0, 1].map(|page| Request { tag: page, buffer: page, ..request(&file, op, 0, page.into(), 8192) });
        for io in &ios {
            fill(&mut queue, io, &content(&file, io.tag.into(), 1, 2));
        }
        queue.submit(&ios).unwrap();
        let mut completions = Vec::new();
        queue.wait(1, u64::MAX, &mut completions).unwrap();
        assert_eq!(completions.len(), 1);
        assert_eq!(queue.injected().total(), 0);
        queue.wait(1, u64::MAX, &mut completions).unwrap();
        assert_eq!(queue.injected().total(), 1);
    }
}

#[test]
fn what_is_cut_off_is_masked_and_comes_back_as_zeros() {
    let mut queue = prepared(data(8), CLEAN);
    write_with(&mut queue, LOST, 6, 2);
    queue.resize(0, 6 * u64::from(PAGE)).unwrap();
    queue.resize(0, 8 * u64::from(PAGE)).unwrap();
    assert_eq!(read(&mut queue, 0, 6, 2).1, vec![0; 2 * PAGE as usize]);
    assert_observable(&queue, &[]);
    assert_eq!(named(&queue.masked()), [(Fault::Lost, 1)]);
}
