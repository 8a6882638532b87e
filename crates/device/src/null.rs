use std::{cmp::Reverse, collections::BinaryHeap, thread, time::Duration};

use assay_load::{Completion, Queue, QueueError, Request};
use serde::{Deserialize, Serialize};

use crate::{SessionClock, clock::thread_cpu_ns};

/// A device without a medium. As it stands it completes everything at once and shows what the generator costs;
/// with a latency and stalls it is a test device whose every figure is known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NullOptions {
    /// Every I/O takes this long.
    pub latency_ns: u64,
    /// The device serves this many I/Os of a worker at a time; 0 is without bound.
    pub servers: u32,
    /// From `stall_at_ns` on, for `stall_ns`, nothing completes; again every `stall_every_ns` unless that is 0.
    pub stall_at_ns: u64,
    pub stall_ns: u64,
    pub stall_every_ns: u64,
}

impl NullOptions {
    /// When an I/O that would complete at `due_ns` does so, given the stalls.
    fn after_stalls_ns(&self, due_ns: u64) -> u64 {
        if self.stall_ns == 0 || due_ns < self.stall_at_ns {
            return due_ns;
        }
        let since_ns = due_ns - self.stall_at_ns;
        let into_ns = if self.stall_every_ns > 0 { since_ns % self.stall_every_ns } else { since_ns };
        if into_ns < self.stall_ns { due_ns.saturating_add(self.stall_ns - into_ns) } else { due_ns }
    }
}

/// The queue of a null device.
pub struct NullQueue {
    clock: SessionClock,
    options: NullOptions,
    at_once: Vec<(u32, i32)>,
    due: BinaryHeap<Reverse<(u64, u32, i32)>>,
    /// When each server is free again.
    servers_free_ns: BinaryHeap<Reverse<u64>>,
}

impl NullQueue {
    pub fn new(clock: SessionClock, options: NullOptions) -> Self {
        let servers_free_ns = (0..options.servers).map(|_| Reverse(0)).collect();
        Self {
            clock,
            options,
            at_once: Vec::with_capacity(4096),
            due: BinaryHeap::with_capacity(4096),
            servers_free_ns,
        }
    }

    fn due_ns(&mut self, now_ns: u64) -> u64 {
        let Some(Reverse(free_ns)) = self.servers_free_ns.pop() else {
            return self.options.after_stalls_ns(now_ns.saturating_add(self.options.latency_ns));
        };
        let due_ns = self.options.after_stalls_ns(free_ns.max(now_ns).saturating_add(self.options.latency_ns));
        self.servers_free_ns.push(Reverse(due_ns));
        due_ns
    }
}

impl Queue for NullQueue {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    #[inline]
    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        if self.options == NullOptions::default() {
            self.at_once.extend(requests.iter().map(|request| (request.tag, request.length_bytes as i32)));
            return Ok(());
        }
        let now_ns = self.clock.now_ns();
        for request in requests {
            let due_ns = self.due_ns(now_ns);
            self.due.push(Reverse((due_ns, request.tag, request.length_bytes as i32)));
        }
        Ok(())
    }

    #[inline]
    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        if !self.at_once.is_empty() {
            let at_ns = self.clock.now_ns();
            completions.extend(self.at_once.drain(..).map(|(tag, result)| Completion { tag, result, at_ns }));
            return Ok(());
        }
        let mut found = 0;
        loop {
            let now_ns = self.clock.now_ns();
            while let Some(&Reverse((due_ns, tag, result))) = self.due.peek() {
                if due_ns > now_ns {
                    break;
                }
                self.due.pop();
                completions.push(Completion { tag, result, at_ns: now_ns });
                found += 1;
            }
            if found >= min || now_ns >= until_ns {
                return Ok(());
            }
            let next_ns = self.due.peek().map_or(until_ns, |&Reverse((due_ns, ..))| due_ns.min(until_ns));
            // A sleep comes back tens of microseconds late; short waits are polled.
            if next_ns > now_ns + 100_000 {
                thread::sleep(Duration::from_nanos(next_ns - now_ns - 60_000));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn cpu_ns(&self) -> Option<u64> {
        Some(thread_cpu_ns())
    }
}
