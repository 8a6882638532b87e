//! I/Os as columns of numbers, as NumPy takes them.

use crate::join::Io;

/// A column for each property of an I/O.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Columns {
    pub t_ns: Vec<i64>,
    pub queue_ns: Vec<i64>,
    pub device_ns: Vec<i64>,
    pub place_bytes: Vec<i64>,
    pub size_bytes: Vec<i64>,
    pub flags: Vec<i32>,
    pub device: Vec<i32>,
    pub process: Vec<i32>,
}

impl Columns {
    pub(crate) fn push(&mut self, io: &Io, origin_ns: u64) {
        self.t_ns.push(io.t_ns.saturating_sub(origin_ns) as i64);
        self.queue_ns.push(io.queue_ns);
        self.device_ns.push(io.device_ns);
        self.place_bytes.push(io.place_bytes as i64);
        self.size_bytes.push(i64::from(io.size_bytes));
        self.flags.push(i32::from(io.flags));
        self.device.push(i32::from(io.device));
        self.process.push(i32::from(io.process));
    }

    /// How many I/Os they hold.
    pub fn len(&self) -> usize {
        self.t_ns.len()
    }

    /// Whether they hold none.
    pub fn is_empty(&self) -> bool {
        self.t_ns.is_empty()
    }
}
