//! Inputs of the transactions (clauses 2.4 to 2.8).

use super::{
    nurand::{self, C_LAST_LOAD, C_LAST_STRICT, write_last_name},
    plan::{Home, Tpcc},
    rows::{DISTRICTS, ITEMS},
};
use crate::random::Random;

/// Most lines of an order.
pub(super) const LINES_MAX: usize = 15;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(super) item: u32,
    pub(super) supply_warehouse: u32,
    pub(super) quantity: u32,
}

/// A customer by id or by last name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Customer {
    Id(u32),
    LastName(u32),
}

impl Customer {
    /// Appends the last name, if it is by name.
    pub(super) fn write_name(self, out: &mut Vec<u8>) {
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

/// The lines of an order, in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    lines: [Line; LINES_MAX],
    count: usize,
}

impl std::ops::Deref for Lines {
    type Target = [Line];

    fn deref(&self) -> &[Line] {
        &self.lines[..self.count]
    }
}

/// Where a user is at home.
#[derive(Debug, Clone)]
pub(crate) struct User {
    warehouses: u32,
    warehouse: u32,
    /// The user's own district, used with [`Home::District`].
    district: u32,
}

impl User {
    /// User `number` of a database, counted from 0.
    pub(super) fn new(warehouses: u32, number: u32) -> Self {
        Self { warehouses, warehouse: number % warehouses + 1, district: number / warehouses % DISTRICTS + 1 }
    }

    fn other_warehouse(&self, percent: u32, random: &mut Random) -> Option<u32> {
        if self.warehouses == 1 || !random.percent(percent) {
            return None;
        }
        let other = random.between(1, self.warehouses - 1);
        Some(if other >= self.warehouse { other + 1 } else { other })
    }
}

/// The input of a user's next transaction, by the transaction's place in the mix.
pub(super) fn draw(tpcc: &Tpcc, user: &mut User, transaction: usize, random: &mut Random) -> Input {
    if tpcc.home == Home::All {
        user.warehouse = random.between(1, user.warehouses);
    }
    let warehouse = user.warehouse;
    let district = if tpcc.home == Home::District { user.district } else { random.between(1, DISTRICTS) };
    match transaction {
        0 => {
            let customer = nurand::customer(random);
            Input::NewOrder { warehouse, district, customer, lines: lines(tpcc, user, random) }
        }
        1 => {
            let amount = random.between(100, 500_000);
            let (customer_warehouse, customer_district) = match user.other_warehouse(15, random) {
                Some(other) => (other, random.between(1, DISTRICTS)),
                None => (warehouse, district),
            };
            let customer = customer(tpcc, random);
            Input::Payment { warehouse, district, customer_warehouse, customer_district, customer, amount }
        }
        2 => Input::OrderStatus { warehouse, district, customer: customer(tpcc, random) },
        3 => Input::Delivery { warehouse, carrier: random.between(1, 10) },
        4 => Input::StockLevel { warehouse, district, threshold: random.between(10, 20) },
        _ => unreachable!("there are five transactions"),
    }
}

/// Sixty in a hundred by last name (clauses 2.5.1.2 and 2.6.1.2).
fn customer(tpcc: &Tpcc, random: &mut Random) -> Customer {
    if random.percent(60) {
        let c_last = if tpcc.nurand_items { C_LAST_STRICT } else { C_LAST_LOAD };
        Customer::LastName(nurand::last_name(random, c_last))
    } else {
        Customer::Id(nurand::customer(random))
    }
}

fn lines(tpcc: &Tpcc, user: &User, random: &mut Random) -> Lines {
    let mut lines = Lines { lines: [Line::default(); LINES_MAX], count: random.between(5, 15) as usize };
    for index in 0..lines.count {
        let item = loop {
            let item = if tpcc.nurand_items { nurand::skewed_item(random) } else { random.between(1, ITEMS) };
            // An item once per order: stock would be taken twice in one statement otherwise.
            if lines.lines[..index].iter().all(|line| line.item != item) {
                break item;
            }
        };
        let supply_warehouse = user.other_warehouse(1, random).unwrap_or(user.warehouse);
        lines.lines[index] = Line { item, supply_warehouse, quantity: random.between(1, 10) };
    }
    if random.one_in(100) {
        // No item has this number: the last line of the order makes it fail.
        lines.lines[lines.count - 1].item = ITEMS + 1;
    }
    lines.lines[..lines.count].sort_unstable_by_key(|line| (line.supply_warehouse, line.item));
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::ledger::Ledger, *};

    /// A stream of inputs of one user, of a mix of equal weights.
    struct Inputs {
        tpcc: Tpcc,
        user: User,
        random: Random,
    }

    impl Inputs {
        fn new(nurand_items: bool, home: Home, warehouses: u32, seed: u64, number: u32) -> Self {
            let user = User::new(warehouses, number);
            Self {
                tpcc: Tpcc { nurand_items, home, keeps_orders: false, ledger: Ledger::default() },
                user,
                random: Random::of(seed, 200, number.into()),
            }
        }

        fn next(&mut self) -> Input {
            let transaction = self.random.between(0, 4) as usize;
            draw(&self.tpcc, &mut self.user, transaction, &mut self.random)
        }
    }

    proptest! {
        #[test]
        fn inputs_are_within_the_database(
            seed: u64, number in 0_u32..100, warehouses in 1_u32..20, nurand: bool, home in 0_usize..3,
        ) {
            let home = [Home::Warehouse, Home::District, Home::All][home];
            let mut inputs = Inputs::new(nurand, home, warehouses, seed, number);
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
        let mut inputs = Inputs::new(true, Home::Warehouse, 10, 5, 3);
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
    fn few_terminals_spread_over_all_warehouses_and_ten_of_each_have_a_district_of_their_own() {
        let of = |number| {
            let user = User::new(2, number);
            (user.warehouse, user.district)
        };
        assert_eq!((of(0), of(1), of(2), of(19), of(20)), ((1, 1), (2, 1), (1, 2), (2, 10), (1, 1)));
    }
}
