//! The crash journal: which writes the storage acknowledged, recorded on other storage.
//!
//! A file of blocks of 4 KiB. The first ones hold the plan; the others hold records of 16 bytes, each block with its number
//! and a CRC. The last block is rewritten as it fills. Blocks become durable in any order, so a crash may leave holes in the
//! last ones: the first block that is not whole ends the journal. Acknowledgements that it lost prove nothing and accuse
//! nobody.

#[cfg(test)]
mod tests;

use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, Read},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{VerifyPlan, expected::PageState, stamp::PageId};

const MAGIC: &[u8; 8] = b"ASSAYJNL";
const VERSION: u32 = 1;
const BLOCK_BYTES: usize = 4096;
/// Magic, version, length of the plan, its CRC.
const HEAD_BYTES: u64 = 20;
/// Number of the block, run identity's low half, count of records, CRC.
const BLOCK_HEAD_BYTES: usize = 16;
const RECORD_BYTES: usize = 16;
const RECORDS_PER_BLOCK: usize = (BLOCK_BYTES - BLOCK_HEAD_BYTES) / RECORD_BYTES;
/// The journal itself is made durable this often.
const SYNC_EVERY: Duration = Duration::from_millis(100);

/// Fault of a journal.
#[derive(Debug, Error)]
pub enum JournalError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: is there already; a journal is never overwritten, give another name")]
    Exists { path: PathBuf },
    #[error("{path}: is empty: nothing was recorded")]
    Empty { path: PathBuf },
    #[error("{path}: is not a journal of assay verify")]
    NotAJournal { path: PathBuf },
    #[error("{path}: is a journal of version {version}, which this Assay does not read")]
    Version { path: PathBuf, version: u32 },
    #[error("{path}: is truncated: {what}")]
    Truncated { path: PathBuf, what: String },
    #[error("{path}: is damaged: {what}")]
    Damaged { path: PathBuf, what: String },
    #[error("{path}: belongs to another target: {what}")]
    OtherTarget { path: PathBuf, what: String },
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The storage acknowledged this generation of a page; of a log block with its log sequence number.
    Acknowledged { id: PageId, generation: u32, lsn: u64 },
    /// A flush of a file is about to be issued; flushes are numbered.
    Flushing { file: u16, number: u32 },
    /// A flush was acknowledged. A failed flush leaves no record.
    Flushed { file: u16, number: u32 },
    /// The run ended by itself.
    End,
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let (kind, file, page, generation, lsn) = match self {
            Self::Acknowledged { id, generation, lsn } => (1, id.file, id.page, generation, lsn),
            Self::Flushing { file, number } => (2, file, 0, number, 0),
            Self::Flushed { file, number } => (3, file, 0, number, 0),
            Self::End => (4, 0, 0, 0, 0),
        };
        let mut bytes = [0; RECORD_BYTES];
        // Forty bits of sequence number: 512 TiB of log.
        (bytes[0], bytes[1]) = (kind, (lsn >> 32) as u8);
        bytes[12..16].copy_from_slice(&(lsn as u32).to_le_bytes());
        bytes[2..4].copy_from_slice(&file.to_le_bytes());
        bytes[4..8].copy_from_slice(&page.to_le_bytes());
        bytes[8..12].copy_from_slice(&generation.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let file = u16::from_le_bytes([bytes[2], bytes[3]]);
        Some(match bytes[0] {
            1 => Self::Acknowledged {
                id: PageId { file, page: u32_at(bytes, 4) },
                generation: u32_at(bytes, 8),
                lsn: u64::from(bytes[1]) << 32 | u64::from(u32_at(bytes, 12)),
            },
            2 => Self::Flushing { file, number: u32_at(bytes, 8) },
            3 => Self::Flushed { file, number: u32_at(bytes, 8) },
            4 => Self::End,
            _ => return None,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    plan: VerifyPlan,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A journal being written.
pub(crate) struct Journal {
    path: PathBuf,
    file: Arc<File>,
    block: Box<[u8; BLOCK_BYTES]>,
    run_id: u64,
    first_block: u64,
    number: u64,
    records: usize,
    error: Option<io::Error>,
    unsynced: Arc<AtomicBool>,
    /// Why the journal could not be made durable.
    sync_error: Arc<Mutex<Option<io::Error>>>,
    closed: Arc<AtomicBool>,
}

impl Journal {
    /// Makes a new journal.
    ///
    /// # Errors
    /// [`JournalError::Exists`], or [`JournalError::Io`].
    pub(crate) fn create(path: &Path, plan: &VerifyPlan, note: Option<&str>) -> Result<Self, JournalError> {
        let io_error = |source| JournalError::Io { path: path.to_owned(), source };
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => JournalError::Exists { path: path.to_owned() },
            _ => io_error(source),
        })?;
        let header = Header { plan: plan.clone(), note: note.map(str::to_owned) };
        let json = serde_json::to_vec(&header).map_err(|error| io_error(error.into()))?;
        let mut header = Vec::with_capacity(BLOCK_BYTES);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend((json.len() as u32).to_le_bytes());
        header.extend(crc32c::crc32c(&json).to_le_bytes());
        header.extend(json);
        header.resize(header.len().next_multiple_of(BLOCK_BYTES), 0);
        file.write_all_at(&header, 0).and_then(|()| file.sync_all()).map_err(io_error)?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_error)?;
        }
        let journal = Self {
            path: path.to_owned(),
            file: Arc::new(file),
            block: Box::new([0; BLOCK_BYTES]),
            run_id: plan.run_id,
            first_block: (header.len() / BLOCK_BYTES) as u64,
            number: 0,
            records: 0,
            error: None,
            unsynced: Arc::new(AtomicBool::new(false)),
            sync_error: Arc::default(),
            closed: Arc::new(AtomicBool::new(false)),
        };
        let (file, unsynced) = (Arc::clone(&journal.file), Arc::clone(&journal.unsynced));
        let (closed, sync_error) = (Arc::clone(&journal.closed), Arc::clone(&journal.sync_error));
        let sync = move || {
            while !closed.load(Ordering::Relaxed) {
                thread::sleep(SYNC_EVERY);
                if unsynced.swap(false, Ordering::Relaxed)
                    && let Err(error) = file.sync_data()
                {
                    *sync_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return;
                }
            }
        };
        thread::Builder::new().name("assay-journal".into()).spawn(sync).map_err(io_error)?;
        Ok(journal)
    }

    pub(crate) fn acknowledged(&mut self, first: PageId, pages: &[PageState]) {
        for (page, state) in (first.page..).zip(pages) {
            let id = PageId { page, ..first };
            self.add(Record::Acknowledged { id, generation: state.generation, lsn: state.stamp().lsn });
        }
        self.write();
    }

    pub(crate) fn flushing(&mut self, file: u16, number: u32) {
        self.add(Record::Flushing { file, number });
        self.write();
    }

    pub(crate) fn flushed(&mut self, file: u16, number: u32) {
        self.add(Record::Flushed { file, number });
        self.write();
    }

    /// Notes, if the run ended `well`, that it did.
    ///
    /// # Errors
    /// Why the journal could not be written, now or before.
    pub(crate) fn finish(&mut self, well: bool) -> Result<(), JournalError> {
        if well {
            self.add(Record::End);
        }
        self.write();
        self.take_sync_error();
        if self.error.is_none() {
            self.error = self.file.sync_data().err();
        }
        self.error.take().map_or(Ok(()), |source| Err(JournalError::Io { path: self.path.clone(), source }))
    }

    fn add(&mut self, record: Record) {
        if self.records == RECORDS_PER_BLOCK {
            self.write();
            self.number += 1;
            self.records = 0;
            self.block.fill(0);
        }
        let at = BLOCK_HEAD_BYTES + self.records * RECORD_BYTES;
        self.block[at..at + RECORD_BYTES].copy_from_slice(&record.to_bytes());
        self.records += 1;
    }

    fn write(&mut self) {
        let head = (self.number as u32, self.run_id as u32, self.records as u32);
        self.block[..4].copy_from_slice(&head.0.to_le_bytes());
        self.block[4..8].copy_from_slice(&head.1.to_le_bytes());
        self.block[8..12].copy_from_slice(&head.2.to_le_bytes());
        let crc = block_crc(&self.block[..]);
        self.block[12..16].copy_from_slice(&crc.to_le_bytes());
        let written = self.file.write_all_at(&self.block[..], (self.first_block + self.number) * BLOCK_BYTES as u64);
        if let Err(error) = written {
            self.error.get_or_insert(error);
        }
        self.unsynced.store(true, Ordering::Relaxed);
    }

    fn take_sync_error(&mut self) {
        let mut of_thread = self.sync_error.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = of_thread.take() {
            self.error.get_or_insert(error);
        }
    }

    /// Why the journal cannot be written.
    pub(crate) fn failed(&mut self) -> Option<String> {
        self.take_sync_error();
        self.error.as_ref().map(|error| format!("{}: {error}", self.path.display()))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// A journal being read.
pub struct JournalReader<R = BufReader<File>> {
    path: PathBuf,
    plan: VerifyPlan,
    note: Option<String>,
    source: R,
    blocks: u64,
}

impl JournalReader {
    /// Opens a journal.
    ///
    /// # Errors
    /// It cannot be read, or its head says that it is none.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let io_error = |source| JournalError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io_error)?;
        let bytes = file.metadata().map_err(io_error)?.len();
        Self::new(path, BufReader::with_capacity(1 << 20, file), bytes)
    }
}

