//! Dates and times as every database reads them.

use std::io::Write;

/// A time in microseconds since 2000-01-01 as `YYYY-MM-DD HH:MM:SS`, with microseconds where there are some.
pub fn write_time(at_us: i64, out: &mut Vec<u8>) {
    const DAY_US: i64 = 86_400_000_000;
    write_date(at_us.div_euclid(DAY_US), out);
    let of_day_us = at_us.rem_euclid(DAY_US);
    let seconds = of_day_us / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    write!(out, " {hour:02}:{minute:02}:{second:02}").expect("writing to memory cannot fail");
    if of_day_us % 1_000_000 != 0 {
        write!(out, ".{:06}", of_day_us % 1_000_000).expect("writing to memory cannot fail");
    }
}

/// Appends the day `days` days after 2000-01-01 as `YYYY-MM-DD`.
pub fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = date_of(days);
    write!(out, "{year:04}-{month:02}-{day:02}").expect("writing to memory cannot fail");
}

/// Year, month and day of the day `days` days after 2000-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    // Years are taken to begin in March, so that the leap day is the last of one; 2000-03-01 begins a cycle of 400 years.
    const CYCLE_DAYS: i64 = 146_097;
    let since_march = days - 60;
    let (cycle, day_of_cycle) = (since_march.div_euclid(CYCLE_DAYS), since_march.rem_euclid(CYCLE_DAYS));
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (2000 + 400 * cycle + year_of_cycle + i64::from(month <= 2), month, day)
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
}
