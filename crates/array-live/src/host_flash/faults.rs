//! Commands to an array with flash in its hosts, and the restoring and reclamation that follow.

use super::{HostFlash, Restoring};
use crate::{ServeError, array::Array, command::Command, stall::Stall};

/// Rows of a piece that are restored between two looks at what came.
const ROWS_AT_ONCE: u32 = 2;
/// Blocks that reclamation moves between two looks.
const BLOCKS_AT_ONCE: usize = 16;

fn refused<T>(message: impl Into<String>) -> Result<T, ServeError> {
    Err(ServeError::Refused(message.into()))
}

impl HostFlash {
    /// A disk as people and telemetry name it.
    pub(super) fn disk_name(&self, disk: u32) -> String {
        format!("node{}/disk{}", disk / self.node_disks, disk % self.node_disks)
    }

    /// Reads `node0/disk3` or `node0-disk3`, `0/3`, or `3` where there is one node.
    fn disk_of(&self, text: &str) -> Result<u32, ServeError> {
        let number = |text: &str, word: &str| text.strip_prefix(word).unwrap_or(text).parse::<u32>().ok();
        let nodes = self.store.disks() / self.node_disks;
        let found = match text.split_once(['/', '-']) {
            Some((node, disk)) => number(node, "node").zip(number(disk, "disk")),
            None if nodes == 1 => number(text, "disk").map(|disk| (0, disk)),
            None => None,
        };
        match found {
            Some((node, disk)) if node < nodes && disk < self.node_disks => Ok(node * self.node_disks + disk),
            _ => refused(format!(
                "{text}: no such disk; there are {} to {}",
                self.disk_name(0),
                self.disk_name(self.store.disks() - 1)
            )),
        }
    }

    /// Repeats in the model the faults that the store keeps of an earlier service.
    pub(super) fn resume_faults(&mut self) {
        (0..self.store.disks()).for_each(|disk| self.model.set_disk(disk, self.store.is_present(disk)));
        self.begin_restoring();
    }

    /// Carries out a command that is for such arrays.
    pub(super) fn carry_out(&mut self, command: &Command) -> Result<String, ServeError> {
        match command {
            Command::Pull { disk, spare } => self.pull(disk, *spare),
            Command::Insert { disk } => self.insert(disk.as_deref()),
            Command::Slow { what, times } => self.slow(what, *times),
            Command::Corrupt { disk, bytes, from_bytes } => {
                let disk = self.disk_of(disk)?;
                let name = self.disk_name(disk);
                let at_bytes = self.store.corrupt(disk, *from_bytes, *bytes).map_err(|error| named(&name, &error))?;
                let what = format!("{name}: {bytes} bytes from {at_bytes} corrupted");
                self.happens(&what[..]);
                Ok(what)
            }
            Command::FailController {} => refused(
                "fail-controller: the second controller of a data node is not modelled for arrays with flash in their hosts",
            ),
            Command::FailPath {} | Command::MendPaths {} => {
                refused("paths: those of hosts with flash are one network here; serve an array of members to lose one")
            }
            Command::AddMember { .. } => refused(
                "add-member: this array has data nodes, and no group that a member could join; serve it with nodes=N",
            ),
            Command::Fill { .. } => {
                refused("fill: the pool of this array takes what is written; give a smaller one with --room")
            }
            _ => unreachable!("the server itself carries out what is for every array"),
        }
    }

    fn pull(&mut self, text: &str, restores: bool) -> Result<String, ServeError> {
        let disk = self.disk_of(text)?;
        let name = self.disk_name(disk);
        let lost = if self.store.is_present(disk) { self.store.lost_with(disk) } else { 0 };
        if lost > 0 {
            self.happens(format!("{name}: with it {lost} blocks go that no other disks make up for"));
        }
        self.store.pull(disk, restores).map_err(|error| named(&name, &error))?;
        self.model.set_disk(disk, false);
        let what = match lost {
            0 => format!("{name}: pulled"),
            _ => format!("{name}: pulled; {lost} blocks are lost, and reading them fails"),
        };
        self.happens(&what[..]);
        self.begin_restoring();
        Ok(if self.restoring.is_some() { what + "; its pieces are restored on other disks" } else { what })
    }

    fn insert(&mut self, text: Option<&str>) -> Result<String, ServeError> {
        let disk = match text {
            Some(text) => self.disk_of(text)?,
            None => match (0..self.store.disks()).find(|disk| !self.store.is_present(*disk)) {
                Some(disk) => disk,
                None => return refused("every slot has a disk; pull one first"),
            },
        };
        let name = self.disk_name(disk);
        self.store.insert(disk).map_err(|error| named(&name, &error))?;
        self.model.set_disk(disk, true);
        let what = format!("{name}: inserted");
        self.happens(&what[..]);
        self.begin_restoring();
        Ok(if self.restoring.is_some() { what + "; missing pieces are restored" } else { what })
    }

