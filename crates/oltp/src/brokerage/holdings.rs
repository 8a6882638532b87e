//! Shares of a security in an account: lots, each of the trade that made it, bought (above 0) or owed (below 0), never
//! both.

/// A lot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lot {
    pub(crate) trade: i64,
    pub(crate) at_us: i64,
    pub(crate) price_cents: i64,
    pub(crate) quantity: i64,
}

/// A change of a lot by a trade; a lot that is there after it, but was not before, is the trade's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) lot: i64,
    pub(crate) before: i64,
    pub(crate) after: i64,
}

/// Outcome of a trade for the account: prices at which the closed parts were bought and sold, in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) bought_cents: i64,
    pub(crate) sold_cents: i64,
}

impl Closed {
    /// Tax on the gain, in cents, at a rate in hundred-thousandths; nothing on a loss.
    pub(crate) fn tax_cents(self, rate: i64) -> i64 {
        (self.sold_cents - self.bought_cents).max(0) * rate / 100_000
    }
}

/// Lets a trade of `signed` shares (bought above 0, sold below) at a price work on lots: those of the other direction are closed one
/// after the other, oldest first unless `lifo`; what is left becomes a lot of its own. `changes` gets what changed, in order.
pub(crate) fn apply(lots: &mut Vec<Lot>, by: Lot, lifo: bool, changes: &mut Vec<Change>) -> Closed {
    let mut left = by.quantity;
    let mut closed = Closed::default();
    while left != 0 {
        let at = if lifo { lots.len().checked_sub(1) } else { (!lots.is_empty()).then_some(0) };
        let Some(at) = at.filter(|at| lots[*at].quantity.signum() == -left.signum()) else { break };
        let lot = &mut lots[at];
        let taken = left.abs().min(lot.quantity.abs());
        let before = lot.quantity;
        lot.quantity += left.signum() * taken;
        changes.push(Change { lot: lot.trade, before, after: lot.quantity });
        let (bought, sold) =
            if left < 0 { (lot.price_cents, by.price_cents) } else { (by.price_cents, lot.price_cents) };
        closed.bought_cents += taken * bought;
        closed.sold_cents += taken * sold;
        left -= left.signum() * taken;
        if lot.quantity == 0 {
            lots.remove(at);
        }
    }
    if left != 0 {
        lots.push(Lot { quantity: left, ..by });
        changes.push(Change { lot: by.trade, before: 0, after: left });
    }
    closed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lot(trade: i64, quantity: i64, price_cents: i64) -> Lot {
        Lot { trade, at_us: trade, price_cents, quantity }
    }

    #[test]
    fn sales_close_lots_in_their_order_and_go_below_nothing() {
        let (mut lots, mut changes) = (vec![lot(1, 100, 2000), lot(2, 200, 2100)], Vec::new());
        let closed = apply(&mut lots, lot(3, -150, 2500), false, &mut changes);
        assert_eq!(lots, [lot(2, 150, 2100)]);
        assert_eq!(changes[0], Change { lot: 1, before: 100, after: 0 });
        assert_eq!(closed, Closed { bought_cents: 100 * 2000 + 50 * 2100, sold_cents: 150 * 2500 });
        changes.clear();
        apply(&mut lots, lot(4, -400, 2500), true, &mut changes);
        assert_eq!(lots, [lot(4, -250, 2500)]);
        assert_eq!(changes.len(), 2);
    }

    proptest! {
        #[test]
        fn what_is_held_is_the_sum_of_all_trades(trades in proptest::collection::vec((-8_i64..=8, any::<bool>()), 1..60)) {
            let (mut lots, mut changes, mut sum) = (Vec::new(), Vec::new(), 0);
            for (number, (hundreds, lifo)) in trades.into_iter().enumerate().filter(|(_, (hundreds, _))| *hundreds != 0) {
                apply(&mut lots, lot(number as i64, hundreds * 100, 2500), lifo, &mut changes);
                sum += hundreds * 100;
                prop_assert_eq!(lots.iter().map(|lot| lot.quantity).sum::<i64>(), sum);
                prop_assert!(lots.iter().all(|lot| lot.quantity.signum() == sum.signum()));
            }
            prop_assert_eq!(changes.iter().map(|change| change.after - change.before).sum::<i64>(), sum);
        }
    }
}