impl<R: Read> JournalReader<R> {
    /// Reads the head of a journal of so many bytes; `path` is for messages.
    ///
    /// # Errors
    /// As [`JournalReader::open`].
    pub fn new(path: &Path, mut source: R, bytes: u64) -> Result<Self, JournalError> {
        let owned = || path.to_owned();
        let io_error = |source| JournalError::Io { path: path.to_owned(), source };
        let incomplete = || JournalError::Truncated { path: owned(), what: "its head is incomplete".into() };
        if bytes == 0 {
            return Err(JournalError::Empty { path: owned() });
        }
        let mut head = Vec::new();
        source.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(io_error)?;
        if !head.starts_with(MAGIC) {
            return Err(if MAGIC.starts_with(&head) {
                incomplete()
            } else {
                JournalError::NotAJournal { path: owned() }
            });
        }
        if head.len() < HEAD_BYTES as usize {
            return Err(incomplete());
        }
        let version = u32_at(&head, 8);
        if version != VERSION {
            return Err(JournalError::Version { path: owned(), version });
        }
        let end = HEAD_BYTES + u64::from(u32_at(&head, 12));
        if end > bytes {
            return Err(incomplete());
        }
        let mut json = vec![0; (end - HEAD_BYTES) as usize];
        source.read_exact(&mut json).map_err(io_error)?;
        if crc32c::crc32c(&json) != u32_at(&head, 16) {
            return Err(JournalError::Damaged { path: owned(), what: "its head does not match its checksum".into() });
        }
        let header: Header = serde_json::from_slice(&json)
            .map_err(|error| JournalError::Damaged { path: owned(), what: error.to_string() })?;
        let block = BLOCK_BYTES as u64;
        if !bytes.is_multiple_of(block) {
            let what = format!("it is written in blocks of {block} bytes, and its last one has {}", bytes % block);
            return Err(JournalError::Truncated { path: owned(), what });
        }
        let first = end.next_multiple_of(block);
        io::copy(&mut source.by_ref().take(first - end), &mut io::sink()).map_err(io_error)?;
        Ok(Self {
            path: owned(),
            plan: header.plan,
            note: header.note,
            source,
            blocks: bytes.saturating_sub(first) / block,
        })
    }

