//! Reads of blocks wherever they lie.

use super::Member;
use crate::{
    events::Events,
    task::{ChunkParts, Work},
    write_anywhere::Piece,
};

impl Member {
    /// Notes addresses that a read did not find in the cache; [`Self::read_missing`] reads them.
    #[inline]
    pub(crate) fn note_missing(&mut self, from_bytes: u64, to_bytes: u64) {
        let missing = &mut self.anywhere_mut().scratch.missing;
        match missing.last_mut() {
            Some((_, end_bytes)) if *end_bytes == from_bytes => *end_bytes = to_bytes,
            _ => missing.push((from_bytes, to_bytes)),
        }
    }

    /// Reads the noted addresses, a command for each piece on a disk.
    pub(crate) fn read_missing(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        let Some(anywhere) = &mut self.anywhere else { return };
        if anywhere.scratch.missing.is_empty() {
            return;
        }
        let mut pieces = std::mem::take(&mut anywhere.scratch.pieces);
        for (from_bytes, to_bytes) in &anywhere.scratch.missing {
            anywhere.pieces(*from_bytes, *to_bytes, &mut pieces);
        }
        anywhere.scratch.missing.clear();
        self.read_pieces(now_ns, task, &mut pieces, events);
        self.anywhere_mut().scratch.pieces = pieces;
    }

    /// Reads pieces and leaves none.
    fn read_pieces(&mut self, now_ns: u64, task: u32, pieces: &mut Vec<Piece>, events: &mut Events) {
        let (run_bytes, run_shift) = (self.geometry.chunk_bytes(), self.anywhere_mut().run_shift);
        for Piece { at_bytes, bytes } in pieces.drain(..) {
            let place = self.geometry.place(at_bytes >> run_shift);
            self.read_chunk(now_ns, task, place, at_bytes & (run_bytes - 1), bytes as u32, events);
        }
    }

    /// Reads ahead in logical order. Chunks that follow each other in a run are read together, and on to the end of the
    /// run, as far as one distance of reading ahead.
    pub(crate) fn prefetch_pieces(&mut self, now_ns: u64, from_bytes: u64, to_bytes: u64, events: &mut Events) {
        let anywhere = self.anywhere_mut();
        let (shift, chunk_bytes, ahead) = (anywhere.chunk_shift, 1_u64 << anywhere.chunk_shift, anywhere.ahead_chunks);
        let mut pieces = std::mem::take(&mut anywhere.scratch.pieces);
        let mut chunk = from_bytes.div_ceil(chunk_bytes);
        // Chunks that begin in the range, as far as they lie wholly in what is used.
        let used = self.used_bytes >> shift;
        let end = to_bytes.div_ceil(chunk_bytes).min(used);
        let most = (end + ahead).min(used);
        while chunk < end {
            if self.held(chunk) == u64::MAX {
                chunk += 1;
                continue;
            }
            let task = self.begin(Work::Prefetch);
            loop {
                let parts = !self.held(chunk);
                self.tasks[task].chunks.push(ChunkParts { chunk, parts });
                self.cache.begin_loading(chunk, parts);
                self.anywhere_mut().pieces(chunk << shift, (chunk + 1) << shift, &mut pieces);
                chunk += 1;
                if chunk >= most || self.held(chunk) == u64::MAX || !self.anywhere_mut().continues(chunk) {
                    break;
                }
            }
            self.counters.ahead_pieces += pieces.len() as u64;
            self.counters.ahead_bytes += pieces.iter().map(|piece| piece.bytes).sum::<u64>();
            self.read_pieces(now_ns, task, &mut pieces, events);
        }
        self.anywhere_mut().scratch.pieces = pieces;
    }

    /// Parts of a chunk that are in the cache or on their way there.
    fn held(&self, chunk: u64) -> u64 {
        self.cache.find(chunk).map_or(0, |index| {
            let entry = self.cache.entry(index);
            entry.valid | entry.loading
        })
    }

    /// Marks a chunk that was read ahead in several pieces as dirty, so that destaging writes it in one; also one of
    /// which some blocks wait to be moved. Not when as much is dirty as disks can take.
    pub(crate) fn rewrite_scattered(&mut self, chunk: u64) {
        let Some(anywhere) = &self.anywhere else { return };
        let chunk_bytes = 1 << anywhere.chunk_shift;
        if !self.caching.read_realloc
            || !self.caching.write_back
            || self.cache.dirty_bytes() + chunk_bytes > self.destager.high_bytes()
        {
            return;
        }
        let (dirty, flushing) = self.cache.find(chunk).map_or((0, 0), |index| {
            let entry = self.cache.entry(index);
            (entry.dirty, entry.flushing)
        });
        if flushing != 0 || dirty == u64::MAX || (dirty == 0 && !anywhere.is_scattered(chunk)) {
            return;
        }
        let (lane, position) = self.destager.lane(&self.geometry, chunk);
        self.cache.write(chunk, u64::MAX, lane, position);
        self.counters.reallocated_bytes += chunk_bytes;
    }
}
