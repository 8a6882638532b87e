//! The bytes of an array with flash in its hosts, as its data nodes keep them: a log of containers, cut into pieces with parity
//! over the disks of one pool, a sparse file each.
//!
//! Blocks are fingerprinted, stored once whichever of them are equal, and compressed. A write is in the journal, which stands
//! for memory that survives a power cut, once it is acknowledged; a container goes to disks when it is full. What the
//! journal says makes the table ([`table`]), so that the same journal gives the same bytes after any end of the server.
//! Nothing here knows time.

mod block;
mod change;
#[cfg(test)]
mod hostile;
mod journal;
mod layout;
mod map;
mod opening;
mod pieces;
mod placed;
mod reclaim;
mod restoring;
mod shape;
mod slots;
mod snapshots;
mod table;
mod wire;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
};

use block::{BLOCK_BYTES, Block};
use change::{Change, Piece};
use journal::Journal;
use layout::Layout;
use map::NONE;
pub use placed::PlacedBlock;
use placed::Restoring;
use serde::Serialize;
use shape::Shape;
use slots::Slots;
use table::Table;

use crate::{
    Durability, Finding, ServeError, StoreFault,
    folder::Folder,
    store::{
        Cached,
        disk::Disk,
        files::Supply,
        record::{Record, Records},
        volatile::{Place, Volatile},
    },
};

/// Bytes of an array with flash in its hosts.
pub struct LoggedStore {
    folder: Folder,
    record: PoolRecord,
    /// Faults in files of the store, found when it was opened.
    findings: Vec<Finding>,
    shape: Shape,
    table: Table,
    journal: Journal,
    disks: Vec<Disk>,
    slots: Slots,
    /// Where the open container goes, once that is known, and how many rows of it are on disks already.
    open_pieces: Option<Vec<Option<Piece>>>,
    /// A container was sealed with a piece missing.
    sealed_short: bool,
    open_rows: u32,
    /// The first block of each volume.
    volumes: Vec<u64>,
    durability: Durability,
    volatile: Volatile,
    restoring: Option<Restoring>,
    /// Containers that hold what cannot be computed any more although pieces enough are there.
    unreadable: BTreeSet<u32>,
    /// Most containers of the pool.
    containers_most: u32,
    counts: Counts,
    supply: Supply,
    unasked_bytes: u64,
    /// Held as long as the store is open.
    _lock: File,
}

/// Counters since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    healed: u64,
    restored: u64,
    /// Stored bytes of writes, and stored bytes that reclamation moved.
    appended_bytes: u64,
    moved_bytes: u64,
    cleaned: u64,
}

/// State of a store.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LoggedReading {
    /// Bytes of blocks that have been written, of snapshots too; those of them that differ; and what these take.
    pub used_bytes: u64,
    pub unique_bytes: u64,
    pub stored_bytes: u64,
    /// How many times smaller blocks are for leaving duplicates out, and again for compression.
    pub deduplication: f64,
    pub compression: f64,
    pub containers: u32,
    pub containers_most: u32,
    /// Share of bytes in containers that is live.
    pub live_share: f64,
    /// Containers with a missing piece, and containers with too few pieces left.
    pub degraded: u64,
    pub lost: u64,
    pub missing_pieces: u64,
    /// Blocks as they are stored, each once, that cannot be had any more.
    pub lost_blocks: u64,
    /// Since the store was opened.
    pub restored_pieces: u64,
    pub healed_blocks: u64,
    pub reclaimed_containers: u64,
    pub appended_bytes: u64,
    pub moved_bytes: u64,
    /// Bytes that disks, journal and checkpoint take.
    pub file_bytes: u64,
}

const RECORDS: Records = Records { copies: ["pool.json", "pool.copy"], beside: "pool.new" };
/// The record has no state: all of that is in checkpoint and journal.
type PoolRecord = Record<Layout, ()>;

impl LoggedStore {
    /// What was found wrong with files of the store when it was opened.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Gives all files a later generation: what was copied of them before is told from them then.
    fn raise(&mut self, is_closed: bool) -> Result<(), ServeError> {
        self.record.is_closed = false;
        let generation = self.record.issue();
        self.write_record()?;
        let files = self.journal.raise(generation);
        let raised = files.and_then(|()| self.disks.iter_mut().try_for_each(|disk| disk.raise(generation)));
        raised.map_err(|error| ServeError::at(self.folder.shown(), error))?;
        self.record.settle(is_closed);
        self.write_record()
    }

    fn write_record(&mut self) -> Result<(), ServeError> {
        self.record.written += 1;
        RECORDS.write(&self.folder, &self.record, &self.supply)
    }

    /// Makes changes of files fail after `changes`, in the middle of one: for good, or only once. For proofs.
    pub fn end_changes_after(&mut self, changes: u64, comes_back: bool) {
        self.supply.end_after(changes, comes_back);
    }

    /// Sets the length of the journal at which a checkpoint is made. For proofs.
    pub fn set_checkpoints(&mut self, journal_bytes: u64) {
        self.journal.set_due(journal_bytes);
    }

