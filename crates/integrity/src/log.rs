//! The log: a stream of blocks, numbered from 1 (log sequence numbers, LSN), that goes round and round the log files.

use crate::{FilePlan, stamp::PageId};

pub(crate) struct Log {
    /// File, first block of the round, and blocks of each log file.
    files: Vec<(u16, u64, u64)>,
    blocks: u64,
    block_bytes: u32,
    /// The next LSN to be handed out.
    pub head: u64,
    /// The first LSN not yet being written.
    pub written: u64,
    /// All records before it are on the storage.
    pub durable: u64,
    /// The log reader has verified all records before it.
    pub read: u64,
    /// All pages that records before it are about have been written.
    pub clean: u64,
    /// Records before it are needed no more; their blocks may be written again.
    pub tail: u64,
}

impl Log {
    pub(crate) fn new(files: &[FilePlan]) -> Self {
        let mut blocks = 0;
        let mut places = Vec::new();
        let mut block_bytes = 512;
        for (index, file) in files.iter().enumerate().filter(|(_, file)| file.log) {
            places.push((index as u16, blocks, file.pages()));
            blocks += file.pages();
            block_bytes = file.page_bytes();
        }
        Self { files: places, blocks, block_bytes, head: 1, written: 1, durable: 1, read: 1, clean: 1, tail: 1 }
    }

    /// Blocks of one round.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Blocks that `bytes` of log records take.
    pub(crate) fn blocks_for(&self, bytes: u32) -> u64 {
        u64::from(bytes.div_ceil(self.block_bytes).max(1)).min(self.blocks / 4)
    }

    pub(crate) fn has_room(&self, blocks: u64) -> bool {
        self.head + blocks - self.tail <= self.blocks
    }

    /// Frees records that are no longer needed. With `asked`, only records that were read.
    pub(crate) fn free(&mut self, asked: bool) {
        let read = if asked { self.read } else { self.durable };
        self.tail = self.tail.max(self.clean.min(read));
    }

    /// Whether a checkpoint should free records.
    pub(crate) fn is_filling(&self) -> bool {
        self.head - self.clean > self.blocks / 2
    }

    /// Which block of the round a block is, from 0.
    pub(crate) fn position(&self, id: PageId) -> u64 {
        self.files.iter().find(|(file, ..)| *file == id.file).map_or(0, |(_, first, _)| *first) + u64::from(id.page)
    }

    /// Where a record lies, and how many blocks of its file follow it, itself counted.
    pub(crate) fn place(&self, lsn: u64) -> (PageId, u64) {
        let position = (lsn - 1) % self.blocks;
        let index = self.files.partition_point(|(_, first, _)| *first <= position) - 1;
        let (file, first, blocks) = self.files[index];
        (PageId { file, page: (position - first) as u32 }, blocks - (position - first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_go_round_all_log_files() {
        let log = Log {
            files: vec![(1, 0, 4), (3, 4, 2)],
            blocks: 6,
            block_bytes: 512,
            head: 1,
            written: 1,
            durable: 1,
            read: 1,
            clean: 1,
            tail: 1,
        };
        let places: Vec<_> = (1..=8).map(|lsn| log.place(lsn)).map(|(id, left)| (id.file, id.page, left)).collect();
        for lsn in 1..=20 {
            assert_eq!(log.position(log.place(lsn).0), (lsn - 1) % 6);
        }
        assert_eq!(places, [(1, 0, 4), (1, 1, 3), (1, 2, 2), (1, 3, 1), (3, 0, 2), (3, 1, 1), (1, 0, 4), (1, 1, 3)]);
    }
}
