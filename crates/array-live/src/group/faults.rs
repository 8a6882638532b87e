//! Commands to a group that runs, and the rebuilds that follow them.

use assay_array_model::Lost;

use super::Group;
use crate::{DiskState, ServeError, array::Array, command::Command, disk_name};

fn refused<T>(message: impl Into<String>) -> Result<T, ServeError> {
    Err(ServeError::Refused(message.into()))
}

impl Group {
    /// Repeats in the model the faults that the store keeps of an earlier service.
    pub(super) fn resume_faults(&mut self) {
        for member in 0..self.store.members() {
            self.next_lost(member);
        }
        // Where nothing but the room was filled, the model has nothing to fill.
        if self.store.filled_percent() > 0 {
            let _ = self.model.fill(f64::from(self.store.filled_percent()) / 100.0);
        }
    }

    /// Tells the findings of the store. A spare replaces a disk that is gone with its files, as it replaces a pulled
    /// one.
    pub(super) fn tell_findings(&mut self) {
        let findings = self.store.findings().to_vec();
        findings.iter().for_each(|finding| self.happens(&finding.what[..]));
        for (member, disk) in findings.into_iter().filter_map(|finding| finding.disk) {
            if self.store.spares(member) > 0
                && self.rebuilding(member).is_none()
                && let Err(error) = self.take_spare(member, disk)
            {
                self.happens(format!("{}: {error}", disk_name(member, disk)));
            }
        }
    }

    /// The model knows one lost disk of a member at a time: the first that is being rebuilt, else the first that is absent.
    fn next_lost(&mut self, member: u32) {
        if self.model.lost_disk(member).is_some() {
            return;
        }
        let state = |disk: &u32| self.store.disk_state(member, *disk);
        let disks = 0..self.store.disks(member);
        let rebuilding = disks.clone().find(|disk| matches!(state(disk), DiskState::Rebuilding { .. }));
        let lost = rebuilding.or_else(|| disks.clone().find(|disk| state(disk) == DiskState::Absent));
        if let Some(disk) = lost {
            self.model.lose_disk(member, disk);
            if rebuilding.is_some() {
                self.model.rebuild_disk(member, self.damage.rebuild_depth);
            }
        }
    }

    /// The disk of a member that is being rebuilt: in the model, or after that still in the store, whose bytes come
    /// later.
    fn rebuilding(&self, member: u32) -> Option<u32> {
        let is_rebuilding = |disk: &u32| matches!(self.store.disk_state(member, *disk), DiskState::Rebuilding { .. });
        let in_model = self.model.rebuild_reading(member).map(|reading| reading.disk);
        in_model.or_else(|| (0..self.store.disks(member)).find(is_rebuilding))
    }

    /// Writes rows that the model has rebuilt since the last call, at most `most` of each member.
    pub(super) fn go_on_rebuilding(&mut self, most: u64, now_ns: u64) {
        self.damage.is_behind = false;
        for member in 0..self.store.members() {
            let Some(disk) = self.rebuilding(member) else {
                self.damage.stalls.remove(&member);
                continue;
            };
            if self.damage.stalls.get(&member).is_some_and(|stall| stall.waits(now_ns)) {
                continue;
            }
            let in_model = self.model.rebuild_reading(member);
            // Where the model is done with the disk, it may know of the next one that is lost.
            let rows = in_model.map_or_else(|| self.store.rows(member), |reading| reading.rows_done);
            let name = disk_name(member, disk);
            let before = self.store.disk_state(member, disk);
            match self.store.rebuild_to(member, disk, rows, most) {
                Ok(is_done) => {
                    let got_on = self.store.disk_state(member, disk) != before;
                    if got_on && self.damage.stalls.remove(&member).is_some() {
                        self.happens(format!("{name}: rebuild goes on"));
                    }
                    self.damage.is_behind |= !is_done;
                    if is_done && in_model.is_none() {
                        self.end_rebuild(member, disk, now_ns);
                    }
                }
                Err(fault) => self.stall_rebuild(member, format!("{name}: cannot be rebuilt: {fault}"), now_ns),
            }
        }
    }

