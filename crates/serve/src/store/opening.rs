//! A store is opened, or made where there is none.

use std::{collections::BTreeMap, fs, path::Path};

use assay_array::{ArrayModel, ArrayPlan};

use super::{
    ASK_BYTES, STATE, Store,
    disk::{Disk, DiskRecord, DiskState},
    disk_path,
    files::{self, Kept, Supply, open_file},
    following::open_places,
    growth::Growth,
    journal::Journal,
    member::Member,
    progress_place,
    record::{self, Layout, State},
    snapshot::{Snapshot, snapshot_path},
    volatile::Volatile,
};
use crate::{Durability, ServeError, StoreFault};

const LAYOUT: &str = "store.json";

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
        let failed = |error| ServeError::at(folder, error);
        let layout = Layout::new(plan, model, sums);
        let is_new = !folder.join(LAYOUT).exists();
        if is_new && folder.exists() && !files::is_unused(folder, "store.new").map_err(failed)? {
            let message = format!("{}: is not empty and no store of Assay's; name another folder", folder.display());
            return Err(ServeError::refused(message));
        }
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = files::lock(folder)?;
        let supply = Supply::default();
        match record::read::<Layout>(&folder.join(LAYOUT))? {
            Some(found) => {
                if let Some(difference) = found.difference(&layout) {
                    let added = record::read::<State>(&folder.join(STATE))?.map_or(0, |state| state.added);
                    let since = if added > 0 { format!(", before {added} joined") } else { String::new() };
                    let message = format!(
                        "{}: the store is of another array: {difference}; name another folder, or serve what it was made \
                         for{since}",
                        folder.display()
                    );
                    return Err(ServeError::refused(message));
                }
            }
            None => record::write(&folder.join(LAYOUT), &layout, &supply)?,
        }
        let progress = Kept::open(&folder.join("progress"), &supply)?;
        let mut state = match record::read::<State>(&folder.join(STATE))? {
            Some(state) => state,
            None => fresh_state(plan, model),
        };
        let growth = Growth::restore(folder, open_file(&folder.join("moves"))?, state.added, plan, model)?;
        let mut members = Vec::new();
        for (number, records) in state.disks.drain(..).enumerate() {
            let geometry = model.geometry(number as u32).clone();
            let disk_bytes = geometry.disk_bytes(model.places_bytes(number as u32));
            let disks = records.into_iter().enumerate().map(|(disk, mut record)| {
                if let DiskState::Rebuilding { rows } = &mut record.state {
                    let mut reached = [0; 8];
                    let place = progress_place(number as u32, disk as u32);
                    *rows = progress.read_exact_at(&mut reached, place).map_or(0, |()| u64::from_le_bytes(reached));
                }
                let path = disk_path(folder, number as u32, disk as u32);
                Disk::open(path, disk_bytes, geometry.chunk_bytes(), sums, record, &supply)
            });
            let disks = disks.collect::<Result<Vec<_>, _>>()?;
            let places = open_places(folder, model, number as u32, &supply)?;
            members.push(Member::new(geometry, disks, sums, places)?);
        }
        let snapshots = state.snapshots.iter().map(|name| Snapshot::open(&snapshot_path(folder, name), name, &supply));
        let snapshots = snapshots.collect::<Result<Vec<_>, _>>()?;
        let mut store = Self {
            folder: folder.to_owned(),
            members,
            spares: state.spares,
            durability,
            volatile: Volatile::default(),
            snapshots,
            reverting: state.reverting,
            attributes: state.attributes,
            journal: Journal::open(&folder.join("journal"), &supply)?,
            progress,
            supply,
            unasked_bytes: ASK_BYTES,
            room_bytes,
            growth,
            filled_percent: state.filled_percent,
            filled_bytes: state.filled_bytes,
            _lock: lock,
        };
        let failed = |fault: StoreFault| {
            ServeError::host(folder.display().to_string(), std::io::Error::other(fault.to_string()))
        };
        store.settle().map_err(failed)?;
        for (number, member) in (0..).zip(&store.members) {
            let restored = model.restore_places(number, member.moved());
            restored.map_err(|error| ServeError::refused(format!("{}: is damaged: {error}", folder.display())))?;
        }
        store.write_state()?;
        Ok(store)
    }
}

fn fresh_state(plan: &ArrayPlan, model: &ArrayModel) -> State {
    let whole = DiskRecord { state: DiskState::Present, bad: Default::default() };
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
    }
}
