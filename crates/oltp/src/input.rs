//! What users ask for: which transaction, with what input (clauses 2.4 to 2.8), after how much keying and thinking (clause 5.2.5).

use crate::{
    plan::{Home, RunPlan},
    random::{C_LAST_LOAD, C_LAST_STRICT, Random, write_last_name},
    rows::{DISTRICTS, ITEMS},
};

pub const TRANSACTIONS: [Transaction; 5] = [
    Transaction::NewOrder,
    Transaction::Payment,
    Transaction::OrderStatus,
    Transaction::Delivery,
    Transaction::StockLevel,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Transaction {
    pub fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new_order",
            Self::Payment => "payment",
            Self::OrderStatus => "order_status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock_level",
        }
    }

    /// Keying time in seconds, always the same (clause 5.2.5.2).
    fn keying_s(self) -> f64 {
        [18.0, 3.0, 2.0, 2.0, 2.0][self as usize]
    }

    /// Mean thinking time in seconds (clause 5.2.5.4).
    fn thinking_mean_s(self) -> f64 {
        [12.0, 12.0, 10.0, 5.0, 5.0][self as usize]
    }
}

/// Most lines of an order.
pub(crate) const LINES_MOST: usize = 15;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) item: u32,
    pub(crate) supply_warehouse: u32,
    pub(crate) quantity: u32,
}

/// A customer by id or by last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Customer {
    Id(u32),
    LastName(u32),
}

impl Customer {
    /// Appends the last name, if it is by name.
    pub(crate) fn write_name(self, out: &mut Vec<u8>) {
        if let Self::LastName(number) = self {
            write_last_name(number, out);
        }
    }
}

/// One transaction's input. Money is in cents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Lines are sorted by warehouse and item, so that all transactions lock stock in one order.
    NewOrder {
        warehouse: u32,
        district: u32,
        customer: u32,
        lines: Lines,
    },
    Payment {
        warehouse: u32,
        district: u32,
        customer_warehouse: u32,
        customer_district: u32,
        customer: Customer,
        amount: u32,
    },
    OrderStatus {
        warehouse: u32,
        district: u32,
        customer: Customer,
    },
    Delivery {
        warehouse: u32,
        carrier: u32,
    },
    StockLevel {
        warehouse: u32,
        district: u32,
        threshold: u32,
    },
}

impl Input {
    pub(crate) fn transaction(&self) -> Transaction {
        match self {
            Self::NewOrder { .. } => Transaction::NewOrder,
            Self::Payment { .. } => Transaction::Payment,
            Self::OrderStatus { .. } => Transaction::OrderStatus,
            Self::Delivery { .. } => Transaction::Delivery,
            Self::StockLevel { .. } => Transaction::StockLevel,
        }
    }
}

/// The lines of an order, in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    lines: [Line; LINES_MOST],
    count: usize,
}

impl std::ops::Deref for Lines {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        &self.lines[..self.count]
    }
}

/// What all users of a database have in common.
#[derive(Debug, Clone)]
pub(crate) struct Mix {
    weights: [u32; 5],
    deck: bool,
    nurand_items: bool,
    c_last: u32,
    home: Home,
    think_scale: f64,
    warehouses: u32,
}

impl Mix {
    pub(crate) fn of(plan: &RunPlan, warehouses: u32) -> Self {
        Self {
            weights: plan.mix,
            deck: plan.deck,
            nurand_items: plan.nurand_items,
            c_last: if plan.nurand_items { C_LAST_STRICT } else { C_LAST_LOAD },
            home: plan.home,
            think_scale: plan.think_scale,
            warehouses,
        }
    }
}

/// One user's stream of inputs.
pub(crate) struct Inputs {
    mix: Mix,
    random: Random,
    /// For pauses, so that they do not change which inputs follow.
    pauses: Random,
    warehouse: u32,
    /// The user's own district, used with [`Home::District`].
    district: u32,
    cards: Vec<Transaction>,
}

impl Inputs {
    /// The stream of user `number` of a database, counted from 0.
    pub(crate) fn new(mix: Mix, seed: u64, number: u32) -> Self {
        let warehouse = number % mix.warehouses + 1;
        let district = number / mix.warehouses % DISTRICTS + 1;
        let cards = Vec::with_capacity(if mix.deck { mix.weights.iter().sum::<u32>() as usize } else { 0 });
        Self {
            mix,
            random: Random::of(seed, 200, number.into()),
            pauses: Random::of(seed, 201, number.into()),
            warehouse,
            district,
            cards,
        }
    }

