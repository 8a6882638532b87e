//! Every queue keeps the contract of [`Queue`]: the same expectations for each.

mod scratch;

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    slice,
};

use assay_device::{BufferPool, NullOptions, NullQueue, SessionClock, ThreadQueue, UringQueue, VolumeFile};
use assay_load::{Completion, Op, Queue, Request, Sync};
use scratch::{Scratch, ends};

const BLOCK_BYTES: u32 = 4096;
const FILE_BYTES: u64 = 1024 * BLOCK_BYTES as u64;
const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MS;

/// How a queue is made.
#[derive(Clone, Copy)]
enum Kind {
    Uring,
    Threads,
    Null(NullOptions),
}

/// A queue for `depth` requests on `path`, and its buffers: `depth` for reads, then `depth + 1` for writes.
/// `None` where this kind is not to be had.
fn open(kind: Kind, path: &Path, depth: u32, writes: bool) -> Option<(Box<dyn Queue>, Buffers)> {
    let clock = SessionClock::start();
    let pool = BufferPool::new(2 * depth + 1, BLOCK_BYTES, depth, 0.0, 7).unwrap();
    let buffers = Buffers((0..2 * depth + 1).map(|buffer| pool.address(buffer, BLOCK_BYTES)).collect());
    let volume = || {
        // Direct I/O where the file system has it.
        VolumeFile::open(path, None, writes, true, Sync::None)
            .or_else(|_| VolumeFile::open(path, None, writes, false, Sync::None))
            .unwrap()
    };
    let queue: Box<dyn Queue> = match kind {
        Kind::Uring => {
            if let Err(error) = UringQueue::available() {
                eprintln!("skipped: {error}");
                return None;
            }
            Box::new(UringQueue::new(vec![volume()], pool, clock, depth).unwrap())
        }
        Kind::Threads => Box::new(ThreadQueue::new(vec![volume()], pool, clock, depth).unwrap()),
        Kind::Null(options) => Box::new(NullQueue::new(clock, options)),
    };
    Some((queue, buffers))
}

/// Addresses of a queue's buffers, to be read while the queue lives and nothing is outstanding.
struct Buffers(Vec<*mut u8>);

impl Buffers {
    fn bytes(&self, buffer: u32) -> Vec<u8> {
        // SAFETY: the queue that owns the memory lives as long as the test looks at it, and has ended its requests.
        unsafe { slice::from_raw_parts(self.0[buffer as usize], BLOCK_BYTES as usize) }.to_vec()
    }
}

fn request(op: Op, block: u64, buffer: u32, tag: u32) -> Request {
    let length_bytes = if op == Op::Flush { 0 } else { BLOCK_BYTES };
    Request { op, volume: 0, offset_bytes: block * u64::from(BLOCK_BYTES), length_bytes, buffer, tag }
}

/// Waits until this many requests have completed; an hour, should a queue not count them as it must.
fn complete(queue: &mut dyn Queue, count: usize) -> Vec<Completion> {
    let mut completions = Vec::new();
    while completions.len() < count {
        let until_ns = queue.now_ns() + HOUR;
        queue.wait(count - completions.len(), until_ns, &mut completions).unwrap();
    }
    completions
}

fn perform(queue: &mut dyn Queue, request: Request) -> i32 {
    queue.submit(&[request]).unwrap();
    complete(queue, 1)[0].result
}

fn every_request_completes_exactly_once(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    for depth in [1, 2, 7, 32, 256] {
        let Some((mut queue, _buffers)) = open(kind, &path, depth, true) else { return };
        // The tags are the caller's own; large ones come back too.
        let tag = |round: u32, slot: u32| u32::MAX - (round * depth + slot);
        for round in 0..3 {
            let requests: Vec<Request> = (0..depth)
                .map(|slot| match (round + slot) % 32 {
                    1 => request(Op::Flush, 0, 0, tag(round, slot)),
                    kind if kind % 2 == 0 => request(Op::Write, u64::from(slot), depth + slot, tag(round, slot)),
                    _ => request(Op::Read, u64::from(slot), slot, tag(round, slot)),
                })
                .collect();
            // In two batches, so that some may be submitted while others are outstanding.
            let (first, second) = requests.split_at(requests.len() / 2);
            queue.submit(first).unwrap();
            queue.submit(second).unwrap();
            let completions = complete(&mut *queue, requests.len());
            let seen: HashSet<u32> = completions.iter().map(|completion| completion.tag).collect();
            assert_eq!(completions.len(), requests.len());
            assert_eq!(seen, requests.iter().map(|request| request.tag).collect());
            for completion in completions {
                let asked = requests.iter().find(|request| request.tag == completion.tag).unwrap();
                assert_eq!(completion.result, asked.length_bytes as i32, "{:?}", asked.op);
            }
        }
        let mut more = Vec::new();
        let now_ns = queue.now_ns();
        queue.wait(0, now_ns, &mut more).unwrap();
        assert!(more.is_empty(), "nothing completes that was not asked for");
    }
}

