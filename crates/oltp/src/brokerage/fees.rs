//! Charges, commissions and taxes. They follow from what a trade is, so that generated trades and the tables agree.

use super::{ids::EXCHANGES, kinds::TradeType};

/// Rates of countries and divisions.
pub(crate) const TAX_RATES: u32 = 320;
/// Quantities from which a rate of commission holds.
pub(crate) const QUANTITIES_FROM: [i64; 4] = [0, 200, 400, 600];
pub(crate) const QUANTITY_MAX: i64 = 1_000_000;

/// The exchange at which a security is traded.
pub(crate) fn exchange_of(security: u32) -> u32 {
    security % EXCHANGES
}

/// Charge of a trade for customers of a tier.
pub(crate) fn charge_cents(kind: TradeType, tier: u8) -> i64 {
    450 - 100 * i64::from(tier) + if kind.is_market() { 0 } else { 150 } + if kind.sells() { 50 } else { 0 }
}

/// Commission in hundredths of a per cent.
pub(crate) fn commission_rate(tier: u8, kind: TradeType, exchange: u32, quantity: i64) -> i64 {
    let step = QUANTITIES_FROM.iter().filter(|from| quantity >= **from).count() as i64;
    70 - 10 * i64::from(tier) - 4 * step + 2 * i64::from(exchange) + if kind.is_market() { 0 } else { 9 }
}

/// Commission of a trade at a rate in hundredths of a per cent, rounded to the cent.
pub(crate) fn commission_cents(rate: i64, quantity: i64, price_cents: i64) -> i64 {
    (quantity * price_cents * rate + 5000) / 10_000
}

/// Number of a rate, counted from 0: five for each country or division; in hundred-thousandths.
pub(crate) fn tax_rate(number: u32) -> i64 {
    let bracket = i64::from(number % 5);
    if number < 10 { 10_000 + 4500 * bracket } else { 1000 + 1100 * bracket + i64::from(number / 5 % 7) * 100 }
}

/// Key of a rate.
pub(crate) fn write_tax_id(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{}{}", if number < 10 { "C" } else { "D" }, number + 100).as_bytes());
}
