//! Histograms of times in the queue above a device and in the device, for each device and direction.

use std::collections::BTreeMap;

use crate::{
    event::flags,
    join::{Io, UNKNOWN_NS},
};

/// Buckets of a histogram, two for each factor of two from 1 us on: the first holds all below, the last all from 23 minutes on.
pub const BUCKETS: usize = 62;

const FIRST_NS: f64 = 1000.0;

/// The bucket of a time; bucket `n` ends below 1 us times the square root of two to the `n`-th.
pub fn bucket_of(time_ns: u64) -> usize {
    if (time_ns as f64) < FIRST_NS {
        return 0;
    }
    (((time_ns as f64 / FIRST_NS).log2() * 2.0).floor() as usize + 1).min(BUCKETS - 1)
}

/// Times of some I/Os.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// I/Os by bucket.
    pub counts: [u64; BUCKETS],
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum_ns: 0, max_ns: 0 }
    }
}

impl Times {
    fn count(&mut self, time_ns: i64) {
        let time_ns = time_ns.unsigned_abs();
        self.counts[bucket_of(time_ns)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
    }
}

/// Times in the queue, in the device, and both together; without a queue's time, that in the device stands for both.
pub type Sides = [Times; 3];

/// Times since they were taken last, by device and direction: `read`, `write` or `flush`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Latencies(pub BTreeMap<(u16, &'static str), Sides>);

impl Latencies {
    pub(crate) fn count(&mut self, io: &Io) {
        let direction = match io.flags {
            found if found & flags::READ != 0 => "read",
            found if found & flags::WRITE != 0 => "write",
            found if found & flags::FLUSH != 0 => "flush",
            _ => return,
        };
        let [queue, device, whole] = self.0.entry((io.device, direction)).or_default();
        if io.queue_ns != UNKNOWN_NS {
            queue.count(io.queue_ns);
        }
        device.count(io.device_ns);
        whole.count(io.queue_ns.max(0).saturating_add(io.device_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_where_the_next_begins() {
        assert_eq!((bucket_of(0), bucket_of(999), bucket_of(1000), bucket_of(1413), bucket_of(1415)), (0, 0, 1, 1, 2));
        assert_eq!((bucket_of(2000), bucket_of(1 << 60)), (3, BUCKETS - 1));
    }

    #[test]
    fn both_times_are_counted_apart_and_together() {
        let io = Io {
            t_ns: 0,
            queue_ns: 500,
            device_ns: 2500,
            place_bytes: 0,
            size_bytes: 512,
            flags: flags::WRITE | flags::FUA,
            device: 3,
            process: 0,
        };
        let mut found = Latencies::default();
        found.count(&io);
        found.count(&Io { queue_ns: UNKNOWN_NS, ..io });
        found.count(&Io { flags: flags::DISCARD, ..io });
        let [queue, device, whole] = &found.0[&(3, "write")];
        assert_eq!((queue.counts[0], queue.sum_ns), (1, 500));
        assert_eq!((device.counts[bucket_of(2500)], device.sum_ns), (2, 5000));
        assert_eq!((whole.sum_ns, whole.max_ns, found.0.len()), (5500, 3000, 1));
    }
}
