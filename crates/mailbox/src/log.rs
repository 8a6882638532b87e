//! The log of a database: records go into units, each written with one write of whole blocks; a unit lies within one log file.

use std::collections::VecDeque;

use assay_load::content::{MARK, MARK_AT, SECTOR_BYTES};

use crate::{
    page::{get, mark, put},
    plan::{Extent, MailboxPlan},
    record::Record,
};

/// Block of the log: every write is a multiple of it.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Head of a unit: magic and checksum, bytes of records and where the first begins, the mark, run, place and database.
const HEAD_BYTES: usize = 64;
const MAGIC: u32 = 0x6d62_6c31; // "mbl1"
/// Bytes of gathered records at which they are written at the latest.
pub(crate) const GATHERED_BYTES: usize = 64 << 10;

/// Where the units of the log lie, and which part of it is still needed.
pub(crate) struct Log {
    extent: Extent,
    pub file_bytes: u64,
    write_max_bytes: u64,
    /// Block after the last unit. Blocks count on while the log goes round in its extent.
    pub head_block: u64,
    /// Block after the last unit that is on the storage.
    pub durable_block: u64,
    /// LSN of the next record: bytes of all records before it, and one.
    pub next_lsn: u64,
    /// All records below it are on the storage.
    pub durable_lsn: u64,
    /// Bytes of records that are in no unit yet.
    pending: VecDeque<u8>,
    pending_bytes: usize,
    /// Begins of the records that are pending.
    begins: VecDeque<u64>,
    /// First LSN and first block of units that may be needed again.
    units: VecDeque<(u64, u64)>,
    /// A task waits for all pending records.
    pub wanted: bool,
    /// Records that are in the log, where no bytes are kept: what a replay would read from it.
    pub remembered: Option<VecDeque<(u64, Record)>>,
    holds_bytes: bool,
}

/// A unit to be written.
pub(crate) struct Unit {
    pub block: u64,
    pub bytes: u32,
    /// All records below are in it or in units before.
    pub end_lsn: u64,
    pub image: Vec<u8>,
}

impl Log {
    pub(crate) fn new(extent: Extent, plan: &MailboxPlan, write_max_bytes: u32, remembers: bool) -> Self {
        Self {
            extent,
            file_bytes: plan.log_file_bytes,
            write_max_bytes: u64::from(write_max_bytes),
            head_block: 0,
            durable_block: 0,
            next_lsn: 1,
            durable_lsn: 1,
            pending: VecDeque::new(),
            pending_bytes: 0,
            begins: VecDeque::new(),
            units: VecDeque::new(),
            wanted: false,
            remembered: (remembers && !plan.holds_bytes()).then(VecDeque::new),
            holds_bytes: plan.holds_bytes(),
        }
    }

    /// Blocks of one round.
    pub(crate) fn blocks(&self) -> u64 {
        self.extent.size_bytes / self.file_bytes * self.file_blocks()
    }

    pub(crate) fn file_blocks(&self) -> u64 {
        self.file_bytes / BLOCK_BYTES
    }

