//! The rows of the initial database, any chunk of them from the seed and its key alone.

mod companies;
mod customers;
mod past;
mod reference;

use std::sync::{Arc, OnceLock};

use assay_loading::{Chunk, Key};
use assay_sql::{RowSink, Rows, Table};

use super::{
    fees::TAX_RATES,
    ids::{
        BLOCK, EXCHANGES, GROUP, Size, company_address, customer_address, exchange_address, trades_of_group,
        write_symbol,
    },
    plan::Shape,
    tables::{
        BrokerageTable::{self, *},
        INDUSTRIES, SECTORS, ZIP_CODES,
    },
    trades::Past,
    words::write_name,
};
use crate::random::Random;

const GROUPS: u32 = BLOCK / GROUP;
const COMPANIES: u32 = BLOCK / 2;

/// Kind of a chunk: the tables that it fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ChunkKind {
    Fixed,
    Companies,
    News,
    Daily,
    Customers,
    Brokers,
    Trades,
}

impl ChunkKind {
    /// Kinds of chunks that exist once for each hundred customers.
    const OF_BLOCKS: [Self; 6] =
        [Self::Companies, Self::News, Self::Daily, Self::Customers, Self::Brokers, Self::Trades];

    fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Companies => "companies",
            Self::News => "news",
            Self::Daily => "daily",
            Self::Customers => "customers",
            Self::Brokers => "brokers",
            Self::Trades => "trades",
        }
    }

    fn parts(self) -> u32 {
        if self == Self::Trades { GROUPS } else { 1 }
    }

    fn tables(self) -> &'static [BrokerageTable] {
        match self {
            Self::Fixed => {
                &[StatusType, TradeType, Sector, Industry, Exchange, Charge, CommissionRate, Taxrate, ZipCode, Address]
            }
            Self::Companies => &[Address, Company, CompanyCompetitor, Financial, Security, LastTrade],
            Self::News => &[NewsItem, NewsXref],
            Self::Daily => &[DailyMarket],
            Self::Customers => {
                &[Address, Customer, CustomerTaxrate, CustomerAccount, AccountPermission, WatchList, WatchItem]
            }
            Self::Brokers => &[Broker],
            Self::Trades => {
                &[Trade, TradeHistory, Settlement, CashTransaction, HoldingHistory, Holding, HoldingSummary]
            }
        }
    }
}

/// A chunk of the load. `block` counts hundreds of customers from 1 and is 0 for what is there once; `part` counts from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BrokerageChunk {
    size: Size,
    shape: Shape,
    kind: ChunkKind,
    block: u32,
    part: u32,
}

impl BrokerageChunk {
    /// Numbers of the keys of a table's rows in it, from the first to before the last.
    fn keys(self, table: BrokerageTable) -> (u32, u32) {
        let block = self.block.saturating_sub(1);
        let of = |each: u32| (block * each, (block + 1) * each);
        match table {
            StatusType | TradeType => (0, 5),
            Sector => (0, SECTORS),
            Industry => (0, INDUSTRIES),
            Exchange => (0, EXCHANGES),
            Charge => (0, 15),
            CommissionRate => (0, 240),
            Taxrate => (0, TAX_RATES),
            ZipCode => (0, ZIP_CODES),
            Address if self.kind == ChunkKind::Fixed => (0, EXCHANGES),
            Address if self.kind == ChunkKind::Companies => of(COMPANIES),
            Company | CompanyCompetitor | Financial | Security | LastTrade | NewsItem | NewsXref | DailyMarket => {
                of(COMPANIES)
            }
            Address | Customer | CustomerTaxrate | CustomerAccount | AccountPermission | WatchList | WatchItem => {
                of(BLOCK)
            }
            Broker => of(1),
            Trade | TradeHistory | Settlement | CashTransaction | HoldingHistory => {
                (0, trades_of_group(self.shape.days))
            }
            // As many as the past has positions.
            Holding | HoldingSummary => (0, u32::MAX),
            TradeRequest => (0, 0),
        }
    }

    fn group(self) -> u32 {
        (self.block - 1) * GROUPS + self.part - 1
    }
}

impl Chunk for BrokerageChunk {
    const UNIT_COLUMN: &'static str = "unit";

    type Shape = Shape;
    type Rows = BrokerageRows;

    fn all(customers: u32, shape: Shape) -> impl Iterator<Item = Self> {
        let size = Size { customers };
        let of =
            move |kind: ChunkKind, block| (1..=kind.parts()).map(move |part| Self { size, shape, kind, block, part });
        of(ChunkKind::Fixed, 0).chain(
            (1..=size.blocks())
                .flat_map(move |block| ChunkKind::OF_BLOCKS.into_iter().flat_map(move |kind| of(kind, block))),
        )
    }

    fn key(self) -> Key {
        (self.kind.name(), self.block, self.part)
    }

