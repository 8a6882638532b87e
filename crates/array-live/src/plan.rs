//! Plan of a served array.

use std::{net::SocketAddr, path::PathBuf};

use assay_array_model::{HostFlashPlan, ModelPlan};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use crate::{Durability, ServeError, command::PlannedEvent, folder::Folder, io::Shown};

/// Plan of a served array.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServePlan {
    /// `{"host_flash": ...}` has flash in its hosts, `{"cloud": ...}` has volumes of a cloud, anything else is a group of members.
    #[serde(deserialize_with = "model_plan")]
    pub array: ModelPlan,
    /// Where the volumes are shown; empty.
    pub folder: PathBuf,
    pub store: PathBuf,
    /// The folder of the store, opened by whoever serves; its path is a name only then.
    #[serde(default)]
    pub store_descriptor: Option<i32>,
    /// Folder in which the volumes appear, opened by the caller.
    #[serde(default)]
    pub folder_descriptor: Option<i32>,
    pub durability: Durability,
    /// Whether blocks of a group have sums. Those of hosts with flash have fingerprints.
    pub sums: bool,
    pub realtime: bool,
    /// Rows of a disk, or pieces of containers, that are rebuilt at the same time.
    pub rebuild_depth: u32,
    /// Pieces that move onto a new member at the same time.
    pub rebalance_depth: u32,
    /// Most members of a group of this array; 1: it is no group.
    pub members_most: u32,
    /// From the loss of a controller until another serves its ports.
    pub failover_ns: u64,
    /// Most bytes of the store.
    pub room_bytes: Option<u64>,
    /// What happens by itself.
    pub events: Vec<PlannedEvent>,
    /// Whether volumes are disks of iSCSI too, and where.
    #[serde(default)]
    pub iscsi: Option<IscsiPlan>,
    /// Whether volumes are exports of NBD too, and where.
    #[serde(default)]
    pub nbd: Option<NbdPlan>,
}

/// Where the volumes are exports of NBD.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NbdPlan {
    pub address: SocketAddr,
    /// Event loops, each with a thread; those of iSCSI are the same.
    pub threads: usize,
}

/// Where the volumes are disks of iSCSI, and for whom.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IscsiPlan {
    pub portals: Vec<SocketAddr>,
    /// Answers discovery and sends logins to the portals.
    pub group: Option<SocketAddr>,
    /// Names of the targets begin with it; the volume's name follows.
    pub prefix: String,
    /// The disks' product, as INQUIRY says it.
    pub product: String,
    /// A serial number for each volume.
    pub serials: Vec<String>,
    pub chap: Option<(String, String)>,
    pub mutual: Option<(String, String)>,
    pub initiators: Vec<String>,
    /// Whether hosts beyond this one may log in without a proof.
    #[serde(default)]
    pub is_open_to_all: bool,
    /// Event loops, each with a thread.
    pub threads: usize,
}

impl ServePlan {
    /// Holds the folder of the store, which is made where there is none.
    ///
    /// # Errors
    /// It is no folder of this user's alone.
    pub(crate) fn store_folder(&self) -> Result<Folder, ServeError> {
        match self.store_descriptor {
            Some(descriptor) => Folder::of_descriptor(descriptor, &self.store),
            None => Folder::at(&self.store),
        }
    }

    /// The volumes as they are shown.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let shown = |volume: &assay_array_model::VolumePlan| Shown { name: volume.name.clone(), bytes: volume.bytes };
        match &self.array {
            ModelPlan::Group(plan) => plan.volumes().map(shown).collect(),
            ModelPlan::HostFlash(plan) => plan.volumes.iter().map(shown).collect(),
            ModelPlan::Cloud(plan) => {
                plan.volumes.iter().map(|volume| Shown { name: volume.name.clone(), bytes: volume.bytes }).collect()
            }
        }
    }
}

fn model_plan<'de, D: Deserializer<'de>>(from: D) -> Result<ModelPlan, D::Error> {
    let mut value = Value::deserialize(from)?;
    if let Some(own) = value.get_mut("cloud") {
        return serde_json::from_value(own.take()).map(ModelPlan::Cloud).map_err(D::Error::custom);
    }
    let plan = match value.get_mut("host_flash") {
        Some(own) => serde_json::from_value(own.take()).map(|own: Box<HostFlashPlan>| ModelPlan::HostFlash(own)),
        None => serde_json::from_value(value).map(ModelPlan::Group),
    };
    plan.map_err(D::Error::custom)
}
