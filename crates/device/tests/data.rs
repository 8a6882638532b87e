//! Every queue on files keeps the contract of [`DataQueue`]: the same expectations for each, buffered and direct.

mod scratch;

use std::{
    fs,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt},
    },
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};

use assay_device::{Backend, DeviceError, SessionClock, UringQueue, VolumeFile, open_data_queue};
use assay_load::{DataQueue, Op, Request, Sync};
use scratch::{Scratch, ends};

const FRAME_BYTES: u32 = 8192;
const PAGE_BYTES: u64 = FRAME_BYTES as u64;
const FRAMES: u32 = 256;
const DEPTH: u32 = 32;

/// How a queue is made.
#[derive(Clone, Copy)]
struct Kind {
    backend: Backend,
    direct: bool,
}

/// A volume to open.
struct Part<'a> {
    path: &'a Path,
    scattered: bool,
    writes: bool,
}

fn plain(path: &Path) -> Part<'_> {
    Part { path, scattered: false, writes: true }
}

fn scattered(path: &Path) -> Part<'_> {
    Part { scattered: true, ..plain(path) }
}

/// `None` where this kind is not to be had.
fn open_with(kind: Kind, frames: u32, parts: &[Part<'_>]) -> Option<Box<dyn DataQueue>> {
    if kind.backend == Backend::IoUring
        && let Err(error) = UringQueue::available()
    {
        eprintln!("skipped: {error}");
        return None;
    }
    let mut volumes = Vec::new();
    for part in parts {
        match VolumeFile::open(part.path, None, part.writes, kind.direct, Sync::None) {
            Ok(volume) => volumes.push(VolumeFile { scattered: part.scattered, ..volume }),
            Err(DeviceError::NotSupported { what, why }) => {
                eprintln!("skipped: {what}: {why}");
                return None;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let clock = SessionClock::start();
    let (queue, engine) = open_data_queue(volumes, kind.backend, frames, FRAME_BYTES, clock, DEPTH).unwrap();
    assert_eq!(engine.backend, if kind.backend == Backend::IoUring { "io_uring" } else { "threads" });
    assert_eq!(queue.frame_bytes(), FRAME_BYTES);
    Some(queue)
}

fn open(kind: Kind, parts: &[Part<'_>]) -> Option<Box<dyn DataQueue>> {
    open_with(kind, FRAMES, parts)
}

/// An I/O of whole pages.
fn pages(op: Op, volume: u16, page: u64, count: u32, first: u32, tag: u32) -> Request {
    Request { op, volume, offset_bytes: page * PAGE_BYTES, length_bytes: count * FRAME_BYTES, buffer: first, tag }
}

/// Results by tag.
fn perform(queue: &mut dyn DataQueue, requests: &[Request]) -> Vec<i32> {
    queue.submit(requests).unwrap();
    let mut completions = Vec::new();
    while completions.len() < requests.len() {
        queue.wait(requests.len() - completions.len(), u64::MAX, &mut completions).unwrap();
    }
    assert_eq!(completions.len(), requests.len());
    let result = |request: &Request| completions.iter().find(|completion| completion.tag == request.tag);
    requests.iter().map(|request| result(request).unwrap().result).collect()
}

fn perform_one(queue: &mut dyn DataQueue, request: Request) -> i32 {
    perform(queue, &[request])[0]
}

/// Bytes unlike those of any other page or version.
fn content(page: u64, version: u64) -> Vec<u8> {
    let mut state = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ version.wrapping_mul(0xd134_2543_de82_ef95) ^ 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..FRAME_BYTES).map(|_| next()).collect()
}

/// Fills the frames of an I/O with pages from `page` on, as the volume has them.
fn fill(queue: &mut dyn DataQueue, volume: u16, page: u64, count: u32, first: u32, version: u64) {
    for piece in 0..count {
        let frame = queue.frame_of_piece(volume, first, piece, count);
        queue.frame(frame).copy_from_slice(&content(page + u64::from(piece), version));
    }
}

/// What the frames of an I/O hold, in the order of the volume.
fn gather(queue: &mut dyn DataQueue, volume: u16, count: u32, first: u32) -> Vec<u8> {
    let frames = (0..count).map(|piece| queue.frame_of_piece(volume, first, piece, count));
    frames.collect::<Vec<_>>().into_iter().flat_map(|frame| queue.frame(frame).to_vec()).collect()
}

fn contents(page: u64, count: u32, version: u64) -> Vec<u8> {
    (page..page + u64::from(count)).flat_map(|page| content(page, version)).collect()
}

fn bytes_of(path: &Path, page: u64, count: u32) -> Vec<u8> {
    let mut bytes = vec![0; (count * FRAME_BYTES) as usize];
    fs::File::open(path).unwrap().read_exact_at(&mut bytes, page * PAGE_BYTES).unwrap();
    bytes
}

fn panics(action: impl FnOnce()) -> String {
    let payload = panic::catch_unwind(AssertUnwindSafe(action)).expect_err("it must panic");
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| (*payload.downcast_ref::<&str>().unwrap()).into())
}

fn bytes_written_to_several_files_come_back(kind: Kind) {
    let scratch = Scratch::new();
    let paths: Vec<PathBuf> = (0..3).map(|file| scratch.file(&format!("{file}"), 64 * PAGE_BYTES)).collect();
    let parts: Vec<Part<'_>> = paths.iter().map(|path| plain(path)).collect();
    let Some(mut queue) = open(kind, &parts) else { return };
    let mut writes = Vec::new();
    for volume in 0..3_u16 {
        for place in 0..4_u32 {
            let tag = u32::from(volume) * 4 + place;
            let page = u64::from(place) * 11;
            fill(&mut *queue, volume, page, 3, tag * 3, u64::from(volume));
            writes.push(pages(Op::Write, volume, page, 3, tag * 3, tag));
        }
    }
    assert_eq!(perform(&mut *queue, &writes), [3 * FRAME_BYTES as i32; 12]);
    let flushes: Vec<Request> = (0..3).map(|volume| pages(Op::Flush, volume, 0, 0, 0, u32::from(volume))).collect();
    assert_eq!(perform(&mut *queue, &flushes), [0; 3]);
    let other = |tag: u32| 128 + (11 - tag) * 3;
    let reads: Vec<Request> =
        writes.iter().map(|write| Request { op: Op::Read, buffer: other(write.tag), ..*write }).collect();
    assert_eq!(perform(&mut *queue, &reads), [3 * FRAME_BYTES as i32; 12]);
    for read in reads {
        let page = read.offset_bytes / PAGE_BYTES;
        let expected = contents(page, 3, u64::from(read.volume));
        assert!(gather(&mut *queue, read.volume, 3, read.buffer) == expected);
        assert!(bytes_of(&paths[usize::from(read.volume)], page, 3) == expected);
    }
}

fn scattered_io_is_the_same_to_the_file(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 256 * PAGE_BYTES);
    let Some(mut queue) = open(kind, &[plain(&path), scattered(&path)]) else { return };
    for (round, count) in [1, 2, 3, 64].into_iter().enumerate() {
        let (page, first, version) = (5 + 7 * round as u64, 10 + round as u32, round as u64);
        let moved = (count * FRAME_BYTES) as i32;
        for piece in 0..count {
            assert_eq!(queue.frame_of_piece(0, first, piece, count), first + piece);
            assert_eq!(queue.frame_of_piece(1, first, piece, count), first + count - 1 - piece);
        }
        fill(&mut *queue, 1, page, count, first, version);
        assert!(queue.frame(first) == content(page + u64::from(count) - 1, version), "the last page comes first");
        assert_eq!(perform_one(&mut *queue, pages(Op::Write, 1, page, count, first, 0)), moved);
        let expected = contents(page, count, version);
        assert!(bytes_of(&path, page, count) == expected);
        assert_eq!(perform_one(&mut *queue, pages(Op::Read, 0, page, count, 100, 0)), moved);
        assert!(gather(&mut *queue, 0, count, 100) == expected);
        // What was written in one piece is read in many, to the last frames there are.
        let last = FRAMES - count;
        fill(&mut *queue, 0, page, count, first, version + 100);
        assert_eq!(perform_one(&mut *queue, pages(Op::Write, 0, page, count, first, 0)), moved);
        assert_eq!(perform_one(&mut *queue, pages(Op::Read, 1, page, count, last, 0)), moved);
        assert!(gather(&mut *queue, 1, count, last) == contents(page, count, version + 100));
    }
    // Neighbours stay what they were.
    assert!(bytes_of(&path, 0, 5) == vec![0; 5 * FRAME_BYTES as usize]);
}

fn the_kernel_takes_1024_pieces(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 1100 * PAGE_BYTES);
    let Some(mut queue) = open_with(kind, 1100, &[scattered(&path)]) else { return };
    fill(&mut *queue, 0, 3, 1024, 0, 1);
    assert_eq!(perform_one(&mut *queue, pages(Op::Write, 0, 3, 1024, 0, 0)), 1024 * FRAME_BYTES as i32);
    assert!(bytes_of(&path, 3, 1024) == contents(3, 1024, 1));
    assert_eq!(perform_one(&mut *queue, pages(Op::Read, 0, 0, 1025, 0, 0)), -libc::EINVAL);
    assert_eq!(perform_one(&mut *queue, pages(Op::Read, 0, 0, 1024, 76, 0)), 1024 * FRAME_BYTES as i32);
}

fn io_of_parts_of_frames_takes_what_it_needs(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("log", 16 * PAGE_BYTES);
    let Some(mut queue) = open(kind, &[plain(&path), scattered(&path)]) else { return };
    let bytes = contents(0, 2, 1);
    (0..2).for_each(|frame| queue.frame(7 + frame as u32).copy_from_slice(&content(frame, 1)));
    // One and a half frames, to a place that is no frame's.
    let write = Request { offset_bytes: 4096, length_bytes: 12_288, ..pages(Op::Write, 0, 0, 0, 7, 3) };
    assert_eq!(perform_one(&mut *queue, write), 12_288);
    assert!(bytes_of(&path, 0, 2)[4096..] == bytes[..12_288]);
    // Half a frame is not scattered.
    let read = Request { offset_bytes: 8192, length_bytes: 4096, ..pages(Op::Read, 1, 0, 0, 20, 3) };
    queue.frame(20).fill(0xa5);
    assert_eq!(perform_one(&mut *queue, read), 4096);
    assert!(queue.frame(20)[..4096] == bytes[4096..8192]);
    assert!(queue.frame(20)[4096..].iter().all(|byte| *byte == 0xa5), "the rest of the frame stays");
}

fn frames_belong_to_a_request_until_it_completes(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 16 * PAGE_BYTES);
    let Some(mut queue) = open(kind, &[plain(&path), scattered(&path)]) else { return };
    let read = pages(Op::Read, 1, 0, 3, 4, 1);
    let log = Request { length_bytes: 12_288, ..pages(Op::Read, 0, 0, 0, 10, 2) };
    let flush = pages(Op::Flush, 0, 0, 0, 0, 3);
    queue.submit(&[read, log, flush]).unwrap();
    for frame in [4, 5, 6, 10, 11] {
        let message = panics(|| drop(queue.frame(frame).to_vec()));
        assert_eq!(message, format!("frame {frame} belongs to an outstanding request"));
    }
    [0, 3, 7, 9, 12].into_iter().for_each(|frame| queue.frame(frame).fill(1));
    let message = panics(|| queue.submit(&[pages(Op::Read, 0, 0, 1, 6, 9)]).unwrap());
    assert!(message.contains("belongs to an outstanding request"), "{message}");
    let message = panics(|| queue.submit(&[pages(Op::Read, 0, 0, 1, 50, 3)]).unwrap());
    assert_eq!(message, "tag 3 belongs to an outstanding request");
    let mut completions = Vec::new();
    while completions.len() < 3 {
        queue.wait(3 - completions.len(), u64::MAX, &mut completions).unwrap();
    }
    [4, 5, 6, 10, 11].into_iter().for_each(|frame| queue.frame(frame).fill(1));
    assert_eq!(perform_one(&mut *queue, pages(Op::Write, 1, 0, 3, 4, 1)), 3 * FRAME_BYTES as i32);
}

