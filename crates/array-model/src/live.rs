//! Events in an array while it runs: disks and paths are lost, come back, or become slow. Places of bytes, for stores
//! of real bytes.

use crate::{
    ArrayError, ArrayModel, FaultPlan, Geometry, Lost,
    events::{Event, PathEvent},
    rebuild::Rebuild,
    write_anywhere::Moved,
};

/// A run of a volume's bytes in the address space of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub member: u32,
    pub at_bytes: u64,
    pub bytes: u64,
}

/// How far a member's rebuild has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebuildReading {
    pub disk: u32,
    /// Rows from the first that the spare holds.
    pub rows_done: u64,
    pub rows: u64,
}

impl ArrayModel {
    /// How chunks of a member's address space lie on its disks when each is at its own place.
    pub fn geometry(&self, member: u32) -> &Geometry {
        &self.members[member as usize].geometry
    }

    /// Bytes of a member's address space that volumes take.
    pub fn member_bytes(&self, member: u32) -> u64 {
        self.members[member as usize].used_bytes
    }

    /// Bytes of a member's address space in which its blocks may lie: more than volumes take where writes go anywhere.
    pub fn places_bytes(&self, member: u32) -> u64 {
        let member = &self.members[member as usize];
        member.anywhere.as_ref().map_or(member.used_bytes, |anywhere| anywhere.places_bytes())
    }

    /// Size of the blocks that move when they are written; none where each has its place.
    pub fn moving_block_bytes(&self, member: u32) -> Option<u64> {
        self.members[member as usize].anywhere.as_ref().map(|anywhere| anywhere.block_bytes())
    }

    /// Where a block of a member lies, in blocks of its address space as the geometry spreads it over disks.
    pub fn place(&self, member: u32, block: u64) -> u64 {
        self.members[member as usize].anywhere.as_ref().map_or(block, |anywhere| anywhere.place_of(block))
    }

    /// Notes from now on where blocks move, for [`Self::take_moved`].
    pub fn follow(&mut self) {
        self.members.iter_mut().filter_map(|member| member.anywhere.as_mut()).for_each(|anywhere| anywhere.follow());
    }

    /// Adds the blocks of a member that moved since this was asked last, in the order in which they did.
    pub fn take_moved(&mut self, member: u32, moved: &mut Vec<Moved>) {
        if let Some(anywhere) = &mut self.members[member as usize].anywhere {
            anywhere.take_moved(moved);
        }
    }

    /// Has blocks of a member that was not used yet lie where they lay: numbers of blocks, each once, and their places.
    ///
    /// # Errors
    /// Two blocks would lie at one place, or one where there is none.
    pub fn restore_places(
        &mut self,
        member: u32,
        moved: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Result<(), ArrayError> {
        let member = &mut self.members[member as usize];
        match &mut member.anywhere {
            Some(anywhere) => anywhere.restore(member.used_bytes, moved),
            None => Ok(()),
        }
    }

    pub fn members(&self) -> u32 {
        self.members.len() as u32
    }

    /// The parts of a range of a volume, in order. The range lies in the volume.
    pub fn parts(&self, volume: u16, offset_bytes: u64, bytes: u64) -> impl Iterator<Item = Part> + '_ {
        let mut done = 0;
        std::iter::from_fn(move || {
            (done < bytes).then(|| {
                let address = self.spread.address(volume, offset_bytes + done);
                let bytes = (bytes - done).min(address.left_bytes);
                done += bytes;
                Part { member: address.member, at_bytes: address.at_bytes, bytes }
            })
        })
    }

    /// A disk is gone, or comes back empty and is not rebuilt; a rebuild that was under way ends. One disk of a member is
    /// modelled as lost.
    pub fn lose_disk(&mut self, member: u32, disk: u32) {
        let member = &mut self.members[member as usize];
        assert!(disk < member.disks.len() as u32, "a member has the disk");
        (member.lost_disk, member.rebuild) = (Some(disk), None);
    }

