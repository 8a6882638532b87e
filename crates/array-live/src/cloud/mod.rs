//! Volumes of a cloud as they are served: the model, and their bytes.
//!
//! The bytes lie in the store of a group, in which each volume has a member with one disk of its own: what a provider does to
//! keep them is not modelled.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use assay_array_model::{ArrayModel, ArrayPlan, CloudModel, CloudPlan, GateReading, LimitReading, Part};
use assay_load::Simulated;
use serde_json::{Map, Value, json};

use crate::{
    Cached, ServeError, SnapshotReading, Store, StoreFault,
    array::{Array, News, object},
    command::Command,
    folder::Folder,
    plan::ServePlan,
};

/// Limits are looked at this often.
const LOOK_NS: u64 = 50_000_000;
const PAGE_BYTES: u64 = 1 << 20;

pub(crate) struct Cloud {
    model: CloudModel,
    /// Places of bytes; no I/O takes its time.
    places: ArrayModel,
    store: Store,
    /// Limits whose credits are used up: the names of volume or machine, and of the limit.
    used_up: BTreeSet<(String, &'static str)>,
    looked_ns: u64,
    news: Vec<News>,
}

impl Cloud {
    /// Makes the model and opens the store.
    ///
    /// # Errors
    /// The plan or the store is refused, or a file fails.
    pub(crate) fn open(plan: &ServePlan, cloud: &CloudPlan, folder: Folder) -> Result<Self, ServeError> {
        let model = CloudModel::new(cloud)?;
        let layout = layout(cloud);
        let mut places = ArrayModel::new(&layout)?;
        let store = Store::open_in(folder, &layout, &mut places, plan.durability, plan.sums, plan.room_bytes)?;
        let mut opened = Self { model, places, store, used_up: BTreeSet::new(), looked_ns: 0, news: Vec::new() };
        let findings = opened.store.findings().to_vec();
        findings.into_iter().for_each(|finding| opened.happens(finding.what));
        Ok(opened)
    }

    fn parts(&self, volume: u16, offset_bytes: u64, bytes: usize) -> Vec<Part> {
        self.places.parts(volume, offset_bytes, bytes as u64).collect()
    }

    fn gates(&self) -> Vec<GateReading> {
        self.model.gates(self.looked_ns)
    }

    /// Notes in the log which limits have used up their credits, and which have credits again.
    fn look(&mut self) {
        for (name, limit, per_s) in self.model.take_used_up() {
            if self.used_up.insert((name.clone(), limit)) {
                let unit = if limit == "IOPS" { "IOPS" } else { "bytes/s" };
                self.happens(format!("{name}: burst credits of {limit} are used up: {per_s} {unit} from now on"));
            }
        }
        let gates = self.gates();
        let has_some = |name: &str, limit: &str| {
            gates.iter().filter(|gate| gate.name == name).any(|gate| {
                let of = if limit == "IOPS" { &gate.operations } else { &gate.transfer };
                of.balance_share.is_some_and(|share| share >= REFILLED_SHARE)
            })
        };
        let (again, still): (BTreeSet<_>, _) =
            std::mem::take(&mut self.used_up).into_iter().partition(|(name, limit)| has_some(name, limit));
        self.used_up = still;
        again.into_iter().for_each(|(name, limit)| self.happens(format!("{name}: has burst credits of {limit} again")));
    }
}

/// Credits of less than this share are used up as soon as they are there.
const REFILLED_SHARE: f64 = 0.05;

impl Array for Cloud {
    fn model(&mut self) -> &mut dyn Simulated {
        &mut self.model
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.model.next_event_ns()
    }

    fn volume_bytes(&self, volume: usize) -> u64 {
        self.model.volume_bytes(volume).expect("the array has the volume")
    }

    fn read(&mut self, volume: u16, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), StoreFault> {
        let mut done = 0;
        for part in self.parts(volume, offset_bytes, bytes.len()) {
            let until = done + part.bytes as usize;
            self.store.read(part, &mut bytes[done..until])?;
            done = until;
        }
        Ok(())
    }

    fn write(&mut self, volume: u16, offset_bytes: u64, bytes: &[u8]) -> Result<(), StoreFault> {
        let mut done = 0;
        for part in self.parts(volume, offset_bytes, bytes.len()) {
            self.store.write(part, &bytes[done..done + part.bytes as usize])?;
            done += part.bytes as usize;
        }
        Ok(())
    }

    fn store(&self) -> &dyn Cached {
        &self.store
    }

    fn store_mut(&mut self) -> &mut dyn Cached {
        &mut self.store
    }

    fn held_bytes(&self) -> u64 {
        0
    }

