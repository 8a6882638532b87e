use assay_sql::{DbError, Driver};

use super::begin::{
    Level::{self, ReadCommitted, RepeatableRead},
    begin,
};
use crate::{
    brokerage::{
        clock::write_moment,
        ids::{Size, write_symbol},
        input::{Sought, TWENTY},
        statements::Statement::{
            Commit, TradeLookupFirst, TradeLookupHoldings, TradeUpdateCash, TradeUpdateExecutor, TradeUpdateSettlement,
            TradesCash, TradesHistory, TradesOfAccount, TradesOfSecurity, TradesRead, TradesSettlements,
        },
    },
    talk::{Outcome, Talk, unreadable},
};

/// Trades that were found, and whether each was paid in cash; of those asked for by key it is not known.
type Found = Vec<(i64, bool)>;

/// Finds trades in a transaction that has begun; the trades exist.
async fn find<D: Driver>(talk: &mut Talk<'_, D>, size: Size, sought: &Sought, level: Level) -> Result<Found, DbError> {
    begin(talk, level);
    let place = talk.batch.len();
    let limits = |from_us: i64, to_us: i64| {
        (move |out: &mut Vec<u8>| write_moment(from_us, out), move |out: &mut Vec<u8>| write_moment(to_us, out))
    };
    match sought {
        Sought::Trades(trades) => return Ok(trades.iter().map(|trade| (*trade, false)).collect()),
        Sought::OfAccount { account, from_us, to_us } => {
            let (from, to) = limits(*from_us, *to_us);
            talk.add(TradesOfAccount).int(*account).written(from).written(to);
        }
        Sought::OfSecurity { security, from_us, to_us } => {
            let (from, to) = limits(*from_us, *to_us);
            talk.add(TradesOfSecurity).written(|out| write_symbol(size, *security, out)).written(from).written(to);
        }
        Sought::Holdings { account, from_us } => {
            talk.add(TradeLookupFirst).int(*account).written(|out| write_moment(*from_us, out));
        }
    }
    talk.send().await?;
    let is_cash = !matches!(sought, Sought::Holdings { .. });
    let rows = (0..talk.results.count(place)).filter_map(|row| talk.results.row(place, row));
    rows.map(|row| {
        let cash = is_cash && row.int(1).ok_or_else(unreadable)? != 0;
        Ok((row.int(0).ok_or_else(unreadable)?, cash))
    })
    .collect()
}

fn read<D: Driver>(talk: &mut Talk<'_, D>, found: &Found) {
    let Some(last) = found.len().checked_sub(1) else { return };
    for statement in [TradesRead, TradesSettlements, TradesCash, TradesHistory] {
        let mut asked = talk.add(statement);
        for place in 0..TWENTY {
            asked = asked.int(found[place.min(last)].0);
        }
    }
}

/// Trades with all that belongs to them.
pub(super) async fn look_up<D: Driver>(
    talk: &mut Talk<'_, D>,
    size: Size,
    sought: &Sought,
) -> Result<Outcome, DbError> {
    let found = find(talk, size, sought, ReadCommitted).await?;
    if let Sought::Holdings { .. } = sought {
        if let Some((trade, _)) = found.first() {
            talk.add(TradeLookupHoldings).int(*trade);
        }
    } else {
        read(talk, &found);
    }
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}

/// Finds trades and makes a small change of each: who gave it, how it was paid, or its name.
pub(super) async fn update<D: Driver>(talk: &mut Talk<'_, D>, size: Size, sought: &Sought) -> Result<Outcome, DbError> {
    let mut found = find(talk, size, sought, RepeatableRead).await?;
    // Rows are locked in the order of their keys.
    found.sort_unstable();
    found.dedup();
    for (trade, is_cash) in &found {
        match sought {
            Sought::Trades(_) | Sought::Holdings { .. } => {
                talk.add(TradeUpdateExecutor).int(*trade);
            }
            Sought::OfAccount { .. } => {
                talk.add(TradeUpdateSettlement).int(*trade);
            }
            Sought::OfSecurity { .. } if *is_cash => {
                talk.add(TradeUpdateCash).int(*trade);
            }
            Sought::OfSecurity { .. } => {}
        }
    }
    read(talk, &found);
    talk.add(Commit);
    talk.send().await?;
    Ok(Outcome::Committed)
}
