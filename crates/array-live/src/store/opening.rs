//! A store is opened, or made where there is none.
//!
//! First it is found out which files can be used: those that are the store's own, as new as its record says, and whole. A disk
//! whose files are not is gone, as if it were pulled. Then all that can be used gets a later generation, and only then a byte is
//! written.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    path::Path,
};

use assay_array_model::{ArrayModel, ArrayPlan};

use super::{
    ASK_BYTES, Finding, Store,
    disk::{Disk, DiskRecord, DiskSize, DiskState},
    disk_file, disk_name,
    files::{LOCK, Supply},
    following::open_places,
    growth::Growth,
    journal::{self, Journal},
    kept::{Era, Unfit},
    member::Member,
    progress::Progress,
    record::{self, Layout, RECORDS, Record, State},
    snapshot::{Snapshot, file_name},
    volatile::Volatile,
};
use crate::{Durability, ServeError, StoreFault, folder::Folder};

impl Store {
    /// Opens the store in a folder, or makes it. Members that have joined since it was made join the model, too, and blocks that
    /// have moved lie where they lay.
    ///
    /// # Errors
    /// The folder holds a store of another layout or something else, another server uses it, or a file fails.
    pub fn open(
        folder: &Path,
        plan: &ArrayPlan,
        model: &mut ArrayModel,
        durability: Durability,
        sums: bool,
        room_bytes: Option<u64>,
    ) -> Result<Self, ServeError> {
        Self::open_in(Folder::at(folder)?, plan, model, durability, sums, room_bytes)
    }

    /// The same in a folder that is held.
    pub(crate) fn open_in(
        folder: Folder,
        plan: &ArrayPlan,
        model: &mut ArrayModel,
        durability: Durability,
        sums: bool,
        room_bytes: Option<u64>,
    ) -> Result<Self, ServeError> {
        let lock = RECORDS.hold(&folder, "no store of Assay's")?;
        let supply = Supply::default();
        let record = read_record(&folder, plan, model, sums, &supply)?;
        let era = record.era().expect("a record that was read has numbers");
        let mut store = Opening { folder, era, supply, findings: Vec::new() }.open(record, plan, model, sums)?;
        (store.durability, store.room_bytes) = (durability, room_bytes);
        store.lock = Some(lock);
        store.raise(false)?;
        let settled = store.settle();
        settled.map_err(|fault| ServeError::at(store.folder.shown(), std::io::Error::other(fault.to_string())))?;
        for (number, member) in (0..).zip(&store.members) {
            let restored = model.restore_places(number, member.moved());
            restored.map_err(|error| {
                ServeError::refused(format!("{}: is damaged: {error}", store.folder.shown().display()))
            })?;
        }
        for (member, disk) in store.findings.clone().into_iter().filter_map(|finding| finding.disk) {
            let lost = store.lost_chunks(member);
            if lost > 0
                && let Some(finding) = store.findings.iter_mut().rfind(|finding| finding.disk == Some((member, disk)))
            {
                finding.what += &format!("; {lost} chunks of data of the member are lost, and reading them fails");
            }
        }
        Ok(store)
    }
}

fn read_record(
    folder: &Folder,
    plan: &ArrayPlan,
    model: &ArrayModel,
    sums: bool,
    supply: &Supply,
) -> Result<Record<Layout, State>, ServeError> {
    let layout = Layout::new(plan, model, sums);
    let record = RECORDS.read_or_make(folder, is_file, supply, || (layout.clone(), fresh_state(plan, model)))?;
    if let Some(difference) = record.layout.difference(&layout) {
        let added = record.state.added;
        let grown = if record.state.enlarged.is_empty() { "" } else { ", before volumes grew" };
        let since = if added > 0 { format!(", before {added} joined{grown}") } else { grown.to_owned() };
        return Err(record::refuse_layout(folder, &difference, &since));
    }
    let mut large = model.clone();
    let mut grown = record.state.enlarged.iter();
    let grows = grown.all(|one| large.grow_volume(plan, one.volume, one.bytes).is_ok());
    if !grows || !record.state.fits(plan, &large) {
        return Err(folder.refused(RECORDS.copies[0], "is damaged: what it says of the array cannot be"));
    }
    Ok(record)
}

/// State of a store that is being opened.
struct Opening {
    folder: Folder,
    era: Era,
    supply: Supply,
    findings: Vec<Finding>,
}

impl Opening {
    fn open(
        mut self,
        record: Record<Layout, State>,
        plan: &ArrayPlan,
        model: &mut ArrayModel,
        sums: bool,
    ) -> Result<Store, ServeError> {
        let Self { folder, era, supply, .. } = &self;
        let mut state = record.state.clone();
        let mut journal = Journal::open(folder, era, record.is_closed, supply)?;
        let growth = Growth::restore(folder, &state, plan, model, era, supply)?;
        let first_members = state.disks.len() - state.added as usize;
        let most_disks = state.disks.iter().map(Vec::len).max().unwrap_or(0);
        let progress = Progress::open(folder, first_members, most_disks, era, supply)?;
        let noted = journal.noted().map_err(|fault| folder.failed("journal", io_error(fault.into())))?;
        let mut members = Vec::new();
        for (number, records) in (0..).zip(state.disks.drain(..)) {
            let disks = self.disks(number, records, model, sums, &progress)?;
            let moves = noted.iter().filter(|(member, _)| *member == number).flat_map(|(_, change)| change.moves());
            let moves: HashMap<u64, u64> = moves.copied().collect();
            let places = open_places(&self.folder, model, number, &moves, &self.era, &self.supply)?;
            members.push(Member::new(model.geometry(number).clone(), disks, sums, places)?);
        }
        let disks = || members.iter().flat_map(|member: &Member| &member.disks);
        if !self.findings.is_empty() && disks().all(|disk| disk.record.state == DiskState::Absent) {
            return Err(record::refuse_all_gone(&self.folder, &self.findings[0].what));
        }
        if let Some((member, change)) = &noted {
            let takes = members.get(*member as usize).is_some_and(|member| member.takes(change));
            if !takes {
                return Err(journal::refuse_change(&self.folder));
            }
        }
        let snapshots = self.snapshots(&state, &members)?;
        Ok(Store {
            folder: self.folder,
            record: RefCell::new(record),
            members,
            spares: state.spares,
            durability: Durability::Battery,
            volatile: Volatile::default(),
            snapshots,
            reverting: state.reverting,
            attributes: state.attributes,
            journal,
            progress,
            supply: self.supply,
            unasked_bytes: ASK_BYTES,
            room_bytes: None,
            growth,
            filled_percent: state.filled_percent,
            filled_bytes: state.filled_bytes,
            findings: self.findings,
            lock: None,
        })
    }

