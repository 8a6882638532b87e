//! Picture of a group: its state for clients.

use assay_array_model::Lost;
use serde_json::{Map, Value, json};

use super::Group;
use crate::{DiskState, array::object, disk_name};

impl Group {
    pub(super) fn counted_parts(&self) -> Map<String, Value> {
        object(json!({"members": self.member_pictures(), "rebalance": self.rebalance_picture()}))
    }

    pub(super) fn standing_parts(&self) -> Map<String, Value> {
        let lost = self.damage.paths.map(|lost| match lost {
            Lost::Controller => "controller",
            Lost::HostPort => "host-port",
        });
        let slowed: Vec<Value> =
            self.damage.slowed.iter().map(|(name, times)| json!({"name": name, "times": times})).collect();
        object(json!({"slowed": slowed, "lost_path": lost}))
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
                            "write_bytes": counters.write_bytes,
                            "programmed_bytes": counters.programmed_bytes,
                            "throttled_ns": counters.throttled_ns,
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
}