    /// The plan of the run that wrote it.
    pub fn plan(&self) -> &VerifyPlan {
        &self.plan
    }

    /// Note of the caller of the run.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Gives every record to `visit`, in order; returns how many blocks from the first that is not whole were left out.
    ///
    /// # Errors
    /// The journal cannot be read, or holds no record.
    pub fn visit(&mut self, mut visit: impl FnMut(Record)) -> Result<u64, JournalError> {
        let mut block = vec![0; BLOCK_BYTES];
        let mut records = 0_u64;
        for number in 0..self.blocks {
            let read = self.source.read_exact(&mut block);
            read.map_err(|source| JournalError::Io { path: self.path.clone(), source })?;
            let count = u32_at(&block, 8) as usize;
            let of_block = block[BLOCK_HEAD_BYTES..].chunks_exact(RECORD_BYTES).take(count);
            let is_whole = u32_at(&block, 0) == number as u32
                && u32_at(&block, 4) == self.plan.run_id as u32
                && count <= RECORDS_PER_BLOCK
                && u32_at(&block, 12) == block_crc(&block);
            let parsed: Option<Vec<Record>> = of_block.map(Record::from_bytes).collect();
            let Some(parsed) = parsed.filter(|_| is_whole) else {
                return if records == 0 { Err(self.empty()) } else { Ok(self.blocks - number) };
            };
            records += parsed.len() as u64;
            parsed.into_iter().for_each(&mut visit);
        }
        if records == 0 { Err(self.empty()) } else { Ok(0) }
    }

    fn empty(&self) -> JournalError {
        JournalError::Empty { path: self.path.clone() }
    }
}

fn block_crc(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[BLOCK_HEAD_BYTES..])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