    /// Where a block lies on its volume.
    pub(crate) fn offset_bytes(&self, block: u64) -> u64 {
        self.extent.start_bytes + block % self.blocks() * BLOCK_BYTES
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Bytes of records between the end of the log and an LSN.
    pub(crate) fn depth_bytes(&self, lsn: u64) -> u64 {
        self.next_lsn - lsn.min(self.next_lsn)
    }

    /// Whether `bytes` of records fit without overwriting records from `needed_lsn` on.
    pub(crate) fn has_room(&self, bytes: usize, needed_lsn: u64) -> bool {
        // Heads and blocks that are not full take as much again, where records are small.
        let blocks = 2 * (bytes + self.pending_bytes) as u64 / BLOCK_BYTES + 2 * self.file_blocks().min(64);
        self.head_block + blocks - self.block_of(needed_lsn) <= self.blocks()
    }

    /// The block of the unit with an LSN; the end of the log where it is in none.
    pub(crate) fn block_of(&self, lsn: u64) -> u64 {
        let place = self.units.partition_point(|(first, _)| *first <= lsn);
        if place == 0 {
            return self.units.front().map_or(self.head_block, |(_, block)| *block);
        }
        if lsn >= self.durable_lsn && self.pending_bytes == 0 {
            return self.head_block;
        }
        self.units[place - 1].1
    }

    /// The first LSN of the units from a block on.
    pub(crate) fn lsn_at(&self, block: u64) -> u64 {
        let place = self.units.partition_point(|(_, first)| *first < block);
        self.units.get(place).map_or(self.next_lsn, |(lsn, _)| *lsn)
    }

    /// Bytes of records that complete the log file that is being written.
    pub(crate) fn bytes_to_close(&self) -> usize {
        let left = (self.file_blocks() - self.head_block % self.file_blocks()) * BLOCK_BYTES;
        room_in(left.min(self.write_max_bytes) as usize)
    }

    /// Forgets units before an LSN.
    pub(crate) fn forget_before(&mut self, lsn: u64) {
        while self.units.get(1).is_some_and(|(first, _)| *first <= lsn) {
            self.units.pop_front();
        }
        if let Some(remembered) = &mut self.remembered {
            while remembered.front().is_some_and(|(begin, _)| *begin < lsn) {
                remembered.pop_front();
            }
        }
    }

    /// Takes a change; gives where its record begins, and its LSN, which is where it ends: a record is durable whole or not at all.
    pub(crate) fn append(&mut self, mut record: Record) -> (u64, u64) {
        let begin = self.next_lsn;
        self.next_lsn += record.bytes() as u64;
        record.lsn = self.next_lsn;
        self.pending_bytes += record.bytes();
        self.begins.push_back(begin);
        if self.holds_bytes {
            let mut bytes = Vec::with_capacity(record.bytes());
            record.encode(&mut bytes);
            self.pending.extend(bytes);
        }
        if let Some(remembered) = &mut self.remembered {
            remembered.push_back((begin, record));
        }
        (begin, self.next_lsn)
    }

    /// Makes a unit of pending records, as large as one write and the log file take.
    pub(crate) fn next_unit(&mut self, run_id: u64, database: u32) -> Option<Unit> {
        if self.pending_bytes == 0 {
            return None;
        }
        let left_in_file = (self.file_blocks() - self.head_block % self.file_blocks()) * BLOCK_BYTES;
        let most = room_in(left_in_file.min(self.write_max_bytes) as usize);
        let payload = self.pending_bytes.min(most);
        let first_lsn = self.next_lsn - self.pending_bytes as u64;
        let end_lsn = first_lsn + payload as u64;
        while self.begins.front().is_some_and(|begin| *begin < first_lsn) {
            self.begins.pop_front();
        }
        let first_record = self.begins.front().map_or(end_lsn, |begin| (*begin).min(end_lsn)) - first_lsn;
        let bytes = bytes_for(payload) as u64;
        let block = self.head_block;
        let mut image = Vec::new();
        if self.holds_bytes {
            image.resize(bytes as usize, 0);
            let (first, second) = self.pending.as_slices();
            let mut records = first.iter().chain(second);
            for range in pieces(payload) {
                image[range].iter_mut().zip(&mut records).for_each(|(place, byte)| *place = *byte);
            }
            self.pending.drain(..payload);
            mark(&mut image);
            image[..4].copy_from_slice(&MAGIC.to_le_bytes());
            image[8..12].copy_from_slice(&(payload as u32).to_le_bytes());
            image[12..16].copy_from_slice(&(first_record as u32).to_le_bytes());
            put(&mut image, 24, run_id);
            put(&mut image, 32, block);
            put(&mut image, 40, u64::from(database));
            let checksum = checksum(&image);
            image[4..8].copy_from_slice(&checksum.to_le_bytes());
        }
        self.pending_bytes -= payload;
        self.head_block += bytes / BLOCK_BYTES;
        self.units.push_back((first_lsn, block));
        Some(Unit { block, bytes: bytes as u32, end_lsn, image })
    }
}

/// Bytes of records that a unit of so many bytes holds: marks and the head take the rest.
fn room_in(bytes: usize) -> usize {
    bytes / SECTOR_BYTES * (SECTOR_BYTES - MARK.len()) - (HEAD_BYTES - MARK.len())
}

/// Bytes of a unit with `payload` bytes of records.
fn bytes_for(payload: usize) -> usize {
    let sectors = (payload + HEAD_BYTES - MARK.len()).div_ceil(SECTOR_BYTES - MARK.len());
    (sectors * SECTOR_BYTES).next_multiple_of(BLOCK_BYTES as usize)
}

/// Where the records of a unit lie in it: behind the head, and around the marks.
fn pieces(payload: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let (mut left, mut at) = (payload, HEAD_BYTES);
    std::iter::from_fn(move || {
        let within = at % SECTOR_BYTES;
        let end = if within < MARK_AT { MARK_AT } else { SECTOR_BYTES };
        let length = (end - within).min(left);
        let range = at..at + length;
        left -= length;
        at += if end == MARK_AT { length + MARK.len() } else { length };
        (length > 0).then_some(range)
    })
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn checksum(unit: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&unit[..4]), &unit[8..])
}

/// Reads units out of a piece of a log, and the records out of the units.
#[derive(Default)]
pub(crate) struct Reader {
    /// Bytes of a unit that is not whole yet.
    unit: Vec<u8>,
    /// Bytes of records whose rest is in the next unit.
    rest: Vec<u8>,
    block: u64,
    /// Whether a record was met: a log that is read from its middle begins with the rest of one.
    has_begun: bool,
}