fn what_is_not_there_cannot_be_had(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 16 * PAGE_BYTES);
    let Some(mut queue) = open(kind, &[scattered(&path)]) else { return };
    panics(|| drop(queue.frame(FRAMES).to_vec()));
    panics(|| queue.submit(&[pages(Op::Read, 0, 0, 2, FRAMES - 1, 0)]).unwrap());
    panics(|| queue.submit(&[pages(Op::Read, 0, 0, 1, 0, DEPTH)]).unwrap());
    panics(|| queue.submit(&[pages(Op::Read, 1, 0, 1, 0, 1)]).unwrap());
    panics(|| queue.submit(&[Request { length_bytes: 12_288, ..pages(Op::Read, 0, 0, 0, 20, 2) }]).unwrap());
    assert_eq!(perform_one(&mut *queue, pages(Op::Read, 0, 0, 2, 10, 3)), 2 * FRAME_BYTES as i32);
}

fn a_file_changes_its_size(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 8 * PAGE_BYTES);
    let other = scratch.file("other", 8 * PAGE_BYTES);
    let Some(mut queue) = open(kind, &[plain(&other), plain(&path)]) else { return };
    let size_pages = || fs::metadata(&path).unwrap().len() / PAGE_BYTES;
    fill(&mut *queue, 1, 0, 8, 0, 1);
    assert_eq!(perform_one(&mut *queue, pages(Op::Write, 1, 0, 8, 0, 0)), 8 * FRAME_BYTES as i32);
    queue.resize(1, 3 * PAGE_BYTES).unwrap();
    assert_eq!(size_pages(), 3);
    assert_eq!(perform_one(&mut *queue, pages(Op::Read, 1, 2, 8, 0, 0)), FRAME_BYTES as i32);
    queue.resize(1, 64 * PAGE_BYTES).unwrap();
    assert_eq!(size_pages(), 64);
    // What was cut off does not come back.
    assert_eq!(perform_one(&mut *queue, pages(Op::Read, 1, 0, 64, 0, 0)), 64 * FRAME_BYTES as i32);
    let expected = [contents(0, 3, 1), vec![0; 61 * FRAME_BYTES as usize]].concat();
    assert!(gather(&mut *queue, 1, 64, 0) == expected);
    queue.resize(1, 64 * PAGE_BYTES).unwrap();
    queue.resize(1, 0).unwrap();
    queue.resize(1, PAGE_BYTES).unwrap();
    assert_eq!(size_pages(), 1);
    assert_eq!(fs::metadata(&other).unwrap().len(), 8 * PAGE_BYTES);
}

