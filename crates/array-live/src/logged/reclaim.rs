//! Reclamation: live contents of the emptiest containers go into new ones, and the old containers become free.

use super::{LoggedStore, change::Change, shape::PARITY_PIECES};
use crate::StoreFault;

/// Share of the pool, in percent, from which on containers are reclaimed.
const FROM_PERCENT: u64 = 75;
/// Containers that reclamation keeps for itself.
const RESERVE: u32 = 2;
/// Least share of dead contents in a container, in percent. With less, moving the rest gains nothing.
const DEAD_LEAST: u64 = 5;

impl LoggedStore {
    /// Containers that reclamation emptied since the store was opened.
    pub fn reclaimed_containers(&self) -> u64 {
        self.counts.cleaned
    }

    /// Data of a container.
    pub fn container_bytes(&self) -> u64 {
        self.shape.container_bytes().into()
    }

    /// Whether the pool is so full that containers are to be reclaimed, and a container is worth it.
    pub fn is_reclaiming(&self) -> bool {
        self.used_containers() * 100 > u64::from(self.containers_most) * FROM_PERCENT && self.emptiest().is_some()
    }

    /// Moves at most `most` live contents; returns their bytes.
    ///
    /// # Errors
    /// A file of the store fails, or fewer disks are left than a container needs.
    pub fn reclaim(&mut self, most: usize) -> Result<u64, StoreFault> {
        let Some(container) = self.emptiest() else { return Ok(0) };
        let contents: Vec<u32> = self.table.contents_of(container).map(|(_, content)| content).take(most).collect();
        let mut moved = Vec::with_capacity(contents.len());
        for content in contents {
            match self.fetch(content) {
                Ok((stored, _)) => moved.push((content, stored)),
                // More pieces are wrong than there is parity: it stays where it is.
                Err(StoreFault::Lost) => {
                    self.unreadable.insert(container);
                    return Ok(0);
                }
                Err(fault) => return Err(fault),
            }
        }
        let mut bytes = 0;
        while !moved.is_empty() {
            let lengths = moved.iter().map(|(_, stored)| stored.len());
            let fit =
                (1..=moved.len()).rev().find(|count| self.table.end_after(lengths.clone().take(*count)).is_some());
            let Some(fit) = fit else {
                self.seal()?;
                continue;
            };
            let rest = moved.split_off(fit);
            bytes += moved.iter().map(|(_, stored)| stored.len() as u64).sum::<u64>();
            self.commit(&Change::Move(std::mem::replace(&mut moved, rest)))?;
            let _ = self.write_rows(false);
        }
        self.counts.moved_bytes += bytes;
        self.counts.cleaned += u64::from(!self.table.containers.contains_key(&container));
        Ok(bytes)
    }

    /// Makes sure that a container can be begun besides the containers that reclamation needs.
    pub(super) fn free_container(&mut self) -> Result<(), StoreFault> {
        while self.used_containers() + u64::from(RESERVE) > u64::from(self.containers_most) {
            match self.emptiest() {
                Some(_) => self.reclaim(64)?,
                None => return Err(StoreFault::Full),
            };
        }
        Ok(())
    }

    /// Whether `bytes` of blocks fit without reclamation, however they lie in containers.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        let containers = (2 * bytes).div_ceil(self.shape.container_bytes().into());
        self.used_containers() + u64::from(RESERVE) + containers <= u64::from(self.containers_most)
    }

    /// Containers on disks, and the open container.
    fn used_containers(&self) -> u64 {
        self.table.containers.len() as u64 + 1
    }

    /// The container whose data can be had, and is worth moving, of which the least is live.
    fn emptiest(&self) -> Option<u32> {
        let worth = self.table.containers.iter().filter(|(number, container)| {
            let dead_bytes = container.filled_bytes - container.live_bytes;
            dead_bytes * 100 >= container.filled_bytes * DEAD_LEAST
                && container.missing() <= PARITY_PIECES
                && !self.unreadable.contains(number)
        });
        worth.min_by_key(|(_, container)| container.live_bytes).map(|(number, _)| *number)
    }
}