    fn slow(&mut self, text: &str, times: u32) -> Result<String, ServeError> {
        if !(1..=1000).contains(&times) {
            return refused(format!("x{times}: between x1 (as planned) and x1000"));
        }
        if text.starts_with("path") {
            return refused(format!("{text}: paths of hosts with flash are one network here; slow a disk"));
        }
        let disk = self.disk_of(text)?;
        let name = self.disk_name(disk);
        self.model.slow_disk(disk, times);
        self.slowed.remove(&disk);
        if times > 1 {
            self.slowed.insert(disk, times);
        }
        let what =
            if times > 1 { format!("{name}: {times} times slower") } else { format!("{name}: as fast as planned") };
        self.happens(&what[..]);
        Ok(what)
    }

    /// Has the model restore all pieces that can be restored now, including the pieces under way.
    fn begin_restoring(&mut self) {
        let before = self.restoring.take();
        let left = self.store.restorable();
        let due = before.map_or(0, |restoring| restoring.due).min(left);
        self.model.restore(left - due, self.depth);
        if left == 0 {
            self.restoring_stall = Stall::default();
            return;
        }
        self.restoring = Some(Restoring { due, done: 0 });
        if before.is_none() {
            self.happens(format!("restoring begins: {left} pieces are missing and can be computed"));
        }
    }

    /// Restores rows of pieces that the model has restored since the last call.
    pub(super) fn go_on_restoring(&mut self, now_ns: u64) {
        if self.store.take_sealed_short() && self.restoring.is_none() {
            self.begin_restoring();
        }
        let restored = self.model.take_restored();
        let Some(restoring) = &mut self.restoring else { return };
        restoring.due += restored;
        if self.restoring_stall.waits(now_ns) {
            return;
        }
        if restoring.due > 0 {
            match self.store.restore(restoring.due, ROWS_AT_ONCE) {
                Ok(done) => {
                    (restoring.due, restoring.done) = (restoring.due - done, restoring.done + done);
                    // A row says little: the row after it may fail as before.
                    if done > 0 && self.restoring_stall.goes_on() {
                        self.happens("missing pieces are restored again");
                    }
                }
                Err(fault) => {
                    let why = format!("a missing piece cannot be restored: {fault}");
                    let told = self.restoring_stall.fails(why, now_ns);
                    return told.into_iter().for_each(|what| self.happens(what));
                }
            }
            // Reclamation may have emptied containers meanwhile, so that the model restored more than there is.
            if !self.store.is_restoring() && self.store.restorable() == 0 {
                self.restoring.iter_mut().for_each(|restoring| restoring.due = 0);
            }
        }
        let Some(Restoring { due, done }) = self.restoring else { return };
        self.is_behind = due > 0;
        if due == 0 && self.model.restoring() == 0 {
            self.end_restoring(done);
        }
    }

    /// The model has restored all that there was when it began.
    fn end_restoring(&mut self, done: u64) {
        let left = self.store.restorable();
        if left > 0 && done > 0 {
            self.begin_restoring();
            return;
        }
        self.restoring = None;
        self.restoring_stall = Stall::default();
        let missing = self.store.missing_pieces();
        self.happens(match missing {
            0 => "restored: no piece is missing any more".to_owned(),
            _ => format!("restored what could be: {missing} pieces are missing still"),
        });
    }

    /// Moves some live contents of containers that are to be reclaimed.
    pub(super) fn go_on_reclaiming(&mut self, now_ns: u64) {
        if self.reclaiming_stall.waits(now_ns) || !self.store.is_reclaiming() {
            return;
        }
        let before = self.store.reclaimed_containers();
        match self.store.reclaim(BLOCKS_AT_ONCE) {
            Ok(moved_bytes) => {
                let cleaned = self.store.reclaimed_containers() - before;
                self.model.reclaim(cleaned * self.store.container_bytes(), moved_bytes);
                self.is_behind = true;
                if self.reclaiming_stall.goes_on() {
                    self.happens("space is reclaimed again");
                }
            }
            Err(fault) => {
                let told = self.reclaiming_stall.fails(format!("space cannot be reclaimed: {fault}"), now_ns);
                told.into_iter().for_each(|what| self.happens(what));
            }
        }
    }
}

fn named(name: &str, error: &ServeError) -> ServeError {
    ServeError::Refused(format!("{name}: {error}"))
}
