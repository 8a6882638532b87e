//! The market's clock in a run: it goes on where the past of the database ends.

use assay_sql::write_time;

use super::market::{TRADING_US, at_us};

/// Moments of trading, in microseconds since the market first opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    past_us: i64,
}

impl Clock {
    pub(crate) fn new(days: u32) -> Self {
        Self { past_us: i64::from(days) * TRADING_US }
    }

    /// The moment so long after the start of a run.
    pub(crate) fn traded_us(self, now_ns: u64) -> i64 {
        self.past_us + (now_ns / 1000) as i64
    }
}

/// A moment of trading as a time that every database reads.
pub(crate) fn write_moment(traded_us: i64, out: &mut Vec<u8>) {
    write_time(at_us(traded_us), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_trading_become_times() {
        let mut out = Vec::new();
        write_moment(TRADING_US * 5 + 61_000_007, &mut out);
        assert_eq!(out, b"2005-01-10 09:01:01.000007");
    }
}
