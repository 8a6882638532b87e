//! The market's clock in a run: it goes on where the past of the database ends.

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

/// Days since 2000-01-01 as year, month and day (the reckoning of Howard Hinnant's "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let from_march_0000 = days + 730_425;
    let era = from_march_0000.div_euclid(146_097);
    let day_of_era = from_march_0000.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A date, in days since 2000-01-01, as every database reads it.
pub(crate) fn write_date(days: i32, out: &mut Vec<u8>) {
    let (year, month, day) = civil(days.into());
    out.extend_from_slice(format!("{year:04}-{month:02}-{day:02}").as_bytes());
}

/// A moment of trading as a time that every database reads.
pub(crate) fn write_time(traded_us: i64, out: &mut Vec<u8>) {
    let at = at_us(traded_us);
    write_date(at.div_euclid(86_400_000_000) as i32, out);
    let within = at.rem_euclid(86_400_000_000);
    let seconds = within / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    out.extend_from_slice(format!(" {hour:02}:{minute:02}:{second:02}.{:06}", within % 1_000_000).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let date = |days| {
            let mut out = Vec::new();
            write_date(days, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            [date(0), date(59), date(60), date(366), date(1829), date(-1)],
            ["2000-01-01", "2000-02-29", "2000-03-01", "2001-01-01", "2005-01-03", "1999-12-31",]
        );
    }

    #[test]
    fn moments_of_trading_become_times() {
        let mut out = Vec::new();
        write_time(TRADING_US * 5 + 61_000_007, &mut out);
        assert_eq!(out, b"2005-01-10 09:01:01.000007");
    }
}
