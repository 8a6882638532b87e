use assay_load::{LoadError, Op};
use serde::{Deserialize, Serialize};

use super::volume::UNIT_BYTES;
use crate::Fault;

/// Faults of a faulty device, as probabilities per I/O; docs/integrity.md describes each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultyOptions {
    /// Everything random follows from it and from the order of the requests.
    pub seed: u64,
    pub torn: f64,
    pub lost: f64,
    pub misdirected_write: f64,
    pub misdirected_read: f64,
    pub corrupt: f64,
    pub short_read: f64,
    pub log_break: f64,
    pub io_error: f64,
    pub long_io: f64,
    pub long_io_delay_ns: u64,
    /// Completed writes are durable only after a flush, except on write-through files.
    pub volatile_cache: bool,
    /// Flushes and write-through are acknowledged and not done. Needs `volatile_cache`.
    pub ignores_flush: bool,
    /// Power is cut when this many requests were submitted.
    pub power_cut_after: Option<u64>,
    /// Bytes of a write that a power cut leaves whole, if fewer than a page.
    pub atomic_unit_bytes: u32,
}

impl Default for FaultyOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            torn: 0.0,
            lost: 0.0,
            misdirected_write: 0.0,
            misdirected_read: 0.0,
            corrupt: 0.0,
            short_read: 0.0,
            log_break: 0.0,
            io_error: 0.0,
            long_io: 0.0,
            long_io_delay_ns: 16_000_000_000,
            volatile_cache: false,
            ignores_flush: false,
            power_cut_after: None,
            atomic_unit_bytes: UNIT_BYTES as u32,
        }
    }
}

impl FaultyOptions {
    /// # Errors
    /// [`LoadError::InvalidValue`] names the key whose value is none.
    pub fn validate(&self) -> Result<(), LoadError> {
        let invalid = |field, message: String| Err(LoadError::InvalidValue { field, message });
        for fault in Fault::ALL {
            let probability = self.probability(fault);
            if !(0.0..=1.0).contains(&probability) {
                return invalid(fault.name(), format!("{probability} is no probability; give 0 to 1"));
            }
        }
        for (what, op, log) in [("read", Op::Read, false), ("write", Op::Write, false), ("log write", Op::Write, true)]
        {
            let faults = || Fault::ALL.into_iter().filter(|fault| hits(*fault, op, log, usize::MAX));
            let sum: f64 = faults().map(|fault| self.probability(fault)).sum();
            let largest = faults().max_by(|a, b| self.probability(*a).total_cmp(&self.probability(*b)));
            if let Some(largest) = largest.filter(|_| sum > 1.0 + 1e-9) {
                return invalid(largest.name(), format!("the faults of one {what} add up to {sum}, more than 1"));
            }
        }
        if self.ignores_flush && !self.volatile_cache {
            return invalid("ignores_flush", "without volatile_cache there is nothing to flush".into());
        }
        if self.power_cut_after == Some(0) {
            return invalid("power_cut_after", "requests are counted from 1".into());
        }
        if !self.atomic_unit_bytes.is_power_of_two() || self.atomic_unit_bytes < UNIT_BYTES as u32 {
            let message = format!("{} is no power of two from {UNIT_BYTES} on", self.atomic_unit_bytes);
            return invalid("atomic_unit_bytes", message);
        }
        Ok(())
    }

    pub(super) fn probability(&self, fault: Fault) -> f64 {
        match fault {
            Fault::Torn => self.torn,
            Fault::Lost => self.lost,
            Fault::MisdirectedWrite => self.misdirected_write,
            Fault::MisdirectedRead => self.misdirected_read,
            Fault::Corrupt => self.corrupt,
            Fault::ShortRead => self.short_read,
            Fault::LogBreak => self.log_break,
            Fault::IoError => self.io_error,
            Fault::LongIo => self.long_io,
        }
    }

    /// The fault of an I/O to which chance gave `draw`, evenly distributed over 0..1.
    pub(super) fn fault(&self, op: Op, log: bool, units_per_page: usize, mut draw: f64) -> Option<Fault> {
        for fault in Fault::ALL {
            if hits(fault, op, log, units_per_page) {
                draw -= self.probability(fault);
                if draw < 0.0 {
                    return Some(fault);
                }
            }
        }
        None
    }
}

/// Whether a fault can befall an I/O.
fn hits(fault: Fault, op: Op, log: bool, units_per_page: usize) -> bool {
    match fault {
        Fault::Torn => op == Op::Write && units_per_page > 1,
        Fault::Lost => op == Op::Write && !log,
        Fault::LogBreak => op == Op::Write && log,
        Fault::MisdirectedWrite => op == Op::Write,
        Fault::MisdirectedRead | Fault::ShortRead => op == Op::Read,
        Fault::Corrupt | Fault::IoError | Fault::LongIo => op != Op::Flush,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(options: FaultyOptions) -> &'static str {
        match options.validate() {
            Err(LoadError::InvalidValue { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn errors_name_the_key() {
        let clean = FaultyOptions::default();
        assert_eq!(clean.validate(), Ok(()));
        assert_eq!(field(FaultyOptions { torn: 1.5, ..clean }), "torn");
        assert_eq!(field(FaultyOptions { io_error: -0.1, ..clean }), "io_error");
        assert_eq!(field(FaultyOptions { long_io: f64::NAN, ..clean }), "long_io");
        assert_eq!(field(FaultyOptions { lost: 0.7, corrupt: 0.4, ..clean }), "lost");
        assert_eq!(field(FaultyOptions { log_break: 0.7, corrupt: 0.4, ..clean }), "log_break");
        assert_eq!(field(FaultyOptions { ignores_flush: true, ..clean }), "ignores_flush");
        assert_eq!(field(FaultyOptions { power_cut_after: Some(0), ..clean }), "power_cut_after");
        assert_eq!(field(FaultyOptions { atomic_unit_bytes: 100, ..clean }), "atomic_unit_bytes");
    }

    #[test]
    fn what_cannot_hit_the_same_io_need_not_add_up() {
        let options = FaultyOptions { lost: 0.9, log_break: 0.9, misdirected_read: 0.9, ..Default::default() };
        assert_eq!(options.validate(), Ok(()));
    }

    #[test]
    fn each_io_has_its_own_faults() {
        let options = FaultyOptions {
            torn: 0.125,
            lost: 0.5,
            log_break: 0.25,
            short_read: 0.75,
            corrupt: 0.25,
            ..Default::default()
        };
        assert_eq!(options.fault(Op::Write, false, 16, 0.1), Some(Fault::Torn));
        assert_eq!(options.fault(Op::Write, false, 16, 0.6), Some(Fault::Lost));
        assert_eq!(options.fault(Op::Write, true, 1, 0.1), Some(Fault::Corrupt));
        assert_eq!(options.fault(Op::Write, true, 1, 0.3), Some(Fault::LogBreak));
        assert_eq!(options.fault(Op::Write, true, 1, 0.6), None);
        assert_eq!(options.fault(Op::Read, false, 16, 0.9), Some(Fault::ShortRead));
        assert_eq!(options.fault(Op::Flush, false, 16, 0.0), None);
    }
}
