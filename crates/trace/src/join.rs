//! Events joined into I/Os.
//!
//! The kernel numbers no request. A bio that is queued is found again by the sectors of the request that is issued for it: the
//! scheduler may have merged several bios into that, or split one. A completion is found by device and first sector, in the
//! order of issue; one of a part moves the rest to where that begins. A flush of the device has no place: it serves all bios of
//! the device that wait for one.
//!
//! I/Os leave in the order in which they were asked for, so each waits for those before it: at most [`HOLD_NS`], and never
//! more than [`HELD_MAX`] of them. An I/O that is out longer leaves without its time in the device.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::event::{Event, EventKind, flags};

/// A time that is not known.
pub const UNKNOWN_NS: i64 = -1;

/// Time for which an I/O may hold back those after it.
pub(crate) const HOLD_NS: u64 = 30_000_000_000;
/// I/Os that are held back at most: 100 MB.
pub(crate) const HELD_MAX: usize = 1 << 20;

/// An I/O as it was issued to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    pub t_ns: u64,
    pub queue_ns: i64,
    pub device_ns: i64,
    pub place_bytes: u64,
    pub size_bytes: u32,
    pub flags: u16,
    pub device: u16,
    pub process: u16,
}

const SECTOR_BYTES: u64 = 512;

/// I/Os asked for at one moment, by a bio or, where that is unknown, a request.
struct Slot {
    t_ns: u64,
    process: u16,
    /// Parts that are not issued yet, and requests that are not completed.
    open: u32,
    first: Option<Io>,
}

/// A bio that waits for a request, or the rest of it.
struct Waiting {
    end: u64,
    ordinal: u64,
}

struct InFlight {
    ordinal: u64,
    issued_ns: u64,
    end: u64,
    io: Io,
    /// Events were lost after the issue, maybe its completion.
    is_doubtful: bool,
}

/// Numbers of I/Os that could not be joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unjoined {
    /// Completions of requests whose issue was not seen.
    pub(crate) completions: u64,
    /// I/Os that left without a completion.
    pub(crate) unfinished: u64,
}

/// Device, first sector, and a number that keeps those of one place in order.
type Key = (u16, u64, u64);

#[derive(Default)]
pub(crate) struct Joiner {
    waiting: BTreeMap<Key, Waiting>,
    flushes: HashMap<u16, Vec<u64>>,
    in_flight: BTreeMap<Key, InFlight>,
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    base: u64,
    /// Further I/Os of a slot, by its number.
    further: HashMap<u64, Vec<Io>>,
    sequence: u64,
    now_ns: u64,
    pub(crate) unjoined: Unjoined,
}

impl Joiner {
    /// Takes an event; they come in the order of their times.
    ///
    /// Returns the I/O that it completes.
    pub(crate) fn take(&mut self, event: &Event) -> Option<Io> {
        self.now_ns = self.now_ns.max(event.time_ns);
        self.sequence += 1;
        let is_flush = event.asked.flags & flags::FLUSH != 0;
        match event.kind {
            EventKind::Queue => self.queue(event),
            EventKind::Issue if event.sectors == 0 && !is_flush => {}
            EventKind::Issue => self.issue(event, is_flush),
            EventKind::Requeue => self.requeue(event, is_flush),
            // A write with a flush completes once more, as itself, when the flush is done.
            EventKind::Complete if event.sectors == 0 && !is_flush => {}
            EventKind::Complete => return self.complete(event, is_flush),
        }
        None
    }

    /// Events were lost: whatever is in flight may have been completed.
    pub(crate) fn doubt(&mut self) {
        self.in_flight.values_mut().for_each(|one| one.is_doubtful = true);
    }

    fn slot(&mut self, t_ns: u64, process: u16, open: u32) -> u64 {
        self.slots.push_back(Slot { t_ns, process, open, first: None });
        self.base + self.slots.len() as u64 - 1
    }

