//! Arrays without their server, for tests: time goes on as the server would let it.

use std::path::{Path, PathBuf};

use assay_array_model::ModelPlan;
use assay_load::{Op, Request};

use crate::{Durability, ServePlan, array::Array, command::Command};

#[path = "../../array-model/tests/plans/mod.rs"]
pub(crate) mod plans;

use plans::SECOND;

pub(crate) struct Bench<A: Array> {
    folder: PathBuf,
    pub(crate) array: A,
    now_ns: u64,
}

impl<A: Array> Drop for Bench<A> {
    fn drop(&mut self) {
        if !self.folder.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

impl<A: Array> Bench<A> {
    /// An array whose store lies in a folder of this name.
    pub(crate) fn new(name: &str, open: impl FnOnce(&Path) -> A) -> Self {
        let folder = std::env::temp_dir().join(format!("assay-bench-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self { array: open(&folder), folder, now_ns: 0 }
    }

    /// Lets the model come as far, and the bytes follow it; says what was told, and in how many turns more was to do.
    pub(crate) fn turns(&mut self, seconds: u64) -> (Vec<String>, u32) {
        let (mut told, mut behind) = (Vec::new(), 0);
        let (until_ns, mut completions) = (self.now_ns + seconds * SECOND, Vec::new());
        while self.now_ns < until_ns {
            // The server sleeps 100 ms at most, and not at all where more is to do.
            self.now_ns += if self.array.is_behind() { SECOND / 1000 } else { SECOND / 10 };
            while self.array.next_event_ns().is_some_and(|at_ns| at_ns <= self.now_ns) {
                self.array.model().advance(self.now_ns, &mut completions);
            }
            self.array.go_on(self.now_ns, true);
            behind += u32::from(self.array.is_behind());
            told.extend(self.array.take_news().into_iter().map(|news| news.what));
        }
        (told, behind)
    }

    /// Writes as a host does: once the model has, so do the disks.
    pub(crate) fn writes(&mut self, volume: u16, offset_bytes: u64, bytes: &[u8]) {
        let length_bytes = bytes.len() as u32;
        let request = Request { op: Op::Write, volume, offset_bytes, length_bytes, buffer: 0, tag: 0 };
        self.array.model().submit(self.now_ns, &request);
        let mut completions = Vec::new();
        while completions.is_empty() {
            let next_ns = self.array.next_event_ns().expect("a write ends");
            self.now_ns = self.array.model().advance(next_ns, &mut completions);
        }
        self.array.write(volume, offset_bytes, bytes).unwrap();
    }

    /// The server ends, and another one starts; in between the store is no one's.
    pub(crate) fn again(mut self, open: impl FnOnce(&Path) -> A) -> Self {
        let folder = std::mem::take(&mut self.folder);
        let now_ns = self.now_ns;
        drop(self);
        Self { array: open(&folder), folder, now_ns }
    }

    /// Has a command carried out, of which the news are not asked for.
    pub(crate) fn obey(&mut self, command: &Command) {
        self.array.obey(command, true).unwrap();
        self.array.take_news();
    }
}

/// Serves an array from a folder.
pub(crate) fn served(array: ModelPlan, folder: &Path, room_bytes: Option<u64>) -> ServePlan {
    ServePlan {
        array,
        folder: folder.join("shown"),
        store: folder.join("store"),
        store_descriptor: None,
        folder_descriptor: None,
        durability: Durability::Battery,
        sums: false,
        realtime: false,
        rebuild_depth: 4,
        rebalance_depth: 4,
        members_most: 1,
        failover_ns: 0,
        room_bytes,
        events: Vec::new(),
        iscsi: None,
        nbd: None,
    }
}
