//! Numbers of things and their keys. Keys are shifted beyond 32 bits, as the specification's are, so that nothing gets by with less.

/// Customers of a broker, and of a chunk of the load.
pub(crate) const BLOCK: u32 = 100;
/// Customers whose trades are drawn together.
pub(crate) const GROUP: u32 = 10;
const SHIFT: i64 = 4_300_000_000;
const TRADE_SHIFT: i64 = 200_000_000_000_000;
pub(crate) const ACCOUNTS_MAX: u32 = 10;
pub(crate) const EXCHANGES: u32 = 4;

/// Size of a database: its customers, and the rows that follow from their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) customers: u32,
}

impl Size {
    pub(crate) fn blocks(self) -> u32 {
        self.customers / BLOCK
    }

    pub(crate) fn groups(self) -> u32 {
        self.customers / GROUP
    }

    pub(crate) fn companies(self) -> u32 {
        self.customers / 2
    }

    pub(crate) fn securities(self) -> u32 {
        (u64::from(self.customers) * 685 / 1000) as u32
    }

    /// Which issue of which company a security is: all have a first one, some a second.
    pub(crate) fn company_of(self, security: u32) -> (u32, u32) {
        (security % self.companies(), security / self.companies())
    }
}

pub(crate) fn customer_id(customer: u32) -> i64 {
    SHIFT + 1 + i64::from(customer)
}

pub(crate) fn broker_id(broker: u32) -> i64 {
    SHIFT + 1 + i64::from(broker)
}

pub(crate) fn company_id(company: u32) -> i64 {
    SHIFT + 1 + i64::from(company)
}

/// An account of a customer, counted from 0.
pub(crate) fn account_id(customer: u32, account: u32) -> i64 {
    (SHIFT + i64::from(customer)) * i64::from(ACCOUNTS_MAX) + 1 + i64::from(account)
}

/// The broker of an account, counted from 0.
pub(crate) fn broker_of(account: i64) -> u32 {
    (((account - 1) / i64::from(ACCOUNTS_MAX) - SHIFT) / i64::from(BLOCK)) as u32
}

/// A broker by its key, counted from 0.
pub(crate) fn broker_number(broker: i64) -> u32 {
    (broker - SHIFT - 1) as u32
}

pub(crate) fn news_id(company: u32, number: u32) -> i64 {
    SHIFT + 1 + i64::from(company) * 2 + i64::from(number)
}

/// Address of an exchange. Addresses of exchanges come first, then addresses of companies, then addresses of customers.
pub(crate) fn exchange_address(exchange: u32) -> i64 {
    SHIFT + 1 + i64::from(exchange)
}

pub(crate) fn company_address(company: u32) -> i64 {
    exchange_address(EXCHANGES) + i64::from(company)
}

pub(crate) fn customer_address(size: Size, customer: u32) -> i64 {
    company_address(size.companies()) + i64::from(customer)
}

/// The key of trade `number` of a group. Groups take turns, so that keys rise with time; one key in 101 belongs to no trade, as if
/// it had been rolled back.
pub(crate) fn trade_id(size: Size, group: u32, number: u32) -> i64 {
    let slot = i64::from(number) + i64::from(number / 100);
    TRADE_SHIFT + 1 + slot * i64::from(size.groups()) + i64::from(group)
}

/// The first key after all trades of a database of `days` days.
#[cfg(test)]
pub(crate) fn next_trade_id(size: Size, days: u32) -> i64 {
    trade_id(size, 0, trades_of_group(days)) + i64::from(size.groups())
}

/// Trades of a group of customers in so many days: 17,280 of a customer in 300.
pub(crate) fn trades_of_group(days: u32) -> u32 {
    days * 576
}

/// The name under which a security is traded: letters of its company, and of a second issue its mark.
pub(crate) fn write_symbol(size: Size, security: u32, out: &mut Vec<u8>) {
    let (company, issue) = size.company_of(security);
    let at = out.len();
    let mut left = company;
    for _ in 0..5 {
        out.push(b'A' + (left % 26) as u8);
        left /= 26;
    }
    out[at..].reverse();
    if issue > 0 {
        out.extend_from_slice(b"PRA");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn symbols_and_keys_are_each_ones_own() {
        let size = Size { customers: 1000 };
        let symbols: BTreeSet<_> = (0..size.securities())
            .map(|security| {
                let mut text = Vec::new();
                write_symbol(size, security, &mut text);
                text
            })
            .collect();
        assert_eq!(symbols.len(), 685);
        let trades: BTreeSet<_> =
            (0..size.groups()).flat_map(|group| (0..1000).map(move |number| trade_id(size, group, number))).collect();
        assert_eq!(trades.len(), 100_000);
        assert!(*trades.last().unwrap() < next_trade_id(size, 2));
        let accounts: BTreeSet<_> = (0..1000)
            .flat_map(|customer| (0..ACCOUNTS_MAX).map(move |account| account_id(customer, account)))
            .collect();
        assert_eq!(accounts.len(), 10_000);
    }

    #[test]
    fn one_key_in_a_hundred_and_one_belongs_to_no_trade() {
        let size = Size { customers: 100 };
        let last = trade_id(size, 0, 10_099) - trade_id(size, 0, 0);
        assert_eq!(last / i64::from(size.groups()) + 1, 10_200);
    }
}
