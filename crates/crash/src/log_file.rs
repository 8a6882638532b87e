//! The log in a file, after the manner of dm-log-writes, with times and completions.
//!
//! The file begins with 32 bytes: `ASSAYCRL`, version (u32), sector (u32), size of the volume (u64), checksum (u32), 4
//! zeroes. Events follow: checksum (u32, CRC-32C of all that follows of this event), kind (u8: 1 write, 2 flush,
//! 3 discard, 4 mark, 5 completion), flags (u8: 1 FUA), 2 zeroes, nanoseconds since the beginning (u64), offset in bytes
//! (u64; of a completion the number of its request, counted from 0), length in bytes (u64), and the bytes of a write or
//! of a mark's text. All numbers are little endian. A log that was cut short ends with its last whole event.

use std::{
    fs::File,
    io::{BufReader, BufWriter, Read, Write},
    path::Path,
    time::Instant,
};

use crate::{CrashError, Kind, Log, log::SECTOR_BYTES};

const MAGIC: &[u8; 8] = b"ASSAYCRL";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 32;
const EVENT_BYTES: usize = 32;
const COMPLETION: u8 = 5;
const FUA: u8 = 1;
/// Longest write or mark that is read: the kernel sends no longer request.
const MOST_BYTES: u64 = 1 << 28;

/// Writes a log as the requests come.
#[derive(Debug)]
pub struct Recorder {
    file: BufWriter<File>,
    began: Instant,
    requests: u64,
    bytes: u64,
}

impl Recorder {
    /// Begins a log in a new file.
    ///
    /// # Errors
    /// The file is there already, or cannot be written.
    pub fn new(path: &Path, volume_bytes: u64) -> Result<Self, CrashError> {
        let failed = || CrashError::io(format!("{}: cannot be written", path.display()));
        let file = File::options().write(true).create_new(true).open(path).map_err(failed())?;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&(SECTOR_BYTES as u32).to_le_bytes());
        head.extend_from_slice(&volume_bytes.to_le_bytes());
        head.extend_from_slice(&crc32c::crc32c(&head).to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        let mut file = BufWriter::with_capacity(1 << 20, file);
        file.write_all(&head).map_err(failed())?;
        Ok(Self { file, began: Instant::now(), requests: 0, bytes: 0 })
    }

    /// Notes a request and returns its number.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn submit(&mut self, kind: Kind, offset_bytes: u64, length_bytes: u64, data: &[u8]) -> std::io::Result<u64> {
        let (number, flags) = match kind {
            Kind::Write { fua } => (1, if fua { FUA } else { 0 }),
            Kind::Flush => (2, 0),
            Kind::Discard => (3, 0),
            Kind::Mark => (4, 0),
        };
        self.event(number, flags, offset_bytes, length_bytes, data)?;
        self.requests += 1;
        Ok(self.requests - 1)
    }

    /// Notes that a request completed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn complete(&mut self, request: u64) -> std::io::Result<()> {
        self.event(COMPLETION, 0, request, 0, &[])
    }

    /// Ends the log.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> std::io::Result<u64> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(self.bytes)
    }

    fn event(&mut self, kind: u8, flags: u8, offset: u64, length: u64, data: &[u8]) -> std::io::Result<()> {
        let at_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut head = [0_u8; EVENT_BYTES];
        (head[4], head[5]) = (kind, flags);
        head[8..16].copy_from_slice(&at_ns.to_le_bytes());
        head[16..24].copy_from_slice(&offset.to_le_bytes());
        head[24..32].copy_from_slice(&length.to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&head[4..]), data);
        head[..4].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all(&head)?;
        self.bytes += (EVENT_BYTES + data.len()) as u64;
        self.file.write_all(data)
    }
}

/// Reads a log to its last whole event.
///
/// # Errors
/// The file cannot be read, or is no log.
pub fn read_log(path: &Path) -> Result<Log, CrashError> {
    let failed = || CrashError::io(format!("{}: cannot be read", path.display()));
    let not_a_log = || CrashError::NotALog(path.display().to_string());
    let file = File::open(path).map_err(failed())?;
    let mut reader = BufReader::with_capacity(1 << 20, file.try_clone().map_err(failed())?);
    let mut head = [0; HEAD_BYTES];
    reader.read_exact(&mut head).map_err(|_| not_a_log())?;
    let volume_bytes = long(&head, 16);
    let is_ours = head.starts_with(MAGIC)
        && short(&head, 8) == VERSION
        && u64::from(short(&head, 12)) == SECTOR_BYTES
        && short(&head, 24) == crc32c::crc32c(&head[..24]);
    if !is_ours || !volume_bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(not_a_log());
    }
    let mut log = Log::of_file(volume_bytes, file);
    let mut at = HEAD_BYTES as u64;
    let mut data = Vec::new();
    loop {
        let mut event = [0; EVENT_BYTES];
        if reader.read_exact(&mut event).is_err() {
            return Ok(log);
        }
        let (offset, length) = (long(&event, 16), long(&event, 24));
        let has_data = matches!(event[4], 1 | 4);
        if has_data && length > MOST_BYTES {
            return Ok(log);
        }
        data.resize(if has_data { length as usize } else { 0 }, 0);
        if reader.read_exact(&mut data).is_err() {
            return Ok(log);
        }
        if short(&event, 0) != crc32c::crc32c_append(crc32c::crc32c(&event[4..]), &data) {
            return Ok(log);
        }
        if !take(&mut log, &event, offset, length, at + EVENT_BYTES as u64) {
            return Err(not_a_log());
        }
        at += (EVENT_BYTES + data.len()) as u64;
    }
}

/// Takes one event into the log; false if it cannot be one.
fn take(log: &mut Log, event: &[u8], offset: u64, length: u64, data_at: u64) -> bool {
    let kind = match event[4] {
        1 => Kind::Write { fua: event[5] & FUA != 0 },
        2 => Kind::Flush,
        3 => Kind::Discard,
        4 => Kind::Mark,
        COMPLETION => {
            let number = usize::try_from(offset).unwrap_or(usize::MAX);
            let is_open = log.entries().get(number).is_some_and(|entry| entry.completed.is_none());
            if is_open {
                log.complete(number);
            }
            return is_open;
        }
        _ => return false,
    };
    let is_whole = offset.is_multiple_of(SECTOR_BYTES) && length.is_multiple_of(SECTOR_BYTES);
    let fits = offset.checked_add(length).is_some_and(|end| end <= log.volume_bytes());
    if kind != Kind::Mark && !(is_whole && fits) {
        return false;
    }
    log.submit(kind, offset, length, data_at, long(event, 8));
    true
}

fn short(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