    fn store_bytes(&self) -> u64 {
        self.store.used_bytes()
    }

    fn set_attribute(&mut self, volume: usize, name: &str, value: Option<&[u8]>) -> Result<(), ServeError> {
        self.store.set_attribute(volume, name, value)
    }

    fn state(&self) -> &'static str {
        if self.used_up.is_empty() { "healthy" } else { "at baseline" }
    }

    fn is_behind(&self) -> bool {
        false
    }

    fn go_on(&mut self, now_ns: u64, _has_power: bool) {
        if now_ns >= self.looked_ns + LOOK_NS {
            self.looked_ns = now_ns;
            self.look();
        }
    }

    fn obey(&mut self, _command: &Command, _has_power: bool) -> Result<String, ServeError> {
        Err(ServeError::refused(
            "volumes of a cloud have no disks, controllers or paths that are known; cut-power, restore, snapshot and revert \
             are for them",
        ))
    }

    fn snapshot(&mut self, name: &str) -> Result<(), ServeError> {
        self.store.snapshot(name)
    }

    fn revert(&mut self, name: &str) -> Result<(), ServeError> {
        self.store.revert(name)
    }

    fn snapshots(&self) -> Vec<SnapshotReading> {
        self.store.snapshots()
    }

    fn news(&mut self) -> &mut Vec<News> {
        &mut self.news
    }

    fn counted(&self) -> Map<String, Value> {
        let limit = |limit: &LimitReading| json!({"passed": limit.passed, "exceeded_ns": limit.exceeded_ns, "balance_share": limit.balance_share});
        let gates: Vec<Value> = self
            .gates()
            .iter()
            .map(|gate| json!({"name": gate.name, "iops": limit(&gate.operations), "bandwidth": limit(&gate.transfer)}))
            .collect();
        object(json!({"members": [], "gates": gates, "rebalance": null}))
    }

    fn standing(&self) -> Map<String, Value> {
        object(json!({"slowed": [], "lost_path": null}))
    }

    fn close(self: Box<Self>) -> Result<(), ServeError> {
        self.store.close()
    }
}

/// A group in whose store the volumes' bytes lie: for each a member of one disk, which holds nothing else.
fn layout(cloud: &CloudPlan) -> ArrayPlan {
    let pool = |volume: &assay_array_model::CloudVolumePlan| {
        let capacity_bytes = (volume.bytes.div_ceil(PAGE_BYTES) + 2) * PAGE_BYTES;
        json!({
            "members": 1,
            "volumes": [{"name": volume.name, "bytes": volume.bytes}],
            "member": {
                "disks": 1,
                "spares": 0,
                "disk": {
                    "kind": "mechanical", "capacity_bytes": capacity_bytes, "revolution_ns": 4_000_000,
                    "seek_track_ns": 500_000, "seek_average_ns": 4_000_000, "seek_full_ns": 8_000_000,
                    "write_settle_ns": 0, "rate_outer_bytes_per_s": 2e8, "rate_inner_bytes_per_s": 1e8,
                    "command_overhead_ns": 0, "queue_depth": 1, "reorder_weight": 0.0, "age_credit": 0.0,
                    "read_ahead_bytes": 0, "interface_bytes_per_s": 1e9,
                },
                "raid": {
                    "policy": "0", "set_disks": 1, "chunk_bytes": 65536, "partial_write": "cheapest",
                    "misalign_bytes": 0,
                },
                "controller": {"count": 1, "ports": 1, "cpu_per_io_ns": 0, "cpu_bytes_per_s": 1e9, "cores": 1},
                "cache": {
                    "bytes": PAGE_BYTES, "write_back": false, "dirty_low": 0.1, "dirty_high": 0.5, "dirty_most": 0.9,
                    "destage_depth": 1, "read_preference_ns": 0, "keep_reads": false, "sequential_after": 1,
                    "prefetch_bytes": 0, "starts_warm": false,
                },
                "layout": {"kind": "in-place"},
                "state": {"kind": "healthy"},
            },
        })
    };
    let plan = json!({
        "seed": 1,
        "page_bytes": PAGE_BYTES,
        "pools": cloud.volumes.iter().map(pool).collect::<Vec<_>>(),
        "links": {
            "hosts": {
                "count": 1, "ports": 1, "port_bytes_per_s": 1e9, "first_port_share": 1.0, "first_port_loss": 0.0,
                "commands_most": 0, "path_timeout_ns": 0,
            },
            "policy": "round-robin", "port_bytes_per_s": 1e9, "overhead_bytes": 0, "latency_ns": 0,
            "max_transfer_bytes": 0, "fault": null,
        },
    });
    serde_json::from_value(plan).expect("a plan of bytes is one of a group")
}
