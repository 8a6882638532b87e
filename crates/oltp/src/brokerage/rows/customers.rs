//! Rows of customers, their accounts and brokers.

use std::collections::BTreeSet;

use assay_sql::RowSink;

use super::{GROUPS, Row};
use crate::{
    brokerage::{
        fees,
        ids::{BLOCK, account_id, broker_id, customer_address, customer_id},
        names::{broker_name, delegate_of, names_of, tax_number},
        people::{Account, Person, skewed},
        trades::Past,
    },
    random::Random,
};

const LISTS: u64 = 300;

impl<S: RowSink> Row<'_, S> {
    pub(super) fn customer(&mut self, customer: u32) {
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
    pub(super) fn full_name(&mut self, customer: u32) {
        let (last, first) = names_of(self.seed, customer);
        self.sink.text(&last);
        self.sink.text(&first);
    }

    pub(super) fn tax_rates_of(&mut self, customer: u32) {
        let person = Person::of(self.seed, customer);
        for rate in [person.country_rate, person.division_rate] {
            self.begin();
            self.written(|_, out| fees::write_tax_id(rate, out));
            self.sink.int(customer_id(customer));
            self.end();
        }
    }

    pub(super) fn accounts(&mut self, customer: u32) {
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
    pub(super) fn permissions(&mut self, customer: u32) {
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

    pub(super) fn watch_list(&mut self, customer: u32) {
        self.begin();
        self.sink.int(customer_id(customer));
        self.sink.int(customer_id(customer));
        self.end();
    }

    pub(super) fn watch_items(&mut self, customer: u32) {
        let mut random = Random::of(self.seed, LISTS, customer.into());
        let securities = self.size.securities();
        let wanted = random.between(50, 150).min(securities);
        let mut chosen = BTreeSet::new();
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
    pub(super) fn broker(&mut self, broker: u32) {
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
}