    /// The next transaction and its input.
    pub(crate) fn next(&mut self) -> Input {
        let transaction = self.choose();
        if self.mix.home == Home::All {
            self.warehouse = self.random.between(1, self.mix.warehouses);
        }
        let warehouse = self.warehouse;
        let district = if self.mix.home == Home::District { self.district } else { self.random.between(1, DISTRICTS) };
        match transaction {
            Transaction::NewOrder => {
                let customer = self.random.customer();
                Input::NewOrder { warehouse, district, customer, lines: self.lines() }
            }
            Transaction::Payment => {
                let amount = self.random.between(100, 500_000);
                let (customer_warehouse, customer_district) = match self.other_warehouse(15) {
                    Some(other) => (other, self.random.between(1, DISTRICTS)),
                    None => (warehouse, district),
                };
                let customer = self.customer();
                Input::Payment { warehouse, district, customer_warehouse, customer_district, customer, amount }
            }
            Transaction::OrderStatus => Input::OrderStatus { warehouse, district, customer: self.customer() },
            Transaction::Delivery => Input::Delivery { warehouse, carrier: self.random.between(1, 10) },
            Transaction::StockLevel => {
                Input::StockLevel { warehouse, district, threshold: self.random.between(10, 20) }
            }
        }
    }

    fn choose(&mut self) -> Transaction {
        let weights = self.mix.weights;
        if !self.mix.deck {
            let mut drawn = self.random.between(0, weights.iter().sum::<u32>() - 1);
            for transaction in TRANSACTIONS {
                match drawn.checked_sub(weights[transaction as usize]) {
                    None => return transaction,
                    Some(left) => drawn = left,
                }
            }
        }
        if self.cards.is_empty() {
            for transaction in TRANSACTIONS {
                self.cards.extend((0..weights[transaction as usize]).map(|_| transaction));
            }
        }
        let place = self.random.between(0, self.cards.len() as u32 - 1);
        self.cards.swap_remove(place as usize)
    }

    /// Sixty in a hundred by last name (clauses 2.5.1.2 and 2.6.1.2).
    fn customer(&mut self) -> Customer {
        if self.random.percent(60) {
            Customer::LastName(self.random.last_name(self.mix.c_last))
        } else {
            Customer::Id(self.random.customer())
        }
    }

    fn other_warehouse(&mut self, percent: u32) -> Option<u32> {
        if self.mix.warehouses == 1 || !self.random.percent(percent) {
            return None;
        }
        let other = self.random.between(1, self.mix.warehouses - 1);
        Some(if other >= self.warehouse { other + 1 } else { other })
    }

    fn lines(&mut self) -> Lines {
        let mut lines = Lines { lines: [Line::default(); LINES_MOST], count: self.random.between(5, 15) as usize };
        for index in 0..lines.count {
            let item = loop {
                let item =
                    if self.mix.nurand_items { self.random.skewed_item() } else { self.random.between(1, ITEMS) };
                // An item once per order: stock would be taken twice in one statement otherwise.
                if lines.lines[..index].iter().all(|line| line.item != item) {
                    break item;
                }
            };
            let supply_warehouse = self.other_warehouse(1).unwrap_or(self.warehouse);
            lines.lines[index] = Line { item, supply_warehouse, quantity: self.random.between(1, 10) };
        }
        if self.random.one_in(100) {
            // No item has this number: the last line of the order makes it fail.
            lines.lines[lines.count - 1].item = ITEMS + 1;
        }
        lines.lines[..lines.count].sort_unstable_by_key(|line| (line.supply_warehouse, line.item));
        lines
    }

    /// Keying time before a transaction, in nanoseconds.
    pub(crate) fn keying_ns(&self, transaction: Transaction) -> u64 {
        (transaction.keying_s() * self.mix.think_scale * 1e9) as u64
    }

    /// Thinking time after a transaction, in nanoseconds: negative exponential, cut at ten times its mean.
    pub(crate) fn thinking_ns(&mut self, transaction: Transaction) -> u64 {
        let times = (-self.random.share().ln()).min(10.0);
        (transaction.thinking_mean_s() * times * self.mix.think_scale * 1e9) as u64
    }

    pub(crate) fn thinks(&self) -> bool {
        self.mix.think_scale > 0.0
    }

    /// A pause before another attempt, up to some milliseconds and longer with each.
    pub(crate) fn pause_us(&mut self, attempt: u32) -> u64 {
        self.pauses.between(100, 500 << attempt.min(6)).into()
    }

