//! The bytes of a modelled array: a sparse file for each disk, with the parity of its policy.
//!
//! Nothing here knows time. What was written through [`Store::write`] is acknowledged; it is on disks, or with a volatile cache in
//! memory until it is destaged. A pulled disk's bytes are gone.

mod cached;
pub(crate) mod disk;
mod enlarging;
pub(crate) mod files;
mod finding;
mod following;
mod growth;
#[cfg(test)]
mod hostile;
mod joining;
mod journal;
pub(crate) mod kept;
mod member;
mod opening;
mod places;
mod progress;
mod raising;
mod ranges;
pub(crate) mod record;
mod snapshot;
mod snapshots;
pub(crate) mod volatile;

use std::{cell::RefCell, collections::BTreeMap, fs::File};

use assay_array_model::Part;
pub use cached::Cached;
pub use disk::DiskState;
use disk::{Disk, DiskRecord};
use files::Supply;
pub use finding::Finding;
use growth::Growth;
use journal::{Change, Journal, Noted};
use member::Member;
use progress::Progress;
pub(crate) use record::refuse_name;
use record::{Layout, Record, State};
use snapshot::Snapshot;
pub use snapshot::SnapshotReading;
pub use volatile::Durability;
use volatile::{Place, Volatile};

use crate::{ServeError, StoreFault, folder::Folder};

pub struct Store {
    folder: Folder,
    /// The record as it was written last. Its state is made anew from the other fields.
    record: RefCell<Record<Layout, State>>,
    members: Vec<Member>,
    spares: Vec<u32>,
    durability: Durability,
    volatile: Volatile,
    snapshots: Vec<Snapshot>,
    /// The snapshot that volumes are being reverted to.
    reverting: Option<String>,
    attributes: Vec<BTreeMap<String, Vec<u8>>>,
    journal: Journal,
    /// Rows rebuilt of each disk.
    progress: Progress,
    supply: Supply,
    /// Bytes written since free space was checked.
    unasked_bytes: u64,
    room_bytes: Option<u64>,
    growth: Growth,
    /// Share of the pool that `fill` took, and the bytes it counts as used by others.
    filled_percent: u32,
    filled_bytes: u64,
    /// Faults in files of the store, found when it was opened.
    findings: Vec<Finding>,
    /// Held as long as the store is open.
    lock: Option<File>,
}

/// Room that is left free where the store lies.
const MARGIN_BYTES: u64 = 16 << 20;
const ASK_BYTES: u64 = 4 << 20;
/// Where the store was given less room than there is.
const ASK_OFTEN_BYTES: u64 = 64 << 10;
impl Store {
    /// Finishes a change that was noted and not ended: by a killed server, or before a file failed.
    fn settle(&mut self) -> Result<(), StoreFault> {
        if self.journal.is_pending {
            match self.journal.noted()? {
                Some((member, change)) if self.has(member, &change) => self.make(member, &change)?,
                Some(_) => return Err(Noted::Damaged("what is noted is no change of this array").into()),
                None => self.journal.clear()?,
            }
        }
        if self.reverting.is_some() { self.go_back() } else { Ok(()) }
    }

    /// Whether a member can make the change.
    fn has(&self, member: u32, change: &Change) -> bool {
        self.members.get(member as usize).is_some_and(|member| member.takes(change))
    }

    /// Notes a change of a member and makes it.
    fn commit(&mut self, member: u32, change: &Change) -> Result<(), StoreFault> {
        self.journal.note(member, change)?;
        self.make(member, change)
    }

    fn make(&mut self, member: u32, change: &Change) -> Result<(), StoreFault> {
        self.members[member as usize].make(change)?;
        if change.has_marks() {
            self.write_marks()?;
        }
        Ok(self.journal.clear()?)
    }

    fn write_marks(&self) -> Result<(), StoreFault> {
        self.write_state().map_err(|error| StoreFault::Io(std::io::Error::other(error.to_string())))
    }

    /// Makes changes of files fail after `changes`, in the middle of one: for good, or only once. For proofs.
    pub fn end_changes_after(&mut self, changes: u64, comes_back: bool) {
        self.supply.end_after(changes, comes_back);
    }

