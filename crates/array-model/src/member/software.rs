//! Writes of a member whose RAID the host does: the bitmap of regions, the log that closes the write hole, stripes.

use super::Member;
use crate::{
    RaidLog,
    disk::DiskCommand,
    events::Events,
    software_raid::{JOURNAL_BYTES, PAGE_BYTES, PPL_BYTES, StripeKey, Stripes},
    task::{Access, Work},
};

impl Member {
    /// A write of a host in software that writes through: first the bitmap, then the stripes.
    pub(super) fn take_in_software(&mut self, now_ns: u64, access: Access, events: &mut Events) {
        if let Some(bitmap) = self.software.as_mut().and_then(|software| software.bitmap.as_mut())
            && !bitmap.is_set(now_ns, &access)
        {
            bitmap.waiting.push(access);
            if bitmap.under_way.is_empty() {
                self.write_bitmap(now_ns, events);
            }
            return;
        }
        self.write_through(now_ns, access, events);
    }

    /// One page of the bitmap to all disks, for all writes that wait.
    fn write_bitmap(&mut self, now_ns: u64, events: &mut Events) {
        let Some(software) = &mut self.software else { return };
        let at_bytes = software.reserved_bytes;
        let Some(bitmap) = &mut software.bitmap else { return };
        bitmap.under_way = std::mem::take(&mut bitmap.waiting);
        let task = self.begin(Work::Bitmap);
        for disk in 0..self.geometry.sets() * self.geometry.set_disks() {
            if self.has(disk, 0) {
                self.push_page(now_ns, task, disk, at_bytes, PAGE_BYTES, events);
            }
        }
    }

    pub(super) fn bitmap_is_written(&mut self, now_ns: u64, events: &mut Events) {
        let bitmap =
            self.software.as_mut().and_then(|software| software.bitmap.as_mut()).expect("a bitmap was written");
        let begin = std::mem::take(&mut bitmap.under_way);
        begin.iter().for_each(|access| bitmap.touch(now_ns, access));
        let waits = !bitmap.waiting.is_empty();
        for access in begin {
            self.write_through(now_ns, access, events);
        }
        if waits {
            self.write_bitmap(now_ns, events);
        }
    }

    fn push_page(&mut self, now_ns: u64, task: u32, disk: u32, at_bytes: u64, bytes: u64, events: &mut Events) {
        let command =
            DiskCommand { at_bytes, bytes: bytes as u32, write: true, background: false, task, queued_ns: now_ns };
        self.push(now_ns, disk, command, events);
    }

    /// Whether a write goes to a drive of the log, and is over then; it is in the cache then.
    pub(super) fn log_write(&mut self, now_ns: u64, access: Access, events: &mut Events) -> bool {
        let Some(software) = self.software.as_mut().filter(|software| software.log == RaidLog::JournalWriteBack) else {
            return false;
        };
        let slot = software.logged.insert(access);
        let task = self.begin(Work::Logged { slot });
        self.log(now_ns, 0, task, access.bytes, events);
        true
    }

    /// The journal has a write: it is taken into memory, or waits for room there.
    pub(super) fn write_is_logged(&mut self, now_ns: u64, task: u32, slot: u32, events: &mut Events) {
        self.finish(task);
        let software = self.software.as_mut().expect("a log was written");
        let access = software.logged[slot];
        software.logged.free(slot);
        self.take_into_cache(now_ns, access, events);
    }

    /// Writes a stripe to the log, if there is one, before it is written in place; says whether it did.
    pub(super) fn log_stripe(&mut self, now_ns: u64, task: u32, events: &mut Events) -> bool {
        let Some(software) = &self.software else { return false };
        if self.tasks[task].logged || !matches!(self.tasks[task].work, Work::WriteThrough { .. }) {
            return false;
        }
        let (key, parts) = self.stripe_key(task);
        let parity_bytes = u64::from(parts.count_ones()) << self.part_shift;
        let (line, bytes) = match software.log {
            RaidLog::None | RaidLog::JournalWriteBack => return false,
            RaidLog::Ppl => {
                let disk = self.geometry.parity_disk(key.0, key.1, 0);
                if !self.has(disk, key.1) {
                    return false;
                }
                // Of a whole stripe there is no data beside what is written.
                let whole = self.tasks[task].chunks.len() == self.geometry.columns() as usize
                    && self.tasks[task].chunks.iter().all(|chunk| chunk.parts == parts);
                (disk, if whole { 0 } else { parity_bytes })
            }
            RaidLog::Journal => {
                let data = self.tasks[task].chunks.iter().map(|chunk| u64::from(chunk.parts.count_ones())).sum::<u64>();
                (0, (data << self.part_shift) + parity_bytes * u64::from(self.geometry.policy().parity_disks()))
            }
        };
        self.tasks[task].logged = true;
        self.log(now_ns, line, task, bytes, events);
        true
    }

