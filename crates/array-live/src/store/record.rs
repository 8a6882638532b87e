//! The record of a store: it opens only for the array that it was made for.

use std::{
    collections::BTreeMap,
    fs::File,
    time::{SystemTime, UNIX_EPOCH},
};

use assay_array_model::{ArrayModel, ArrayPlan};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    disk::{BLOCK_BYTES, DiskRecord, DiskState},
    files::{self, LOCK, SOCKET, Supply},
    kept::{Era, StoreId},
};
use crate::{ServeError, folder::Folder};

/// Files of a group's record.
pub(super) const RECORDS: Records = Records { copies: ["store.json", "store.copy"], beside: "store.new" };

/// Layout of the files beneath.
const VERSION: u32 = 3;

/// Most members that join a store.
pub(super) const MEMBERS_MOST: u32 = 256;
/// Most sizes that volumes are given, one after the other.
pub(super) const ENLARGED_MOST: usize = 1000;

/// Layout of a store: it decides where each byte lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layout {
    version: u32,
    seed: u64,
    page_bytes: u64,
    members: Vec<MemberLayout>,
    /// Names and sizes.
    volumes: Vec<(String, u64)>,
    sums: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MemberLayout {
    raid: String,
    sets: u32,
    set_disks: u32,
    chunk_bytes: u64,
    bytes: u64,
}

/// State of a store: it changes while the array is served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// By member.
    pub(super) disks: Vec<Vec<DiskRecord>>,
    pub(super) spares: Vec<u32>,
    /// Oldest first.
    pub(super) snapshots: Vec<String>,
    /// The snapshot that volumes are being reverted to.
    #[serde(default)]
    pub(super) reverting: Option<String>,
    /// Share of the pool that was filled, and what others take of the room for it.
    #[serde(default)]
    pub(super) filled_percent: u32,
    #[serde(default)]
    pub(super) filled_bytes: u64,
    /// Attributes of each volume.
    pub(super) attributes: Vec<BTreeMap<String, Vec<u8>>>,
    /// Members that joined since the store was made.
    #[serde(default)]
    pub(super) added: u32,
    /// Sizes that volumes were given since, oldest first.
    #[serde(default)]
    pub(super) enlarged: Vec<Enlarged>,
}

/// A volume was given a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Enlarged {
    pub(super) volume: u16,
    pub(super) bytes: u64,
    /// Members that had joined by then.
    pub(super) joined: u32,
}

impl State {
    /// Whether the state can belong to an array, with volumes as large as they are and before later members joined.
    pub(super) fn fits(&self, plan: &ArrayPlan, model: &ArrayModel) -> bool {
        let members = model.members().checked_add(self.added).map(|members| members as usize);
        let has_disk = |(member, disks): (usize, &Vec<DiskRecord>)| {
            // Those that joined are like the first.
            let member = if member < model.members() as usize { member as u32 } else { 0 };
            let geometry = model.geometry(member);
            let bytes = geometry.disk_bytes(model.places_bytes(member));
            let fits = |record: &DiskRecord| {
                let is_reached = |rows: u64| rows <= bytes / geometry.chunk_bytes();
                record.bad.end() <= bytes.div_ceil(BLOCK_BYTES)
                    && !matches!(record.state, DiskState::Rebuilding { rows } if !is_reached(rows))
            };
            disks.len() as u64 == u64::from(geometry.sets()) * u64::from(geometry.set_disks()) && disks.iter().all(fits)
        };
        let has_name = |name: &String| refuse_name(name).is_ok();
        self.added <= MEMBERS_MOST
            && members.is_some_and(|members| self.disks.len() == members && self.spares.len() == members)
            && self.disks.iter().enumerate().all(has_disk)
            && self.attributes.len() == plan.volumes().count()
            && self.snapshots.iter().all(has_name)
            && self.reverting.as_ref().is_none_or(|name| self.snapshots.contains(name))
            && self.enlarged.len() <= ENLARGED_MOST
            && self.enlarged.iter().all(|enlarged| enlarged.joined <= self.added)
            && self.filled_percent <= 100
            && self.filled_bytes <= u64::MAX / 4
    }
}

impl Layout {
    pub(super) fn new(plan: &ArrayPlan, model: &ArrayModel, sums: bool) -> Self {
        let members = (0..model.members()).map(|member| {
            let geometry = model.geometry(member);
            MemberLayout {
                raid: geometry.policy().name().to_owned(),
                sets: geometry.sets(),
                set_disks: geometry.set_disks(),
                chunk_bytes: geometry.chunk_bytes(),
                bytes: model.member_bytes(member),
            }
        });
        Self {
            version: VERSION,
            seed: plan.seed,
            page_bytes: plan.page_bytes,
            members: members.collect(),
            volumes: plan.volumes().map(|volume| (volume.name.clone(), volume.bytes)).collect(),
            sums,
        }
    }

