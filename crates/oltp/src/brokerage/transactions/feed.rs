use std::collections::BTreeMap;

use assay_sql::{DbError, Driver};

use super::begin::{Level::ReadCommitted, begin};
use crate::{
    brokerage::{
        clock::write_moment,
        desk::Effect,
        ids::{Size, broker_number, write_symbol},
        input::{Quote, Triggered},
        plan::Brokerage,
        statements::Statement::{
            Commit, MarketFeedLastTrade, MarketFeedRequestDelete, MarketFeedRequests, MarketFeedTrade, TradesStep,
        },
    },
    talk::{Outcome, Talk, unreadable},
    workload::Done,
};

/// Limit orders of a security that one feed sends to the market at most; the rest come with its next quote.
const TRIGGERED_MAX: usize = 16;

/// The last prices of securities, and limit orders that these let through. Securities are locked in the order of their numbers, the
/// last of several quotes of one counts.
pub(super) async fn run<D: Driver>(
    talk: &mut Talk<'_, D>,
    size: Size,
    quotes: &[Quote],
    traded_us: i64,
) -> Done<Brokerage> {
    let last = last_quotes(quotes);
    begin(talk, ReadCommitted);
    let mut places = Vec::with_capacity(last.len());
    for (security, (volume, price)) in last {
        let symbol = |out: &mut Vec<u8>| write_symbol(size, security, out);
        talk.add(MarketFeedLastTrade)
            .cents(price)
            .int(volume)
            .written(|out| write_moment(traded_us, out))
            .written(symbol);
        places.push((security, talk.batch.len()));
        talk.add(MarketFeedRequests).written(symbol).cents(price).cents(price).cents(price);
    }
    talk.send().await?;
    let triggered = triggered_by(talk, &places, 0, 2, 4)?;
    for order in &triggered {
        let time = |out: &mut Vec<u8>| write_moment(traded_us, out);
        talk.add(MarketFeedTrade).written(time).int(order.trade);
        talk.add(MarketFeedRequestDelete).int(order.trade);
        talk.add(TradesStep).int(order.trade).written(time).text(b"SBMT");
    }
    talk.add(Commit);
    talk.send().await?;
    Ok((Outcome::Committed, Effect::Triggered(triggered)))
}

/// Volume and last price of each security that is quoted.
pub(super) fn last_quotes(quotes: &[Quote]) -> BTreeMap<u32, (i64, i64)> {
    let mut last: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
    for quote in quotes {
        let (volume, price) = last.entry(quote.security).or_default();
        (*volume, *price) = (*volume + quote.quantity, quote.price_cents);
    }
    last
}

/// Limit orders that were let through: of each security what its place of the results has, with the columns of trade, quantity and
/// broker.
pub(super) fn triggered_by<D: Driver>(
    talk: &Talk<'_, D>,
    places: &[(u32, usize)],
    trade: usize,
    quantity: usize,
    broker: usize,
) -> Result<Vec<Triggered>, DbError> {
    let mut triggered = Vec::new();
    for (security, place) in places {
        let count = talk.results.count(*place).min(TRIGGERED_MAX);
        for row in (0..count).filter_map(|row| talk.results.row(*place, row)) {
            let (Some(trade), Some(quantity), Some(broker)) = (row.int(trade), row.int(quantity), row.int(broker))
            else {
                return Err(unreadable());
            };
            triggered.push(Triggered { trade, broker: broker_number(broker), security: *security, quantity });
        }
    }
    Ok(triggered)
}
