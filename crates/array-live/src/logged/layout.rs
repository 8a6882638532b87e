//! Layout of a store. A store opens only for an array of the same layout.

use assay_array_model::HostFlashPlan;
use serde::{Deserialize, Serialize};

/// Layout of the files beneath.
const VERSION: u32 = 2;

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

    /// In which respect another layout differs, for whoever is to understand why it is refused.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
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