    fn log(&mut self, now_ns: u64, line: u32, task: u32, bytes: u64, events: &mut Events) {
        self.tasks[task].remaining += 1;
        let log = &mut self.software.as_mut().expect("there is a log").lines[line as usize];
        log.waiting.push(task);
        log.waiting_bytes += bytes;
        if log.under_way.is_empty() {
            self.write_log(now_ns, line, events);
        }
    }

    /// One write of a log: a page that says what follows, and all that waits.
    fn write_log(&mut self, now_ns: u64, line: u32, events: &mut Events) {
        let software = self.software.as_mut().expect("there is a log");
        let has_drive = software.log.has_drive();
        let (first_bytes, ring_bytes) =
            if has_drive { (0, JOURNAL_BYTES) } else { (software.reserved_bytes + PPL_BYTES, PPL_BYTES) };
        let log = &mut software.lines[line as usize];
        log.under_way = std::mem::take(&mut log.waiting);
        let bytes = (PAGE_BYTES + std::mem::take(&mut log.waiting_bytes)).min(ring_bytes);
        if log.at_bytes + bytes > ring_bytes {
            log.at_bytes = 0;
        }
        let at_bytes = first_bytes + log.at_bytes;
        log.at_bytes += bytes;
        let disk = if has_drive { self.disks.len() as u32 - 1 } else { line };
        let task = self.begin(Work::Log { line });
        self.push_page(now_ns, task, disk, at_bytes, bytes, events);
    }

    pub(super) fn log_is_written(&mut self, now_ns: u64, line: u32, events: &mut Events) {
        let log = &mut self.software.as_mut().expect("a log was written").lines[line as usize];
        let over = std::mem::take(&mut log.under_way);
        if !log.waiting.is_empty() {
            self.write_log(now_ns, line, events);
        }
        for task in over {
            self.progress(now_ns, task, events);
        }
    }

    /// Begins a stripe, or lets it wait for a stripe at work.
    pub(super) fn begin_stripe(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        let (key, parts) = self.stripe_key(task);
        if let Some(stripes) = self.stripes_mut() {
            let conflicts = stripes.conflicts(key, parts);
            let waits = stripes.waiting.contains_key(&key) || !stripes.line.is_empty();
            if conflicts || waits || !stripes.has_room(parts) {
                stripes.waiting.entry(key).or_default().push(task);
                if !conflicts {
                    stripes.line.push_back(key);
                }
                return;
            }
            stripes.enter(key, task, parts);
        }
        self.flush(now_ns, task, events);
    }

    /// A stripe is written: others begin. Answers the commands that it carried.
    pub(super) fn end_stripe(&mut self, now_ns: u64, task: u32, events: &mut Events) {
        if self.stripes_mut().is_none() {
            return;
        }
        let (key, _) = self.stripe_key(task);
        let stripes = self.stripes_mut().expect("looked at above");
        stripes.leave(key, task);
        let joined = stripes.joined.remove(&task).unwrap_or_default();
        if stripes.waiting.contains_key(&key) {
            stripes.line.push_front(key);
        }
        for command in joined {
            self.end_write_through(command);
        }
        while let Some(key) = self.stripes_mut().and_then(|stripes| stripes.line.pop_front()) {
            if !self.begin_waiting(now_ns, key, events) {
                return;
            }
        }
    }

    /// Begins all writes that wait for a stripe as one; says whether others may begin after them.
    fn begin_waiting(&mut self, now_ns: u64, key: StripeKey, events: &mut Events) -> bool {
        let Some(tasks) = self.stripes_mut().and_then(|stripes| stripes.waiting.get(&key).cloned()) else {
            return true;
        };
        let parts = tasks.iter().fold(0, |all, task| all | self.stripe_key(*task).1);
        let stripes = self.stripes_mut().expect("something waits");
        if stripes.conflicts(key, parts) {
            // The end of the stripe at work begins it.
            return true;
        }
        if !stripes.has_room(parts) {
            stripes.line.push_front(key);
            return false;
        }
        stripes.waiting.remove(&key);
        let first = tasks[0];
        for task in &tasks[1..] {
            let Work::WriteThrough { command } = self.tasks[*task].work else { unreachable!("hosts' writes wait") };
            for chunk in std::mem::take(&mut self.tasks[*task].chunks) {
                let chunks = &mut self.tasks[first].chunks;
                match chunks.iter_mut().find(|own| own.chunk == chunk.chunk) {
                    Some(own) => own.parts |= chunk.parts,
                    None => chunks.push(chunk),
                }
            }
            self.finish(*task);
            self.stripes_mut().expect("something waits").joined.entry(first).or_default().push(command);
        }
        self.stripes_mut().expect("something waits").enter(key, first, parts);
        self.flush(now_ns, first, events);
        true
    }

    fn stripes_mut(&mut self) -> Option<&mut Stripes> {
        self.software.as_mut()?.stripes.as_mut()
    }

    fn stripe_key(&self, task: u32) -> (StripeKey, u64) {
        let stripe = self.stripe(task);
        ((stripe.place.set, stripe.place.row), stripe.parts)
    }
}