    fn row_count(self) -> u64 {
        let chunks = if self.kind == ChunkKind::Fixed { 1 } else { u64::from(self.size.blocks() * self.kind.parts()) };
        let of = |table: &BrokerageTable| match table {
            Address => u64::from(self.keys(Address).1 - self.keys(Address).0),
            _ => table.row_count(self.size, self.shape) / chunks,
        };
        self.kind.tables().iter().map(of).sum()
    }

    fn tables(self, seed: u64) -> impl Iterator<Item = (Table, BrokerageRows)> + Send + 'static {
        // Drawn once for all tables of the chunk, by whichever is loaded first.
        let past = Arc::new(OnceLock::new());
        self.kind.tables().iter().map(move |table| {
            let (next, end) = self.keys(*table);
            let rows =
                BrokerageRows { seed, table: *table, chunk: self, next, end, past: past.clone(), text: Vec::new() };
            (Table { name: table.name(), columns: table.columns() }, rows)
        })
    }
}

/// Rows of one table of a chunk, one after the other.
pub(crate) struct BrokerageRows {
    seed: u64,
    table: BrokerageTable,
    chunk: BrokerageChunk,
    next: u32,
    end: u32,
    past: Arc<OnceLock<Past>>,
    text: Vec<u8>,
}

impl Rows for BrokerageRows {
    /// Writes the rows of the next key; how many they are, `None` at the end.
    fn write_next(&mut self, sink: &mut impl RowSink) -> Option<u64> {
        let key = self.next;
        if key >= self.end {
            return None;
        }
        self.next += 1;
        // Each kind of address has keys of its own.
        let place = u64::from(self.chunk.kind as u8) << 32 | u64::from(key);
        let mut random = Random::of(self.seed, self.table as u64, place);
        let mut text = std::mem::take(&mut self.text);
        let mut row = Row {
            sink,
            random: &mut random,
            text: &mut text,
            seed: self.seed,
            size: self.chunk.size,
            shape: self.chunk.shape,
            count: 0,
        };
        let mut goes_on = true;
        match self.table {
            StatusType => row.status(key),
            TradeType => row.trade_type(key),
            Sector => row.sector(key),
            Industry => row.industry(key),
            Exchange => row.exchange(key),
            Charge => row.charge(key),
            CommissionRate => row.commission_rate(key),
            Taxrate => row.tax_rate(key),
            ZipCode => row.zip_code(key),
            Address => match self.chunk.kind {
                ChunkKind::Fixed => row.address(exchange_address(key)),
                ChunkKind::Companies => row.address(company_address(key)),
                _ => row.address(customer_address(self.chunk.size, key)),
            },
            Company => row.company(key),
            CompanyCompetitor => row.competitors(key),
            Financial => row.quarters(key),
            Security => row.securities(key),
            LastTrade => row.last_trades(key),
            NewsItem => row.news(key),
            NewsXref => row.news_of(key),
            DailyMarket => row.market_days(key),
            Customer => row.customer(key),
            CustomerTaxrate => row.tax_rates_of(key),
            CustomerAccount => row.accounts(key),
            AccountPermission => row.permissions(key),
            WatchList => row.watch_list(key),
            WatchItem => row.watch_items(key),
            Broker => row.broker(key),
            Trade | TradeHistory | Settlement | CashTransaction | HoldingHistory | Holding | HoldingSummary => {
                let chunk = self.chunk;
                let past = self.past.get_or_init(|| Past::of(self.seed, chunk.size, chunk.shape.days, chunk.group()));
                goes_on = row.of_past(self.table, past, key as usize);
            }
            TradeRequest => {}
        }
        let count = row.count;
        self.text = text;
        goes_on.then_some(count)
    }
}

struct Row<'a, S> {
    sink: &'a mut S,
    random: &'a mut Random,
    text: &'a mut Vec<u8>,
    seed: u64,
    size: Size,
    shape: Shape,
    count: u64,
}

impl<S: RowSink> Row<'_, S> {
    fn begin(&mut self) {
        self.sink.begin_row();
    }

    fn end(&mut self) {
        self.sink.end_row();
        self.count += 1;
    }

    /// A text that is written by `write`.
    fn written(&mut self, write: impl FnOnce(&mut Random, &mut Vec<u8>)) {
        self.text.clear();
        write(self.random, self.text);
        self.sink.text(self.text);
    }

    fn words(&mut self, text: &str) {
        self.sink.text(text.as_bytes());
    }

    fn name(&mut self, syllables: u32) {
        self.written(|random, out| write_name(random, syllables, out));
    }

    fn symbol(&mut self, security: u32) {
        let size = self.size;
        self.written(|_, out| write_symbol(size, security, out));
    }

    fn drawn(&mut self, low: u32, high: u32) -> i64 {
        self.random.between(low, high).into()
    }

    fn money(&mut self, low_cents: u32, high_cents: u32) {
        let cents = self.drawn(low_cents, high_cents);
        self.sink.decimal(cents, 2);
    }
}

#[cfg(test)]
mod tests;