fn a_file_grows_while_other_parts_of_it_are_written(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 64 * PAGE_BYTES);
    let Some(mut queue) = open(kind, &[scattered(&path)]) else { return };
    for round in 0..8 {
        let writes: Vec<Request> = (0..8).map(|tag| pages(Op::Write, 0, u64::from(tag) * 8, 8, tag * 8, tag)).collect();
        writes.iter().for_each(|write| fill(&mut *queue, 0, u64::from(write.tag) * 8, 8, write.buffer, round));
        queue.submit(&writes).unwrap();
        let mut completions = Vec::new();
        queue.wait(1, u64::MAX, &mut completions).unwrap();
        queue.resize(0, (65 + round) * PAGE_BYTES).unwrap();
        while completions.len() < 8 {
            queue.wait(8 - completions.len(), u64::MAX, &mut completions).unwrap();
        }
        assert!(completions.iter().all(|completion| completion.result == 8 * FRAME_BYTES as i32));
        assert!(bytes_of(&path, 0, 64) == contents(0, 64, round));
        assert!(bytes_of(&path, 64, round as u32 + 1).iter().all(|byte| *byte == 0));
    }
}

fn a_size_that_cannot_be_leaves_the_file_as_it_was(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 8 * PAGE_BYTES);
    let read_only = Part { writes: false, ..plain(&path) };
    let Some(mut queue) = open(kind, &[plain(&path), read_only]) else { return };
    assert_eq!(queue.resize(0, u64::MAX), Err(-libc::EINVAL));
    assert_eq!(queue.resize(1, PAGE_BYTES), Err(-libc::EINVAL));
    assert!(queue.resize(1, 9 * PAGE_BYTES).is_err_and(|errno| errno < 0));
    assert_eq!(fs::metadata(&path).unwrap().len(), 8 * PAGE_BYTES);
}

