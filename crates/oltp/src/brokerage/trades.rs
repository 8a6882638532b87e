//! Trades of the past. The trades of a group of customers are drawn together, in the order of time, because holdings
//! follow from all earlier trades of an account.

use super::{
    fees,
    holdings::{Change, Lot, apply},
    ids::{GROUP, Size, account_id, trade_id, trades_of_group},
    kinds::TradeType,
    market::{TRADING_US, at_us, price_cents},
    people::{Account, Person},
};
use crate::random::Random;

const TRADE: u64 = 202;

/// A trade that is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trade {
    pub(crate) id: i64,
    pub(crate) kind: TradeType,
    /// Customer and account, both counted from 0.
    pub(crate) customer: u32,
    pub(crate) account: u32,
    pub(crate) security: u32,
    pub(crate) quantity: i64,
    pub(crate) bid_cents: i64,
    pub(crate) price_cents: i64,
    pub(crate) asked_us: i64,
    pub(crate) sent_us: i64,
    pub(crate) done_us: i64,
    pub(crate) charge_cents: i64,
    pub(crate) commission_cents: i64,
    pub(crate) tax_cents: i64,
    pub(crate) settled_cents: i64,
    pub(crate) is_cash: bool,
    pub(crate) lifo: bool,
    /// The trade's changes of lots, within the changes of the group.
    pub(crate) changes: (u32, u32),
}

/// Final holding of a security in an account of a group.
#[derive(Debug)]
pub(crate) struct Position {
    pub(crate) account: i64,
    pub(crate) security: u32,
    pub(crate) lots: Vec<Lot>,
}

/// The past of a group of customers.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) trades: Vec<Trade>,
    pub(crate) changes: Vec<Change>,
    /// Ordered by account.
    pub(crate) positions: Vec<Position>,
}

impl Past {
    pub(crate) fn of(seed: u64, size: Size, days: u32, group: u32) -> Self {
        let (mut past, accounts, chances) = Self::before_trades(seed, size, group);
        let count = trades_of_group(days);
        let total_us = i64::from(days) * TRADING_US;
        for number in 0..count {
            let mut random = Random::of(seed, TRADE, u64::from(group) << 32 | u64::from(number));
            let Trader { customer, account, person, drawn, first } =
                &accounts[chances[random.between(0, chances.len() as u32 - 1) as usize]];
            let place = first + random.between(0, drawn.securities.len() as u32 - 1) as usize;
            let asked_us =
                (i64::from(number) * total_us + (random.share() * total_us as f64) as i64) / i64::from(count);
            let security = past.positions[place].security;
            let held: i64 = past.positions[place].lots.iter().map(|lot| lot.quantity).sum();
            let is_market = random.percent(60);
            // Accounts sell only shares they hold; half of the trades of held shares are sales.
            let sells = held > 0 && random.percent(50);
            let kind = kind_of(is_market, sells, &mut random);
            let quantity = 100 << random.between(0, 3);
            let sent_us = asked_us + if is_market { 0 } else { i64::from(random.between(0, 60_000_000)) };
            let done_us = sent_us + i64::from(random.between(0, 2_000_000));
            let price = price_cents(security, done_us);
            let bid_cents = if is_market { price_cents(security, asked_us) } else { price_cents(security, sent_us) };
            let (is_cash, lifo) = (random.percent(92), random.percent(35));
            let id = trade_id(size, group, number);
            let signed = if kind.sells() { -quantity } else { quantity };
            let by = Lot { trade: id, at_us: at_us(done_us), price_cents: price, quantity: signed };
            let from = past.changes.len() as u32;
            let closed = apply(&mut past.positions[place].lots, by, lifo, &mut past.changes);
            let tax_cents = match drawn.tax_status {
                0 => 0,
                _ => closed.tax_cents(fees::tax_rate(person.country_rate) + fees::tax_rate(person.division_rate)),
            };
            let charge_cents = fees::charge_cents(kind, person.tier);
            let rate = fees::commission_rate(person.tier, kind, fees::exchange_of(security), quantity);
            let commission_cents = fees::commission_cents(rate, quantity, price);
            let withheld_cents = if drawn.tax_status == 1 { tax_cents } else { 0 };
            let fees_cents = charge_cents + commission_cents;
            let settled_cents = signed * -price - fees_cents - if kind.sells() { withheld_cents } else { 0 };
            past.trades.push(Trade {
                id,
                kind,
                customer: *customer,
                account: *account,
                security,
                quantity,
                bid_cents,
                price_cents: price,
                asked_us,
                sent_us,
                done_us,
                charge_cents,
                commission_cents,
                tax_cents,
                settled_cents,
                is_cash,
                lifo,
                changes: (from, past.changes.len() as u32),
            });
        }
        past
    }

