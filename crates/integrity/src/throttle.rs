//! Throttle of a file: limits outstanding I/Os, so that they last no longer than the target duration, and counts them.

use assay_load::Op;

/// SQLIOSim's rule (KB 231619): a running average of I/O durations, weighed by what is outstanding, above the target
/// means fewer outstanding I/Os; below it, more.
#[derive(Debug, Clone)]
pub struct Throttle {
    target_ns: f64,
    most: u32,
    allowed: u32,
    outstanding: u32,
    average_ns: f64,
    pub throttled: u64,
    pub reads: u64,
    pub scatter_reads: u64,
    pub writes: u64,
    pub gather_writes: u64,
    pub io_time_ns: u64,
    pub slowest_io_ns: u64,
}

impl Throttle {
    pub fn new(target_ns: u64, most: u32) -> Self {
        Self {
            target_ns: target_ns as f64,
            most,
            allowed: most,
            outstanding: 0,
            average_ns: target_ns as f64,
            throttled: 0,
            reads: 0,
            scatter_reads: 0,
            writes: 0,
            gather_writes: 0,
            io_time_ns: 0,
            slowest_io_ns: 0,
        }
    }

    pub fn admits(&self) -> bool {
        self.outstanding < self.allowed
    }

    pub fn average_ns(&self) -> f64 {
        self.average_ns
    }

    pub fn began(&mut self) {
        self.outstanding += 1;
    }

    pub fn ended(&mut self, op: Op, pages: u32, latency_ns: u64) {
        let outstanding = f64::from(self.outstanding.max(1));
        self.average_ns = (self.average_ns * (outstanding - 1.0) + latency_ns as f64) / outstanding;
        if self.average_ns > self.target_ns {
            self.allowed = (self.allowed - 1).max(1);
        } else {
            self.allowed = (self.allowed + 1).min(self.most);
        }
        self.outstanding -= 1;
        self.io_time_ns += latency_ns;
        self.slowest_io_ns = self.slowest_io_ns.max(latency_ns);
        match (op, pages > 1) {
            (Op::Read, false) => self.reads += 1,
            (Op::Read, true) => self.scatter_reads += 1,
            (Op::Write, false) => self.writes += 1,
            (Op::Write, true) => self.gather_writes += 1,
            (Op::Flush, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_ios_lower_what_may_be_outstanding_and_fast_ones_raise_it() {
        let mut throttle = Throttle::new(1_000_000, 8);
        for _ in 0..100 {
            throttle.began();
            throttle.ended(Op::Read, 1, 5_000_000);
        }
        assert!(throttle.admits());
        throttle.began();
        assert!(!throttle.admits(), "one at a time is left");
        throttle.ended(Op::Read, 1, 1_000);
        for _ in 0..100 {
            throttle.began();
            throttle.ended(Op::Read, 1, 1_000);
        }
        (0..8).for_each(|_| {
            assert!(throttle.admits());
            throttle.began();
        });
        assert!(!throttle.admits());
    }
}