fn errors_are_negative_numbers_of_the_kernel(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 8 * PAGE_BYTES + 4096);
    let Some(mut queue) = open(kind, &[Part { writes: false, ..scattered(&path) }]) else { return };
    for count in [1, 2] {
        assert_eq!(perform_one(&mut *queue, pages(Op::Write, 0, 0, count, 0, 0)), -libc::EBADF);
        let negative = Request { offset_bytes: 1 << 63, ..pages(Op::Read, 0, 0, count, 0, 0) };
        assert_eq!(perform_one(&mut *queue, negative), -libc::EINVAL);
        assert_eq!(perform_one(&mut *queue, pages(Op::Read, 0, 8, count, 0, 0)), 4096, "a short read at the end");
        assert_eq!(perform_one(&mut *queue, pages(Op::Read, 0, 100, count, 0, 0)), 0);
        // Frames come back from failures too.
        queue.frame(0).fill(0);
    }
}

/// Many I/Os at once, of all sizes, on parts of one file: each page is written in the one way and read in the other.
fn a_busy_queue_mixes_nothing_up(kind: Kind) {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4096 * PAGE_BYTES);
    let Some(mut queue) = open(kind, &[plain(&path), scattered(&path)]) else { return };
    for round in 0..20_u64 {
        // Each tag has eight frames, and a part of the file that begins with its base.
        let base = |tag: u32| u64::from(tag) * 100 + round * 3;
        let count = |tag: u32| 1 + (tag * 5 + round as u32) % 8;
        let volume = |tag: u32| ((u64::from(tag) + round) % 2) as u16;
        let writes: Vec<Request> =
            (0..DEPTH).map(|tag| pages(Op::Write, volume(tag), base(tag), count(tag), tag * 8, tag)).collect();
        for write in &writes {
            fill(&mut *queue, write.volume, base(write.tag), count(write.tag), write.buffer, round);
        }
        let expected: Vec<i32> = writes.iter().map(|write| write.length_bytes as i32).collect();
        assert_eq!(perform(&mut *queue, &writes), expected);
        let frames = |tag: u32| (DEPTH - 1 - tag) * 8;
        let reads: Vec<Request> = writes
            .iter()
            .map(|write| Request { op: Op::Read, volume: 1 - write.volume, buffer: frames(write.tag), ..*write })
            .collect();
        assert_eq!(perform(&mut *queue, &reads), expected);
        for read in reads {
            let pages = count(read.tag);
            let found = gather(&mut *queue, read.volume, pages, read.buffer);
            assert!(found == contents(base(read.tag), pages, round), "round {round}: {read:?}");
        }
    }
}

