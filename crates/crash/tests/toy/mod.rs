//! A write-ahead log with checkpoints, as small as one can be, and with faults that can be built into it.
//!
//! Sector 0 is the directory: which of two areas holds the last snapshot, and which generation of the log follows it.
//! A record of the log is a head with a checksum, its bytes, and a sector of its own with the length of the value.

use std::collections::BTreeMap;

use assay_crash::{Log, SECTOR_BYTES};

pub(crate) const VOLUME_BYTES: u64 = 512 << 10;
const AREAS: [u64; 2] = [16, 256];
const LOG: u64 = 496;
const HEAD: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    NoFlush,
    FlushBeforeCommitRecord,
    CommitSumOmitsData,
    LengthNotInSum,
    SnapshotNotFlushed,
    DirectoryNotFlushed,
    TornDirectory,
    StaleLog,
    SnapshotInPlace,
    CommitBeforeDecision,
    AcknowledgedByEarlierFlush,
    FuaWithoutFlush,
    DiscardTooEarly,
}

pub(crate) const FAULTS: [Fault; 13] = [
    Fault::NoFlush,
    Fault::FlushBeforeCommitRecord,
    Fault::CommitSumOmitsData,
    Fault::LengthNotInSum,
    Fault::SnapshotNotFlushed,
    Fault::DirectoryNotFlushed,
    Fault::TornDirectory,
    Fault::StaleLog,
    Fault::SnapshotInPlace,
    Fault::CommitBeforeDecision,
    Fault::AcknowledgedByEarlierFlush,
    Fault::FuaWithoutFlush,
    Fault::DiscardTooEarly,
];

type Values = BTreeMap<u8, Vec<u8>>;

/// The value that a transaction gives its keys; its length depends on the transaction.
pub(crate) fn value(transaction: u32) -> Vec<u8> {
    let mut bytes = transaction.to_le_bytes().to_vec();
    let length = 4 + (transaction as usize * 331) % 1500;
    bytes.resize(length, (transaction % 251) as u8 + 1);
    bytes
}

pub(crate) struct Store {
    pub(crate) log: Log,
    fault: Fault,
    values: Values,
    generation: u32,
    area: u32,
    sequence: u64,
    tail: u64,
}

impl Store {
    pub(crate) fn new(fault: Fault) -> Self {
        let log = Log::new(VOLUME_BYTES);
        let mut store = Self { log, fault, values: Values::new(), generation: 0, area: 1, sequence: 0, tail: LOG };
        store.checkpoint();
        store.log.mark("made");
        store
    }

    fn at(sector: u64) -> u64 {
        sector * SECTOR_BYTES
    }

