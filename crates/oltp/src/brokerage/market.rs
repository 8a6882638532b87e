//! The market: when it is open, and what a security costs at any time. Both follow from the time alone, so that a price limit is
//! reached when the curve says so, in a generated past as in a run.

const DAY_US: i64 = 86_400_000_000;
const SECOND_US: i64 = 1_000_000;
/// A day of trading has eight hours.
pub(crate) const TRADING_US: i64 = 8 * 3600 * SECOND_US;
/// It begins at nine.
const OPENS_US: i64 = 9 * 3600 * SECOND_US;
/// 2005-01-03, a Monday, in days since 2000-01-01: the first day of trading.
pub(crate) const FIRST_DAY: i32 = 1829;
/// 2000-01-03 in days since 2000-01-01: the first of the daily figures.
pub(crate) const FIRST_MARKET_DAY: i32 = 2;

/// The lowest and the highest price there is.
pub(crate) const LOWEST_CENTS: i64 = 2000;
pub(crate) const HIGHEST_CENTS: i64 = 3000;

/// The date of a day of trading: markets are closed on Saturdays and Sundays.
pub(crate) fn date_of(first_day: i32, trading_day: i64) -> i32 {
    first_day + (trading_day / 5 * 7 + trading_day % 5) as i32
}

/// A moment of trading, in microseconds since the market first opened, as microseconds since 2000-01-01T00:00:00.
pub(crate) fn at_us(traded_us: i64) -> i64 {
    let (day, rest_us) = (traded_us.div_euclid(TRADING_US), traded_us.rem_euclid(TRADING_US));
    i64::from(date_of(FIRST_DAY, day)) * DAY_US + OPENS_US + rest_us
}

/// Price of a security at a moment of trading: up and down between the lowest and the highest price, at a pace of its
/// own.
pub(crate) fn price_cents(security: u32, traded_us: i64) -> i64 {
    let period_us = (900 + i64::from(security.wrapping_mul(7919) % 97) * 30) * SECOND_US;
    let phase_us = i64::from(security.wrapping_mul(2_654_435_761) >> 4) * 997 % period_us;
    let place_us = (traded_us + phase_us).rem_euclid(period_us);
    let risen_us = place_us.min(period_us - place_us);
    LOWEST_CENTS + (HIGHEST_CENTS - LOWEST_CENTS) * 2 * risen_us / period_us
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn prices_stay_between_their_ends_and_move_slowly(security in 0_u32..100_000, at in 0_i64..10_000_000_000_000) {
            let price = price_cents(security, at);
            prop_assert!((LOWEST_CENTS..=HIGHEST_CENTS).contains(&price));
            prop_assert!((price_cents(security, at + SECOND_US) - price).abs() <= 3);
        }
    }

    #[test]
    fn every_security_reaches_both_ends() {
        for security in 0..200 {
            let prices: Vec<_> = (0..4000).map(|second| price_cents(security, second * SECOND_US)).collect();
            assert!(prices.iter().any(|price| *price <= LOWEST_CENTS + 2));
            assert!(prices.iter().any(|price| *price >= HIGHEST_CENTS - 2));
        }
    }

    #[test]
    fn days_of_trading_leave_out_weekends() {
        assert_eq!(at_us(0), (1829 * 24 + 9) * 3600 * SECOND_US);
        assert_eq!(at_us(TRADING_US * 5), (1836 * 24 + 9) * 3600 * SECOND_US);
        assert_eq!(at_us(TRADING_US - 1) - at_us(0), TRADING_US - 1);
    }
}
