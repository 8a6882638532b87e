//! Writes of hosts come in: into the cache, or to the disks where no cache may hold them back.

use super::Member;
use crate::{events::Events, task::Access};

impl Member {
    /// Serves a write; the command is over when it is in `done`.
    #[inline]
    pub(crate) fn write(&mut self, now_ns: u64, access: Access, events: &mut Events) {
        self.counters.written_bytes += access.bytes;
        self.take(now_ns, access, events);
    }

    /// Writes what no host counts as written, too.
    pub(crate) fn take(&mut self, now_ns: u64, access: Access, events: &mut Events) {
        if self.caching.write_back {
            if !self.log_write(now_ns, access, events) {
                self.take_into_cache(now_ns, access, events);
            }
        } else {
            self.take_in_software(now_ns, access, events);
        }
    }

    pub(super) fn take_into_cache(&mut self, now_ns: u64, access: Access, events: &mut Events) {
        if !self.waiting.writes.is_empty()
            || self.cache.dirty_bytes() + access.bytes > self.caching.dirty_most_bytes.max(access.bytes)
        {
            self.counters.writes_waited += 1;
            self.waiting.writes.push_back(access);
        } else {
            self.admit(access);
            self.done.push(access.command);
        }
        self.destage(now_ns, events);
    }

    /// Takes a write into the cache.
    pub(crate) fn admit(&mut self, access: Access) {
        let mut at_bytes = access.at_bytes;
        let end_bytes = access.at_bytes + access.bytes;
        while at_bytes < end_bytes {
            let (chunk, parts, until_bytes) = self.piece(at_bytes, end_bytes);
            let (lane, position) = self.destager.lane(&self.geometry, chunk);
            self.cache.write(chunk, parts, lane, position);
            at_bytes = until_bytes;
        }
    }

    /// Lets writes in that have waited for room.
    pub(crate) fn admit_waiting(&mut self) {
        while let Some(access) = self.waiting.writes.front().copied() {
            if self.cache.dirty_bytes() + access.bytes > self.caching.dirty_most_bytes.max(access.bytes) {
                return;
            }
            self.waiting.writes.pop_front();
            self.admit(access);
            self.done.push(access.command);
        }
    }
}
