//! The market exchange: orders wait there until they are executed or their limit is reached, and come back as Trade-Results; quotes
//! become Market-Feeds. Its timers fire without new requests.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    clock::Clock,
    ids::{Size, broker_of},
    input::{Executed, Input, Kind, Order, Quote, Request, TWENTY, Triggered},
    kinds::TradeType,
    market::price_cents,
    people::skewed,
};
use crate::{random::Random, workload::Desk};

const SECOND_NS: u64 = 1_000_000_000;
/// Mean time until a market order is executed.
const EXECUTED_MEAN_S: f64 = 1.0;
/// A limit whose price the curve does not reach within this is never reached.
const LIMIT_WITHIN_S: u64 = 4000;
/// A limit that was reached waits so long at most for the ticker to fill.
const TICKER_WITHIN_NS: u64 = 5 * SECOND_NS;
/// Due results passed over for their brokers before a clerk rests.
const HELD_UP_MAX: usize = 32;
const MAINTENANCE_NS: u64 = 60 * SECOND_NS;

/// Work for clerks after a transaction.
#[derive(Debug, Default)]
pub(crate) enum Effect {
    #[default]
    Nothing,
    Triggered(Vec<Triggered>),
}

/// An order at the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due_ns: u64,
    trade: i64,
    broker: u32,
    security: u32,
    quantity: i64,
    /// Its limit is reached then; otherwise it is executed.
    is_limit: bool,
}

pub(crate) struct Exchange {
    size: Size,
    clock: Clock,
    random: RefCell<Random>,
    waiting: RefCell<BinaryHeap<Reverse<Waiting>>>,
    /// Brokers of whom a result is at work: results of one broker come one after the other, each changes the broker's row.
    busy: Arc<[AtomicBool]>,
    /// Due results that wait for their broker, while another is looked for; empty otherwise.
    held_up: RefCell<Vec<Reverse<Waiting>>>,
    ticker: RefCell<Vec<Quote>>,
    /// Quotes of limits that were reached take the place of made-up ones.
    reached: RefCell<Vec<Quote>>,
    /// Since when a limit that was reached is on the ticker.
    urgent_since_ns: Cell<Option<u64>>,
    /// When data are maintained next, and how often they were; on one thread alone.
    maintenance: Cell<Option<(u64, u64)>>,
}

impl Exchange {
    pub(crate) fn new(size: Size, clock: Clock, random: Random, busy: Arc<[AtomicBool]>, maintains: bool) -> Self {
        Self {
            size,
            clock,
            random: RefCell::new(random),
            waiting: RefCell::default(),
            busy,
            held_up: RefCell::default(),
            ticker: RefCell::default(),
            reached: RefCell::default(),
            urgent_since_ns: Cell::new(None),
            maintenance: Cell::new(maintains.then_some((MAINTENANCE_NS, 0))),
        }
    }

    fn execute(&self, order: Triggered, now_ns: u64) {
        let Triggered { trade, broker, security, quantity } = order;
        let delay_s = -self.random.borrow_mut().share().ln() * EXECUTED_MEAN_S;
        let due_ns = now_ns + (delay_s.min(10.0 * EXECUTED_MEAN_S) * 1e9) as u64;
        self.waiting.borrow_mut().push(Reverse(Waiting { due_ns, trade, broker, security, quantity, is_limit: false }));
    }

    fn place(&self, order: &Order, now_ns: u64) {
        if order.kind.is_market() {
            let broker = broker_of(order.account);
            let (trade, security, quantity) = (order.trade, order.security, order.quantity);
            return self.execute(Triggered { trade, broker, security, quantity }, now_ns);
        }
        let reached_ns = self.reached_ns(order.kind, order.security, order.bid_cents(), now_ns);
        if let Some(due_ns) = reached_ns {
            let waiting = Waiting {
                due_ns,
                trade: order.trade,
                broker: broker_of(order.account),
                security: order.security,
                quantity: order.quantity,
                is_limit: true,
            };
            self.waiting.borrow_mut().push(Reverse(waiting));
        }
    }

    /// When the price of a security reaches a limit, looked for second by second.
    fn reached_ns(&self, kind: TradeType, security: u32, limit_cents: i64, now_ns: u64) -> Option<u64> {
        (0..LIMIT_WITHIN_S)
            .map(|second| now_ns + second * SECOND_NS)
            .find(|at_ns| kind.triggers(price_cents(security, self.clock.traded_us(*at_ns)), limit_cents))
    }

    fn quote(&self, security: u32, quantity: i64, at_ns: u64) -> Quote {
        Quote { security, quantity, price_cents: price_cents(security, self.clock.traded_us(at_ns)) }
    }

    /// A trade goes on the ticker, and with it another quote: of a limit that was reached, or else a made-up one.
    fn print(&self, executed: &Executed, now_ns: u64) {
        let mut ticker = self.ticker.borrow_mut();
        ticker.push(self.quote(executed.security, executed.quantity, now_ns));
        let beside = self.reached.borrow_mut().pop().unwrap_or_else(|| self.made_up(now_ns));
        ticker.push(beside);
    }