    /// Positions without lots, the accounts of the group, and the accounts again, each as often as its customer's tier.
    fn before_trades(seed: u64, size: Size, group: u32) -> (Self, Vec<Trader>, Vec<usize>) {
        let (mut traders, mut chances, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for customer in group * GROUP..(group + 1) * GROUP {
            let person = Person::of(seed, customer);
            for account in 0..person.accounts {
                let drawn = Account::of(seed, size, customer, account);
                let first = positions.len();
                positions.extend(drawn.securities.iter().map(|security| Position {
                    account: account_id(customer, account),
                    security: *security,
                    lots: Vec::new(),
                }));
                chances.extend(std::iter::repeat_n(traders.len(), person.tier.into()));
                traders.push(Trader { customer, account, person, drawn, first });
            }
        }
        (Self { trades: Vec::new(), changes: Vec::new(), positions }, traders, chances)
    }
}

/// An account with its customer, and the first of its positions.
struct Trader {
    customer: u32,
    account: u32,
    person: Person,
    drawn: Account,
    first: usize,
}

fn kind_of(is_market: bool, sells: bool, random: &mut Random) -> TradeType {
    match (is_market, sells) {
        (true, false) => TradeType::MarketBuy,
        (true, true) => TradeType::MarketSell,
        (false, false) => TradeType::LimitBuy,
        (false, true) if random.percent(50) => TradeType::StopLoss,
        (false, true) => TradeType::LimitSell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past() -> Past {
        Past::of(1, Size { customers: 1000 }, 10, 7)
    }

    #[test]
    fn kinds_of_trades_and_their_histories_are_as_published() {
        let past = past();
        let count = past.trades.len() as f64;
        let share = |of: fn(&Trade) -> bool| past.trades.iter().filter(|trade| of(trade)).count() as f64 / count;
        assert_eq!(past.trades.len(), 5760);
        assert!((share(|trade| trade.kind.is_market()) - 0.6).abs() < 0.03);
        assert!((share(|trade| trade.is_cash) - 0.92).abs() < 0.02);
        assert!((share(|trade| trade.lifo) - 0.35).abs() < 0.03);
        let sales = share(|trade| trade.kind.sells());
        assert!((0.35..0.5).contains(&sales), "{sales}");
        let changes = past.changes.len() as f64 / count;
        assert!((1.1..1.6).contains(&changes), "{changes} changes of lots a trade");
    }

    #[test]
    fn what_is_held_follows_from_the_changes() {
        let past = past();
        let held: i64 = past.positions.iter().flat_map(|position| &position.lots).map(|lot| lot.quantity).sum();
        assert_eq!(held, past.changes.iter().map(|change| change.after - change.before).sum::<i64>());
        let with = past.positions.iter().filter(|position| !position.lots.is_empty()).count() as f64;
        assert!(with / past.positions.len() as f64 > 0.8, "most accounts hold something of what they trade");
    }

    #[test]
    fn trades_are_in_the_order_of_time_and_of_keys() {
        let past = past();
        for pair in past.trades.windows(2) {
            assert!(pair[0].asked_us <= pair[1].asked_us && pair[0].id < pair[1].id);
            assert!(pair[0].asked_us <= pair[0].sent_us && pair[0].sent_us <= pair[0].done_us);
        }
    }
}
