mod faults;
mod power;
mod queue;
mod random;

use super::*;

const PAGE: u32 = 8192;
const SECTOR: u32 = 512;
const FRAMES: u32 = 64;
/// Pattern that readers put into their buffers.
const PATTERN: u8 = 0xa5;
const CLEAN: FaultyOptions = FaultyOptions {
    seed: 0,
    torn: 0.0,
    lost: 0.0,
    misdirected_write: 0.0,
    misdirected_read: 0.0,
    corrupt: 0.0,
    short_read: 0.0,
    log_break: 0.0,
    io_error: 0.0,
    long_io: 0.0,
    long_io_delay_ns: 16_000_000_000,
    volatile_cache: false,
    ignores_flush: false,
    power_cut_after: None,
    atomic_unit_bytes: 512,
};

fn data(pages: u64) -> FaultyFile {
    FaultyFile {
        page_bytes: PAGE,
        base_bytes: 0,
        size_bytes: pages * u64::from(PAGE),
        log: false,
        write_through: false,
        scattered: false,
    }
}

fn log(blocks: u64) -> FaultyFile {
    FaultyFile { page_bytes: SECTOR, size_bytes: blocks * u64::from(SECTOR), log: true, ..data(0) }
}

fn device(options: FaultyOptions, files: &[FaultyFile]) -> FaultyQueue<Memory> {
    let medium = Memory::new(files);
    FaultyQueue::new(options, files.to_vec(), medium, FaultyClock::virtual_time(), 16, FRAMES, PAGE).unwrap()
}

/// `pages` pages from `page` on, every unit of every generation of them unlike any other.
fn content(file: &FaultyFile, page: u64, pages: usize, generation: u64) -> Vec<u8> {
    let mut bytes = vec![0; pages * file.page_bytes as usize];
    let first_unit = page * u64::from(file.page_bytes) / UNIT_BYTES as u64;
    for (unit, bytes) in (first_unit..).zip(bytes.chunks_mut(UNIT_BYTES)) {
        let word = unit << 32 | generation;
        bytes.chunks_mut(8).for_each(|bytes| bytes.copy_from_slice(&word.to_le_bytes()));
    }
    bytes
}

fn request(file: &FaultyFile, op: Op, volume: u16, page: u64, length: usize) -> Request {
    let offset_bytes = file.base_bytes + page * u64::from(file.page_bytes);
    Request { op, volume, offset_bytes, length_bytes: length as u32, buffer: 0, tag: 0 }
}

fn finish<M: Medium + 'static>(queue: &mut FaultyQueue<M>, request: Request) -> Completion {
    queue.submit(&[request]).unwrap();
    let mut completions = Vec::new();
    queue.wait(1, u64::MAX, &mut completions).unwrap();
    assert_eq!(completions.len(), 1);
    completions[0]
}

/// The frames of an I/O, in the order of its bytes.
fn frames_of<M: Medium + 'static>(queue: &FaultyQueue<M>, request: &Request) -> Vec<u32> {
    let pieces = request.length_bytes.div_ceil(PAGE);
    (0..pieces).map(|piece| queue.frame_of_piece(request.volume, request.buffer, piece, pieces)).collect()
}

fn fill<M: Medium + 'static>(queue: &mut FaultyQueue<M>, request: &Request, bytes: &[u8]) {
    for (frame, bytes) in frames_of(queue, request).into_iter().zip(bytes.chunks(PAGE as usize)) {
        queue.frame(frame)[..bytes.len()].copy_from_slice(bytes);
    }
}

fn bytes_of<M: Medium + 'static>(queue: &mut FaultyQueue<M>, request: &Request) -> Vec<u8> {
    let frames = frames_of(queue, request);
    let mut bytes: Vec<u8> = frames.into_iter().flat_map(|frame| queue.frame(frame).to_vec()).collect();
    bytes.truncate(request.length_bytes as usize);
    bytes
}

fn write<M: Medium + 'static>(queue: &mut FaultyQueue<M>, volume: u16, page: u64, bytes: &[u8]) -> i32 {
    let request = request(&queue.files()[volume as usize], Op::Write, volume, page, bytes.len());
    fill(queue, &request, bytes);
    finish(queue, request).result
}

/// Result and bytes of a read.
fn read<M: Medium + 'static>(queue: &mut FaultyQueue<M>, volume: u16, page: u64, pages: usize) -> (i32, Vec<u8>) {
    let file = queue.files()[volume as usize];
    let length = pages * file.page_bytes as usize;
    let request = request(&file, Op::Read, volume, page, length);
    fill(queue, &request, &vec![PATTERN; length]);
    let result = finish(queue, request).result;
    (result, bytes_of(queue, &request))
}

fn flush<M: Medium + 'static>(queue: &mut FaultyQueue<M>, volume: u16) -> i32 {
    finish(queue, Request { op: Op::Flush, volume, offset_bytes: 0, length_bytes: 0, buffer: 0, tag: 0 }).result
}

/// A page as the medium of volume `volume` holds it.
fn on_medium(queue: &FaultyQueue<Memory>, volume: usize, page: u64) -> &[u8] {
    let page_bytes = queue.files()[volume].page_bytes as usize;
    &queue.medium().volume(volume)[page as usize * page_bytes..][..page_bytes]
}

/// The counts that are not zero.
fn named(counts: &FaultCounts) -> Vec<(Fault, u64)> {
    Fault::ALL.into_iter().map(|fault| (fault, counts[fault])).filter(|(_, count)| *count > 0).collect()
}

fn assert_observable<M: Medium + 'static>(queue: &FaultyQueue<M>, expected: &[(Fault, u64)]) {
    assert_eq!(named(&queue.observable()), expected, "{:?}", queue.injections());
}
