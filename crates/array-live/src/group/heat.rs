//! Drives of a served array that heat slows down: the log says when it begins and when it ends.

use std::collections::BTreeMap;

use assay_array_model::ArrayModel;

use crate::disk_name;

/// Time between two looks.
const LOOK_NS: u64 = 1_000_000_000;

/// Drives by member and number: the time in which each was slowed down until the last look, and whether it was at that look.
#[derive(Debug, Default)]
pub(super) struct Heat {
    looked_ns: u64,
    drives: BTreeMap<(u32, u32), (u64, bool)>,
}

impl Heat {
    pub(super) fn throttles(&self) -> bool {
        self.drives.values().any(|(_, slowed)| *slowed)
    }

    /// Looks at the drives once a second; gives what has changed, a sentence each.
    pub(super) fn look(&mut self, now_ns: u64, model: &ArrayModel) -> Vec<String> {
        let mut told = Vec::new();
        if now_ns < self.looked_ns + LOOK_NS {
            return told;
        }
        self.looked_ns = now_ns;
        for (member, reading) in model.readings().iter().enumerate() {
            for (disk, counters) in reading.disks.iter().enumerate() {
                let Some(throttled_ns) = counters.throttled_ns else { continue };
                let (member, disk) = (member as u32, disk as u32);
                let (before_ns, was_slowed) =
                    self.drives.insert((member, disk), (throttled_ns, false)).unwrap_or_default();
                let slowed = throttled_ns > before_ns;
                self.drives.insert((member, disk), (throttled_ns, slowed));
                let gigabytes = counters.write_bytes as f64 / 1e9;
                let name = disk_name(member, disk);
                match (was_slowed, slowed) {
                    (false, true) => {
                        told.push(format!("{name}: throttles to cool down; {gigabytes:.2} GB written so far"))
                    }
                    (true, false) => told.push(format!("{name}: has cooled down; {gigabytes:.2} GB written so far")),
                    _ => {}
                }
            }
        }
        told
    }
}