    fn made_up(&self, now_ns: u64) -> Quote {
        let mut random = self.random.borrow_mut();
        let security = skewed(&mut random, self.size.securities());
        self.quote(security, 100 << random.between(0, 3), now_ns)
    }

    /// Twenty quotes, if there are as many or a limit waits for long enough.
    fn feed(&self, now_ns: u64) -> Option<Input> {
        let is_urgent = self.urgent_since_ns.get().is_some_and(|since_ns| now_ns >= since_ns + TICKER_WITHIN_NS);
        let mut ticker = self.ticker.borrow_mut();
        if is_urgent {
            ticker.append(&mut self.reached.borrow_mut());
            while ticker.len() < TWENTY {
                ticker.push(self.made_up(now_ns));
            }
        }
        if ticker.len() < TWENTY {
            return None;
        }
        if self.reached.borrow().is_empty() {
            self.urgent_since_ns.set(None);
        }
        let rest = ticker.split_off(TWENTY);
        let quotes = std::mem::replace(&mut *ticker, rest);
        Some(Input::MarketFeed { quotes, traded_us: self.clock.traded_us(now_ns) })
    }
}

impl Desk for Exchange {
    type Input = Request;
    type Effect = Effect;

    fn take_in(&self, request: &Request, effect: Effect, now_ns: u64) {
        match &request.input {
            Input::TradeOrder(order) => self.place(order, now_ns),
            Input::TradeResult(executed) => self.print(executed, now_ns),
            _ => {}
        }
        if let Effect::Triggered(orders) = effect {
            for order in orders {
                self.execute(order, now_ns);
            }
        }
    }

    fn ended(&self, request: &Request) {
        if let Input::TradeResult(executed) = &request.input {
            self.busy[executed.broker as usize].store(false, Ordering::Release);
        }
    }

    fn next_ns(&self) -> Option<u64> {
        if self.ticker.borrow().len() >= TWENTY {
            return Some(0);
        }
        let waiting_ns = self.waiting.borrow().peek().map(|Reverse(waiting)| waiting.due_ns);
        let urgent_ns = self.urgent_since_ns.get().map(|since_ns| since_ns + TICKER_WITHIN_NS);
        let maintained_ns = self.maintenance.get().map(|(at_ns, _)| at_ns);
        [waiting_ns, urgent_ns, maintained_ns].into_iter().flatten().min()
    }

    fn give_out(&self, now_ns: u64) -> Option<(u64, usize, Request)> {
        let (due_ns, kind, input) = self.next(now_ns)?;
        Some((due_ns, kind as usize, Request { size: self.size, input }))
    }
}