    /// Reads a part of a volume, as it was last acknowledged.
    ///
    /// # Errors
    /// Its bytes are lost, or a file of the store fails.
    pub fn read(&mut self, part: Part, bytes: &mut [u8]) -> Result<(), StoreFault> {
        debug_assert_eq!(part.bytes, bytes.len() as u64);
        self.settle()?;
        if self.volatile.bytes() == 0 {
            return self.members[part.member as usize].read(part.at_bytes, bytes);
        }
        let mut done = 0;
        while done < part.bytes {
            let at_bytes = part.at_bytes + done;
            let within = at_bytes % volatile::BLOCK_BYTES;
            let count = (volatile::BLOCK_BYTES - within).min(part.bytes - done);
            let piece = &mut bytes[done as usize..(done + count) as usize];
            match self.volatile.get((part.member, at_bytes / volatile::BLOCK_BYTES)) {
                Some(block) => piece.copy_from_slice(&block[within as usize..(within + count) as usize]),
                None => self.members[part.member as usize].read(at_bytes, piece)?,
            }
            done += count;
        }
        Ok(())
    }

    /// Writes a part of a volume; once this returns, the write may be acknowledged.
    ///
    /// # Errors
    /// Its bytes cannot be kept, the store has no room, or a file of it fails.
    pub fn write(&mut self, part: Part, bytes: &[u8]) -> Result<(), StoreFault> {
        debug_assert_eq!(part.bytes, bytes.len() as u64);
        self.ask_room(part.bytes)?;
        if self.durability == Durability::Battery {
            return self.write_to_disks(part.member, part.at_bytes, bytes);
        }
        let mut done = 0;
        while done < part.bytes {
            let at_bytes = part.at_bytes + done;
            let within = at_bytes % volatile::BLOCK_BYTES;
            let count = (volatile::BLOCK_BYTES - within).min(part.bytes - done);
            let place = (part.member, at_bytes / volatile::BLOCK_BYTES);
            let mut block = match self.volatile.get(place) {
                Some(block) => block.to_vec(),
                None => self.block_on_disks(place)?,
            };
            block[within as usize..][..count as usize].copy_from_slice(&bytes[done as usize..][..count as usize]);
            self.volatile.put(place, block);
            done += count;
        }
        Ok(())
    }

    fn block_on_disks(&mut self, (member, block): (u32, u64)) -> Result<Vec<u8>, StoreFault> {
        let mut bytes = vec![0; volatile::BLOCK_BYTES as usize];
        self.members[member as usize].read(block * volatile::BLOCK_BYTES, &mut bytes)?;
        Ok(bytes)
    }

    fn write_to_disks(&mut self, member: u32, at_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        self.settle()?;
        self.keep_for_snapshot(member, at_bytes, bytes.len() as u64)?;
        self.put_on_disks(member, at_bytes, bytes)
    }

    fn put_on_disks(&mut self, member: u32, at_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        let mut done = 0;
        while done < bytes.len() {
            let (change, count) = self.members[member as usize].change(at_bytes + done as u64, &bytes[done..])?;
            self.commit(member, &change)?;
            done += count;
        }
        Ok(())
    }

    /// Refuses a write for which there is no room even without what moved blocks left behind, before a part of it is written.
    fn ask_room(&mut self, bytes: u64) -> Result<(), StoreFault> {
        match self.room_for(bytes) {
            Err(StoreFault::Full) => {
                (0..self.members()).try_for_each(|member| self.tidy(member, true))?;
                self.room_for(bytes)
            }
            asked => asked,
        }
    }

    fn room_for(&mut self, bytes: u64) -> Result<(), StoreFault> {
        self.unasked_bytes += bytes;
        let ask_bytes = if self.room_bytes.is_some() { ASK_OFTEN_BYTES } else { ASK_BYTES };
        if self.unasked_bytes < ask_bytes {
            return Ok(());
        }
        if self.room_bytes.is_some_and(|most| self.used_bytes() + self.filled_bytes + bytes > most) {
            return Err(StoreFault::Full);
        }
        if files::free_bytes(self.journal.file().file()).is_some_and(|free| free < MARGIN_BYTES + bytes * 3) {
            return Err(StoreFault::Full);
        }
        self.unasked_bytes = 0;
        Ok(())
    }

    /// Counts the store's space as used by others, until `percent` of it is used. Returns whether the store has a
    /// limit: without one it takes the space it needs.
    ///
    /// # Errors
    /// As much is used already, or a file of the store fails.
    pub fn fill(&mut self, percent: u32) -> Result<bool, ServeError> {
        if let Some(room_bytes) = self.room_bytes {
            let (wanted, used) = (room_bytes / 100 * u64::from(percent), self.used_bytes());
            if wanted <= used + self.filled_bytes {
                let used_percent = (used + self.filled_bytes) * 100 / room_bytes.max(1);
                return Err(ServeError::refused(format!("fill: {used_percent} % of the store's room is used already")));
            }
            self.filled_bytes = wanted - used;
            self.unasked_bytes = ASK_BYTES;
        }
        self.filled_percent = percent;
        self.write_state()?;
        Ok(self.room_bytes.is_some())
    }

