//! Inputs of transactions.

use super::{
    clock::Clock,
    fees,
    ids::{Size, account_id, company_id, customer_id, trade_id, trades_of_group},
    kinds::TradeType,
    market::TRADING_US,
    people::{Account, Person, skewed},
    plan::Brokerage,
    tables::{INDUSTRIES, SECTORS},
};
use crate::random::Random;

pub(crate) const BROKERS_MAX: usize = 40;
/// Trades that Trade-Lookup and Trade-Update work on, and entries of a Market-Feed.
pub(crate) const TWENTY: usize = 20;
/// Tables of the data maintenance.
pub(crate) const MAINTAINED: usize = 12;
/// A look at trades of an account or a security takes in so much time.
const LOOK_BACK_US: i64 = 2 * 3600 * 1_000_000;

/// Transactions in the order of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    TradeResult,
    TradeStatus,
    MarketWatch,
    SecurityDetail,
    CustomerPosition,
    TradeOrder,
    TradeLookup,
    BrokerVolume,
    TradeUpdate,
    MarketFeed,
    DataMaintenance,
}

impl Kind {
    const DRAWN: [Self; 9] = [
        Self::TradeResult,
        Self::TradeStatus,
        Self::MarketWatch,
        Self::SecurityDetail,
        Self::CustomerPosition,
        Self::TradeOrder,
        Self::TradeLookup,
        Self::BrokerVolume,
        Self::TradeUpdate,
    ];
}

/// Random draws of a user.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) size: Size,
    pub(crate) database: usize,
}

/// Where Market-Watch finds its securities.
#[derive(Debug)]
pub(crate) enum Watched {
    List { customer: i64 },
    Account { account: i64 },
    Industry { industry: u32, companies: (i64, i64) },
}

/// Trades that are looked at or changed.
#[derive(Debug)]
pub(crate) enum Sought {
    Trades(Vec<i64>),
    OfAccount {
        account: i64,
        from_us: i64,
        to_us: i64,
    },
    OfSecurity {
        security: u32,
        from_us: i64,
        to_us: i64,
    },
    /// How the lots changed that the first trade of an account from a time on worked on.
    Holdings {
        account: i64,
        from_us: i64,
    },
}

/// An order of a user.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) trade: i64,
    pub(crate) account: i64,
    /// Who gives it, and whether that is the owner of the account.
    pub(crate) executor: u32,
    pub(crate) is_owner: bool,
    pub(crate) security: u32,
    pub(crate) by_name: bool,
    pub(crate) kind: TradeType,
    pub(crate) quantity: i64,
    /// Of a limit order, in cents below or above the price at which it is given.
    pub(crate) limit_offset_cents: i64,
    pub(crate) is_margin: bool,
    pub(crate) lifo: bool,
    pub(crate) rolls_back: bool,
    /// The moment of trading, and the price then.
    pub(crate) traded_us: i64,
    pub(crate) price_cents: i64,
}

impl Order {
    /// The price of a limit order, or the present price.
    pub(crate) fn bid_cents(&self) -> i64 {
        self.price_cents + if self.kind.is_market() { 0 } else { self.limit_offset_cents }
    }

    pub(crate) fn exchange(&self) -> u32 {
        fees::exchange_of(self.security)
    }
}

/// A trade that the market has made.
#[derive(Debug, Clone)]
pub(crate) struct Executed {
    pub(crate) trade: i64,
    /// The broker, counted from 0.
    pub(crate) broker: u32,
    pub(crate) security: u32,
    pub(crate) quantity: i64,
    pub(crate) price_cents: i64,
    pub(crate) traded_us: i64,
}

/// A line of the ticker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quote {
    pub(crate) security: u32,
    pub(crate) quantity: i64,
    pub(crate) price_cents: i64,
}

/// A limit order that a Market-Feed has sent to the market.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Triggered {
    pub(crate) trade: i64,
    /// The broker, counted from 0.
    pub(crate) broker: u32,
    pub(crate) security: u32,
    pub(crate) quantity: i64,
}

/// A transaction for a database of a size.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) size: Size,
    pub(crate) input: Input,
}

#[derive(Debug)]
pub(crate) enum Input {
    TradeResult(Executed),
    TradeStatus { account: i64 },
    MarketWatch { watched: Watched, day: i32 },
    SecurityDetail { security: u32, from_day: i32, whole_news: bool },
    CustomerPosition { customer: u32, by_tax_id: bool, history: bool },
    TradeOrder(Order),
    TradeLookup(Sought),
    BrokerVolume { brokers: Vec<u32>, sector: u32 },
    TradeUpdate { sought: Sought },
    MarketFeed { quotes: Vec<Quote>, traded_us: i64 },
    DataMaintenance { table: usize, customer: u32 },
}

fn account_of(workload: &Brokerage, size: Size, random: &mut Random) -> (u32, u32) {
    let customer = skewed(random, size.customers);
    let person = Person::of(workload.rows_seed, customer);
    (customer, random.between(0, person.accounts - 1))
}

fn trade_of(workload: &Brokerage, size: Size, random: &mut Random) -> i64 {
    let group = random.between(0, size.groups() - 1);
    trade_id(size, group, skewed(random, trades_of_group(workload.days)))
}