fn slots_are_refilled_one_by_one(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let depth = 16;
    let Some((mut queue, _buffers)) = open(kind, &path, depth, true) else { return };
    let first: Vec<Request> = (0..depth).map(|slot| request(Op::Read, u64::from(slot), slot, slot)).collect();
    queue.submit(&first).unwrap();
    let mut outstanding = HashSet::<u32>::from_iter(0..depth);
    let mut completions = Vec::new();
    for step in 0..200 {
        while completions.is_empty() {
            let until_ns = queue.now_ns() + HOUR;
            queue.wait(1, until_ns, &mut completions).unwrap();
        }
        let again: Vec<Request> = completions
            .drain(..)
            .map(|completion| {
                assert!(outstanding.contains(&completion.tag), "{} was not outstanding", completion.tag);
                request(Op::Read, (step * 7) % 1024, completion.tag, completion.tag)
            })
            .collect();
        queue.submit(&again).unwrap();
    }
    for completion in complete(&mut *queue, outstanding.len()) {
        assert!(outstanding.remove(&completion.tag));
    }
}

fn times_lie_between_submission_and_the_return_of_wait(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let Some((mut queue, _buffers)) = open(kind, &path, 4, true) else { return };
    let mut last_ns = 0;
    for round in 0..200 {
        let before_ns = queue.now_ns();
        assert!(before_ns >= last_ns, "the clock goes backwards");
        let requests: Vec<Request> = (0..4).map(|slot| request(Op::Read, round, slot, slot)).collect();
        queue.submit(&requests).unwrap();
        let completions = complete(&mut *queue, 4);
        let after_ns = queue.now_ns();
        for completion in completions {
            assert!((before_ns..=after_ns).contains(&completion.at_ns), "{completion:?} in {before_ns}..={after_ns}");
        }
        last_ns = after_ns;
    }
}

/// Waits with nothing to come until the clock says it is over; a queue may come back early, but not keep doing so.
fn wait_in_vain(queue: &mut dyn Queue, min: usize, until_ns: u64) {
    let mut completions = Vec::new();
    let mut returns = 0;
    while queue.now_ns() < until_ns {
        queue.wait(min, until_ns, &mut completions).unwrap();
        returns += 1;
        assert!(returns < 50, "the wait is a spin");
    }
    assert!(completions.is_empty());
}

fn a_wait_ends_when_the_clock_reaches_its_end(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let Some((mut queue, _buffers)) = open(kind, &path, 8, true) else { return };
    // Short and long, later and sooner than the ones before, for one and for several.
    for (min, wait_ns) in [(1, MS / 10), (1, 30 * MS), (3, 10 * MS), (1, 5 * MS), (1, 25 * MS), (8, MS), (2, 3 * MS)] {
        let now_ns = queue.now_ns();
        wait_in_vain(&mut *queue, min, now_ns + wait_ns);
    }
    // A wait that is over before it begins returns as well, and takes along what is there.
    let mut completions = Vec::new();
    queue.wait(1, 0, &mut completions).unwrap();
    assert!(completions.is_empty());
}

fn a_wait_for_more_than_is_outstanding_ends(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let Some((mut queue, _buffers)) = open(kind, &path, 8, true) else { return };
    for round in 0..3 {
        queue.submit(&[request(Op::Read, 0, 0, round)]).unwrap();
        let until_ns = queue.now_ns() + 20 * MS;
        let mut completions = Vec::new();
        while queue.now_ns() < until_ns {
            queue.wait(5, until_ns, &mut completions).unwrap();
        }
        completions.extend(if completions.is_empty() { complete(&mut *queue, 1) } else { Vec::new() });
        assert_eq!(completions.iter().map(|completion| completion.tag).collect::<Vec<_>>(), [round]);
    }
}

fn an_early_completion_ends_a_long_wait(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let Some((mut queue, _buffers)) = open(kind, &path, 2, true) else { return };
    // Waits of an hour: were any of them waited out, the test would not end.
    for round in 0..50 {
        queue.submit(&[request(Op::Read, round, 0, 1)]).unwrap();
        let mut completions = Vec::new();
        while completions.is_empty() {
            let until_ns = queue.now_ns() + HOUR;
            queue.wait(1, until_ns, &mut completions).unwrap();
        }
        assert_eq!(completions.len(), 1);
    }
    queue.submit(&[request(Op::Read, 0, 0, 1)]).unwrap();
    let mut completions = Vec::new();
    while completions.is_empty() {
        queue.wait(1, u64::MAX, &mut completions).unwrap();
    }
}

