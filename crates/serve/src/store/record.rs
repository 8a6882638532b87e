//! What is written down of a store, so that it is opened only as what it was made for.

use std::{collections::BTreeMap, fs, path::Path};

use assay_array::{ArrayModel, ArrayPlan};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    disk::DiskRecord,
    files::{self, Supply},
};
use crate::ServeError;

/// Layout of the files beneath.
const VERSION: u32 = 2;

/// What decides where a byte lies.
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

/// What changes while the array is served.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// By member.
    pub(super) disks: Vec<Vec<DiskRecord>>,
    pub(super) spares: Vec<u32>,
    /// Oldest first.
    pub(super) snapshots: Vec<String>,
    /// The one that volumes go back to, where that has begun and not ended.
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

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ServeError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ServeError::at(path, error)),
    };
    let damaged = |error| ServeError::refused(format!("{}: is damaged: {error}", path.display()));
    serde_json::from_slice(&text).map(Some).map_err(damaged)
}

/// Replaces a record as a whole.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T, supply: &Supply) -> Result<(), ServeError> {
    let text = serde_json::to_vec_pretty(value).expect("records are plain");
    files::replace(path, &text, supply).map_err(|error| ServeError::at(path, error))
}