    fn disks(
        &mut self,
        member: u32,
        records: Vec<DiskRecord>,
        model: &ArrayModel,
        has_sums: bool,
        progress: &Progress,
    ) -> Result<Vec<Disk>, ServeError> {
        let geometry = model.geometry(member);
        let bytes = geometry.disk_bytes(model.places_bytes(member));
        let size = DiskSize { bytes, chunk_bytes: geometry.chunk_bytes(), has_sums };
        let mut disks = Vec::new();
        for (number, mut record) in (0..).zip(records) {
            let name = disk_file(member, number);
            if self.era.is_new() {
                disks.push(Disk::make(&self.folder, &name, size, &self.era, &self.supply)?);
                continue;
            }
            if let DiskState::Rebuilding { rows } = &mut record.state {
                *rows = progress.rows(member, number, record.rebuild).min(bytes / size.chunk_bytes);
            }
            let (disk, unfit) = Disk::open(&self.folder, &name, size, record, &self.era, &self.supply)?;
            if let Some((file, why)) = unfit {
                if why == Unfit::Newer {
                    return Err(record::refuse_newer(&self.folder, &file));
                }
                let what = format!("{}: {file} {why}: the disk counts as pulled", disk_name(member, number));
                self.findings.push(Finding { what, disk: Some((member, number)) });
            }
            disks.push(disk);
        }
        Ok(disks)
    }

    /// Opens the snapshots. One whose file cannot be used is forgotten, with all that are older: these count on it.
    fn snapshots(&mut self, state: &State, members: &[Member]) -> Result<Vec<Snapshot>, ServeError> {
        let mut snapshots = Vec::new();
        for name in &state.snapshots {
            let opened = Snapshot::open(&self.folder, name, &self.era, &self.supply)?.and_then(|snapshot| {
                let is_inside = |(member, grain): (u32, u64)| {
                    members.get(member as usize).is_some_and(|member| member.has_grain(grain))
                };
                if snapshot.grains().all(is_inside) { Ok(snapshot) } else { Err(Unfit::Damaged("a place")) }
            });
            let why = match opened {
                Ok(snapshot) => {
                    snapshots.push(snapshot);
                    continue;
                }
                Err(why) => why,
            };
            if state.reverting.is_some() {
                let message = format!("{why}, and volumes are going back to a snapshot; put the file back from a copy");
                return Err(self.folder.refused(&file_name(name), message));
            }
            let older = if snapshots.is_empty() { "" } else { ", and so are all that are older" };
            snapshots.clear();
            let what = format!("snapshot {name}: {} {why}: the snapshot is forgotten{older}", file_name(name));
            self.findings.push(Finding { what, disk: None });
        }
        Ok(snapshots)
    }
}

fn io_error(fault: StoreFault) -> std::io::Error {
    std::io::Error::other(fault.to_string())
}

/// Whether a store has files of such a name.
fn is_file(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_disk = |text: &str| {
        let stem = text.strip_suffix(".img").or_else(|| text.strip_suffix(".sums"));
        stem.and_then(|stem| stem.split_once("-disk"))
            .is_some_and(|(member, disk)| is_number(member) && is_number(disk))
    };
    let is_places = |text: &str| text.strip_suffix("-places").is_some_and(is_number);
    let is_snapshot = |text: &str| text.strip_suffix(".log").is_some_and(|name| super::refuse_name(name).is_ok());
    RECORDS.copies.contains(&name)
        || [LOCK, RECORDS.beside, "journal", "progress", "moves", "moves.copy"].contains(&name)
        || name.strip_prefix("member").is_some_and(|rest| is_disk(rest) || is_places(rest))
        || name.strip_prefix("snapshot-").is_some_and(is_snapshot)
}

fn fresh_state(plan: &ArrayPlan, model: &ArrayModel) -> State {
    let whole = DiskRecord::whole();
    let pools = plan.pools.iter().flat_map(|pool| (0..pool.members).map(|_| pool.member.spares));
    State {
        disks: (0..model.members())
            .map(|member| {
                let geometry = model.geometry(member);
                vec![whole.clone(); (geometry.sets() * geometry.set_disks()) as usize]
            })
            .collect(),
        spares: pools.collect(),
        snapshots: Vec::new(),
        reverting: None,
        filled_percent: 0,
        filled_bytes: 0,
        attributes: plan.volumes().map(|_| BTreeMap::new()).collect(),
        added: 0,
        enlarged: Vec::new(),
    }
}
