//! A gate of two limits, of I/Os and of bytes, that lets I/Os through in the order in which they came.

use super::{bucket::Bucket, plan::LimitPlan};
use crate::readings::{GateReading, LimitReading};

#[derive(Debug, Clone)]
pub(super) struct Gate {
    operations: Bucket,
    transfer: Bucket,
    last_ns: u64,
}

impl Gate {
    pub(super) fn new(operations: &LimitPlan, transfer: &LimitPlan) -> Self {
        Self { operations: Bucket::new(operations), transfer: Bucket::new(transfer), last_ns: 0 }
    }

    /// When an I/O that comes now and counts as so much may pass; it does.
    #[inline]
    pub(super) fn pass(&mut self, now_ns: u64, operations: u64, bytes: u64) -> u64 {
        let for_operations_ns = self.operations.earliest_ns(now_ns, operations);
        let for_bytes_ns = self.transfer.earliest_ns(now_ns, bytes);
        let at_ns = for_operations_ns.max(for_bytes_ns).max(self.last_ns);
        // The later limit is the one that holds an I/O back.
        let waits = at_ns > now_ns.max(self.last_ns);
        self.operations.pass(now_ns, at_ns, operations, waits && for_operations_ns == at_ns);
        self.transfer.pass(now_ns, at_ns, bytes, waits && for_bytes_ns == at_ns);
        self.last_ns = at_ns;
        at_ns
    }

    /// Limits whose last credit went since this was asked last, and the baseline of each.
    pub(super) fn take_used_up(&mut self, now_ns: u64) -> impl Iterator<Item = (&'static str, u64)> {
        let found =
            [("IOPS", self.operations.take_used_up(now_ns)), ("throughput", self.transfer.take_used_up(now_ns))];
        found.into_iter().filter_map(|(limit, per_s)| per_s.map(|per_s| (limit, per_s)))
    }

    pub(super) fn reading(&self, name: &str, now_ns: u64) -> GateReading {
        let reading = |bucket: &Bucket| LimitReading {
            passed: bucket.passed(),
            exceeded_ns: bucket.exceeded_ns(now_ns),
            balance_share: bucket.balance(now_ns),
        };
        GateReading { name: name.to_owned(), operations: reading(&self.operations), transfer: reading(&self.transfer) }
    }
}