    /// Writes a change down and makes it. Where the first fails nothing has changed.
    fn commit(&mut self, change: &Change) -> Result<(), StoreFault> {
        self.journal.note(change)?;
        self.table.make(change);
        for container in std::mem::take(&mut self.table.emptied) {
            for piece in container.pieces.into_iter().flatten() {
                let at_bytes = u64::from(piece.slot) * u64::from(self.shape.piece_bytes);
                self.disks[usize::from(piece.disk)].punch(at_bytes, u64::from(self.shape.piece_bytes));
                self.slots.give_back(piece);
            }
        }
        if self.journal.is_checkpoint_due() {
            // The journal has all of it; it only grows until a checkpoint can be written.
            let _ = self.journal.checkpoint(|out| self.table.write_down(out));
        }
        Ok(())
    }

    /// Reads bytes of a volume, as they were last acknowledged.
    ///
    /// # Errors
    /// They are lost, or a file of the store fails.
    pub fn read(&mut self, volume: u16, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let mut done = 0;
        for (block, within) in self.blocks(volume, offset_bytes, bytes.len()) {
            let count = within.len();
            bytes[done..done + count].copy_from_slice(&self.block(block)?[within]);
            done += count;
        }
        Ok(())
    }

    /// Blocks that bytes of a volume touch, and which part of each.
    fn blocks(
        &self,
        volume: u16,
        offset_bytes: u64,
        bytes: usize,
    ) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> + use<> {
        let first = self.volumes[usize::from(volume)];
        let (size, end_bytes) = (BLOCK_BYTES as u64, offset_bytes + bytes as u64);
        (offset_bytes / size..end_bytes.div_ceil(size)).map(move |block| {
            let from = offset_bytes.saturating_sub(block * size) as usize;
            let to = (end_bytes - block * size).min(size) as usize;
            (first + block, from..to)
        })
    }

    fn block(&mut self, block: u64) -> Result<Block, StoreFault> {
        match self.volatile.get((0, block)) {
            Some(held) => Ok(held.try_into().expect("blocks have one size")),
            None => self.block_in_log(block),
        }
    }

    fn block_in_log(&mut self, block: u64) -> Result<Block, StoreFault> {
        match self.table.map.get(block) {
            NONE => Ok([0; BLOCK_BYTES]),
            content => Ok(self.fetch(content)?.1),
        }
    }

    /// Sets or takes away an attribute of a volume.
    ///
    /// # Errors
    /// A file of the store fails.
    pub fn set_attribute(&mut self, volume: usize, name: &str, value: Option<&[u8]>) -> Result<(), StoreFault> {
        let value = value.map(<[u8]>::to_vec);
        self.commit(&Change::Attribute { volume: volume as u16, name: name.to_owned(), value })
    }

    pub fn reading(&self) -> LoggedReading {
        let (size, contents) = (BLOCK_BYTES as u64, self.table.live_contents());
        let missing = self.table.containers.values().map(table::Container::missing);
        let (degraded, lost, missing_pieces) = missing.fold((0, 0, 0), |(degraded, lost, all), missing| {
            let (is_degraded, is_lost) = (missing > 0, missing > shape::PARITY_PIECES);
            (degraded + u64::from(is_degraded), lost + u64::from(is_lost), all + missing as u64)
        });
        let held_bytes = self.table.containers.len() as u64 * u64::from(self.shape.container_bytes());
        let live_bytes: u64 = self.table.containers.values().map(|container| container.live_bytes).sum();
        let ratio = |of: u64, to: u64| if to == 0 { 1.0 } else { of as f64 / to as f64 };
        LoggedReading {
            used_bytes: self.table.users * size,
            unique_bytes: contents * size,
            stored_bytes: self.table.stored_bytes,
            deduplication: ratio(self.table.users, contents),
            compression: ratio(contents * size, self.table.stored_bytes),
            containers: self.table.containers.len() as u32,
            containers_most: self.containers_most,
            live_share: ratio(live_bytes, held_bytes),
            degraded,
            lost,
            missing_pieces,
            lost_blocks: self.lost_contents(),
            restored_pieces: self.counts.restored,
            healed_blocks: self.counts.healed,
            reclaimed_containers: self.counts.cleaned,
            appended_bytes: self.counts.appended_bytes,
            moved_bytes: self.counts.moved_bytes,
            file_bytes: self.file_bytes(),
        }
    }

    pub fn file_bytes(&self) -> u64 {
        self.disks.iter().map(Disk::used_bytes).sum::<u64>() + self.journal.used_bytes()
    }

    /// Writes the cache to disks and closes the store.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn close(mut self) -> Result<(), ServeError> {
        self.destage_for("stop")?;
        self.raise(true)
    }
}

impl Cached for LoggedStore {
    fn cache(&self) -> &Volatile {
        &self.volatile
    }

    fn cache_mut(&mut self) -> &mut Volatile {
        &mut self.volatile
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn write_out(&mut self, (_, number): Place, bytes: &[u8]) -> Result<(), StoreFault> {
        self.write_to_log(&[(number, bytes.try_into().expect("blocks have one size"))])
    }

    fn attributes(&self, volume: usize) -> &BTreeMap<String, Vec<u8>> {
        &self.table.attributes[volume]
    }
}