macro_rules! contract {
    ($name:ident, $kind:expr, [$($test:ident),* $(,)?]) => {
        mod $name {
            use super::*;

            $(#[test]
            fn $test() {
                ends(|| super::$test($kind));
            })*
        }
    };
}

macro_rules! contracts {
    ($($name:ident: $kind:expr),* $(,)?) => {
        $(contract!($name, $kind, [
            bytes_written_to_several_files_come_back,
            scattered_io_is_the_same_to_the_file,
            the_kernel_takes_1024_pieces,
            io_of_parts_of_frames_takes_what_it_needs,
            frames_belong_to_a_request_until_it_completes,
            what_is_not_there_cannot_be_had,
            a_file_changes_its_size,
            a_file_grows_while_other_parts_of_it_are_written,
            a_size_that_cannot_be_leaves_the_file_as_it_was,
            errors_are_negative_numbers_of_the_kernel,
            a_busy_queue_mixes_nothing_up,
        ]);)*
    };
}

contracts! {
    io_uring_buffered: Kind { backend: Backend::IoUring, direct: false },
    io_uring_direct: Kind { backend: Backend::IoUring, direct: true },
    threads_buffered: Kind { backend: Backend::Threads, direct: false },
    threads_direct: Kind { backend: Backend::Threads, direct: true },
}