    fn stall_rebuild(&mut self, member: u32, why: String, now_ns: u64) {
        let told = self.damage.stalls.entry(member).or_default().fails(why, now_ns);
        told.into_iter().for_each(|what| self.happens(what));
    }

    fn end_rebuild(&mut self, member: u32, disk: u32, now_ns: u64) {
        let name = disk_name(member, disk);
        if let Err(error) = self.store.end_rebuild(member, disk) {
            return self.stall_rebuild(member, format!("{name}: {error}"), now_ns);
        }
        self.damage.stalls.remove(&member);
        let bad = self.store.bad_rows(member, disk);
        let lost = if bad > 0 { format!("; {bad} chunks were lost before") } else { String::new() };
        self.happens(format!("{name}: rebuilt{lost}"));
        self.next_lost(member);
        // A spare takes the next place that is empty.
        if let Some(next) = self.model.lost_disk(member)
            && self.store.disk_state(member, next) == DiskState::Absent
            && self.store.spares(member) > 0
            && let Err(error) = self.take_spare(member, next)
        {
            self.happens(format!("{}: {error}", disk_name(member, next)));
        }
    }

    fn take_spare(&mut self, member: u32, disk: u32) -> Result<(), ServeError> {
        self.begin_rebuild(member, disk)?;
        self.store.set_spares(member, self.store.spares(member) - 1)
    }

    fn begin_rebuild(&mut self, member: u32, disk: u32) -> Result<(), ServeError> {
        self.store.replace(member, disk)?;
        self.damage.stalls.remove(&member);
        self.happens(format!("{}: rebuild begins", disk_name(member, disk)));
        if self.model.rebuild_reading(member).is_none() {
            self.model.lose_disk(member, disk);
            self.model.rebuild_disk(member, self.damage.rebuild_depth);
        }
        Ok(())
    }

    /// Reads `member1/disk3`, `1/3`, or `3` where there is one member.
    fn disk_of(&self, text: &str) -> Result<(u32, u32), ServeError> {
        let number = |text: &str, word: &str| text.strip_prefix(word).unwrap_or(text).parse::<u32>().ok();
        let found = match text.split_once('/') {
            Some((member, disk)) => number(member, "member").zip(number(disk, "disk")),
            None if self.store.members() == 1 => number(text, "disk").map(|disk| (0, disk)),
            None => None,
        };
        match found {
            Some((member, disk)) if member < self.store.members() && disk < self.store.disks(member) => {
                Ok((member, disk))
            }
            _ => refused(format!(
                "{text}: no such disk; there are {} to {}",
                disk_name(0, 0),
                disk_name(self.store.members() - 1, self.store.disks(self.store.members() - 1) - 1)
            )),
        }
    }

    /// Carries out a command that is for groups.
    pub(super) fn carry_out(&mut self, command: &Command, has_power: bool) -> Result<String, ServeError> {
        match command {
            Command::Pull { disk, spare } => self.pull(disk, *spare),
            Command::Insert { disk } => self.insert(disk.as_deref()),
            Command::FailController {} | Command::FailPath {} => {
                let lost = command.lost().expect("one of both is lost");
                self.model.lose_path(lost, self.damage.failover_ns)?;
                self.damage.paths = Some(lost);
                let what = match lost {
                    Lost::Controller => "member0: its first controller is lost",
                    Lost::HostPort => "the first port of the host is lost",
                };
                self.happens(what);
                Ok(what.to_owned())
            }
            Command::MendPaths {} => {
                if self.damage.paths.take().is_none() {
                    return refused("no path or controller is lost");
                }
                self.model.mend_paths();
                self.happens("paths are back");
                Ok("paths are back".to_owned())
            }
            Command::Slow { what, times } => self.slow(what, *times),
            Command::Corrupt { disk, bytes, from_bytes } => {
                let (member, number) = self.disk_of(disk)?;
                let at_bytes = self.store.corrupt(member, number, *from_bytes, *bytes)?;
                let what = format!("{}: {bytes} bytes from {at_bytes} corrupted", disk_name(member, number));
                self.happens(&what[..]);
                Ok(what)
            }
            Command::AddMember { .. } => self.add_member(has_power),
            Command::Fill { percent } => self.fill(*percent),
            _ => unreachable!("the server itself carries out what is for every array"),
        }
    }

