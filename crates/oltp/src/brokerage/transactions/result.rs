use assay_sql::{DbError, Driver, write_date};

use super::begin::{Level::Serializable, begin};
use crate::{
    brokerage::{
        clock::write_moment,
        fees,
        holdings::{Lot, apply},
        ids::{Size, write_symbol},
        input::Executed,
        kinds::TradeType,
        market::at_us,
        names::exchange_id,
        statements::Statement::{
            Commit, TradeOrderCommission, TradeOrderTaxRate, TradeResultAccount, TradeResultBalance, TradeResultBroker,
            TradeResultCash, TradeResultChange, TradeResultCustomer, TradeResultDone, TradeResultLotDelete,
            TradeResultLotInsert, TradeResultLotUpdate, TradeResultLots, TradeResultSettlement,
            TradeResultSummaryDelete, TradeResultSummaryInsert, TradeResultSummaryUpdate, TradeResultTrade, TradesHeld,
            TradesStep,
        },
    },
    talk::{Outcome, Talk, unreadable},
};

/// Days until a trade is settled.
const SETTLED_AFTER_DAYS: i32 = 2;
/// Changes of lots that are sent together.
const CHANGES_AT_ONCE: usize = 16;

/// The market has executed an order: lots, taxes, commission, broker, settlement.
pub(super) async fn run<D: Driver>(
    talk: &mut Talk<'_, D>,
    size: Size,
    executed: &Executed,
) -> Result<Outcome, DbError> {
    let trade = executed.trade;
    let symbol = |out: &mut Vec<u8>| write_symbol(size, executed.security, out);
    let time = |out: &mut Vec<u8>| write_moment(executed.traded_us, out);

    // Frame 1: the trade.
    begin(talk, Serializable);
    let place = talk.batch.len();
    talk.add(TradeResultTrade).int(trade);
    talk.send().await?;
    let row = talk.row(place)?;
    let numbers = (row.int(0), row.int(3), row.cents(4), row.int(5), row.int(6));
    let (Some(account), Some(quantity), Some(charge_cents), Some(lifo), Some(is_cash)) = numbers else {
        return Err(unreadable());
    };
    let kind = row.text(1).and_then(TradeType::of_id).ok_or_else(unreadable)?;
    if row.text(7) != Some(b"SBMT") {
        return Err(DbError::other(format!("trade {trade} is not at the market")));
    }

    // Frame 2: lots, under the lock of their account.
    talk.add(TradeResultAccount).int(account);
    talk.add(TradesHeld).int(account).written(symbol);
    talk.add(TradeResultLots).int(account).written(symbol);
    talk.send().await?;
    let row = talk.row(0)?;
    let (Some(broker), Some(customer), Some(tax_status)) = (row.int(0), row.int(1), row.int(2)) else {
        return Err(unreadable());
    };
    let had_summary = talk.results.count(1) > 0;
    let mut lots = Vec::new();
    for row in (0..talk.results.count(2)).filter_map(|row| talk.results.row(2, row)) {
        let (Some(trade), Some(quantity), Some(price_cents)) = (row.int(0), row.int(1), row.cents(2)) else {
            return Err(unreadable());
        };
        lots.push(Lot { trade, at_us: 0, price_cents, quantity });
    }
    let signed = if kind.sells() { -quantity } else { quantity };
    let by = Lot { trade, at_us: 0, price_cents: executed.price_cents, quantity: signed };
    let mut changes = Vec::new();
    let closed = apply(&mut lots, by, lifo != 0, &mut changes);
    let held: i64 = lots.iter().map(|lot| lot.quantity).sum();
    // Lots refer to the summary: it comes before the first of them and goes after the last.
    if held != 0 {
        if had_summary {
            talk.add(TradeResultSummaryUpdate).int(held).int(account).written(symbol);
        } else {
            talk.add(TradeResultSummaryInsert).int(account).written(symbol).int(held);
        }
    }
    for some in changes.chunks(CHANGES_AT_ONCE) {
        for change in some {
            talk.add(TradeResultChange).int(change.lot).int(trade).int(change.before).int(change.after);
            if change.after == 0 {
                talk.add(TradeResultLotDelete).int(change.lot);
            } else if change.lot == trade {
                talk.add(TradeResultLotInsert)
                    .int(trade)
                    .int(account)
                    .written(symbol)
                    .written(time)
                    .cents(executed.price_cents)
                    .int(change.after);
            } else {
                talk.add(TradeResultLotUpdate).int(change.after).int(change.lot);
            }
        }
        if some.len() == CHANGES_AT_ONCE {
            talk.send().await?;
        }
    }
    if held == 0 {
        talk.add(TradeResultSummaryDelete).int(account).written(symbol);
    }
    // Frames 3 and 4: rates of tax and commission.
    let place = talk.batch.len();
    talk.add(TradeOrderTaxRate).int(customer);
    talk.add(TradeResultCustomer).int(customer);
    talk.send().await?;
    let tax_rate = talk.row(place)?.decimal(0, 5).ok_or_else(unreadable)?;
    let tier = talk.int(place + 1, 0)?;
    talk.add(TradeOrderCommission)
        .int(tier)
        .text(kind.id().as_bytes())
        .text(exchange_id(fees::exchange_of(executed.security)).as_bytes())
        .int(quantity)
        .int(quantity);
    talk.send().await?;
    let rate = talk.row(0)?.cents(0).ok_or_else(unreadable)?;
    let tax_cents = if tax_status == 0 { 0 } else { closed.tax_cents(tax_rate) };
    let commission_cents = fees::commission_cents(rate, quantity, executed.price_cents);

    // Frames 5 and 6: the trade is done, and settled.
    talk.add(TradeResultDone)
        .cents(commission_cents)
        .written(time)
        .cents(executed.price_cents)
        .cents(tax_cents)
        .int(trade);
    talk.add(TradesStep).int(trade).written(time).text(b"CMPT");
    let gross_cents = quantity * executed.price_cents;
    let withheld_cents = if tax_status == 1 { tax_cents } else { 0 };
    let settled_cents = if kind.sells() {
        gross_cents - charge_cents - commission_cents - withheld_cents
    } else {
        -(gross_cents + charge_cents + commission_cents)
    };
    let due = (at_us(executed.traded_us) / 86_400_000_000) as i32 + SETTLED_AFTER_DAYS;
    talk.add(TradeResultSettlement)
        .int(trade)
        .text(if is_cash != 0 { b"Cash Account".as_slice() } else { b"Margin" })
        .written(|out| write_date(due.into(), out))
        .cents(settled_cents);
    if is_cash != 0 {
        talk.add(TradeResultBalance).cents(settled_cents).int(account);
        talk.add(TradeResultCash).int(trade).written(time).cents(settled_cents).written(|out| {
            out.extend_from_slice(format!("{} {quantity} shares of ", kind.title()).as_bytes());
            write_symbol(size, executed.security, out);
        });
    }
    // The broker's row is the most wanted one: it is held shortest.
    talk.add(TradeResultBroker).cents(commission_cents).int(broker);
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