impl Exchange {
    /// Next due work.
    fn next(&self, now_ns: u64) -> Option<(u64, Kind, Input)> {
        if let Some((at_ns, round)) = self.maintenance.get().filter(|(at_ns, _)| *at_ns <= now_ns) {
            self.maintenance.set(Some((at_ns + MAINTENANCE_NS, round + 1)));
            let input = Input::maintenance(self.size, round, &mut self.random.borrow_mut());
            return Some((at_ns, Kind::DataMaintenance, input));
        }
        if let Some(feed) = self.feed(now_ns) {
            return Some((now_ns, Kind::MarketFeed, feed));
        }
        let mut waiting = self.waiting.borrow_mut();
        let mut held_up = self.held_up.borrow_mut();
        let found = loop {
            if held_up.len() == HELD_UP_MAX || waiting.peek().is_none_or(|Reverse(order)| order.due_ns > now_ns) {
                break None;
            }
            let Some(Reverse(order)) = waiting.pop() else { break None };
            if order.is_limit {
                let quote = self.quote(order.security, order.quantity, order.due_ns);
                self.reached.borrow_mut().push(quote);
                self.urgent_since_ns.set(self.urgent_since_ns.get().or(Some(order.due_ns)));
                continue;
            }
            if self.busy[order.broker as usize].swap(true, Ordering::Acquire) {
                held_up.push(Reverse(order));
                continue;
            }
            let traded_us = self.clock.traded_us(order.due_ns);
            let executed = Executed {
                trade: order.trade,
                broker: order.broker,
                security: order.security,
                quantity: order.quantity,
                price_cents: price_cents(order.security, traded_us),
                traded_us,
            };
            break Some((order.due_ns, Kind::TradeResult, Input::TradeResult(executed)));
        };
        waiting.extend(held_up.drain(..));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brokerage::{ids::account_id, kinds::TradeType};

    const SIZE: Size = Size { customers: 1000 };

    fn brokers() -> Arc<[AtomicBool]> {
        (0..SIZE.blocks()).map(|_| AtomicBool::default()).collect()
    }

    fn exchange() -> Exchange {
        Exchange::new(SIZE, Clock::new(10), Random::of(1, 2, 3), brokers(), false)
    }

    fn order(trade: i64, kind: TradeType, limit_offset_cents: i64) -> Request {
        let (security, price_cents) = (7, price_cents(7, Clock::new(10).traded_us(0)));
        let order = Order {
            trade,
            account: account_id(150, 0),
            executor: 0,
            is_owner: true,
            security,
            by_name: false,
            kind,
            quantity: 100,
            limit_offset_cents,
            is_margin: false,
            lifo: false,
            rolls_back: false,
            traded_us: 0,
            price_cents,
        };
        Request { size: SIZE, input: Input::TradeOrder(order) }
    }

    /// All that comes of an exchange by itself, as clerks do it without taking time.
    fn done_by(exchange: &Exchange, until_ns: u64) -> Vec<(u64, usize)> {
        let mut done = Vec::new();
        while let Some(next_ns) = exchange.next_ns().filter(|next_ns| *next_ns <= until_ns) {
            let Some((due_ns, kind, request)) = exchange.give_out(next_ns) else { continue };
            done.push((due_ns, kind));
            exchange.take_in(&request, Effect::Nothing, next_ns.max(due_ns));
            exchange.ended(&request);
        }
        done
    }

    #[test]
    fn market_orders_come_back_after_their_delay_without_new_requests() {
        let exchange = exchange();
        for trade in 0..1000 {
            exchange.take_in(&order(trade, TradeType::MarketBuy, 0), Effect::Nothing, 0);
        }
        assert!(exchange.give_out(0).is_none(), "nothing is executed at once");
        let done = done_by(&exchange, 60 * SECOND_NS);
        let results: Vec<_> = done.iter().filter(|(_, kind)| *kind == Kind::TradeResult as usize).collect();
        let mean_s = results.iter().map(|(due_ns, _)| *due_ns as f64 / 1e9).sum::<f64>() / 1e3;
        assert_eq!(results.len(), 1000);
        assert!((mean_s - EXECUTED_MEAN_S).abs() < 0.1, "{mean_s}");
        let feeds = done.iter().filter(|(_, kind)| *kind == Kind::MarketFeed as usize).count();
        assert_eq!(feeds, 100, "two quotes of each trade, twenty to a feed");
    }

    #[test]
    fn results_of_a_broker_come_one_after_the_other_on_all_desks() {
        let busy = brokers();
        let desks = [1, 2].map(|seed| Exchange::new(SIZE, Clock::new(10), Random::of(seed, 2, 3), busy.clone(), false));
        for desk in &desks {
            desk.take_in(&order(1, TradeType::MarketBuy, 0), Effect::Nothing, 0);
        }
        let late_ns = 60 * SECOND_NS;
        let Some((_, _, given)) = desks[0].give_out(late_ns) else { panic!("it is due") };
        assert!(desks[1].give_out(late_ns).is_none(), "the broker is at work");
        assert!(desks[1].next_ns().is_some_and(|next_ns| next_ns <= late_ns), "it stays due");
        desks[0].ended(&given);
        assert!(desks[1].give_out(late_ns).is_some());
    }

    #[test]
    fn a_limit_that_is_reached_is_quoted_even_if_the_ticker_does_not_fill() {
        let exchange = exchange();
        exchange.take_in(&order(1, TradeType::LimitSell, 20), Effect::Nothing, 0);
        let reached_ns = exchange.next_ns().expect("the curve reaches every price");
        assert!(exchange.give_out(reached_ns).is_none(), "it waits for the ticker");
        let feed_ns = exchange.next_ns().expect("it does not wait for ever");
        assert_eq!(feed_ns, reached_ns + TICKER_WITHIN_NS);
        let Some((_, kind, Request { input: Input::MarketFeed { quotes, .. }, .. })) = exchange.give_out(feed_ns)
        else {
            panic!("no feed");
        };
        assert_eq!((kind, quotes.len()), (Kind::MarketFeed as usize, TWENTY));
        let limit_cents = price_cents(7, Clock::new(10).traded_us(0)) + 20;
        assert!(quotes.iter().any(|quote| quote.security == 7 && quote.price_cents >= limit_cents));
        assert!(exchange.next_ns().is_none(), "nothing is left to do");
    }

    #[test]
    fn what_a_feed_lets_through_is_executed_and_data_are_maintained_every_minute() {
        let exchange = Exchange::new(SIZE, Clock::new(10), Random::of(1, 2, 3), brokers(), true);
        let through = Effect::Triggered(vec![Triggered { trade: 9, broker: 1, security: 7, quantity: 100 }]);
        let feed = Request { size: SIZE, input: Input::MarketFeed { quotes: Vec::new(), traded_us: 0 } };
        exchange.take_in(&feed, through, 0);
        let done = done_by(&exchange, 3 * MAINTENANCE_NS);
        let of = |wanted: Kind| done.iter().filter(|(_, kind)| *kind == wanted as usize).count();
        assert_eq!((of(Kind::TradeResult), of(Kind::DataMaintenance)), (1, 3));
    }
}