    /// In which respect another layout differs, for whoever is to understand why it is refused.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let of =
            |what: &str, here: String, there: String| (here != there).then(|| format!("{what} {here}, not {there}"));
        let raid = |layout: &Self| {
            let member = |member: &MemberLayout| {
                let MemberLayout { raid, sets, set_disks, chunk_bytes, .. } = member;
                format!("RAID {raid}, {sets} x {set_disks} disks, chunks of {chunk_bytes}")
            };
            layout.members.iter().map(member).collect::<Vec<_>>().join("; ")
        };
        let volumes = |layout: &Self| {
            let volume = |(name, bytes): &(String, u64)| format!("{name} of {bytes}");
            layout.volumes.iter().map(volume).collect::<Vec<_>>().join(", ")
        };
        let sums = |layout: &Self| if layout.sums { "with sums" } else { "without sums" }.to_owned();
        of("members:", self.members.len().to_string(), other.members.len().to_string())
            .or_else(|| of("members of", raid(self), raid(other)))
            .or_else(|| of("volumes", volumes(self), volumes(other)))
            .or_else(|| of("blocks", sums(self), sums(other)))
            .or_else(|| (self != other).then(|| "another version, seed or page size".to_owned()))
    }
}

/// Record of a store, in two copies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record<L, S> {
    /// How often it was written.
    pub(crate) written: u64,
    store: String,
    settled: u64,
    issued: u64,
    /// Whether the server that had the store last closed it.
    pub(crate) is_closed: bool,
    pub(crate) layout: L,
    pub(crate) state: S,
}

impl<L, S> Record<L, S> {
    /// The record of a store that is to be made.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub(crate) fn new(layout: L, state: S) -> Result<Self, ServeError> {
        let mut id = StoreId::default();
        // SAFETY: the memory is that of the array.
        let drawn = unsafe { libc::getrandom(id.as_mut_ptr().cast(), id.len(), 0) };
        if drawn != id.len() as isize {
            return Err(ServeError::host("random numbers", std::io::Error::last_os_error()));
        }
        let store = id.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { written: 0, store, settled: 0, issued: 0, is_closed: false, layout, state })
    }

    /// Which generations the files of the store may have. None: the record is damaged.
    pub(crate) fn era(&self) -> Option<Era> {
        let digits = self.store.as_bytes();
        if digits.len() != 32 || self.settled > self.issued || self.written > u64::MAX / 2 {
            return None;
        }
        let mut store = StoreId::default();
        for (byte, pair) in store.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Era { store, settled: self.settled, issued: self.issued })
    }

    /// A generation is about to be given to files: later than all before, and another one wherever a copy of the store lives on.
    pub(crate) fn issue(&mut self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        self.issued = now.max(self.issued.saturating_add(1));
        self.issued
    }

    /// All files have the generation that was issued last.
    pub(crate) fn settle(&mut self, is_closed: bool) {
        (self.settled, self.is_closed) = (self.issued, is_closed);
    }
}

/// Most bytes of a record.
const RECORD_MOST_BYTES: u64 = 256 << 20;
/// Beginning of a record's last line, before the sum of all bytes before it.
const SUM: &str = "\nsum ";

/// The files of a record: two copies, and what one is called while it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Records {
    pub(crate) copies: [&'static str; 2],
    pub(crate) beside: &'static str,
}

impl Records {
    /// Whether one of both is there, in whichever state.
    pub(crate) fn are_there(&self, folder: &Folder) -> Result<bool, ServeError> {
        Ok(folder.has(self.copies[0])? || folder.has(self.copies[1])?)
    }

    /// Holds the folder for one server, and refuses a folder with other files where there is no store yet.
    ///
    /// # Errors
    /// The folder holds something else, or another server uses it.
    pub(crate) fn hold(&self, folder: &Folder, refused: &str) -> Result<File, ServeError> {
        if !self.are_there(folder)? {
            folder.refuse_others(|name| name == LOCK || name == self.beside, |_| false, refused)?;
        }
        let lock = files::lock(folder)?;
        folder.close_to_others()?;
        Ok(lock)
    }