    fn record(&mut self, kind: u8, payload: &[u8], trailer: u16, covered: u32) -> Vec<u8> {
        self.sequence += 1;
        let mut bytes = vec![0; HEAD];
        bytes[4] = kind;
        bytes[6..8].copy_from_slice(&(payload.len() as u16).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.generation.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[20..24].copy_from_slice(&covered.to_le_bytes());
        bytes.extend_from_slice(payload);
        pad(&mut bytes);
        bytes.extend_from_slice(&trailer.to_le_bytes());
        pad(&mut bytes);
        let sum = sum_of(&bytes, self.fault);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Writes a pair of keys; the client is told when it is committed or rolled back.
    pub(crate) fn transact(&mut self, transaction: u32, commits: bool) {
        let (group, new) = ((transaction % 3) as u8 * 2, value(transaction));
        let mut puts = Vec::new();
        for key in [group, group + 1] {
            let payload: Vec<u8> = std::iter::once(key).chain(new.iter().copied()).collect();
            puts.extend(self.record(1, &payload, new.len() as u16, 0));
        }
        let start = Self::at(self.tail);
        let covered = if self.fault == Fault::CommitSumOmitsData { 0 } else { crc32c::crc32c(&puts) };
        let decided = start + puts.len() as u64;
        let before = self.sequence;
        let commit = self.record(2, &[], 0, covered);
        self.tail += (puts.len() + commit.len()) as u64 / SECTOR_BYTES;
        if !commits {
            if self.fault == Fault::CommitBeforeDecision {
                self.log.write(decided, &commit, false);
            }
            self.sequence = before;
            let abort = self.record(3, &[], 0, 0);
            self.log.write(start, &puts, false);
            self.log.write(decided, &abort, false);
            self.log.mark("rolled back");
            return;
        }
        match self.fault {
            Fault::NoFlush => {
                self.log.write(start, &puts, false);
                self.log.write(decided, &commit, false);
            }
            Fault::FlushBeforeCommitRecord => {
                self.log.write(start, &puts, false);
                self.log.flush();
                self.log.write(decided, &commit, false);
            }
            Fault::FuaWithoutFlush => {
                self.log.write(start, &puts, false);
                self.log.write(decided, &commit, true);
            }
            Fault::AcknowledgedByEarlierFlush => {
                self.log.write(start, &puts, false);
                let flush = self.log.submit_flush();
                self.log.write(decided, &commit, false);
                self.log.complete(flush);
            }
            _ => {
                self.log.write(start, &puts, false);
                self.log.write(decided, &commit, false);
                self.log.flush();
            }
        }
        self.values.insert(group, new.clone());
        self.values.insert(group + 1, new);
        self.log.mark("committed");
    }

    /// Writes all values to the other area, and begins a new generation of the log.
    pub(crate) fn checkpoint(&mut self) {
        if self.fault != Fault::SnapshotInPlace {
            self.area = 1 - self.area;
        }
        let mut snapshot = vec![0; 6];
        snapshot[4..6].copy_from_slice(&(self.values.len() as u16).to_le_bytes());
        for (key, value) in &self.values {
            snapshot.push(*key);
            snapshot.extend_from_slice(&(value.len() as u16).to_le_bytes());
            snapshot.extend_from_slice(value);
        }
        pad(&mut snapshot);
        let sum = crc32c::crc32c(&snapshot[4..]);
        snapshot[..4].copy_from_slice(&sum.to_le_bytes());
        self.log.write(Self::at(AREAS[self.area as usize]), &snapshot, false);
        if self.fault != Fault::SnapshotNotFlushed {
            self.log.flush();
        }
        self.generation += 1;
        let directory = self.directory();
        self.log.write(0, &directory, false);
        if self.fault == Fault::DiscardTooEarly {
            let old = AREAS[1 - self.area as usize];
            self.log.discard(Self::at(old), Self::at(200));
            self.log.discard(Self::at(LOG), VOLUME_BYTES - Self::at(LOG));
        }
        if self.fault != Fault::DirectoryNotFlushed {
            self.log.flush();
        }
        self.tail = LOG;
    }

    fn directory(&self) -> Vec<u8> {
        let mut sector = vec![0; SECTOR_BYTES as usize];
        sector[4..8].copy_from_slice(b"toy!");
        sector[8..12].copy_from_slice(&self.generation.to_le_bytes());
        sector[12..20].copy_from_slice(&self.sequence.to_le_bytes());
        if self.fault == Fault::TornDirectory {
            let mut second = vec![0; SECTOR_BYTES as usize];
            second[..4].copy_from_slice(&self.area.to_le_bytes());
            sector.extend(second);
            return sector;
        }
        sector[20..24].copy_from_slice(&self.area.to_le_bytes());
        let sum = crc32c::crc32c(&sector[4..]);
        sector[..4].copy_from_slice(&sum.to_le_bytes());
        sector
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(SECTOR_BYTES as usize), 0);
}

/// Checksum of a record: of all of it, unless a fault leaves a part out.
fn sum_of(record: &[u8], fault: Fault) -> u32 {
    let covered = match fault {
        Fault::LengthNotInSum => record.len() - SECTOR_BYTES as usize,
        Fault::CommitSumOmitsData => HEAD,
        _ => record.len(),
    };
    crc32c::crc32c(&record[4..covered])
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn half(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()))
}

/// What the store finds after a crash; none if it cannot be opened.
pub(crate) fn recover(volume: &[u8], fault: Fault) -> Option<Values> {
    if &volume[4..8] != b"toy!" {
        return None;
    }
    let has_sum = fault != Fault::TornDirectory;
    if has_sum && word(volume, 0) != crc32c::crc32c(&volume[4..512]) as usize {
        return None;
    }
    let area = if has_sum { word(volume, 20) } else { word(volume, 512) };
    let generation = word(volume, 8);
    let mut sequence = u64::from_le_bytes(volume[12..20].try_into().unwrap());
    let mut values = snapshot(&volume[(AREAS[area.min(1)] * SECTOR_BYTES) as usize..])?;
    let (mut at, mut first) = ((LOG * SECTOR_BYTES) as usize, (LOG * SECTOR_BYTES) as usize);
    let mut pending = Values::new();
    while let Some((record, length)) = record_at(volume, at, fault) {
        let is_next =
            word(record, 8) == generation && u64::from_le_bytes(record[12..20].try_into().unwrap()) == sequence + 1;
        if !is_next && fault != Fault::StaleLog {
            break;
        }
        sequence += 1;
        match record[4] {
            1 => {
                let value_length = half(record, record.len() - SECTOR_BYTES as usize).min(length - 1);
                pending.insert(record[HEAD], record[HEAD + 1..HEAD + 1 + value_length].to_vec());
            }
            2 => {
                let covered = word(record, 20);
                let is_whole = covered == crc32c::crc32c(&volume[first..at]) as usize;
                let unchecked = matches!(fault, Fault::CommitSumOmitsData | Fault::LengthNotInSum);
                if !is_whole && !unchecked {
                    break;
                }
                values.append(&mut pending);
            }
            _ => pending.clear(),
        }
        at += record.len();
        if record[4] != 1 {
            first = at;
        }
    }
    Some(values)
}

fn record_at(volume: &[u8], at: usize, fault: Fault) -> Option<(&[u8], usize)> {
    let head = volume.get(at..at + HEAD)?;
    let length = half(head, 6);
    let bytes = (HEAD + length).next_multiple_of(SECTOR_BYTES as usize) + SECTOR_BYTES as usize;
    let record = volume.get(at..at + bytes)?;
    let is_one = matches!(head[4], 1..=3) && (head[4] != 1 || length > 0);
    (is_one && word(record, 0) == sum_of(record, fault) as usize).then_some((record, length))
}

fn snapshot(area: &[u8]) -> Option<Values> {
    let mut values = Values::new();
    let mut at = 6;
    for _ in 0..half(area, 4) {
        let (key, length) = (*area.get(at)?, half(area.get(at..at + 3)?, 1));
        values.insert(key, area.get(at + 3..at + 3 + length)?.to_vec());
        at += 3 + length;
    }
    let end = at.next_multiple_of(SECTOR_BYTES as usize);
    (word(area, 0) == crc32c::crc32c(&area[4..end]) as usize).then_some(values)
}