    fn at(&mut self, ordinal: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(ordinal.checked_sub(self.base)?).ok()?)
    }

    fn let_go(&mut self, ordinal: u64) {
        if let Some(slot) = self.at(ordinal) {
            slot.open = slot.open.saturating_sub(1);
        }
    }

    fn queue(&mut self, event: &Event) {
        let flushes = event.asked.flushes_first || event.asked.flags & flags::FLUSH != 0;
        let has_data = event.sectors > 0;
        if !flushes && !has_data {
            return;
        }
        let ordinal = self.slot(event.time_ns, event.process, u32::from(flushes) + u32::from(has_data));
        if flushes {
            self.flushes.entry(event.device).or_default().push(ordinal);
        }
        if has_data {
            let end = event.sector.saturating_add(u64::from(event.sectors));
            self.waiting.insert((event.device, event.sector, self.sequence), Waiting { end, ordinal });
        }
    }

    fn issue(&mut self, event: &Event, is_flush: bool) {
        let (begin, end) = place_of(event, is_flush);
        let queued =
            if is_flush { self.served_by_flush(event.device) } else { self.covered_by(event.device, begin, end) };
        let ordinal = match queued {
            Some(ordinal) => ordinal,
            None => self.slot(event.time_ns, event.process, 1),
        };
        let Some((t_ns, process)) = self.at(ordinal).map(|slot| (slot.t_ns, slot.process)) else { return };
        let queue_ns = if queued.is_some() { (event.time_ns - t_ns) as i64 } else { UNKNOWN_NS };
        let size_bytes = u32::try_from((end - begin) * SECTOR_BYTES).unwrap_or(u32::MAX);
        let place_bytes = if is_flush { 0 } else { begin.saturating_mul(SECTOR_BYTES) & i64::MAX as u64 };
        let (flags, device) = (event.asked.flags, event.device);
        let io = Io { t_ns, queue_ns, device_ns: UNKNOWN_NS, place_bytes, size_bytes, flags, device, process };
        if let Some(key) = self.first_in_flight(device, begin)
            && self.in_flight.get(&key).is_some_and(|one| one.is_doubtful)
        {
            self.give_up(&key);
        }
        let one = InFlight { ordinal, issued_ns: event.time_ns, end, io, is_doubtful: false };
        self.in_flight.insert((device, begin, self.sequence), one);
    }

    /// The earliest of the bios that a request moves data of; all of them, or their parts, wait no longer.
    fn covered_by(&mut self, device: u16, begin: u64, end: u64) -> Option<u64> {
        // The usual case: one bio, which the request is.
        let exact = self.waiting.range((device, begin, 0)..=(device, begin, u64::MAX)).find(|(_, one)| one.end == end);
        if let Some((&key, _)) = exact {
            let ordinal = self.waiting.remove(&key)?.ordinal;
            self.flush_is_over(device, ordinal);
            return self.at(ordinal).map(|_| ordinal);
        }
        let mut found: Vec<Key> =
            self.waiting.range((device, begin, 0)..(device, end, 0)).map(|(&key, _)| key).collect();
        if let Some((&key, one)) = self.waiting.range(..(device, begin, 0)).next_back()
            && key.0 == device
            && one.end > begin
        {
            found.push(key);
        }
        let mut ordinals = Vec::with_capacity(found.len());
        let mut covered = begin;
        found.sort_unstable_by_key(|key| (key.1, key.2));
        for key in found {
            let (from, to) = (key.1, self.waiting[&key].end);
            // Another bio of the same place waits for a request of its own.
            if from.max(begin) < covered {
                continue;
            }
            covered = to.min(end);
            let one = self.waiting.remove(&key)?;
            self.flush_is_over(device, one.ordinal);
            let rests = usize::from(from < begin) + usize::from(to > end);
            if from < begin {
                self.waiting.insert(key, Waiting { end: begin, ordinal: one.ordinal });
            }
            if to > end {
                self.waiting.insert((device, end, key.2), Waiting { end: to, ordinal: one.ordinal });
            }
            if let Some(slot) = self.at(one.ordinal) {
                slot.open += rests as u32;
                ordinals.push(one.ordinal);
            }
        }
        self.joined(&ordinals)
    }

    /// The first of some slots; each of the others has a part less to wait for.
    fn joined(&mut self, ordinals: &[u64]) -> Option<u64> {
        let first = *ordinals.iter().min()?;
        let own = ordinals.iter().position(|one| *one == first)?;
        for (number, ordinal) in ordinals.iter().enumerate() {
            if number != own {
                self.let_go(*ordinal);
            }
        }
        Some(first)
    }

    fn served_by_flush(&mut self, device: u16) -> Option<u64> {
        let ordinals = self.flushes.remove(&device)?;
        let ordinals: Vec<u64> = ordinals.into_iter().filter(|one| *one >= self.base).collect();
        self.joined(&ordinals)
    }

    /// Data are issued after the flush that goes before them: a device without a cache is not asked for it.
    fn flush_is_over(&mut self, device: u16, ordinal: u64) {
        let Some(waiting) = self.flushes.get_mut(&device) else { return };
        let Some(place) = waiting.iter().position(|one| *one == ordinal) else { return };
        waiting.remove(place);
        self.let_go(ordinal);
    }

    fn first_in_flight(&self, device: u16, sector: u64) -> Option<Key> {
        self.in_flight.range((device, sector, 0)..=(device, sector, u64::MAX)).next().map(|(&key, _)| key)
    }

    fn requeue(&mut self, event: &Event, is_flush: bool) {
        let (begin, end) = place_of(event, is_flush);
        let mut same = self.in_flight.range((event.device, begin, 0)..=(event.device, begin, u64::MAX));
        // The driver refuses the request that it was handed last.
        let Some((&key, _)) = same.rfind(|(_, one)| one.end == end) else { return };
        let Some(one) = self.in_flight.remove(&key) else { return };
        if is_flush {
            self.flushes.entry(event.device).or_default().insert(0, one.ordinal);
        } else {
            self.waiting.insert((event.device, begin, key.2), Waiting { end, ordinal: one.ordinal });
        }
    }

    fn complete(&mut self, event: &Event, is_flush: bool) -> Option<Io> {
        let (begin, end) = place_of(event, is_flush);
        let Some(key) = self.first_in_flight(event.device, begin) else {
            self.unjoined.completions += 1;
            return None;
        };
        let mut one = self.in_flight.remove(&key)?;
        one.io.flags |= event.asked.flags & flags::FAILED;
        if end < one.end {
            self.in_flight.insert((event.device, end, key.2), one);
            return None;
        }
        one.io.device_ns = event.time_ns.saturating_sub(one.issued_ns) as i64;
        self.finish(&one);
        Some(one.io)
    }

    fn finish(&mut self, one: &InFlight) {
        let Some(slot) = self.at(one.ordinal) else { return };
        slot.open = slot.open.saturating_sub(1);
        if slot.first.is_none() {
            slot.first = Some(one.io);
        } else {
            self.further.entry(one.ordinal).or_default().push(one.io);
        }
    }

    fn give_up(&mut self, key: &Key) {
        if let Some(one) = self.in_flight.remove(key) {
            self.unjoined.unfinished += 1;
            self.finish(&one);
        }
    }

    /// Hands out I/Os that no earlier one can come before any more; at the end all of them.
    pub(crate) fn ready(&mut self, is_end: bool, mut out: impl FnMut(Io)) {
        let mut gave_up = false;
        while let Some(slot) = self.slots.front() {
            if slot.open > 0 {
                let is_old = self.now_ns.saturating_sub(slot.t_ns) > HOLD_NS;
                if !(is_end || is_old || self.slots.len() > HELD_MAX) {
                    break;
                }
                // All that is out so long at once: each search goes through everything that is in flight.
                if !gave_up {
                    self.give_up_until(if is_end { u64::MAX } else { self.now_ns.saturating_sub(HOLD_NS / 2) });
                    gave_up = true;
                    continue;
                }
                if self.slots.len() > HELD_MAX && !is_end {
                    self.give_up_until(u64::MAX);
                }
            }
            let Some(slot) = self.slots.pop_front() else { break };
            slot.first.into_iter().for_each(&mut out);
            if let Some(further) = self.further.remove(&self.base) {
                further.into_iter().for_each(&mut out);
            }
            self.base += 1;
        }
        let base = self.base;
        if gave_up {
            self.waiting.retain(|_, one| one.ordinal >= base);
            self.flushes.values_mut().for_each(|waiting| waiting.retain(|one| *one >= base));
        }
    }

    /// Gives up requests whose bios were queued before a time.
    fn give_up_until(&mut self, until_ns: u64) {
        let old: Vec<Key> =
            self.in_flight.iter().filter(|(_, one)| one.io.t_ns < until_ns).map(|(&key, _)| key).collect();
        old.iter().for_each(|key| self.give_up(key));
    }

    pub(crate) fn held(&self) -> usize {
        self.slots.len()
    }
}

fn place_of(event: &Event, is_flush: bool) -> (u64, u64) {
    // A flush has no place; kernels say sector 0 or -1.
    if is_flush { (u64::MAX, u64::MAX) } else { (event.sector, event.sector.saturating_add(u64::from(event.sectors))) }
}

#[cfg(test)]
mod tests;