const BOTH: [Kind; 2] =
    [Kind { backend: Backend::IoUring, direct: false }, Kind { backend: Backend::Threads, direct: false }];

#[test]
fn what_is_no_file_has_no_size() {
    for kind in BOTH {
        let Some(mut queue) = open(kind, &[plain(Path::new("/dev/null"))]) else { continue };
        assert_eq!(queue.resize(0, 0), Err(-libc::EINVAL));
        assert_eq!(queue.resize(0, PAGE_BYTES), Err(-libc::EINVAL));
    }
}

#[test]
fn a_file_that_finds_no_room_keeps_its_size() {
    // A file system in memory refuses at once what is larger than itself; others would fill up first.
    let path = PathBuf::from(format!("/dev/shm/assay-data-{}", std::process::id()));
    // SAFETY: all zeros is a value of this type.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name is a valid string, `system` is valid to write to.
    let found = unsafe { libc::statfs(c"/dev/shm".as_ptr(), &mut system) } == 0;
    if !found || system.f_type != libc::TMPFS_MAGIC || system.f_blocks == 0 || fs::write(&path, [1; 8192]).is_err() {
        eprintln!("skipped: /dev/shm is not limited memory");
        return;
    }
    let results: Vec<_> = BOTH
        .into_iter()
        .filter_map(|kind| {
            let mut queue = open(kind, &[plain(&path)])?;
            let refused = queue.resize(0, 1 << 50);
            let bytes = fs::metadata(&path).unwrap().len();
            queue.resize(0, 4 * PAGE_BYTES).unwrap();
            let reserved_bytes = fs::metadata(&path).unwrap().blocks() * 512;
            queue.resize(0, PAGE_BYTES).unwrap();
            Some((refused, bytes, reserved_bytes))
        })
        .collect();
    fs::remove_file(&path).unwrap();
    for result in results {
        assert_eq!(result, (Err(-libc::ENOSPC), PAGE_BYTES, 4 * PAGE_BYTES));
    }
}

#[test]
fn volumes_are_opened_as_asked() {
    let scratch = Scratch::new();
    let path = scratch.file("data", PAGE_BYTES);
    let flags = |sync| {
        let volume = VolumeFile::open(&path, None, true, false, sync).unwrap();
        assert!(!volume.scattered);
        // SAFETY: the descriptor is open for the call.
        let flags = unsafe { libc::fcntl(volume.file.as_raw_fd(), libc::F_GETFL) };
        (flags & libc::O_DSYNC != 0, volume.full_sync)
    };
    assert_eq!([Sync::None, Sync::Dsync, Sync::Fsync].map(flags), [(false, false), (true, false), (false, true)]);
}
