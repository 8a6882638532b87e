use assay_sql::{DbError, Driver};

use super::begin::{Level::RepeatableRead, begin};
use crate::{
    brokerage::{
        clock::write_moment,
        fees,
        ids::{Size, write_symbol},
        input::Order,
        names::{exchange_id, names_of, tax_number, write_company},
        plan::Brokerage,
        statements::Statement::{
            Commit, Rollback, TradeOrderAccount, TradeOrderAssets, TradeOrderByName, TradeOrderBySymbol,
            TradeOrderCharge, TradeOrderCommission, TradeOrderLastTrade, TradeOrderLots, TradeOrderPermission,
            TradeOrderRequest, TradeOrderTaxRate, TradeOrderTrade, TradeOrderType, TradesHeld, TradesStep,
        },
    },
    talk::{Outcome, Talk, unreadable},
};

/// An order: who gives it for which account, what it will cost, and its rows.
pub(super) async fn run<D: Driver>(
    talk: &mut Talk<'_, D>,
    workload: &Brokerage,
    size: Size,
    order: &Order,
) -> Result<Outcome, DbError> {
    let symbol = |out: &mut Vec<u8>| write_symbol(size, order.security, out);
    let (last, first) = names_of(workload.rows_seed, order.executor);
    let kind = order.kind.id().as_bytes();

    // Frames 1 and 2: the account, and whether the executor may trade for it.
    begin(talk, RepeatableRead);
    let account = talk.batch.len();
    talk.add(TradeOrderAccount).int(order.account);
    if !order.is_owner {
        talk.add(TradeOrderPermission)
            .int(order.account)
            .text(tax_number(order.executor).as_bytes())
            .text(&last)
            .text(&first);
    }
    talk.send().await?;
    if !order.is_owner {
        talk.row(account + 1)?;
    }
    let row = talk.row(account)?;
    let numbers = (row.int(1), row.int(2), row.int(3), row.int(6));
    let (Some(broker), Some(customer), Some(tax_status), Some(tier)) = numbers else { return Err(unreadable()) };

    // Frame 3: the security, its price, and what an estimate of gains and taxes takes; the order itself does not depend on it.
    if order.by_name {
        let (company, issue) = size.company_of(order.security);
        talk.add(TradeOrderByName).written(|out| write_company(company, out)).text(if issue == 0 {
            b"COMMON"
        } else {
            b"PREF_A"
        });
    } else {
        talk.add(TradeOrderBySymbol).written(symbol);
    }
    talk.add(TradeOrderLastTrade).written(symbol);
    talk.add(TradeOrderType).text(kind);
    talk.add(TradesHeld).int(order.account).written(symbol);
    talk.add(TradeOrderLots).int(order.account).written(symbol);
    if tax_status != 0 {
        talk.add(TradeOrderTaxRate).int(customer);
    }
    let fees_at = talk.batch.len();
    talk.add(TradeOrderCommission)
        .int(tier)
        .text(kind)
        .text(exchange_id(order.exchange()).as_bytes())
        .int(order.quantity)
        .int(order.quantity);
    talk.add(TradeOrderCharge).int(tier).text(kind);
    if order.is_margin {
        talk.add(TradeOrderAssets).int(order.account);
    }
    talk.send().await?;
    talk.row(0)?;
    let rate = talk.row(fees_at)?.cents(0).ok_or_else(unreadable)?;
    let charge_cents = talk.row(fees_at + 1)?.cents(0).ok_or_else(unreadable)?;
    let commission_cents = fees::commission_cents(rate, order.quantity, order.bid_cents());

    // Frame 4: the rows of the order.
    let time = |out: &mut Vec<u8>| write_moment(order.traded_us, out);
    let status: &[u8] = if order.kind.is_market() { b"SBMT" } else { b"PNDG" };
    talk.add(TradeOrderTrade)
        .int(order.trade)
        .written(time)
        .text(status)
        .text(kind)
        .int(!order.is_margin)
        .written(symbol)
        .int(order.quantity)
        .cents(order.bid_cents())
        .int(order.account)
        .written(|out| {
            out.extend_from_slice(&first);
            out.push(b' ');
            out.extend_from_slice(&last);
        })
        .cents(charge_cents)
        .cents(commission_cents)
        .int(order.lifo);
    talk.add(TradesStep).int(order.trade).written(time).text(status);
    if !order.kind.is_market() {
        talk.add(TradeOrderRequest)
            .int(order.trade)
            .text(kind)
            .written(symbol)
            .int(order.quantity)
            .cents(order.bid_cents())
            .int(broker);
    }
    // Frames 5 and 6.
    if order.rolls_back {
        talk.add(Rollback);
        talk.send().await?;
        return Ok(Outcome::RolledBack);
    }
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
