//! Rows of completed trades, and of the holdings since.

use assay_sql::RowSink;

use super::Row;
use crate::brokerage::{
    ids::{account_id, write_symbol},
    market::at_us,
    names::names_of,
    tables::BrokerageTable::{self, *},
    trades::{Past, Trade as Done},
};

impl<S: RowSink> Row<'_, S> {
    /// The rows of a table for a trade, or a position; false when there are no more.
    pub(super) fn of_past(&mut self, table: BrokerageTable, past: &Past, key: usize) -> bool {
        match table {
            Holding | HoldingSummary => {
                let Some(position) = past.positions.get(key) else { return false };
                if table == HoldingSummary {
                    let held: i64 = position.lots.iter().map(|lot| lot.quantity).sum();
                    if held != 0 {
                        self.begin();
                        self.sink.int(position.account);
                        self.symbol(position.security);
                        self.sink.int(held);
                        self.end();
                    }
                    return true;
                }
                for lot in &position.lots {
                    self.begin();
                    self.sink.int(lot.trade);
                    self.sink.int(position.account);
                    self.symbol(position.security);
                    self.sink.time(Some(lot.at_us));
                    self.sink.decimal(lot.price_cents, 2);
                    self.sink.int(lot.quantity);
                    self.end();
                }
            }
            _ => {
                let trade = &past.trades[key];
                match table {
                    Trade => self.trade(trade),
                    TradeHistory => self.history(trade),
                    Settlement => self.settlement(trade),
                    CashTransaction if trade.is_cash => self.cash(trade),
                    HoldingHistory => self.changes(trade, past),
                    _ => {}
                }
            }
        }
        true
    }

    pub(super) fn trade(&mut self, trade: &Done) {
        self.begin();
        self.sink.int(trade.id);
        self.sink.time(Some(at_us(trade.done_us)));
        self.words("CMPT");
        self.words(trade.kind.id());
        self.sink.int(trade.is_cash.into());
        self.symbol(trade.security);
        self.sink.int(trade.quantity);
        self.sink.decimal(trade.bid_cents, 2);
        self.sink.int(account_id(trade.customer, trade.account));
        let (last, first) = names_of(self.seed, trade.customer);
        self.written(|_, out| {
            out.extend_from_slice(&first);
            out.push(b' ');
            out.extend_from_slice(&last);
        });
        for cents in [trade.price_cents, trade.charge_cents, trade.commission_cents, trade.tax_cents] {
            self.sink.decimal(cents, 2);
        }
        self.sink.int(trade.lifo.into());
        self.end();
    }

    pub(super) fn history(&mut self, trade: &Done) {
        let steps = [(trade.asked_us, "PNDG"), (trade.sent_us, "SBMT"), (trade.done_us, "CMPT")];
        for (at, status) in steps.into_iter().skip(trade.kind.is_market().into()) {
            self.begin();
            self.sink.int(trade.id);
            self.sink.time(Some(at_us(at)));
            self.words(status);
            self.end();
        }
    }

    pub(super) fn settlement(&mut self, trade: &Done) {
        let day = (at_us(trade.done_us) / 86_400_000_000) as i32;
        self.begin();
        self.sink.int(trade.id);
        self.words(if trade.is_cash { "Cash Account" } else { "Margin" });
        self.sink.date(day + 2);
        self.sink.decimal(trade.settled_cents, 2);
        self.end();
    }

    pub(super) fn cash(&mut self, trade: &Done) {
        let size = self.size;
        self.begin();
        self.sink.int(trade.id);
        self.sink.time(Some(at_us(trade.done_us)));
        self.sink.decimal(trade.settled_cents, 2);
        self.written(|_, out| {
            out.extend_from_slice(format!("{} {} shares of ", trade.kind.title(), trade.quantity).as_bytes());
            write_symbol(size, trade.security, out);
        });
        self.end();
    }

    pub(super) fn changes(&mut self, trade: &Done, past: &Past) {
        for change in &past.changes[trade.changes.0 as usize..trade.changes.1 as usize] {
            self.begin();
            self.sink.int(change.lot);
            self.sink.int(trade.id);
            self.sink.int(change.before);
            self.sink.int(change.after);
            self.end();
        }
    }
}