    fn fill(&mut self, percent: u32) -> Result<String, ServeError> {
        if !(1..=95).contains(&percent) {
            return refused(format!("fill: {percent} %: between 1 and 95 % of a pool can be filled"));
        }
        let members = 0..self.store.members();
        let is_anywhere = members.into_iter().any(|member| self.model.is_write_anywhere(member));
        if !is_anywhere && !self.store.has_room_limit() {
            return refused(
                "fill: blocks of this array lie in place and its store takes what it needs, so that a fuller pool changes \
                 nothing; serve a write-anywhere array, or one with --room",
            );
        }
        let used = if is_anywhere { self.model.fill(f64::from(percent) / 100.0)? } else { None };
        let has_room = self.store.fill(percent)?;
        let mut what = String::from("filled:");
        if let Some(used) = used {
            what += &format!(" {:.0} % of the pool's places are used", used * 100.0);
        }
        if has_room {
            let room = format!(" {percent} % of the store's room is used");
            what += &if used.is_some() { format!(", and{room}") } else { room };
        }
        self.happens(&what[..]);
        Ok(what)
    }

    fn pull(&mut self, text: &str, spare: bool) -> Result<String, ServeError> {
        let (member, disk) = self.disk_of(text)?;
        let name = disk_name(member, disk);
        let lost = self.store.lost_with(member, disk)?;
        if lost > 0 {
            self.happens(format!("{name}: with it {lost} chunks of data go that no other disk makes up for"));
        }
        let was_modelled = self.model.lost_disk(member) == Some(disk);
        self.store.pull(member, disk)?;
        let mut what = format!("{name}: pulled");
        if lost > 0 {
            what = format!("{name}: pulled; {lost} chunks of data are lost, and reading them fails");
        }
        self.happens(&what[..]);
        if was_modelled || self.model.lost_disk(member).is_none() {
            self.model.lose_disk(member, disk);
        }
        if spare && self.store.spares(member) > 0 && self.rebuilding(member).is_none() {
            self.take_spare(member, disk)?;
            what += "; a spare takes its place";
        }
        Ok(what)
    }

    fn insert(&mut self, text: Option<&str>) -> Result<String, ServeError> {
        let absent = |group: &Self, member: u32| {
            (0..group.store.disks(member)).find(|disk| group.store.disk_state(member, *disk) == DiskState::Absent)
        };
        let (member, disk) = match text {
            Some(text) => self.disk_of(text)?,
            None => {
                let found =
                    (0..self.store.members()).find_map(|member| absent(self, member).map(|disk| (member, disk)));
                match found {
                    Some(found) => found,
                    None => return refused("every slot has a disk; pull one first"),
                }
            }
        };
        if let Some(busy) = self.rebuilding(member) {
            let busy = disk_name(member, busy);
            return refused(format!("{busy}: a rebuild is under way; insert after it has ended"));
        }
        self.begin_rebuild(member, disk)?;
        Ok(format!("{}: inserted; rebuild begins", disk_name(member, disk)))
    }

    fn slow(&mut self, text: &str, times: u32) -> Result<String, ServeError> {
        if !(1..=1000).contains(&times) {
            return refused(format!("x{times}: between x1 (as planned) and x1000"));
        }
        let name = match text.strip_prefix("path") {
            Some(port) => match port.parse::<u32>() {
                Ok(port) if port < self.model.ports_of_host() => {
                    self.model.slow_port(port, times);
                    format!("path{port}")
                }
                _ => {
                    return refused(format!(
                        "{text}: no such path; there are path0 to path{}",
                        self.model.ports_of_host() - 1
                    ));
                }
            },
            None => {
                let (member, disk) = self.disk_of(text)?;
                self.model.slow_disk(member, disk, times);
                disk_name(member, disk)
            }
        };
        self.damage.slowed.retain(|(other, _)| *other != name);
        if times > 1 {
            self.damage.slowed.push((name.clone(), times));
        }
        let what =
            if times > 1 { format!("{name}: {times} times slower") } else { format!("{name}: as fast as planned") };
        self.happens(&what[..]);
        Ok(what)
    }
}