impl Reader {
    /// A reader that begins at a block, which must be the first of a unit.
    pub(crate) fn at(block: u64) -> Self {
        Self { block, ..Self::default() }
    }

    /// Takes the next bytes of the log; gives the records that are whole by now.
    ///
    /// # Errors
    /// The records are not those written, and why.
    pub(crate) fn take(&mut self, bytes: &[u8], run_id: u64, database: u32) -> Result<Vec<Record>, String> {
        self.unit.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(length) = unit_bytes(&self.unit[at..], run_id, database, self.block)? {
            let unit = &self.unit[at..at + length];
            let payload = number(unit, 8) as usize;
            let begin = if self.has_begun { 0 } else { (number(unit, 12) as usize).min(payload) };
            self.has_begun |= begin < payload;
            let before = self.rest.len();
            pieces(payload).for_each(|range| self.rest.extend_from_slice(&unit[range]));
            self.rest.drain(before..before + begin);
            at += length;
            self.block += length as u64 / BLOCK_BYTES;
        }
        self.unit.drain(..at);
        let mut records = Vec::new();
        let mut used = 0;
        while let Some((record, length)) = Record::decode(&self.rest[used..])? {
            records.push(record);
            used += length;
        }
        self.rest.drain(..used);
        Ok(records)
    }
}

/// Bytes of the unit that a piece of a log begins with; none where it does not hold all of it.
fn unit_bytes(bytes: &[u8], run_id: u64, database: u32, block: u64) -> Result<Option<usize>, String> {
    if bytes.len() < HEAD_BYTES {
        return Ok(None);
    }
    let found = (get(bytes, 24), get(bytes, 32), get(bytes, 40));
    if number(bytes, 0) != MAGIC || found != (run_id, block, u64::from(database)) {
        return Err(format!("block {block} of the log is not what was written there"));
    }
    let length = bytes_for(number(bytes, 8) as usize);
    if length > bytes.len() {
        return Ok(None);
    }
    let checksum = checksum(&bytes[..length]);
    if checksum != number(bytes, 4) {
        return Err(format!(
            "block {block} of the log has checksum {checksum:08x}, its header says {:08x}",
            number(bytes, 4)
        ));
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{node::Change, session::tests::plan};

    fn record(key: u64) -> Record {
        Record { lsn: 0, page: key, change: Change::Put { key, version: 1 }, replaces: key.is_multiple_of(2) }
    }

    /// A log with `records` records, and the bytes of its units.
    fn written(records: u64) -> (Log, Vec<u8>) {
        let plan = plan(1);
        let mut log = Log::new(plan.databases[0].log, &plan, 1 << 20, false);
        let mut bytes = Vec::new();
        for key in 0..records {
            log.append(record(key));
            if key % 7 == 3 || key + 1 == records {
                while let Some(unit) = log.next_unit(plan.run_id, 0) {
                    assert_eq!(unit.block * BLOCK_BYTES, bytes.len() as u64);
                    assert_eq!(unit.image.len(), unit.bytes as usize);
                    let (first, last) = (unit.block, unit.block + u64::from(unit.bytes) / BLOCK_BYTES - 1);
                    assert_eq!(first / log.file_blocks(), last / log.file_blocks(), "a unit lies within a file");
                    assert!(assay_load::content::is_marked(&unit.image));
                    bytes.extend(unit.image);
                    log.durable_lsn = unit.end_lsn;
                }
            }
        }
        (log, bytes)
    }

    #[test]
    fn what_is_written_is_read_again_in_pieces_of_any_size() {
        let (log, bytes) = written(500);
        assert!(log.head_block > 2 * log.file_blocks(), "over several files");
        for piece in [4096, 65_536, 1 << 20] {
            let mut reader = Reader::at(0);
            let found: Vec<Record> = bytes.chunks(piece).flat_map(|part| reader.take(part, 7, 0).unwrap()).collect();
            assert_eq!(found.len(), 500);
            assert!(found.iter().enumerate().all(|(key, found)| found.change == record(key as u64).change));
        }
    }

    #[test]
    fn a_log_is_read_from_the_unit_where_a_record_begins() {
        let (log, bytes) = written(500);
        let mut begin = 1;
        for key in 0..500 {
            let block = log.block_of(begin);
            let mut reader = Reader::at(block);
            let found = reader.take(&bytes[(block * BLOCK_BYTES) as usize..], 7, 0).unwrap();
            assert!(found[0].page <= key && found.iter().any(|found| found.page == key), "record {key}");
            begin += record(key).bytes() as u64;
        }
    }

    #[test]
    fn a_damaged_log_is_found() {
        let (_, bytes) = written(50);
        for at in (0..bytes.len()).step_by(997) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 16;
            let taken = Reader::at(0).take(&damaged, 7, 0);
            assert!(taken.is_err() || taken.unwrap().len() < 50, "byte {at}");
        }
    }
}