    /// A share of a second for users not to begin or return all at once.
    pub(crate) fn share(&mut self) -> f64 {
        self.pauses.share()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mix(deck: bool, nurand_items: bool, home: Home, warehouses: u32) -> Mix {
        let weights = if deck { [45, 43, 4, 4, 4] } else { [10, 10, 1, 1, 1] };
        Mix { weights, deck, nurand_items, c_last: C_LAST_LOAD, home, think_scale: 1.0, warehouses }
    }

    fn counts(inputs: &mut Inputs, draws: usize) -> [usize; 5] {
        let mut counts = [0; 5];
        (0..draws).for_each(|_| counts[inputs.next().transaction() as usize] += 1);
        counts
    }

    #[test]
    fn a_deck_gives_the_mix_exactly() {
        let mut inputs = Inputs::new(mix(true, true, Home::District, 3), 1, 0);
        assert_eq!(counts(&mut inputs, 100), [45, 43, 4, 4, 4]);
        assert_eq!(counts(&mut inputs, 300), [135, 129, 12, 12, 12]);
    }

    #[test]
    fn independent_draws_give_it_on_average() {
        let drawn = counts(&mut Inputs::new(mix(false, false, Home::Warehouse, 3), 1, 0), 230_000);
        for (count, weight) in drawn.iter().zip([10.0, 10.0, 1.0, 1.0, 1.0]) {
            assert!((*count as f64 / (weight * 1e4) - 1.0).abs() < 0.05, "{drawn:?}");
        }
    }

    proptest! {
        #[test]
        fn inputs_are_within_the_database(
            seed: u64, number in 0_u32..100, warehouses in 1_u32..20, deck: bool, nurand: bool, home in 0_usize..3,
        ) {
            let home = [Home::Warehouse, Home::District, Home::All][home];
            let mut inputs = Inputs::new(mix(deck, nurand, home, warehouses), seed, number);
            for _ in 0..100 {
                match inputs.next() {
                    Input::NewOrder { warehouse, district, customer, lines } => {
                        prop_assert!((1..=warehouses).contains(&warehouse) && (1..=10).contains(&district));
                        prop_assert!((1..=3000).contains(&customer) && (5..=15).contains(&lines.len()));
                        prop_assert!(lines.windows(2).all(|pair|
                            (pair[0].supply_warehouse, pair[0].item) < (pair[1].supply_warehouse, pair[1].item)));
                        prop_assert!(lines.iter().all(|line| (1..=warehouses).contains(&line.supply_warehouse)
                            && (1..=10).contains(&line.quantity) && (1..=ITEMS + 1).contains(&line.item)));
                    }
                    Input::Payment { customer_warehouse, customer_district, amount, warehouse, .. } => {
                        prop_assert!((1..=warehouses).contains(&customer_warehouse) && (1..=10).contains(&customer_district));
                        prop_assert!((100..=500_000).contains(&amount) && (1..=warehouses).contains(&warehouse));
                    }
                    Input::StockLevel { threshold, .. } => prop_assert!((10..=20).contains(&threshold)),
                    Input::Delivery { carrier, .. } => prop_assert!((1..=10).contains(&carrier)),
                    Input::OrderStatus { .. } => (),
                }
            }
        }
    }

    #[test]
    fn shares_are_those_of_the_specification() {
        let mut inputs = Inputs::new(mix(true, true, Home::Warehouse, 10), 5, 3);
        let (mut orders, mut unknown, mut lines_count, mut remote_lines) = (0, 0, 0, 0);
        let (mut payments, mut remote, mut by_name) = (0, 0, 0);
        for _ in 0..200_000 {
            match inputs.next() {
                Input::NewOrder { lines, warehouse, .. } => {
                    orders += 1;
                    unknown += i32::from(lines.iter().any(|line| line.item > ITEMS));
                    lines_count += lines.len();
                    remote_lines += lines.iter().filter(|line| line.supply_warehouse != warehouse).count();
                }
                Input::Payment { warehouse, customer_warehouse, customer, .. } => {
                    payments += 1;
                    remote += i32::from(warehouse != customer_warehouse);
                    by_name += i32::from(matches!(customer, Customer::LastName(_)));
                }
                _ => (),
            }
        }
        let near = |count: f64, of: f64, share: f64| assert!((count / of / share - 1.0).abs() < 0.1, "{count} of {of}");
        near(unknown.into(), orders.into(), 0.01);
        near(remote_lines as f64, lines_count as f64, 0.01);
        near(remote.into(), payments.into(), 0.15);
        near(by_name.into(), payments.into(), 0.60);
    }

    #[test]
    fn thinking_is_exponential_with_its_mean() {
        let mut inputs = Inputs::new(mix(true, true, Home::Warehouse, 10), 5, 3);
        let times: Vec<u64> = (0..100_000).map(|_| inputs.thinking_ns(Transaction::NewOrder)).collect();
        let mean_s = times.iter().sum::<u64>() as f64 / 1e5 / 1e9;
        assert!((mean_s / 12.0 - 1.0).abs() < 0.02, "{mean_s}");
        assert!(times.iter().all(|time| *time <= 120_000_000_000));
        assert_eq!(inputs.keying_ns(Transaction::NewOrder), 18_000_000_000);
    }

    #[test]
    fn few_terminals_spread_over_all_warehouses_and_ten_of_each_have_a_district_of_their_own() {
        let of = |number| {
            let inputs = Inputs::new(mix(true, true, Home::District, 2), 1, number);
            (inputs.warehouse, inputs.district)
        };
        assert_eq!((of(0), of(1), of(2), of(19), of(20)), ((1, 1), (2, 1), (1, 2), (2, 10), (1, 1)));
    }
}
