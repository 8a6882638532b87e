//! Picture of an array: its state for clients.

use serde_json::{Value, json};

use super::Server;

impl Server {
    /// Counters so far.
    pub(super) fn counters(&self) -> Value {
        let mut found = self.array.counted();
        found.extend(crate::array::object(json!({
            "at_ns": self.now_ns(),
            "power": self.has_power,
            "state": self.state(),
            "happened": self.happened.len(),
            "writes_without_room": self.writes_without_room,
            "volatile_bytes": self.array.store().volatile_bytes(),
            "volumes": self.volume_pictures(),
            "lateness": self.lateness.reading(),
        })));
        Value::Object(found)
    }

    fn volume_pictures(&self) -> Vec<Value> {
        let shown = self.volumes.iter().zip(&self.lateness.served);
        shown.map(|(volume, served)| json!({"name": volume.name, "bytes": volume.bytes, "served": served})).collect()
    }

    /// The present picture of the array.
    pub(super) fn status(&self) -> Value {
        let mut found = self.array.counted();
        found.extend(self.array.standing());
        found.extend(crate::array::object(json!({
            "at_ns": self.now_ns(),
            "power": self.has_power,
            "state": self.state(),
            "cache": self.durability,
            "volatile_bytes": self.array.store().volatile_bytes(),
            "store_bytes": self.array.store_bytes(),
            "volumes": self.volume_pictures(),
            "in_use": self.in_use(),
            "snapshots": self.array.snapshots(),
            "floor_ns": self.floor_ns(),
            "most_iops_one_at_a_time": self.most_per_s,
            "scheduling": self.scheduling,
            "lateness": self.lateness.reading(),
            "seconds": self.lateness.seconds,
            "events": self.happened,
        })));
        Value::Object(found)
    }
}
