//! The crash journal: which writes the storage acknowledged, recorded on other storage.
//!
//! A file of blocks of 4 KiB. The first ones hold the plan; the others hold records of 16 bytes, each block with its number
//! and a CRC. The last block is rewritten as it fills, so all that a crash can damage is that one; acknowledgements that the
//! journal lost prove nothing and accuse nobody.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
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
/// Number of the block, run identity's low half, count of records, CRC.
const BLOCK_HEAD_BYTES: usize = 16;
const RECORD_BYTES: usize = 16;
const RECORDS_PER_BLOCK: usize = (BLOCK_BYTES - BLOCK_HEAD_BYTES) / RECORD_BYTES;
/// The journal itself is made durable this often.
const SYNC_EVERY: Duration = Duration::from_millis(100);

/// What is wrong with a journal.
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
    /// The storage acknowledged this generation of a page.
    Acknowledged { id: PageId, generation: u32 },
    /// A flush of a file is about to be issued.
    Flushing { file: u16 },
    /// The flush last issued was acknowledged.
    Flushed { file: u16 },
    /// The run ended by itself.
    End,
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let (kind, file, page, generation) = match self {
            Self::Acknowledged { id, generation } => (1_u16, id.file, id.page, generation),
            Self::Flushing { file } => (2, file, 0, 0),
            Self::Flushed { file } => (3, file, 0, 0),
            Self::End => (4, 0, 0, 0),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes[2..4].copy_from_slice(&file.to_le_bytes());
        bytes[4..8].copy_from_slice(&page.to_le_bytes());
        bytes[8..12].copy_from_slice(&generation.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let file = u16::from_le_bytes([bytes[2], bytes[3]]);
        Some(match u16::from_le_bytes([bytes[0], bytes[1]]) {
            1 => Self::Acknowledged { id: PageId { file, page: u32_at(bytes, 4) }, generation: u32_at(bytes, 8) },
            2 => Self::Flushing { file },
            3 => Self::Flushed { file },
            4 => Self::End,
            _ => return None,
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Header {
    plan: VerifyPlan,
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
    closed: Arc<AtomicBool>,
}

impl Journal {
    /// Makes a new journal.
    ///
    /// # Errors
    /// [`JournalError::Exists`], or [`JournalError::Io`].
    pub(crate) fn create(path: &Path, plan: &VerifyPlan) -> Result<Self, JournalError> {
        let io_error = |source| JournalError::Io { path: path.to_owned(), source };
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => JournalError::Exists { path: path.to_owned() },
            _ => io_error(source),
        })?;
        let json = serde_json::to_vec(&Header { plan: plan.clone() }).map_err(|error| io_error(error.into()))?;
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
            closed: Arc::new(AtomicBool::new(false)),
        };
        let (file, unsynced, closed) =
            (Arc::clone(&journal.file), Arc::clone(&journal.unsynced), Arc::clone(&journal.closed));
        let sync = move || {
            while !closed.load(Ordering::Relaxed) {
                thread::sleep(SYNC_EVERY);
                if unsynced.swap(false, Ordering::Relaxed) && file.sync_data().is_err() {
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
            self.add(Record::Acknowledged { id, generation: state.generation });
        }
        self.write();
    }

    pub(crate) fn flushing(&mut self, file: u16) {
        self.add(Record::Flushing { file });
        self.write();
    }

    pub(crate) fn flushed(&mut self, file: u16) {
        self.add(Record::Flushed { file });
        self.write();
    }

    /// Notes that the run ended by itself.
    ///
    /// # Errors
    /// Why the journal could not be written, now or before.
    pub(crate) fn finish(&mut self) -> Result<(), JournalError> {
        self.add(Record::End);
        self.write();
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

    /// Why the journal cannot be written.
    pub(crate) fn failed(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("{}: {error}", self.path.display()))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// A journal that was read.
#[derive(Debug)]
pub struct ReadJournal {
    pub plan: VerifyPlan,
    pub records: Vec<Record>,
    /// The last block was being written when the journal ended.
    pub cut_off: bool,
}

impl ReadJournal {
    /// Reads a journal.
    ///
    /// # Errors
    /// It is none, or damaged in a way that no crash explains.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let io_error = |source| JournalError::Io { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(io_error)?;
        Self::parse(path, &bytes)
    }

    /// Reads the bytes of a journal; `path` is for messages.
    ///
    /// # Errors
    /// As [`ReadJournal::open`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, JournalError> {
        let path = path.to_owned();
        if bytes.is_empty() {
            return Err(JournalError::Empty { path });
        }
        if bytes.len() < 20 || &bytes[..8] != MAGIC {
            return Err(if MAGIC.starts_with(&bytes[..bytes.len().min(8)]) {
                JournalError::Truncated { path, what: "its head is incomplete".into() }
            } else {
                JournalError::NotAJournal { path }
            });
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(JournalError::Version { path, version });
        }
        let end = 20 + u32_at(bytes, 12) as usize;
        let Some(json) = bytes.get(20..end) else {
            return Err(JournalError::Truncated { path, what: "its head is incomplete".into() });
        };
        if crc32c::crc32c(json) != u32_at(bytes, 16) {
            return Err(JournalError::Damaged { path, what: "its head does not match its checksum".into() });
        }
        let header: Header = serde_json::from_slice(json)
            .map_err(|error| JournalError::Damaged { path: path.clone(), what: error.to_string() })?;
        if !bytes.len().is_multiple_of(BLOCK_BYTES) {
            let left = bytes.len() % BLOCK_BYTES;
            let what = format!("it is written in blocks of {BLOCK_BYTES} bytes, and its last one has {left}");
            return Err(JournalError::Truncated { path, what });
        }
        let blocks = bytes[end.next_multiple_of(BLOCK_BYTES).min(bytes.len())..].chunks_exact(BLOCK_BYTES);
        let count = blocks.len();
        let mut records = Vec::new();
        let mut cut_off = false;
        for (number, block) in blocks.enumerate() {
            let is_whole = u32_at(block, 0) == number as u32
                && u32_at(block, 4) == header.plan.run_id as u32
                && u32_at(block, 8) as usize <= RECORDS_PER_BLOCK
                && u32_at(block, 12) == block_crc(block);
            if !is_whole && number + 1 == count {
                cut_off = true;
                break;
            }
            let of_block = block[BLOCK_HEAD_BYTES..].chunks_exact(RECORD_BYTES).take(u32_at(block, 8) as usize);
            let parsed: Option<Vec<Record>> = of_block.map(Record::from_bytes).collect();
            match parsed.filter(|_| is_whole) {
                Some(parsed) => records.extend(parsed),
                None => {
                    let what = format!("block {number} of {count} does not match its checksum");
                    return Err(JournalError::Damaged { path, what });
                }
            }
        }
        if records.is_empty() {
            return Err(JournalError::Empty { path });
        }
        Ok(Self { plan: header.plan, records, cut_off })
    }
}

fn block_crc(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[BLOCK_HEAD_BYTES..])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::{AuditPlan, BulkUpdatePlan, RandomPlan, ReadAheadPlan, ShrinkPlan};

    const RECORDS: u32 = 600;

    fn plan() -> VerifyPlan {
        VerifyPlan {
            files: Vec::new(),
            seed: 1,
            run_id: 77,
            cycles: 1,
            stress_ns: 0,
            pool_bytes: 0,
            cache_hit_share: 0.0,
            max_outstanding: 1,
            target_io_ns: 1,
            bursts: true,
            scatter_gather: true,
            write_through: true,
            force_read_ahead: true,
            look_first: true,
            rewrite_after_ns: 0,
            pages_per_io: 1,
            rereads: 1,
            reread_pause_ns: 0,
            long_io_ns: 1,
            io_timeout_ns: 1,
            stop_on_error: false,
            interval_ns: 1,
            random: RandomPlan {
                users: 0,
                jump_share: 0.0,
                chain_min: 1,
                chain_max: 1,
                update_share: 0.0,
                log_bytes_min: 1,
                log_bytes_max: 1,
                rollback_share: 0.0,
                sleep_ns: 0,
            },
            audit: AuditPlan { users: 0, pages: 1, delay_after_cycles: 1, delay_ns: 0 },
            read_ahead: ReadAheadPlan { users: 0, pages_min: 1, pages_max: 1, delay_after_cycles: 1, delay_ns: 0 },
            bulk_update: BulkUpdatePlan { users: 0, pages_min: 1, pages_max: 1, delay_after_cycles: 1, delay_ns: 0 },
            shrink: ShrinkPlan { users: 0, interval_min_ns: 1, interval_max_ns: 1, extents_min: 1, extents_max: 1 },
        }
    }

    /// The bytes of a journal of several blocks.
    fn journal(name: &str) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!("assay-journal-{}-{name}", std::process::id()));
        let mut journal = Journal::create(&path, &plan()).unwrap();
        for page in 0..RECORDS {
            let mut state = PageState::default();
            state.generation = page + 1;
            journal.acknowledged(PageId { file: 0, page }, &[state]);
        }
        journal.finish().unwrap();
        assert!(matches!(Journal::create(&path, &plan()), Err(JournalError::Exists { .. })));
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<ReadJournal, JournalError> {
        ReadJournal::parse(Path::new("j"), bytes)
    }

    #[test]
    fn what_was_recorded_is_read_back() {
        let read = parse(&journal("back")).unwrap();
        assert_eq!((read.plan, read.cut_off), (plan(), false));
        assert_eq!(read.records.len(), RECORDS as usize + 1);
        assert_eq!(read.records[5], Record::Acknowledged { id: PageId { file: 0, page: 5 }, generation: 6 });
        assert_eq!(read.records.last(), Some(&Record::End));
    }

    #[test]
    fn damage_is_told_from_what_a_crash_leaves() {
        let whole = journal("damage");
        assert!(matches!(parse(&[]), Err(JournalError::Empty { .. })));
        assert!(matches!(parse(b"what else"), Err(JournalError::NotAJournal { .. })));
        assert!(matches!(parse(&whole[..5]), Err(JournalError::Truncated { .. })));
        assert!(matches!(parse(&whole[..300]), Err(JournalError::Truncated { .. })));
        assert!(matches!(parse(&whole[..whole.len() - 100]), Err(JournalError::Truncated { .. })));
        let head = whole.len() - 3 * BLOCK_BYTES;
        assert!(matches!(parse(&whole[..head]), Err(JournalError::Empty { .. })), "no record was made");
        let mut newer = whole.clone();
        newer[8] = 9;
        assert!(matches!(parse(&newer), Err(JournalError::Version { version: 9, .. })));
        let mut torn = whole.clone();
        *torn.last_mut().unwrap() ^= 1;
        let read = parse(&torn).unwrap();
        assert!(read.cut_off, "the last block may be damaged");
        assert_eq!(read.records.len(), 2 * RECORDS_PER_BLOCK);
        let mut damaged = whole;
        damaged[head + 100] ^= 1;
        assert!(matches!(parse(&damaged), Err(JournalError::Damaged { .. })), "no other block may");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let _ = parse(&[&MAGIC[..], &1_u32.to_le_bytes(), &bytes].concat());
        }
    }

    #[test]
    fn any_single_change_is_noticed_or_harmless() {
        let whole = journal("change");
        let records = parse(&whole).unwrap().records;
        for at in (0..whole.len()).step_by(7) {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            if let Ok(read) = parse(&changed) {
                assert!(records.starts_with(&read.records), "byte {at}");
            }
        }
    }
}