    pub fn has_room_limit(&self) -> bool {
        self.room_bytes.is_some()
    }

    /// Share of the pool that was filled.
    pub fn filled_percent(&self) -> u32 {
        self.filled_percent
    }

    /// Bytes that the disks' files take.
    pub fn used_bytes(&self) -> u64 {
        self.members.iter().flat_map(|member| &member.disks).map(Disk::used_bytes).sum()
    }

    /// Pulls a disk out: its bytes are gone. Says how many chunks of data are lost now.
    ///
    /// # Errors
    /// There is no disk, or a file of the store fails.
    pub fn pull(&mut self, member: u32, disk: u32) -> Result<u64, ServeError> {
        let name = disk_name(member, disk);
        self.settle()
            .map_err(|fault| ServeError::refused(format!("{name}: a write before cannot be ended: {fault}")))?;
        let pulled = self.disk_mut(member, disk)?;
        if pulled.record.state == DiskState::Absent {
            return Err(ServeError::refused(format!("{name}: is pulled already")));
        }
        self.set_record(member, disk, DiskRecord::absent())?;
        // The disk is gone. What cannot be wiped now is before a disk takes its place.
        let _ = self.disk_mut(member, disk)?.empty();
        Ok(self.lost_chunks(member))
    }

    /// Writes a disk's new state. If that fails, the state stays as before.
    fn set_record(&mut self, member: u32, disk: u32, record: DiskRecord) -> Result<(), ServeError> {
        let before = std::mem::replace(&mut self.disk_mut(member, disk)?.record, record);
        if let Err(error) = self.write_state() {
            self.disk_mut(member, disk)?.record = before;
            return Err(error);
        }
        Ok(())
    }

    /// Chunks of data that would be lost with a disk.
    ///
    /// # Errors
    /// There is no disk.
    pub fn lost_with(&mut self, member: u32, disk: u32) -> Result<u64, ServeError> {
        let slot = self.disk_mut(member, disk)?;
        let state = std::mem::replace(&mut slot.record.state, DiskState::Absent);
        let lost = self.lost_chunks(member);
        self.disk_mut(member, disk)?.record.state = state;
        Ok(lost - self.lost_chunks(member))
    }

    /// Chunks of a member's data that are lost with its disks' present state.
    pub fn lost_chunks(&self, member: u32) -> u64 {
        self.members[member as usize].lost_chunks()
    }

    /// Puts an empty disk into an empty slot, to be rebuilt row by row.
    ///
    /// # Errors
    /// The slot has a disk, or a file of the store fails; the slot is empty as before then.
    pub fn replace(&mut self, member: u32, disk: u32) -> Result<(), ServeError> {
        let name = disk_name(member, disk);
        let slot = self.disk_mut(member, disk)?;
        if slot.record.state != DiskState::Absent {
            return Err(ServeError::refused(format!("{name}: the slot has a disk; pull it first")));
        }
        let bad = slot.record.bad.clone();
        let wiped = slot.wipe();
        // No two rebuilds have one number.
        let rebuild = self.record.borrow().written + 1;
        let begun = wiped.and_then(|()| self.progress.note(member, disk, rebuild, 0));
        begun.map_err(|error| ServeError::at(self.folder.shown(), error))?;
        let record = DiskRecord { state: DiskState::Rebuilding { rows: 0 }, bad, rebuild };
        self.set_record(member, disk, record)
    }

    /// Writes rows of a disk under rebuild until the first `rows` are written, at most `most` of them now. Returns
    /// whether they all are.
    ///
    /// # Errors
    /// The store has no room, or a file of it fails.
    pub fn rebuild_to(&mut self, member: u32, disk: u32, rows: u64, most: u64) -> Result<bool, StoreFault> {
        self.settle()?;
        let last = rows.min(self.members[member as usize].rows());
        for _ in 0..most {
            match self.disk_state(member, disk) {
                DiskState::Rebuilding { rows } if rows < last => {
                    if self.members[member as usize].rebuild_row(disk)? {
                        self.write_marks()?;
                    }
                    let rebuild = self.members[member as usize].disks[disk as usize].record.rebuild;
                    self.progress.note(member, disk, rebuild, rows + 1)?;
                }
                _ => return Ok(true),
            }
        }
        Ok(!matches!(self.disk_state(member, disk), DiskState::Rebuilding { rows } if rows < last))
    }

