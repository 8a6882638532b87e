//! Picture of an array with flash in its hosts: its state for clients.

use serde_json::{Map, Value, json};

use super::HostFlash;
use crate::array::object;

impl HostFlash {
    pub(super) fn counted_parts(&self) -> Map<String, Value> {
        object(json!({
            "hosts": self.host_pictures(),
            "members": self.node_pictures(),
            "pool": self.store.reading(),
            "rebalance": null,
        }))
    }

    pub(super) fn standing_parts(&self) -> Map<String, Value> {
        let slowed = self.slowed.iter().map(|(disk, times)| json!({"name": self.disk_name(*disk), "times": times}));
        object(json!({"slowed": slowed.collect::<Vec<_>>(), "lost_path": null}))
    }

    fn host_pictures(&self) -> Vec<Value> {
        let picture = |(number, host): (usize, assay_array_model::HostReading)| {
            json!({
                "name": format!("host{number}"),
                "reads": host.reads,
                "memory_hits": host.memory_hits,
                "flash_hits": host.flash_hits,
                "remote_hits": host.remote_hits,
                "cpu_busy_ns": host.cpu_busy_ns,
                "cores": host.cores,
            })
        };
        self.model.host_readings().into_iter().enumerate().map(picture).collect()
    }

    /// Data nodes, with what members of a group say of themselves where it is the same.
    fn node_pictures(&self) -> Vec<Value> {
        let picture = |(number, node): (usize, assay_array_model::MemberReading)| {
            let first = number as u32 * self.node_disks;
            let disks = node.disks.iter().zip(first..).map(|(counters, disk)| {
                json!({
                    "name": self.disk_name(disk),
                    "state": if self.store.is_present(disk) { "present" } else { "absent" },
                    "rebuilt_share": null,
                    "reads": counters.reads,
                    "writes": counters.writes,
                    "busy_ns": counters.busy_ns,
                })
            });
            json!({
                "name": format!("node{number}"),
                "reads": node.reads,
                "read_hits": node.read_hits,
                "written_bytes": node.written_bytes,
                "destaged_bytes": node.destaged_bytes,
                "rebuilt_bytes": node.rebuilt_bytes,
                "dirty_bytes": node.held_bytes,
                "cleaned_bytes": node.cleaned_bytes,
                "moved_bytes": node.moved_bytes,
                "disks": disks.collect::<Vec<_>>(),
            })
        };
        self.model.readings().into_iter().enumerate().map(picture).collect()
    }
}
