//! A store of an array with flash in its hosts is opened, or made where there is none.

use std::{collections::BTreeSet, path::Path};

use assay_array_model::HostFlashPlan;

use super::{
    Counts, LoggedStore, PoolRecord, RECORDS,
    block::BLOCK_BYTES,
    journal::{self, Held, Journal},
    layout::Layout,
    shape::{self, Shape},
    slots::Slots,
    table::Table,
    wire,
};
use crate::{
    Durability, Finding, ServeError,
    folder::Folder,
    store::{
        disk::{Disk, DiskRecord, DiskSize},
        files::{LOCK, Supply},
        kept::{Era, Unfit},
        record::{refuse_all_gone, refuse_layout, refuse_newer},
        volatile::Volatile,
    },
};

impl LoggedStore {
    /// Opens the store in a folder, or makes it.
    ///
    /// # Errors
    /// The folder holds a store of another layout or something else, another server uses it, or a file fails.
    pub fn open(
        folder: &Path,
        plan: &HostFlashPlan,
        durability: Durability,
        room_bytes: Option<u64>,
    ) -> Result<Self, ServeError> {
        Self::open_in(Folder::at(folder)?, plan, durability, room_bytes)
    }

    /// The same in a folder that is held.
    pub(crate) fn open_in(
        folder: Folder,
        plan: &HostFlashPlan,
        durability: Durability,
        room_bytes: Option<u64>,
    ) -> Result<Self, ServeError> {
        let shape = Shape::new(plan)?;
        let layout = Layout::new(plan);
        let containers_most = containers_most(shape, &layout, room_bytes)?;
        let lock = RECORDS.hold(&folder, "no store of such an array")?;
        let supply = Supply::default();
        let record = read_record(&folder, &layout, &supply)?;
        let era = record.era().expect("a record that was read has numbers");
        let (mut volumes, mut blocks) = (Vec::new(), 0);
        for volume in &plan.volumes {
            volumes.push(blocks);
            blocks += volume.bytes.div_ceil(BLOCK_BYTES as u64);
        }
        let table = Table::new(shape, blocks, volumes.len(), layout.disks as usize, slots_of_disk(shape, &layout));
        let (journal, table) = read_table(&folder, table, era, &supply)?;
        let (disks, gone) = open_disks(&folder, &layout, shape, &table, &era, &supply)?;
        if let Some((disk, why)) =
            gone.first().filter(|_| gone.len() == table.disks.iter().filter(|disk| **disk).count())
        {
            let first = format!("node{}/disk{}: its file {why}", disk / layout.node_disks, disk % layout.node_disks);
            return Err(refuse_all_gone(&folder, &first));
        }
        let used = table.containers.values().flat_map(|container| container.pieces.iter().flatten().copied());
        let slots = Slots::new(disks.len(), slots_of_disk(shape, &layout), used);
        let mut store = Self {
            folder,
            record,
            findings: Vec::new(),
            shape,
            table,
            journal,
            disks,
            slots,
            open_pieces: None,
            sealed_short: false,
            open_rows: 0,
            volumes,
            durability,
            volatile: Volatile::default(),
            restoring: None,
            unreadable: BTreeSet::new(),
            containers_most,
            counts: Counts::default(),
            supply,
            unasked_bytes: 0,
            _lock: lock,
        };
        store.raise(false)?;
        for (disk, why) in gone {
            store.pull_unusable(disk, layout.node_disks, &why)?;
        }
        Ok(store)
    }

    /// Pulls a disk whose file cannot be used, and keeps that as a finding.
    fn pull_unusable(&mut self, disk: u32, node_disks: u32, why: &Unfit) -> Result<(), ServeError> {
        let (node, number) = (disk / node_disks, disk % node_disks);
        let lost = match self.pull(disk, true)? {
            0 => String::new(),
            lost => format!("; {lost} blocks are lost, and reading them fails"),
        };
        let what = format!("node{node}/disk{number}: its file {why}: the disk counts as pulled{lost}");
        self.findings.push(Finding { what, disk: Some((node, number)) });
        Ok(())
    }
}

