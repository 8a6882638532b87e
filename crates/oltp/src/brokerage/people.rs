//! Customers and their accounts: all follow from the seed and their number alone.

use super::ids::{ACCOUNTS_MAX, Size};
use crate::random::Random;

const CUSTOMER: u64 = 200;
const ACCOUNT: u64 = 201;

/// Traits of a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Person {
    /// 1, 2 or 3: the higher, the more accounts and trades.
    pub(crate) tier: u8,
    pub(crate) accounts: u32,
    /// Numbers of the two tax rates that the customer pays.
    pub(crate) country_rate: u32,
    pub(crate) division_rate: u32,
}

impl Person {
    pub(crate) fn of(seed: u64, customer: u32) -> Self {
        let mut random = Random::of(seed, CUSTOMER, customer.into());
        let tier = match random.between(1, 100) {
            ..=20 => 1,
            21..=80 => 2,
            _ => 3,
        };
        let accounts = match tier {
            1 => random.between(1, 4),
            2 => random.between(2, 8),
            _ => random.between(5, ACCOUNTS_MAX),
        };
        Self { tier, accounts, country_rate: random.between(0, 9), division_rate: random.between(10, 319) }
    }
}

/// An account, and the securities it trades.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// 0: pays no tax; 1: it is withheld; 2: the customer pays it.
    pub(crate) tax_status: u8,
    pub(crate) balance_cents: i64,
    /// People beside the owner who may trade, 0 to 2.
    pub(crate) delegates: u32,
    pub(crate) securities: Vec<u32>,
}

impl Account {
    pub(crate) fn of(seed: u64, size: Size, customer: u32, account: u32) -> Self {
        let key = u64::from(customer) * u64::from(ACCOUNTS_MAX) + u64::from(account);
        let mut random = Random::of(seed, ACCOUNT, key);
        let tax_status = match random.between(1, 100) {
            ..=20 => 0,
            21..=70 => 1,
            _ => 2,
        };
        let delegates = match random.between(1, 100) {
            ..=60 => 0,
            61..=98 => 1,
            _ => 2,
        };
        let balance_cents = i64::from(random.between(100_000, 1_000_000_000));
        let mut securities: Vec<u32> = Vec::new();
        let wanted = random.between(6, 14).min(size.securities()) as usize;
        while securities.len() < wanted {
            let security = skewed(&mut random, size.securities());
            if !securities.contains(&security) {
                securities.push(security);
            }
        }
        Self { tax_status, balance_cents, delegates, securities }
    }
}

/// A number below `count`, some of them several times as likely as others.
pub(crate) fn skewed(random: &mut Random, count: u32) -> u32 {
    (random.between(0, count - 1) | random.between(0, count / 8)) % count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_and_accounts_are_as_published() {
        let people: Vec<_> = (0..20_000).map(|customer| Person::of(1, customer)).collect();
        for (tier, share) in [(1, 0.2), (2, 0.6), (3, 0.2)] {
            let found = people.iter().filter(|person| person.tier == tier).count() as f64 / 2e4;
            assert!((found - share).abs() < 0.02, "tier {tier}: {found}");
        }
        let accounts = people.iter().map(|person| f64::from(person.accounts)).sum::<f64>() / 2e4;
        assert!((accounts - 5.0).abs() < 0.05, "{accounts}");
    }

    #[test]
    fn accounts_trade_ten_securities_and_have_their_delegates() {
        let size = Size { customers: 1000 };
        let accounts: Vec<_> = (0..5000).map(|customer| Account::of(1, size, customer, 0)).collect();
        let mean = |value: fn(&Account) -> f64| accounts.iter().map(value).sum::<f64>() / 5e3;
        assert!((mean(|account| account.securities.len() as f64) - 10.0).abs() < 0.1);
        assert!((mean(|account| f64::from(account.delegates)) - 0.42).abs() < 0.03);
    }

    #[test]
    fn some_are_chosen_more_often_than_others() {
        let mut random = Random::of(1, 2, 3);
        let mut counts = vec![0_u32; 685];
        (0..100_000).for_each(|_| counts[skewed(&mut random, 685) as usize] += 1);
        counts.sort_unstable();
        let top: u32 = counts[685 - 68..].iter().sum();
        assert!((12_000..60_000).contains(&top), "a tenth of all gets {top} of 100,000");
        assert!(counts[10] > 0, "nearly all are chosen");
    }
}
