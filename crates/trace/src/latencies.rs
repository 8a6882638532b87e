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

/// Times of one device and direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    pub queue: [u64; BUCKETS],
    pub device: [u64; BUCKETS],
    pub queue_sum_ns: u64,
    pub device_sum_ns: u64,
    /// The longest.
    pub queue_max_ns: u64,
    pub device_max_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        let (none, zero) = ([0; BUCKETS], 0);
        Self {
            queue: none,
            device: none,
            queue_sum_ns: zero,
            device_sum_ns: zero,
            queue_max_ns: zero,
            device_max_ns: zero,
        }
    }
}

/// Times since they were taken last, by device and direction (`read`, `write`; flushes are `flush`).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Latencies(pub BTreeMap<(u16, &'static str), Times>);

impl Latencies {
    pub(crate) fn count(&mut self, io: &Io) {
        let direction = match io.flags {
            found if found & flags::READ != 0 => "read",
            found if found & flags::WRITE != 0 => "write",
            found if found & flags::FLUSH != 0 => "flush",
            _ => return,
        };
        let times = self.0.entry((io.device, direction)).or_default();
        if io.queue_ns != UNKNOWN_NS {
            let time_ns = io.queue_ns.unsigned_abs();
            times.queue[bucket_of(time_ns)] += 1;
            times.queue_sum_ns = times.queue_sum_ns.saturating_add(time_ns);
            times.queue_max_ns = times.queue_max_ns.max(time_ns);
        }
        let time_ns = io.device_ns.unsigned_abs();
        times.device[bucket_of(time_ns)] += 1;
        times.device_sum_ns = times.device_sum_ns.saturating_add(time_ns);
        times.device_max_ns = times.device_max_ns.max(time_ns);
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
}
