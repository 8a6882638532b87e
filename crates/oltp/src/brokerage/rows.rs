//! The rows of the initial database, any chunk of them from the seed and its key alone.

use std::sync::{Arc, OnceLock};

use assay_loading::{Chunk, Key};
use assay_sql::{RowSink, Rows, Table};

use super::{
    fees::{self, TAX_RATES},
    ids::{
        BLOCK, EXCHANGES, GROUP, Size, account_id, broker_id, company_address, company_id, customer_address,
        customer_id, exchange_address, news_id, trades_of_group, write_symbol,
    },
    kinds::TradeType as Kind,
    market::{FIRST_DAY, HIGHEST_CENTS, LOWEST_CENTS, TRADING_US, at_us, date_of, price_cents},
    people::{Account, Person, skewed},
    plan::Shape,
    tables::{
        BrokerageTable::{self, *},
        COMPETITORS, INDUSTRIES, MARKET_DAYS, QUARTERS, SECTORS, ZIP_CODES,
    },
    trades::{Past, Trade as Done},
    words::{write_name, write_numbered},
};
use crate::random::Random;

const GROUPS: u32 = BLOCK / GROUP;
const COMPANIES: u32 = BLOCK / 2;
const LISTS: u64 = 300;
/// 2000-01-03 in days since 2000-01-01: the first of the daily figures.
pub(crate) const FIRST_MARKET_DAY: i32 = 2;
const FIRST_YEAR: i64 = 2000;
/// Days from 2000-01-01 to the first days of quarters.
const QUARTER_DAYS: [i32; 4] = [0, 91, 182, 274];
const STATUSES: [(&str, &str); 5] =
    [("CMPT", "Completed"), ("ACTV", "Active"), ("SBMT", "Submitted"), ("PNDG", "Pending"), ("CNCL", "Canceled")];

