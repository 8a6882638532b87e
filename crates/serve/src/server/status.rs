//! A picture of the array as it is.

use assay_array::Lost;
use serde_json::{Value, json};

use super::Server;
use crate::{DiskState, disk_name};

impl Server {
    /// What was counted so far.
    pub(super) fn counters(&self) -> Value {
        let served = self.volumes.iter().zip(&self.lateness.served);
        let volumes: Vec<Value> =
            served.map(|(volume, served)| json!({"name": volume.name, "served": served})).collect();
        json!({
            "at_ns": self.now_ns(),
            "power": self.has_power,
            "state": self.state(),
            "happened": self.happened.len(),
            "rebalance": self.rebalance_picture(),
            "volatile_bytes": self.store.volatile_bytes(),
            "volumes": volumes,
            "members": self.member_pictures(),
            "lateness": self.lateness.reading(),
        })
    }

    fn member_pictures(&self) -> Vec<Value> {
        let readings = self.model.readings();
        readings
            .iter()
            .enumerate()
            .map(|(number, reading)| {
                let member = number as u32;
                let rows = self.store.rows(member);
                let disks: Vec<Value> = reading
                    .disks
                    .iter()
                    .enumerate()
                    .map(|(disk, counters)| {
                        let (state, share) = match self.store.disk_state(member, disk as u32) {
                            DiskState::Present => ("present", None),
                            DiskState::Absent => ("absent", None),
                            DiskState::Rebuilding { rows: done } => {
                                ("rebuilding", Some(done as f64 / rows.max(1) as f64))
                            }
                        };
                        json!({
                            "name": disk_name(member, disk as u32),
                            "state": state,
                            "rebuilt_share": share,
                            "lost_chunks": self.store.bad_rows(member, disk as u32),
                            "reads": counters.reads,
                            "writes": counters.writes,
                            "busy_ns": counters.busy_ns,
                        })
                    })
                    .collect();
                json!({
                    "name": format!("member{number}"),
                    "raid": self.model.geometry(member).policy().name(),
                    "spares": self.store.spares(member),
                    "lost_chunks": self.store.lost_chunks(member),
                    "healed_blocks": self.store.healed(member),
                    "reads": reading.reads,
                    "read_hits": reading.read_hits,
                    "written_bytes": reading.written_bytes,
                    "destaged_bytes": reading.destaged_bytes,
                    "rebuilt_bytes": reading.rebuilt_bytes,
                    "dirty_bytes": reading.dirty_bytes,
                    "disks": disks,
                })
            })
            .collect()
    }

    /// A picture of the array as it is now.
    pub(super) fn status(&self) -> Value {
        let shown = self.volumes.iter().zip(&self.lateness.served);
        let volumes: Vec<Value> = shown
            .map(|(volume, served)| json!({"name": volume.name, "bytes": volume.bytes, "served": served}))
            .collect();
        let slowed: Vec<Value> =
            self.damage.slowed.iter().map(|(name, times)| json!({"name": name, "times": times})).collect();
        let lost = self.damage.paths.map(|lost| match lost {
            Lost::Controller => "controller",
            Lost::HostPort => "host-port",
        });
        json!({
            "at_ns": self.now_ns(),
            "power": self.has_power,
            "state": self.state(),
            "cache": self.durability,
            "volatile_bytes": self.store.volatile_bytes(),
            "store_bytes": self.store.used_bytes(),
            "volumes": volumes,
            "in_use": self.in_use(),
            "members": self.member_pictures(),
            "slowed": slowed,
            "lost_path": lost,
            "rebalance": self.rebalance_picture(),
            "snapshots": self.store.snapshots(),
            "floor_ns": self.floor_ns(),
            "most_iops_one_at_a_time": self.most_per_s,
            "scheduling": self.scheduling,
            "lateness": self.lateness.reading(),
            "seconds": self.lateness.seconds,
            "events": self.happened,
        })
    }
}