/// Slots for pieces on each disk.
fn slots_of_disk(shape: Shape, layout: &Layout) -> u32 {
    (layout.disk_bytes / u64::from(shape.piece_bytes)).min(u64::from(u32::MAX)) as u32
}

/// Most containers of the pool, as far as room was given.
fn containers_most(shape: Shape, layout: &Layout, room_bytes: Option<u64>) -> Result<u32, ServeError> {
    let row_bytes = u64::from(shape.piece_bytes) * shape.pieces() as u64;
    let pool = u64::from(slots_of_disk(shape, layout)) * u64::from(layout.disks) / shape.pieces() as u64;
    let room = room_bytes.map(|bytes| bytes / row_bytes);
    let most = pool.min(room.unwrap_or(u64::MAX)).min(u64::from(u32::MAX)) as u32;
    if most < shape::CONTAINERS_LEAST {
        let message = format!(
            "--room: {} bytes are room for {most} containers of {row_bytes} bytes with parity; give {} at least",
            room_bytes.unwrap_or_default(),
            u64::from(shape::CONTAINERS_LEAST) * row_bytes,
        );
        return Err(ServeError::Refused(message));
    }
    Ok(most)
}

fn read_record(folder: &Folder, layout: &Layout, supply: &Supply) -> Result<PoolRecord, ServeError> {
    let record = RECORDS.read_or_make(folder, is_file, supply, || (layout.clone(), ()))?;
    match record.layout.difference(layout) {
        Some(difference) => Err(refuse_layout(folder, &difference, "")),
        None => Ok(record),
    }
}

/// Has a table become what checkpoint and journal say.
fn read_table(folder: &Folder, mut table: Table, era: Era, supply: &Supply) -> Result<(Journal, Table), ServeError> {
    let (journal, Held { state, changes }) = Journal::open(folder.again()?, era, supply)?;
    let damaged = |name: &str| folder.refused(name, "is damaged: what it says cannot be; put it back from a copy");
    if let Some(state) = state {
        table.read_back(&mut wire::Reading(&state)).ok_or_else(|| damaged(journal::CHECKPOINT))?;
    }
    for change in &changes {
        if !table.takes(change) {
            return Err(damaged(journal::JOURNAL));
        }
        table.make(change);
    }
    // Slots of those may have been used again since.
    table.emptied.clear();
    Ok((journal, table))
}

/// Disks of which no file can be used, and why.
type Gone = Vec<(u32, Unfit)>;

/// Opens the files of all disks, and says which of those that should be there cannot be used.
fn open_disks(
    folder: &Folder,
    layout: &Layout,
    shape: Shape,
    table: &Table,
    era: &Era,
    supply: &Supply,
) -> Result<(Vec<Disk>, Gone), ServeError> {
    let size = DiskSize { bytes: layout.disk_bytes, chunk_bytes: u64::from(shape.piece_bytes), has_sums: false };
    let (mut disks, mut gone) = (Vec::new(), Vec::new());
    for (number, is_there) in (0..).zip(&table.disks) {
        let name = format!("node{}-disk{}.img", number / layout.node_disks, number % layout.node_disks);
        if era.is_new() {
            disks.push(Disk::make(folder, &name, size, era, supply)?);
            continue;
        }
        let record = if *is_there { DiskRecord::whole() } else { DiskRecord::absent() };
        let (mut disk, unfit) = Disk::open(folder, &name, size, record, era, supply)?;
        if !is_there {
            disk.empty().map_err(|error| ServeError::at(folder.shown(), error))?;
        }
        match unfit {
            Some((_, Unfit::Newer)) => return Err(refuse_newer(folder, &name)),
            Some((_, why)) => gone.push((number, why)),
            None => {}
        }
        disks.push(disk);
    }
    Ok((disks, gone))
}

/// Whether a store has files of such a name.
fn is_file(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    let of_disk = name.strip_prefix("node").and_then(|rest| rest.strip_suffix(".img")?.split_once("-disk"));
    RECORDS.copies.contains(&name)
        || [LOCK, RECORDS.beside, journal::JOURNAL, journal::CHECKPOINT, journal::CHECKPOINT_BESIDE].contains(&name)
        || of_disk.is_some_and(|(node, disk)| is_number(node) && is_number(disk))
}
