//! Writes: new contents of blocks, and space for them.

use std::collections::HashMap;

use super::{
    LoggedStore,
    block::{BLOCK_BYTES, Block, compressed, fingerprint},
    change::{Change, Source, Stored},
};
use crate::{
    Durability, ServeError, StoreFault,
    store::{Cached, files},
};

/// Free space that is left where the store lies.
const MARGIN_BYTES: u64 = 16 << 20;
const ASK_BYTES: u64 = 4 << 20;

impl LoggedStore {
    /// Writes bytes of a volume; once this returns, the write may be acknowledged.
    ///
    /// # Errors
    /// Bytes cannot be kept, the store has no room, or a file of it fails.
    pub fn write(&mut self, volume: u16, offset_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        self.ask_room(bytes.len() as u64)?;
        let mut done = 0;
        let mut blocks = Vec::new();
        for (number, within) in self.blocks(volume, offset_bytes, bytes.len()) {
            let count = within.len();
            let mut block = if count == BLOCK_BYTES { [0; BLOCK_BYTES] } else { self.block(number)? };
            block[within].copy_from_slice(&bytes[done..done + count]);
            blocks.push((number, block));
            done += count;
        }
        if self.durability == Durability::Battery {
            return self.write_to_log(&blocks);
        }
        let cached_bytes = self.volatile.bytes() + bytes.len() as u64;
        if !self.has_room_for(cached_bytes) {
            // What could not be destaged is not acknowledged.
            self.destage_to(0)?;
            return self.write_to_log(&blocks);
        }
        for (number, block) in blocks {
            self.volatile.put((0, number), block.to_vec());
        }
        Ok(())
    }

    pub(super) fn destage_for(&mut self, name: &str) -> Result<(), ServeError> {
        let ended = self.destage_to(0);
        ended.map_err(|fault| ServeError::Refused(format!("{name}: the cache cannot be written: {fault}")))
    }

    /// Writes whole blocks, as many at once as go into half a container.
    pub(super) fn write_to_log(&mut self, blocks: &[(u64, Block)]) -> Result<(), StoreFault> {
        let most = (self.shape.container_bytes() as usize / 2 / BLOCK_BYTES).max(1);
        for blocks in blocks.chunks(most) {
            let sources = self.sources(blocks)?;
            let new: Vec<usize> = sources.iter().filter_map(|(_, source)| stored_bytes(source)).collect();
            self.make_room(&new)?;
            self.commit(&Change::Write(sources))?;
            self.counts.appended_bytes += new.iter().sum::<usize>() as u64;
            // The journal has it. A row that cannot be written now is, before the container counts as being on disks.
            let _ = self.write_rows(false);
        }
        Ok(())
    }

    /// New contents of blocks. A block whose bytes the store has already refers to that content.
    fn sources(&mut self, blocks: &[(u64, Block)]) -> Result<Vec<(u64, Source)>, StoreFault> {
        let mut new: HashMap<u128, (u32, Block)> = HashMap::new();
        let mut sources = Vec::with_capacity(blocks.len());
        let mut created = 0;
        for (number, block) in blocks {
            if block.iter().all(|byte| *byte == 0) {
                sources.push((*number, Source::Zeroes));
                continue;
            }
            let print = fingerprint(block);
            let known = match new.get(&print) {
                Some((content, held)) => (held == block).then_some(*content),
                None => self.known(print, block)?,
            };
            let source = known.map_or_else(
                || {
                    let content = self.table.next_content(created);
                    created += 1;
                    new.insert(print, (content, *block));
                    Source::New(Stored { content, print, bytes: compressed(block) })
                },
                Source::Known,
            );
            sources.push((*number, source));
        }
        Ok(sources)
    }

    /// The content with the bytes of a block, unless it is lost.
    fn known(&mut self, print: u128, block: &Block) -> Result<Option<u32>, StoreFault> {
        let Some(content) = self.table.by_print(print) else { return Ok(None) };
        match self.fetch(content) {
            Ok((_, held)) => Ok((held == *block).then_some(content)),
            Err(StoreFault::Lost) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Seals the open container if contents of such lengths do not go into it.
    pub(super) fn make_room(&mut self, stored_bytes: &[usize]) -> Result<(), StoreFault> {
        if stored_bytes.is_empty() || self.table.end_after(stored_bytes.iter().copied()).is_some() {
            return Ok(());
        }
        self.free_container()?;
        self.seal()
    }

    /// Refuses a write for which the file system has no room, before a part of it is written.
    fn ask_room(&mut self, bytes: u64) -> Result<(), StoreFault> {
        self.unasked_bytes += bytes;
        if self.unasked_bytes < ASK_BYTES {
            return Ok(());
        }
        let needed_bytes = MARGIN_BYTES + 3 * bytes + 2 * u64::from(self.shape.container_bytes());
        if files::free_bytes(self.journal.file().file()).is_some_and(|free| free < needed_bytes) {
            return Err(StoreFault::Full);
        }
        self.unasked_bytes = 0;
        Ok(())
    }
}

fn stored_bytes(source: &Source) -> Option<usize> {
    match source {
        Source::New(stored) => Some(stored.bytes.len()),
        _ => None,
    }
}
