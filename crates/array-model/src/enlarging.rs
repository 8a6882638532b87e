//! A volume grows while the array runs: its new pages lie behind all others, and those that it had stay where they are.

use crate::{ArrayError, ArrayModel, ArrayPlan, LayoutPlan, plan::limits::VOLUME_MAX};

impl ArrayModel {
    /// Gives a volume `bytes`, which are more than it has.
    ///
    /// # Errors
    /// There is no such volume, its size cannot be this, its members lack the room, or a member is being filled.
    pub fn grow_volume(&mut self, plan: &ArrayPlan, volume: u16, bytes: u64) -> Result<(), ArrayError> {
        let Some(before) = self.volume_bytes(usize::from(volume)) else { return refused("there is no such volume") };
        if bytes <= before {
            return refused(format!("it has {before} bytes; volumes only grow"));
        }
        if bytes > VOLUME_MAX || !bytes.is_multiple_of(512) {
            return refused(format!("{bytes} bytes are no multiple of 512 up to 1 PiB"));
        }
        if self.rebalance_reading().is_some() {
            return refused("a member is being filled; grow the volume once it has its share");
        }
        let mut spread = self.spread.clone();
        spread.grow(volume, bytes);
        let members: Vec<u32> = spread.members_of(volume).collect();
        for member in &members {
            self.check_growth(plan, *member, spread.used_bytes(*member))?;
        }
        for number in members {
            let used_bytes = spread.used_bytes(number);
            let member = &mut self.members[number as usize];
            let rows = member.geometry.disk_bytes(used_bytes) / member.geometry.chunk_bytes();
            member.destager.reach(rows);
            if let Some(rebuild) = &mut member.rebuild {
                rebuild.rows = rebuild.rows.max(rows);
            }
            member.used_bytes = used_bytes;
        }
        self.spread = spread;
        self.set_volume_bytes(usize::from(volume), bytes);
        Ok(())
    }

    /// Refuses what does not fit on the disks of a member.
    fn check_growth(&self, plan: &ArrayPlan, member: u32, used_bytes: u64) -> Result<(), ArrayError> {
        let mut left = member;
        let pool = plan.pools.iter().find(|pool| {
            let is_its = left < pool.members;
            left = left.saturating_sub(pool.members);
            is_its
        });
        // A member that joined is like those of the one pool.
        let own = &pool.unwrap_or(&plan.pools[0]).member;
        if own.layout != LayoutPlan::InPlace {
            return refused("what writes anywhere keeps a map of all blocks, which does not grow");
        }
        let geometry = self.geometry(member);
        let disk_bytes = own.disk.capacity_bytes();
        if geometry.disk_bytes(used_bytes) > disk_bytes {
            let usable = geometry.usable_bytes(disk_bytes);
            return refused(format!("volumes would take {used_bytes} bytes of a member that holds {usable}"));
        }
        Ok(())
    }
}

fn refused<T>(message: impl Into<String>) -> Result<T, ArrayError> {
    Err(ArrayError::invalid("grow", message))
}