macro_rules! contract {
    ($name:ident, $kind:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn every_request_completes_exactly_once() {
                ends(|| super::every_request_completes_exactly_once($kind));
            }

            #[test]
            fn slots_are_refilled_one_by_one() {
                ends(|| super::slots_are_refilled_one_by_one($kind));
            }

            #[test]
            fn times_lie_between_submission_and_the_return_of_wait() {
                ends(|| super::times_lie_between_submission_and_the_return_of_wait($kind));
            }

            #[test]
            fn a_wait_ends_when_the_clock_reaches_its_end() {
                ends(|| super::a_wait_ends_when_the_clock_reaches_its_end($kind));
            }

            #[test]
            fn a_wait_for_more_than_is_outstanding_ends() {
                ends(|| super::a_wait_for_more_than_is_outstanding_ends($kind));
            }

            #[test]
            fn an_early_completion_ends_a_long_wait() {
                ends(|| super::an_early_completion_ends_a_long_wait($kind));
            }
        }
    };
}

contract!(io_uring, Kind::Uring);
contract!(threads, Kind::Threads);
contract!(null, Kind::Null(NullOptions::default()));
contract!(null_with_latency, Kind::Null(NullOptions { latency_ns: 50_000, ..NullOptions::default() }));
contract!(null_with_servers, Kind::Null(NullOptions { latency_ns: 5_000, servers: 2, ..NullOptions::default() }));
contract!(
    null_with_stalls,
    Kind::Null(NullOptions {
        latency_ns: 1_000,
        stall_at_ns: MS,
        stall_ns: MS,
        stall_every_ns: 3 * MS,
        ..NullOptions::default()
    })
);

// What only queues on files can be held to.

fn reads_return_what_was_written(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let depth = 32;
    let Some((mut queue, buffers)) = open(kind, &path, depth, true) else { return };
    let place = |slot: u32| u64::from(slot * 17 % 1024);
    let writes: Vec<Request> = (0..depth).map(|slot| request(Op::Write, place(slot), depth + slot, slot)).collect();
    queue.submit(&writes).unwrap();
    complete(&mut *queue, writes.len());
    let written: Vec<Vec<u8>> = (0..depth).map(|slot| buffers.bytes(depth + slot)).collect();
    assert_eq!(written.iter().collect::<HashSet<_>>().len(), 32, "every block is unlike the others");
    assert_eq!(perform(&mut *queue, request(Op::Flush, 0, 0, 0)), 0);
    let on_disk = fs::read(&path).unwrap();
    // Each is read into another slot's buffer.
    let reads: Vec<Request> = (0..depth).map(|slot| request(Op::Read, place(slot), depth - 1 - slot, slot)).collect();
    queue.submit(&reads).unwrap();
    complete(&mut *queue, reads.len());
    for slot in 0..depth {
        let start = (place(slot) * u64::from(BLOCK_BYTES)) as usize;
        assert_eq!(on_disk[start..start + BLOCK_BYTES as usize], written[slot as usize]);
        assert_eq!(buffers.bytes(depth - 1 - slot), written[slot as usize]);
    }
}

fn a_block_written_again_differs_but_the_duplicate_block(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let depth = 4;
    let Some((mut queue, _buffers)) = open(kind, &path, depth, true) else { return };
    let mut write = |block: u64, buffer: u32| {
        assert_eq!(perform(&mut *queue, request(Op::Write, block, buffer, 0)), BLOCK_BYTES as i32);
        let start = (block * u64::from(BLOCK_BYTES)) as usize;
        fs::read(&path).unwrap()[start..start + BLOCK_BYTES as usize].to_vec()
    };
    assert_ne!(write(0, depth), write(1, depth));
    assert_eq!(write(2, 2 * depth), write(3, 2 * depth));
}

fn a_read_at_the_end_is_short(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", u64::from(BLOCK_BYTES) + 512);
    let Some((mut queue, _buffers)) = open(kind, &path, 2, true) else { return };
    assert_eq!(perform(&mut *queue, request(Op::Read, 1, 0, 0)), 512);
    assert_eq!(perform(&mut *queue, request(Op::Read, 2, 0, 0)), 0);
    assert_eq!(perform(&mut *queue, request(Op::Read, 1 << 40, 0, 0)), 0);
}