    /// Rebuilds the rows of the lost disk in which volumes ever had data, `depth` at once.
    pub fn rebuild_disk(&mut self, member: u32, depth: u32) {
        let member = &mut self.members[member as usize];
        if member.lost_disk.is_some() && member.rebuild.is_none() {
            let begun_bytes = member.anywhere.as_ref().map_or(0, |anywhere| anywhere.begun_bytes());
            let bytes = member.used_bytes.max(begun_bytes);
            let rows = member.geometry.disk_bytes(bytes) / member.geometry.chunk_bytes();
            member.rebuild = Some(Rebuild::new(depth, rows, 0));
            member.rebuild_next(self.time.now_ns, &mut self.time.events);
        }
    }

    /// The disk that a member has lost.
    pub fn lost_disk(&self, member: u32) -> Option<u32> {
        self.members[member as usize].lost_disk
    }

    /// How far a member's rebuild is; none where there is no rebuild.
    pub fn rebuild_reading(&self, member: u32) -> Option<RebuildReading> {
        let member = &self.members[member as usize];
        let (rebuild, disk) = (member.rebuild.as_ref()?, member.lost_disk?);
        let rows_done = rebuild.under_way.iter().copied().min().unwrap_or(rebuild.next_row);
        Some(RebuildReading { disk, rows_done, rows: rebuild.rows })
    }

    /// Commands that a disk begins from now on take so many times as long; 1: as planned.
    pub fn slow_disk(&mut self, member: u32, disk: u32, times: u32) {
        let member = &mut self.members[member as usize];
        member.slowed.resize(member.disks.len(), 1);
        member.slowed[disk as usize] = times;
        if member.slowed.iter().all(|times| *times == 1) {
            member.slowed.clear();
        }
    }

    /// A port of every host carries so many times less from now on; 1: as planned.
    pub fn slow_port(&mut self, port: u32, times: u32) {
        self.links.slow_port(port, times);
    }

    pub fn ports_of_host(&self) -> u32 {
        self.links.host_ports()
    }

    /// Loses the first port of the first host or the first controller of the first member now. The plan of the array
    /// has a fault, even if a fault that never comes.
    ///
    /// # Errors
    /// Something is lost already, or it is the host's only port.
    pub fn lose_path(&mut self, lost: Lost, failover_ns: u64) -> Result<(), ArrayError> {
        if self.links.is_lost() {
            return Err(ArrayError::invalid("fault", "a port or controller is lost already"));
        }
        if lost == Lost::HostPort && self.links.host_ports() == 1 {
            return Err(ArrayError::invalid("fault", "the host's only port would be lost"));
        }
        let fault = FaultPlan { lost, at_ns: self.time.now_ns, failover_ns };
        self.fault = Some(fault);
        self.links.lose_instead(fault);
        self.time.events.set(self.time.now_ns, Event::Path(PathEvent::Lost));
        Ok(())
    }

    /// Brings back a lost port or controller.
    pub fn mend_paths(&mut self) {
        self.links.mend();
        if let Some(fault) = &mut self.fault {
            fault.at_ns = FaultPlan::NEVER_NS;
        }
        self.send_stranded();
    }

    /// Has volumes that no host sees hold free places of write-anywhere members, until so large a share of each is used: what
    /// is written then finds free places here and there, as after years of use, and reclaiming has more to move. Says what
    /// share is used now, the least of all members; none where all blocks lie in place.
    ///
    /// # Errors
    /// A member is as full already, or nothing would be left to reclaim.
    pub fn fill(&mut self, share: f64) -> Result<Option<f64>, ArrayError> {
        let anywhere = self.members.iter_mut().filter(|member| member.anywhere.is_some()).collect::<Vec<_>>();
        if let Some(full) =
            anywhere.iter().filter_map(|member| member.anywhere.as_ref()).map(|a| a.used_share()).reduce(f64::max)
            && full >= share
        {
            let message = format!("{:.0} %: {:.1} % of the pool is used already", share * 100.0, full * 100.0);
            return Err(ArrayError::invalid("fill", message));
        }
        let mut used = None::<f64>;
        for member in anywhere {
            if let Some(reclaim) = &mut member.reclaim {
                reclaim.fill(share)?;
            }
            if let Some(anywhere) = &mut member.anywhere {
                anywhere.fill(share);
                used = Some(used.unwrap_or(1.0).min(anywhere.used_share()));
            }
        }
        Ok(used)
    }

    /// Whether writes of a member go to free places.
    pub fn is_write_anywhere(&self, member: u32) -> bool {
        self.members[member as usize].anywhere.is_some()
    }
}
