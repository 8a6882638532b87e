//! What is written down of a store, so that it is opened only as what it was made for.

use std::path::Path;

use assay_array::HostFlashPlan;
use serde::{Deserialize, Serialize};

use crate::{
    ServeError,
    store::{files::Supply, record},
};

/// Layout of the files beneath.
const VERSION: u32 = 1;

/// What decides where a byte lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layout {
    version: u32,
    container_bytes: u64,
    data_pieces: u32,
    parity_pieces: u32,
    pub(super) disks: u32,
    pub(super) node_disks: u32,
    pub(super) disk_bytes: u64,
    /// Names and sizes.
    volumes: Vec<(String, u64)>,
}

impl Layout {
    pub(super) fn new(plan: &HostFlashPlan) -> Self {
        let (log, node) = (&plan.log, &plan.node);
        Self {
            version: VERSION,
            container_bytes: log.container_bytes,
            data_pieces: log.data_pieces,
            parity_pieces: log.parity_pieces,
            disks: node.count * node.disks,
            node_disks: node.disks,
            disk_bytes: node.disk.capacity_bytes() / 4096 * 4096,
            volumes: plan.volumes.iter().map(|volume| (volume.name.clone(), volume.bytes)).collect(),
        }
    }

    /// Refuses a store of another layout; a new one gets this.
    pub(super) fn agree(&self, path: &Path, supply: &Supply) -> Result<(), ServeError> {
        let Some(found) = record::read::<Self>(path)? else { return record::write(path, self, supply) };
        let Some(difference) = found.difference(self) else { return Ok(()) };
        Err(ServeError::Refused(format!(
            "{}: the store is of another array: {difference}; name another folder, or serve what it was made for",
            path.parent().unwrap_or(path).display()
        )))
    }

    fn difference(&self, other: &Self) -> Option<String> {
        let of =
            |what: &str, here: String, there: String| (here != there).then(|| format!("{what} {here}, not {there}"));
        let volumes = |layout: &Self| {
            let volume = |(name, bytes): &(String, u64)| format!("{name} of {bytes}");
            layout.volumes.iter().map(volume).collect::<Vec<_>>().join(", ")
        };
        let pieces = |layout: &Self| format!("{}+{}", layout.data_pieces, layout.parity_pieces);
        of("disks:", self.disks.to_string(), other.disks.to_string())
            .or_else(|| of("volumes", volumes(self), volumes(other)))
            .or_else(|| of("containers of", pieces(self), pieces(other)))
            .or_else(|| (self != other).then(|| "another version, size of containers or disks".to_owned()))
    }
}