fn errors_are_negative_numbers_of_the_kernel(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let Some((mut queue, _buffers)) = open(kind, &path, 2, false) else { return };
    assert_eq!(perform(&mut *queue, request(Op::Write, 0, 2, 0)), -libc::EBADF);
    // The queue goes on after an error.
    assert_eq!(perform(&mut *queue, request(Op::Read, 0, 0, 1)), BLOCK_BYTES as i32);
    let beyond = Request { offset_bytes: i64::MAX as u64 - 4095, ..request(Op::Read, 0, 0, 1) };
    assert!(matches!(perform(&mut *queue, beyond), result if result <= 0));
    let (mut full, _buffers) = open(kind, Path::new("/dev/full"), 2, true).unwrap();
    assert_eq!(perform(&mut *full, request(Op::Write, 0, 2, 0)), -libc::ENOSPC);
    // The first page of a process is never mapped.
    let (mut unmapped, _buffers) = open(kind, &PathBuf::from("/proc/self/mem"), 2, false).unwrap();
    assert_eq!(perform(&mut *unmapped, request(Op::Read, 0, 0, 0)), -libc::EIO);
}

fn a_full_queue_with_failures_and_successes_loses_none(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", FILE_BYTES);
    let depth = 256;
    let Some((mut queue, _buffers)) = open(kind, &path, depth, false) else { return };
    let requests: Vec<Request> = (0..depth)
        .map(|slot| {
            if slot % 2 == 0 {
                request(Op::Read, u64::from(slot), slot, slot)
            } else {
                request(Op::Write, u64::from(slot), depth + slot, slot)
            }
        })
        .collect();
    queue.submit(&requests).unwrap();
    let completions = complete(&mut *queue, requests.len());
    assert_eq!(completions.iter().filter(|completion| completion.result == -libc::EBADF).count(), 128);
    assert_eq!(completions.iter().filter(|completion| completion.result == BLOCK_BYTES as i32).count(), 128);
}

macro_rules! file_contract {
    ($name:ident, $kind:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn reads_return_what_was_written() {
                ends(|| super::reads_return_what_was_written($kind));
            }

            #[test]
            fn a_block_written_again_differs_but_the_duplicate_block() {
                ends(|| super::a_block_written_again_differs_but_the_duplicate_block($kind));
            }

            #[test]
            fn a_read_at_the_end_is_short() {
                ends(|| super::a_read_at_the_end_is_short($kind));
            }

            #[test]
            fn errors_are_negative_numbers_of_the_kernel() {
                ends(|| super::errors_are_negative_numbers_of_the_kernel($kind));
            }

            #[test]
            fn a_full_queue_with_failures_and_successes_loses_none() {
                ends(|| super::a_full_queue_with_failures_and_successes_loses_none($kind));
            }
        }
    };
}

file_contract!(io_uring_on_files, Kind::Uring);
file_contract!(threads_on_files, Kind::Threads);

// What the null device is asked to be.

fn null(options: NullOptions) -> NullQueue {
    NullQueue::new(SessionClock::start(), options)
}

#[test]
fn a_null_device_takes_its_latency() {
    let mut queue = null(NullOptions { latency_ns: 2 * MS, ..NullOptions::default() });
    let before_ns = queue.now_ns();
    queue.submit(&[request(Op::Read, 0, 0, 0)]).unwrap();
    assert!(complete(&mut queue, 1)[0].at_ns >= before_ns + 2 * MS);
}

#[test]
fn a_null_device_with_one_server_serves_one_after_the_other() {
    let mut queue = null(NullOptions { latency_ns: MS, servers: 1, ..NullOptions::default() });
    let before_ns = queue.now_ns();
    let requests: Vec<Request> = (0..5).map(|slot| request(Op::Read, 0, slot, slot)).collect();
    queue.submit(&requests).unwrap();
    let mut at_ns: Vec<u64> = complete(&mut queue, 5).iter().map(|completion| completion.at_ns).collect();
    at_ns.sort_unstable();
    for (place, at_ns) in at_ns.into_iter().enumerate() {
        assert!(at_ns >= before_ns + (place as u64 + 1) * MS);
    }
}

#[test]
fn nothing_completes_while_a_null_device_stalls() {
    let options = NullOptions { latency_ns: 1000, stall_at_ns: 0, stall_ns: 5 * MS, ..NullOptions::default() };
    let mut queue = null(options);
    queue.submit(&[request(Op::Read, 0, 0, 0), request(Op::Write, 0, 1, 1)]).unwrap();
    assert!(complete(&mut queue, 2).iter().all(|completion| completion.at_ns >= 5 * MS));
}

#[test]
fn a_null_device_that_never_answers_does_not_overflow() {
    let options = NullOptions { latency_ns: u64::MAX, stall_ns: u64::MAX, servers: 1, ..NullOptions::default() };
    let mut queue = null(options);
    queue.submit(&[request(Op::Read, 0, 0, 0), request(Op::Read, 0, 1, 1)]).unwrap();
    let now_ns = queue.now_ns();
    wait_in_vain(&mut queue, 1, now_ns + MS);
}