fn sought(workload: &Brokerage, size: Size, shares: [u32; 3], random: &mut Random) -> Sought {
    let end_us = i64::from(workload.days) * TRADING_US;
    let from_us = (random.share() * (end_us - LOOK_BACK_US) as f64) as i64;
    let to_us = from_us + LOOK_BACK_US;
    let drawn = random.between(1, 100);
    if drawn <= shares[0] {
        return Sought::Trades((0..TWENTY).map(|_| trade_of(workload, size, random)).collect());
    }
    let (customer, account) = account_of(workload, size, random);
    let account = account_id(customer, account);
    if drawn <= shares[0] + shares[1] {
        return Sought::OfAccount { account, from_us, to_us };
    }
    if drawn <= shares.iter().sum() {
        return Sought::OfSecurity { security: skewed(random, size.securities()), from_us, to_us };
    }
    Sought::Holdings { account, from_us }
}

/// The input of a transaction of a mix.
pub(crate) fn draw(workload: &Brokerage, user: &User, transaction: usize, random: &mut Random) -> Input {
    let size = user.size;
    match Kind::DRAWN[transaction] {
        Kind::TradeStatus => {
            let (customer, account) = account_of(workload, size, random);
            Input::TradeStatus { account: account_id(customer, account) }
        }
        Kind::MarketWatch => {
            let watched = match random.between(1, 100) {
                ..=60 => Watched::List { customer: customer_id(skewed(random, size.customers)) },
                61..=95 => {
                    let (customer, account) = account_of(workload, size, random);
                    Watched::Account { account: account_id(customer, account) }
                }
                _ => {
                    let first = random.between(0, size.companies() - 1);
                    let companies = (company_id(first), company_id(first) + i64::from(size.companies()));
                    Watched::Industry { industry: random.between(0, INDUSTRIES.min(size.companies()) - 1), companies }
                }
            };
            Input::MarketWatch { watched, day: market_day(random, 0) }
        }
        Kind::SecurityDetail => {
            let days = random.between(5, 20);
            Input::SecurityDetail {
                security: skewed(random, size.securities()),
                from_day: market_day(random, days),
                whole_news: random.percent(1),
            }
        }
        Kind::CustomerPosition => Input::CustomerPosition {
            customer: skewed(random, size.customers),
            by_tax_id: random.percent(50),
            history: random.percent(50),
        },
        Kind::TradeOrder => Input::TradeOrder(order(workload, user, random)),
        Kind::TradeLookup => Input::TradeLookup(sought(workload, size, [30, 30, 30], random)),
        Kind::BrokerVolume => {
            let wanted = random.between(20, BROKERS_MAX as u32);
            let first = random.between(0, size.blocks() - 1);
            let brokers = (0..wanted.min(size.blocks())).map(|next| (first + next) % size.blocks()).collect();
            Input::BrokerVolume { brokers, sector: random.between(0, SECTORS - 1) }
        }
        Kind::TradeUpdate => Input::TradeUpdate { sought: sought(workload, size, [33, 33, 34], random) },
        Kind::TradeResult | Kind::MarketFeed | Kind::DataMaintenance => unreachable!("comes of other transactions"),
    }
}

/// A day of the daily figures, so many of them before the last.
fn market_day(random: &mut Random, before_last: u32) -> i32 {
    let last = super::tables::MARKET_DAYS - 1 - before_last;
    super::market::date_of(super::market::FIRST_MARKET_DAY, random.between(0, last).into())
}

fn order(workload: &Brokerage, user: &User, random: &mut Random) -> Order {
    let size = user.size;
    let (customer, account) = account_of(workload, size, random);
    let drawn = Account::of(workload.rows_seed, size, customer, account);
    let wants_other = random.percent(10);
    let number = if wants_other && drawn.delegates > 0 { random.between(1, drawn.delegates) } else { 0 };
    let security = drawn.securities[random.between(0, drawn.securities.len() as u32 - 1) as usize];
    let (is_market, sells) = (random.percent(60), random.percent(50));
    let kind = match (is_market, sells) {
        (true, false) => TradeType::MarketBuy,
        (true, true) => TradeType::MarketSell,
        (false, false) => TradeType::LimitBuy,
        (false, true) => {
            if random.percent(50) {
                TradeType::StopLoss
            } else {
                TradeType::LimitSell
            }
        }
    };
    let away_cents = i64::from(random.between(1, 30));
    Order {
        trade: workload.next_trade(user.database),
        account: account_id(customer, account),
        executor: super::names::delegate_of(size, customer, number),
        is_owner: number == 0,
        security,
        by_name: random.percent(40),
        kind,
        quantity: 100 << random.between(0, 3),
        // Bought below the price of the moment; sold above it, or below it where a loss shall stop.
        limit_offset_cents: if kind == TradeType::LimitSell { away_cents } else { -away_cents },
        is_margin: random.percent(8),
        lifo: random.percent(35),
        rolls_back: random.percent(1),
        traded_us: 0,
        price_cents: 0,
    }
}

impl Input {
    /// Notes the begin: times and prices come from the market's clock.
    pub(crate) fn begins(&mut self, clock: Clock, now_ns: u64) {
        let now_us = clock.traded_us(now_ns);
        match self {
            Self::TradeOrder(order) => {
                order.traded_us = now_us;
                order.price_cents = super::market::price_cents(order.security, now_us);
            }
            Self::TradeResult(executed) => executed.traded_us = executed.traded_us.max(now_us),
            Self::MarketFeed { traded_us, .. } => *traded_us = now_us,
            _ => {}
        }
    }

    /// Input of a round of maintenance: the tables take turns.
    pub(crate) fn maintenance(size: Size, round: u64, random: &mut Random) -> Self {
        Self::DataMaintenance {
            table: (round % MAINTAINED as u64) as usize,
            customer: random.between(0, size.customers - 1),
        }
    }
}