/// What a chunk fills.
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
    /// Those that there are once for each hundred customers.
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

    fn status(&mut self, key: u32) {
        let (id, name) = STATUSES[key as usize];
        self.begin();
        self.words(id);
        self.words(name);
        self.end();
    }

    fn trade_type(&mut self, key: u32) {
        let kind = Kind::ALL[key as usize];
        self.begin();
        self.words(kind.id());
        self.words(kind.title());
        self.sink.int(kind.sells().into());
        self.sink.int(kind.is_market().into());
        self.end();
    }

    fn sector(&mut self, key: u32) {
        self.begin();
        self.words(&sector_id(key));
        self.written(|_, out| write_sector_name(key, out));
        self.end();
    }

    fn industry(&mut self, key: u32) {
        self.begin();
        self.words(&industry_id(key));
        self.written(|_, out| write_numbered(key + 9000, out));
        self.words(&sector_id(key % SECTORS));
        self.end();
    }

    fn exchange(&mut self, key: u32) {
        let listed = (0..self.size.securities()).filter(|security| fees::exchange_of(*security) == key).count();
        self.begin();
        self.words(&exchange_id(key));
        self.written(|_, out| write_numbered(key + 11_000, out));
        self.sink.int(listed as i64);
        self.sink.int(900);
        self.sink.int(1700);
        self.written(|random, out| random.text(40, 80, out));
        self.sink.int(exchange_address(key));
        self.end();
    }

    fn charge(&mut self, key: u32) {
        let (kind, tier) = (Kind::ALL[key as usize / 3], key as u8 % 3 + 1);
        self.begin();
        self.words(kind.id());
        self.sink.int(tier.into());
        self.sink.decimal(fees::charge_cents(kind, tier), 2);
        self.end();
    }

    fn commission_rate(&mut self, key: u32) {
        let (tier, kind) = (key as u8 / 80 + 1, Kind::ALL[key as usize / 16 % 5]);
        let (exchange, step) = (key / 4 % 4, key as usize % 4);
        let from = fees::QUANTITIES_FROM[step];
        let to = fees::QUANTITIES_FROM.get(step + 1).map_or(fees::QUANTITY_MAX, |next| next - 1);
        self.begin();
        self.sink.int(tier.into());
        self.words(kind.id());
        self.words(&exchange_id(exchange));
        self.sink.int(from);
        self.sink.int(to);
        self.sink.decimal(fees::commission_rate(tier, kind, exchange, from), 2);
        self.end();
    }

    fn tax_rate(&mut self, key: u32) {
        self.begin();
        self.written(|_, out| fees::write_tax_id(key, out));
        self.written(|_, out| write_numbered(key + 13_000, out));
        self.sink.decimal(fees::tax_rate(key), 5);
        self.end();
    }

    fn zip_code(&mut self, key: u32) {
        self.begin();
        self.words(&zip_code(key));
        self.written(|_, out| write_numbered(key + 20_000, out));
        self.written(|_, out| write_numbered(key % 62 + 17_000, out));
        self.end();
    }

    fn address(&mut self, id: i64) {
        self.begin();
        self.sink.int(id);
        self.written(|random, out| {
            out.extend_from_slice(format!("{} ", random.between(1, 999)).as_bytes());
            write_name(random, 3, out);
            out.extend_from_slice(b" Street");
        });
        self.written(|random, out| {
            out.extend_from_slice(format!("Floor {}", random.between(1, 30)).as_bytes());
        });
        let zip = self.random.between(0, ZIP_CODES - 1);
        self.words(&zip_code(zip));
        self.words(if zip.is_multiple_of(5) { "Canada" } else { "USA" });
        self.end();
    }

    fn company(&mut self, company: u32) {
        self.begin();
        self.sink.int(company_id(company));
        self.words("ACTV");
        self.written(|_, out| write_company(company, out));
        self.words(&industry_id(industry_of(company)));
        let rating = self.random.between(0, 4) as usize;
        self.words(["AAA", "AA", "A", "BBB", "BB"][rating]);
        self.written(|random, out| {
            write_name(random, 2, out);
            out.push(b' ');
            write_name(random, 3, out);
        });
        self.sink.int(company_address(company));
        self.written(|random, out| random.text(100, 140, out));
        let opened = self.drawn(0, 60_000) as i32;
        self.sink.date(opened - 60_000);
        self.end();
    }

    /// Three others, in the same order always; its neighbours in its industry where there are as many.
    fn competitors(&mut self, company: u32) {
        let companies = self.size.companies();
        let step = if companies > INDUSTRIES * (COMPETITORS + 1) { INDUSTRIES } else { 1 };
        for number in 1..=COMPETITORS {
            let other = (company + number * step) % companies;
            self.begin();
            self.sink.int(company_id(company));
            self.sink.int(company_id(other));
            self.words(&industry_id(industry_of(other)));
            self.end();
        }
    }

    fn quarters(&mut self, company: u32) {
        for number in 0..QUARTERS {
            let (year, quarter) = (number / 4, number % 4);
            let revenue = self.drawn(1_000_000, 1_000_000_000) * 10;
            let earned = revenue * self.drawn(5, 30) / 100;
            let shares = self.drawn(1_000_000, 100_000_000);
            let diluted = shares * 11 / 10;
            let assets = self.drawn(10_000_000, 1_000_000_000) * 10;
            self.begin();
            self.sink.int(company_id(company));
            self.sink.int(FIRST_YEAR + i64::from(year));
            self.sink.int(i64::from(quarter) + 1);
            // 2000 and 2004 are leap years.
            let is_leap = year % 4 == 0;
            let begins = QUARTER_DAYS[quarter as usize] - i32::from(!is_leap && quarter > 0);
            self.sink.date(year as i32 * 365 + i32::from(year > 0) + begins);
            self.sink.decimal(revenue, 2);
            self.sink.decimal(earned, 2);
            self.sink.decimal(earned / shares, 2);
            self.sink.decimal(earned / diluted, 2);
            self.sink.decimal(earned * 100 / revenue, 2);
            self.sink.decimal(assets / 20, 2);
            self.sink.decimal(assets, 2);
            self.sink.decimal(assets / 3, 2);
            self.sink.int(shares);
            self.sink.int(diluted);
            self.end();
        }
    }

    /// The securities of a company.
    fn issues(&self, company: u32) -> impl Iterator<Item = u32> + use<S> {
        let size = self.size;
        [company, company + size.companies()].into_iter().filter(move |security| *security < size.securities())
    }

    fn securities(&mut self, company: u32) {
        for security in self.issues(company) {
            self.begin();
            self.symbol(security);
            self.words(if security < self.size.companies() { "COMMON" } else { "PREF_A" });
            self.words("ACTV");
            self.written(|_, out| write_company(company, out));
            self.words(&exchange_id(fees::exchange_of(security)));
            self.sink.int(company_id(company));
            let outstanding = self.drawn(1_000_000, 1_000_000_000);
            self.sink.int(outstanding);
            let listed = self.drawn(1, 30_000) as i32;
            self.sink.date(-listed - 1000);
            self.sink.date(-listed);
            self.money(100, 12_000);
            self.sink.decimal(HIGHEST_CENTS, 2);
            let day = self.drawn(1, 360) as i32;
            self.sink.date(FIRST_DAY - day);
            self.sink.decimal(LOWEST_CENTS, 2);
            let day = self.drawn(1, 360) as i32;
            self.sink.date(FIRST_DAY - day);
            self.money(0, 1000);
            self.money(0, 12_000);
            self.end();
        }
    }

    fn last_trades(&mut self, company: u32) {
        let ended_us = i64::from(self.shape.days) * TRADING_US;
        for security in self.issues(company) {
            self.begin();
            self.symbol(security);
            self.sink.time(Some(at_us(ended_us - 1)));
            self.sink.decimal(price_cents(security, ended_us - 1), 2);
            self.sink.decimal(price_cents(security, ended_us - TRADING_US), 2);
            let volume = self.drawn(1, 100_000) * 100;
            self.sink.int(volume);
            self.end();
        }
    }

    fn news(&mut self, company: u32) {
        for number in 0..2 {
            let bytes = self.shape.news_bytes;
            let ago = self.drawn(0, 100) as i32;
            self.begin();
            self.sink.int(news_id(company, number));
            self.written(|random, out| random.text(40, 80, out));
            self.written(|random, out| random.text(150, 250, out));
            self.written(|random, out| random.text(bytes, bytes, out));
            self.sink.time(Some(i64::from(FIRST_DAY - ago) * 86_400_000_000));
            self.name(3);
            self.name(4);
            self.end();
        }
    }

    fn news_of(&mut self, company: u32) {
        for number in 0..2 {
            self.begin();
            self.sink.int(news_id(company, number));
            self.sink.int(company_id(company));
            self.end();
        }
    }

    fn market_days(&mut self, company: u32) {
        for security in self.issues(company) {
            for day in 0..MARKET_DAYS {
                let close = self.drawn(LOWEST_CENTS as u32, HIGHEST_CENTS as u32);
                let (above, below) = (self.drawn(0, 100), self.drawn(0, 100));
                let volume = self.drawn(1000, 10_000) * 100;
                self.begin();
                self.sink.date(date_of(FIRST_MARKET_DAY, day.into()));
                self.symbol(security);
                self.sink.decimal(close, 2);
                self.sink.decimal(close + above, 2);
                self.sink.decimal(close - below, 2);
                self.sink.int(volume);
                self.end();
            }
        }
    }

    fn customer(&mut self, customer: u32) {
        let person = Person::of(self.seed, customer);
        self.begin();
        self.sink.int(customer_id(customer));
        self.words(&tax_number(customer));
        self.words("ACTV");
        self.full_name(customer);
        let (middle, gender) = (self.random.between(0, 25) as u8, self.random.between(0, 1) as usize);
        self.sink.text(&[b'A' + middle]);
        self.words(["F", "M"][gender]);
        self.sink.int(person.tier.into());
        let born = self.drawn(0, 25_000) as i32;
        self.sink.date(-born);
        self.sink.int(customer_address(self.size, customer));
        for _ in 0..3 {
            self.words("001");
            for digits in [3, 7, 3] {
                self.written(|random, out| random.digits(digits, out));
            }
        }
        for place in ["mail", "post"] {
            self.words(&format!("c{}@{place}.example", customer + 1));
        }
        self.end();
    }

    /// Last and first name, which other tables repeat.
    fn full_name(&mut self, customer: u32) {
        let (last, first) = names_of(self.seed, customer);
        self.sink.text(&last);
        self.sink.text(&first);
    }

    fn tax_rates_of(&mut self, customer: u32) {
        let person = Person::of(self.seed, customer);
        for rate in [person.country_rate, person.division_rate] {
            self.begin();
            self.written(|_, out| fees::write_tax_id(rate, out));
            self.sink.int(customer_id(customer));
            self.end();
        }
    }

    fn accounts(&mut self, customer: u32) {
        for account in 0..Person::of(self.seed, customer).accounts {
            let drawn = Account::of(self.seed, self.size, customer, account);
            self.begin();
            self.sink.int(account_id(customer, account));
            self.sink.int(broker_id(customer / BLOCK));
            self.sink.int(customer_id(customer));
            self.name(5);
            self.sink.int(drawn.tax_status.into());
            self.sink.decimal(drawn.balance_cents, 2);
            self.end();
        }
    }

    /// The owner of each account, and those who may trade for them: other customers.
    fn permissions(&mut self, customer: u32) {
        for account in 0..Person::of(self.seed, customer).accounts {
            let drawn = Account::of(self.seed, self.size, customer, account);
            for number in 0..=drawn.delegates {
                let who = delegate_of(self.size, customer, number);
                self.begin();
                self.sink.int(account_id(customer, account));
                self.words(["0000", "0001", "0011"][number as usize]);
                self.words(&tax_number(who));
                self.full_name(who);
                self.end();
            }
        }
    }

    fn watch_list(&mut self, customer: u32) {
        self.begin();
        self.sink.int(customer_id(customer));
        self.sink.int(customer_id(customer));
        self.end();
    }

    fn watch_items(&mut self, customer: u32) {
        let mut random = Random::of(self.seed, LISTS, customer.into());
        let securities = self.size.securities();
        let wanted = random.between(50, 150).min(securities);
        let mut chosen = std::collections::BTreeSet::new();
        while (chosen.len() as u32) < wanted {
            // Where nearly all are wanted, the skew would take long to find the last.
            let security = if wanted * 2 > securities {
                random.between(0, securities - 1)
            } else {
                skewed(&mut random, securities)
            };
            chosen.insert(security);
        }
        for security in chosen {
            self.begin();
            self.sink.int(customer_id(customer));
            self.symbol(security);
            self.end();
        }
    }

    /// A broker with the counts of all trades of the customers.
    fn broker(&mut self, broker: u32) {
        let (mut trades, mut commission_cents) = (0, 0);
        for group in broker * GROUPS..(broker + 1) * GROUPS {
            let past = Past::of(self.seed, self.size, self.shape.days, group);
            trades += past.trades.len() as i64;
            commission_cents += past.trades.iter().map(|trade| trade.commission_cents).sum::<i64>();
        }
        self.begin();
        self.sink.int(broker_id(broker));
        self.words("ACTV");
        self.words(&broker_name(broker));
        self.sink.int(trades);
        self.sink.decimal(commission_cents, 2);
        self.end();
    }

    /// The rows of a table for a trade, or a position; false when there are no more.
    fn of_past(&mut self, table: BrokerageTable, past: &Past, key: usize) -> bool {
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

    fn trade(&mut self, trade: &Done) {
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

    fn history(&mut self, trade: &Done) {
        let steps = [(trade.asked_us, "PNDG"), (trade.sent_us, "SBMT"), (trade.done_us, "CMPT")];
        for (at, status) in steps.into_iter().skip(trade.kind.is_market().into()) {
            self.begin();
            self.sink.int(trade.id);
            self.sink.time(Some(at_us(at)));
            self.words(status);
            self.end();
        }
    }

    fn settlement(&mut self, trade: &Done) {
        let day = (at_us(trade.done_us) / 86_400_000_000) as i32;
        self.begin();
        self.sink.int(trade.id);
        self.words(if trade.is_cash { "Cash Account" } else { "Margin" });
        self.sink.date(day + 2);
        self.sink.decimal(trade.settled_cents, 2);
        self.end();
    }

    fn cash(&mut self, trade: &Done) {
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

    fn changes(&mut self, trade: &Done, past: &Past) {
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

pub(crate) fn sector_id(sector: u32) -> String {
    format!("S{}", (b'A' + sector as u8) as char)
}

pub(crate) fn write_sector_name(sector: u32, out: &mut Vec<u8>) {
    write_numbered(sector + 7000, out);
}

pub(crate) fn industry_id(industry: u32) -> String {
    let letter = |number: u32| (b'A' + number as u8) as char;
    format!("{}{}", letter(industry / 26), letter(industry % 26))
}

pub(crate) fn industry_of(company: u32) -> u32 {
    company % INDUSTRIES
}

pub(crate) fn exchange_id(exchange: u32) -> String {
    format!("EX{}", (b'A' + exchange as u8) as char)
}

fn zip_code(number: u32) -> String {
    format!("{:05}", 1001 + number * 6)
}

pub(crate) fn write_company(company: u32, out: &mut Vec<u8>) {
    write_numbered(company % 110_592, out);
    out.extend_from_slice(format!(" {} Company", company + 1).as_bytes());
}

pub(crate) fn broker_name(broker: u32) -> String {
    let mut name = Vec::new();
    write_numbered(broker % 110_592, &mut name);
    format!("{} B. {}", String::from_utf8_lossy(&name), broker + 1)
}

/// The number by which an office of taxes knows a customer.
pub(crate) fn tax_number(customer: u32) -> String {
    format!("{:03}AS{:05}TX", customer / 100_000, customer % 100_000)
}

/// Whom permission `number` of a customer's accounts is for: the customer, then others.
pub(crate) fn delegate_of(size: Size, customer: u32, number: u32) -> u32 {
    (customer + number * 37) % size.customers
}

/// Last and first name of a customer.
pub(crate) fn names_of(seed: u64, customer: u32) -> (Vec<u8>, Vec<u8>) {
    let mut random = Random::of(seed, LISTS + 1, customer.into());
    let (mut last, mut first) = (Vec::new(), Vec::new());
    let syllables = random.between(2, 4);
    write_name(&mut random, syllables, &mut last);
    write_name(&mut random, 2, &mut first);
    (last, first)
}

#[cfg(test)]
mod tests;