    /// The record of the store in a folder. Where there is no store, the record of a new one is written at once: the files that
    /// are made afterwards belong to it, also when making them is cut short.
    ///
    /// # Errors
    /// The folder holds files of something else, the record cannot be read, or not be written.
    pub(crate) fn read_or_make<L, S>(
        &self,
        folder: &Folder,
        is_file: impl Fn(&str) -> bool,
        supply: &Supply,
        make: impl FnOnce() -> (L, S),
    ) -> Result<Record<L, S>, ServeError>
    where
        Record<L, S>: Serialize + DeserializeOwned,
    {
        if self.are_there(folder)? {
            folder.refuse_others(is_file, |name| name == SOCKET, "not only a store")?;
            return self.read(folder);
        }
        let (layout, state) = make();
        let mut record = Record::new(layout, state)?;
        record.written += 1;
        self.write(folder, &record, supply)?;
        Ok(record)
    }

    /// The newest copy that is whole.
    ///
    /// # Errors
    /// Neither is whole, both are of different stores, or one is no file of a store.
    pub(crate) fn read<L, S>(&self, folder: &Folder) -> Result<Record<L, S>, ServeError>
    where
        Record<L, S>: DeserializeOwned,
    {
        let [first, second] = self.copies;
        let mut whole: Vec<Record<L, S>> = Vec::new();
        let mut why = Vec::new();
        for name in self.copies {
            match folder.read(name, RECORD_MOST_BYTES)?.map(|bytes| parsed::<Record<L, S>>(&bytes)) {
                None => why.push(format!("{name} is missing")),
                Some(Err(error)) => why.push(format!("{name} {error}")),
                Some(Ok(record)) if record.era().is_none() => why.push(format!("{name} is damaged: its numbers")),
                Some(Ok(record)) => whole.push(record),
            }
        }
        if whole.iter().any(|record| record.store != whole[0].store) {
            let message = format!("and {second} are of different stores; remove the one that does not belong here");
            return Err(folder.refused(first, message));
        }
        // Of two that are as new the first is taken.
        whole.into_iter().rev().max_by_key(|record| record.written).ok_or_else(|| {
            let shown = folder.shown().display();
            ServeError::refused(format!(
                "{shown}: {}; put one back from a copy, or name another folder",
                why.join(", ")
            ))
        })
    }

    /// Writes both copies. Once the first is there the record is written; a second one that cannot be is once the record is written
    /// again.
    ///
    /// # Errors
    /// The first cannot be written; the record is as it was before.
    pub(crate) fn write<T: Serialize>(&self, folder: &Folder, value: &T, supply: &Supply) -> Result<(), ServeError> {
        let mut text = serde_json::to_vec_pretty(value).expect("records are plain");
        let sum = crc32c::crc32c(&text);
        text.extend_from_slice(format!("{SUM}{sum:08x}\n").as_bytes());
        let [first, second] = self.copies;
        files::replace(folder, first, self.beside, &text, supply)?;
        let _ = files::replace(folder, second, self.beside, &text, supply);
        Ok(())
    }
}

/// The value of a record, if its sum says that it is whole.
fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let sum_bytes = SUM.len() + 9;
    let (text, last) = bytes.split_at_checked(bytes.len().saturating_sub(sum_bytes)).unwrap_or_default();
    if last != format!("{SUM}{:08x}\n", crc32c::crc32c(text)).as_bytes() {
        let is_earlier = serde_json::from_slice::<serde_json::Value>(bytes)
            .is_ok_and(|value| value.get("version").is_some_and(serde_json::Value::is_u64));
        return Err(if is_earlier {
            "was written by an earlier version of Assay, whose stores this one does not read".to_owned()
        } else {
            "is damaged: its sum does not agree".to_owned()
        });
    }
    serde_json::from_slice(text).map_err(|error| format!("is damaged: {error}"))
}

/// Refuses a store that was made for another array.
pub(crate) fn refuse_layout(folder: &Folder, difference: &str, since: &str) -> ServeError {
    let shown = folder.shown().display();
    ServeError::refused(format!(
        "{shown}: the store is of another array: {difference}; name another folder, or serve what it was made for{since}"
    ))
}

/// The record is older than a file of the store: with it, bytes would be looked for where they no longer lie.
pub(crate) fn refuse_newer(folder: &Folder, name: &str) -> ServeError {
    folder.refused(name, "is newer than the record of the store, which is an older copy; put the newest record back")
}

/// No disk is left: rather than of all disks this is of the folder, which may be that of other disks, or not be there at all.
pub(crate) fn refuse_all_gone(folder: &Folder, first: &str) -> ServeError {
    let shown = folder.shown().display();
    ServeError::refused(format!(
        "{shown}: of no disk the files can be used, such as {first}; put back what belongs here"
    ))
}

/// Refuses a text that is no name of a snapshot.
pub(crate) fn refuse_name(name: &str) -> Result<(), ServeError> {
    let is_name =
        !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if !is_name {
        return Err(ServeError::refused(format!("{name:?}: a snapshot's name is letters, digits, - and _")));
    }
    Ok(())
}
