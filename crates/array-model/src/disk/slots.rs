//! Slots of a disk that serves several commands at a time; further commands wait in line.

use std::collections::VecDeque;

use super::command::{DiskCommand, DiskCounters};

#[derive(Debug, Clone)]
pub(super) struct Slots {
    served: Vec<Option<DiskCommand>>,
    free: Vec<u16>,
    waiting: VecDeque<DiskCommand>,
    counters: DiskCounters,
    counted_ns: u64,
}

impl Slots {
    /// An idle disk that serves `depth` commands at a time.
    pub(super) fn new(depth: u32) -> Self {
        Self {
            served: vec![None; depth as usize],
            free: (0..depth as u16).rev().collect(),
            waiting: VecDeque::with_capacity(64),
            counters: DiskCounters::default(),
            counted_ns: 0,
        }
    }

    /// Takes a command; gives the slot that serves it at once, or none where it waits.
    #[inline]
    pub(super) fn push(&mut self, now_ns: u64, command: DiskCommand) -> Option<u16> {
        self.account(now_ns);
        let slot = self.free.pop();
        match slot {
            Some(slot) => self.served[usize::from(slot)] = Some(command),
            None => self.waiting.push_back(command),
        }
        slot
    }

    /// Ends the command of a slot; gives it, and the next command that the slot serves.
    #[inline]
    pub(super) fn end(&mut self, now_ns: u64, slot: u16) -> (DiskCommand, Option<DiskCommand>) {
        self.account(now_ns);
        let ended = self.served[usize::from(slot)].take().expect("a disk ends what it serves");
        self.counters.count(&ended);
        let next = self.waiting.pop_front();
        match next {
            Some(next) => self.served[usize::from(slot)] = Some(next),
            None => self.free.push(slot),
        }
        (ended, next)
    }

    #[inline]
    pub(super) fn present(&self) -> u32 {
        (self.served.len() - self.free.len() + self.waiting.len()) as u32
    }

    #[inline]
    pub(super) fn counters(&self, now_ns: u64) -> DiskCounters {
        let mut copy = self.counters;
        let passed_ns = now_ns - self.counted_ns;
        copy.queue_ns += passed_ns * u64::from(self.present());
        copy.busy_ns += if self.present() > 0 { passed_ns } else { 0 };
        copy
    }

    #[inline]
    fn account(&mut self, now_ns: u64) {
        self.counters = self.counters(now_ns);
        self.counted_ns = now_ns;
    }
}