    /// A disk whose rows are all written is whole.
    ///
    /// # Errors
    /// A file of the store fails; the rebuild has not ended then.
    pub fn end_rebuild(&mut self, member: u32, disk: u32) -> Result<(), ServeError> {
        let all = self.members[member as usize].rows();
        let mut record = self.disk_mut(member, disk)?.record.clone();
        if record.state == (DiskState::Rebuilding { rows: all }) {
            record.state = DiskState::Present;
        }
        self.set_record(member, disk, record)
    }

    pub fn disk_state(&self, member: u32, disk: u32) -> DiskState {
        self.members[member as usize].disks[disk as usize].record.state
    }

    /// Chunks of a disk that were lost before they could be rebuilt.
    pub fn bad_rows(&self, member: u32, disk: u32) -> u64 {
        let member = &self.members[member as usize];
        member.disks[disk as usize].record.bad.groups(member.chunk_bytes() / disk::BLOCK_BYTES)
    }

    /// Rows that may hold something.
    pub fn rows(&self, member: u32) -> u64 {
        self.members[member as usize].rows()
    }

    pub fn members(&self) -> u32 {
        self.members.len() as u32
    }

    pub fn disks(&self, member: u32) -> u32 {
        self.members[member as usize].disks.len() as u32
    }

    pub fn spares(&self, member: u32) -> u32 {
        self.spares[member as usize]
    }

    /// Adds to or takes from a member's spare disks.
    ///
    /// # Errors
    /// A file of the store fails.
    pub fn set_spares(&mut self, member: u32, spares: u32) -> Result<(), ServeError> {
        self.spares[member as usize] = spares;
        self.write_state()
    }

    /// Blocks of a member that did not agree with their sum and were computed again.
    pub fn healed(&self, member: u32) -> u64 {
        self.members[member as usize].healed
    }

    fn disk_mut(&mut self, member: u32, disk: u32) -> Result<&mut Disk, ServeError> {
        let found = self.members.get_mut(member as usize).and_then(|member| member.disks.get_mut(disk as usize));
        found.ok_or_else(|| ServeError::refused(format!("{}: there is no such disk", disk_name(member, disk))))
    }

    /// Changes `bytes` written bytes of a disk without a trace, from the first written byte at or after a place.
    /// Returns the place.
    ///
    /// # Errors
    /// There is no such disk or nothing was written there.
    pub fn corrupt(&mut self, member: u32, disk: u32, from_bytes: u64, bytes: u64) -> Result<u64, ServeError> {
        let folder = self.folder.shown().to_owned();
        let name = disk_name(member, disk);
        let slot = self.disk_mut(member, disk)?;
        let at_bytes = slot.first_data(from_bytes);
        let nothing = || ServeError::refused(format!("{name}: nothing was written there that could be corrupted"));
        let at_bytes = at_bytes.ok_or_else(nothing)?;
        slot.corrupt(at_bytes, bytes).map_err(|error| ServeError::at(&folder, error))?;
        Ok(at_bytes)
    }

    /// Sets or takes away an attribute of a volume.
    ///
    /// # Errors
    /// A file of the store fails.
    pub fn set_attribute(&mut self, volume: usize, name: &str, value: Option<&[u8]>) -> Result<(), ServeError> {
        match value {
            Some(value) => self.attributes[volume].insert(name.to_owned(), value.to_owned()),
            None => self.attributes[volume].remove(name),
        };
        self.write_state()
    }

    /// Flushes the cache and writes the state that the next start needs.
    ///
    /// # Errors
    /// A file of the store fails, or the cache cannot be written.
    pub fn close(mut self) -> Result<(), ServeError> {
        self.flush_for("stop")?;
        self.raise(true)
    }
}

impl Cached for Store {
    fn cache(&self) -> &Volatile {
        &self.volatile
    }

    fn cache_mut(&mut self) -> &mut Volatile {
        &mut self.volatile
    }

    fn durability(&self) -> Durability {
        self.durability
    }

    fn write_out(&mut self, (member, block): Place, bytes: &[u8]) -> Result<(), StoreFault> {
        self.write_to_disks(member, block * volatile::BLOCK_BYTES, bytes)
    }

    fn attributes(&self, volume: usize) -> &BTreeMap<String, Vec<u8>> {
        &self.attributes[volume]
    }
}

/// A disk as people and telemetry name it.
pub fn disk_name(member: u32, disk: u32) -> String {
    format!("member{member}/disk{disk}")
}

fn disk_file(member: u32, disk: u32) -> String {
    format!("member{member}-disk{disk}.img")
}
