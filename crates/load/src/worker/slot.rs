use crate::Op;

/// An I/O of a worker, by its tag.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub(super) op: Op,
    pub(super) busy: bool,
    pub(super) flushing: bool,
    /// A write that ends with a flush of its own.
    pub(super) durable: bool,
    pub(super) length_bytes: u32,
    pub(super) intended_ns: u64,
    pub(super) submitted_ns: u64,
    pub(super) flush_submitted_ns: u64,
}

impl Slot {
    pub(super) const FREE: Self = Self {
        op: Op::Read,
        busy: false,
        flushing: false,
        durable: false,
        length_bytes: 0,
        intended_ns: 0,
        submitted_ns: 0,
        flush_submitted_ns: 0,
    };
}
