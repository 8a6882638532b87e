//! Times as logs write them. Only differences matter to a replay: the zone is not looked at.

const SECOND_NS: i64 = 1_000_000_000;
/// Years of times that are believed: differences between them fit into nanoseconds of 64 bits.
const YEARS: std::ops::Range<i64> = 1970..2200;

/// Days from 1970-01-01 to a day of the Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn digits(text: &[u8], from: usize, count: usize) -> Option<i64> {
    let part = text.get(from..from + count)?;
    part.iter().try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

/// Nanoseconds of a fraction behind a point or comma, and its length with that.
fn fraction(text: &[u8]) -> (i64, usize) {
    if !matches!(text.first(), Some(b'.' | b',')) {
        return (0, 0);
    }
    let count = text[1..].iter().take_while(|digit| digit.is_ascii_digit()).count();
    let ns = (0..9).fold(0, |sum, place| {
        let digit = if place < count { i64::from(text[1 + place] - b'0') } else { 0 };
        sum * 10 + digit
    });
    (ns, if count > 0 { count + 1 } else { 0 })
}

fn of_parts(year: i64, month: i64, day: i64, clock: (i64, i64, i64)) -> Option<i64> {
    let (hour, minute, second) = clock;
    let is_date = YEARS.contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = is_date && hour < 24 && minute < 60 && second <= 60;
    is_time.then(|| (days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * SECOND_NS)
}

/// `2026-11-27 10:00:00.123` or with a `T`: nanoseconds since 1970, and how many bytes it takes.
pub(super) fn timestamp(text: &[u8]) -> Option<(i64, usize)> {
    let separators = (text.get(4)?, text.get(7)?, text.get(10)?, text.get(13)?, text.get(16)?);
    if !matches!(separators, (b'-', b'-', b' ' | b'T', b':', b':')) {
        return None;
    }
    let clock = (digits(text, 11, 2)?, digits(text, 14, 2)?, digits(text, 17, 2)?);
    let whole = of_parts(digits(text, 0, 4)?, digits(text, 5, 2)?, digits(text, 8, 2)?, clock)?;
    let (ns, length) = fraction(&text[19..]);
    Some((whole + ns, 19 + length))
}

/// `261127 10:00:00` or `261127  9:00:00`, as MariaDB writes it.
pub(super) fn short_timestamp(text: &[u8]) -> Option<(i64, usize)> {
    let day = (digits(text, 0, 2)?, digits(text, 2, 2)?, digits(text, 4, 2)?);
    if text.get(6) != Some(&b' ') || text.get(9) != Some(&b':') || text.get(12) != Some(&b':') {
        return None;
    }
    let hour = if text[7] == b' ' { digits(text, 8, 1)? } else { digits(text, 7, 2)? };
    let whole = of_parts(2000 + day.0, day.1, day.2, (hour, digits(text, 10, 2)?, digits(text, 13, 2)?))?;
    let (ns, length) = fraction(&text[15..]);
    Some((whole + ns, 15 + length))
}

/// `1732700000.123`: seconds since 1970.
pub(super) fn epoch(text: &[u8]) -> Option<(i64, usize)> {
    let count = text.iter().take_while(|digit| digit.is_ascii_digit()).count();
    if !(1..=10).contains(&count) {
        return None;
    }
    let second = digits(text, 0, count).filter(|second| *second < days(YEARS.end, 1, 1) * 86_400)?;
    let (ns, length) = fraction(&text[count..]);
    Some((second * SECOND_NS + ns, count + length))
}

/// Nanoseconds of a decimal number of units of `unit_ns`; `None` where it is none or longer than 30 days.
pub(super) fn duration(text: &str, unit_ns: f64) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let ns = is_plain.then(|| text.parse::<f64>().ok()).flatten()? * unit_ns;
    (ns <= 30.0 * 86_400e9).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_nanoseconds_since_1970() {
        assert_eq!(timestamp(b"1970-01-02 00:00:01.5 UTC"), Some((86_401_500_000_000, 21)));
        assert_eq!(timestamp(b"2026-11-27T10:00:00.123456Z").map(|found| found.0), Some(1_795_773_600_123_456_000));
        assert_eq!(short_timestamp(b"261127 10:00:00").map(|found| found.0), Some(1_795_773_600_000_000_000));
        assert_eq!(short_timestamp(b"261127  9:00:00").map(|found| found.0), Some(1_795_770_000_000_000_000));
        assert_eq!(epoch(b"1795773600.25 "), Some((1_795_773_600_250_000_000, 13)));
        assert_eq!(timestamp(b"2026-13-27 10:00:00"), None);
        assert_eq!(timestamp(b"2026-11"), None);
        for too_far in ["9999-12-31 23:59:59", "0000-01-01 00:00:00"] {
            assert_eq!(timestamp(too_far.as_bytes()), None);
        }
        assert_eq!(epoch(b"9999999999"), None);
        assert_eq!(duration("0.101", 1e6), Some(101_000));
        assert_eq!(duration("1e99", 1e6), None);
    }
}
