use assay_sql::{DbError, Driver, Kind as Dialect, write_date};

use super::{
    begin::{
        Level::{self, ReadCommitted, RepeatableRead, Serializable},
        begin,
    },
    feed::{last_quotes, triggered_by},
    plain,
};
use crate::{
    brokerage::{
        clock::write_moment,
        desk::Effect,
        ids::{Size, customer_id, write_symbol},
        input::{Executed, Input, Order, Request, Sought},
        market::at_us,
        names::{exchange_id, names_of, tax_number, write_company},
        plan::Brokerage,
        statements::Statement::{
            CallCustomerPosition, CallMarketFeed, CallTradeHoldings, CallTradeOrder, CallTradeResult, CallTrades,
            Commit, Rollback,
        },
    },
    talk::{Outcome, Talk},
    workload::Done,
};

/// Days until a trade is settled.
const SETTLED_AFTER_DAYS: i32 = 2;
/// Moments between which trades that are asked for by their keys are, for parameters that are not used then.
const NO_TIME_US: i64 = 0;

/// A transaction as one call, between what begins and what commits it. Those that are a single batch of statements anyway have none.
pub(crate) async fn call<D: Driver>(
    talk: &mut Talk<'_, D>,
    workload: &Brokerage,
    request: &Request,
) -> Done<Brokerage> {
    let size = request.size;
    match &request.input {
        _ if !talk.driver.has(CallTradeOrder.into()) => plain::run(talk, workload, request).await,
        Input::TradeResult(executed) => {
            begin(talk, Serializable);
            trade_result(talk, executed);
            end(talk, false).await
        }
        Input::TradeOrder(order) => {
            begin(talk, RepeatableRead);
            trade_order(talk, workload, size, order);
            end(talk, order.rolls_back).await
        }
        Input::TradeLookup(sought) => {
            trades(talk, size, sought, ReadCommitted, 0);
            end(talk, false).await
        }
        Input::TradeUpdate { sought } => {
            trades(talk, size, sought, RepeatableRead, 1);
            end(talk, false).await
        }
        Input::CustomerPosition { customer, by_tax_id, history } => {
            begin(talk, ReadCommitted);
            talk.add(CallCustomerPosition)
                .int(customer_id(*customer))
                .written(|out| {
                    if *by_tax_id {
                        out.extend_from_slice(tax_number(*customer).as_bytes());
                    }
                })
                .int(*history);
            end(talk, false).await
        }
        Input::MarketFeed { quotes, traded_us } => {
            begin(talk, ReadCommitted);
            let last = last_quotes(quotes);
            let mut places = Vec::with_capacity(last.len());
            for (security, (volume, price)) in last {
                places.push((security, talk.batch.len()));
                talk.add(CallMarketFeed)
                    .written(|out| write_symbol(size, security, out))
                    .cents(price)
                    .int(volume)
                    .written(|out| write_moment(*traded_us, out));
            }
            talk.add(Commit);
            talk.send().await?;
            let triggered = triggered_by(talk, &places, 0, 1, 2)?;
            Ok((Outcome::Committed, Effect::Triggered(triggered)))
        }
        _ => plain::run(talk, workload, request).await,
    }
}

async fn end<D: Driver>(talk: &mut Talk<'_, D>, rolls_back: bool) -> Result<(Outcome, Effect), DbError> {
    talk.add(if rolls_back { Rollback } else { Commit });
    talk.send().await?;
    Ok((if rolls_back { Outcome::RolledBack } else { Outcome::Committed }, Effect::Nothing))
}

fn trade_result<D: Driver>(talk: &mut Talk<'_, D>, executed: &Executed) {
    let due = (at_us(executed.traded_us) / 86_400_000_000) as i32 + SETTLED_AFTER_DAYS;
    talk.add(CallTradeResult)
        .int(executed.trade)
        .cents(executed.price_cents)
        .written(|out| write_moment(executed.traded_us, out))
        .written(|out| write_date(due.into(), out));
}

fn trade_order<D: Driver>(talk: &mut Talk<'_, D>, workload: &Brokerage, size: Size, order: &Order) {
    let (last, first) = names_of(workload.rows_seed, order.executor);
    let (company, issue) = size.company_of(order.security);
    talk.add(CallTradeOrder)
        .int(order.trade)
        .int(order.account)
        .int(order.is_owner)
        .text(tax_number(order.executor).as_bytes())
        .text(&last)
        .text(&first)
        .written(|out| write_symbol(size, order.security, out))
        .int(order.by_name)
        .written(|out| write_company(company, out))
        .text(if issue == 0 { b"COMMON" } else { b"PREF_A" })
        .text(exchange_id(order.exchange()).as_bytes())
        .text(order.kind.id().as_bytes())
        .int(order.quantity)
        .cents(order.bid_cents())
        .int(order.is_margin)
        .int(order.lifo)
        .written(|out| write_moment(order.traded_us, out));
}

/// Trades by their keys, of an account, or of a security between two moments; each is changed a little, or none.
fn trades<D: Driver>(talk: &mut Talk<'_, D>, size: Size, sought: &Sought, level: Level, change: i64) {
    let has_arrays = talk.driver.kind() == Dialect::Postgresql;
    begin(talk, level);
    if let Sought::Holdings { account, from_us } = sought {
        talk.add(CallTradeHoldings).int(*account).written(|out| write_moment(*from_us, out));
        return;
    }
    let (keys, account, security, from_us, to_us): (&[i64], _, _, _, _) = match sought {
        Sought::Trades(keys) => (keys, 0, None, NO_TIME_US, NO_TIME_US),
        Sought::OfAccount { account, from_us, to_us } => (&[], *account, None, *from_us, *to_us),
        Sought::OfSecurity { security, from_us, to_us } => (&[], 0, Some(*security), *from_us, *to_us),
        Sought::Holdings { .. } => return,
    };
    talk.add(CallTrades)
        .written(|out| write_list(keys, has_arrays, out))
        .int(account)
        .written(|out| {
            if let Some(security) = security {
                write_symbol(size, security, out);
            }
        })
        .written(|out| write_moment(from_us, out))
        .written(|out| write_moment(to_us, out))
        .int(change);
}

/// Keys as an array of PostgreSQL's, or as JSON.
fn write_list(keys: &[i64], has_arrays: bool, out: &mut Vec<u8>) {
    out.push(if has_arrays { b'{' } else { b'[' });
    for (number, key) in keys.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(key.to_string().as_bytes());
    }
    out.push(if has_arrays { b'}' } else { b']' });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_each_dialect_reads_them() {
        let written = |keys: &[i64], has_arrays| {
            let mut out = Vec::new();
            write_list(keys, has_arrays, &mut out);
            String::from_utf8(out).expect("text")
        };
        assert_eq!((written(&[7, 8], true), written(&[7, 8], false)), ("{7,8}".into(), "[7,8]".into()));
        assert_eq!((written(&[], true), written(&[], false)), ("{}".into(), "[]".into()));
    }
}
