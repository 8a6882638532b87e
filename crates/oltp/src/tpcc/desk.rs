//! The desk of a workload without clerks: it keeps acknowledged orders.

use super::{
    input::Input,
    ledger::{Acknowledged, Ledger},
};
use crate::workload::Desk;

/// Writes a thread's orders on a database into the ledger, where one is kept.
pub(crate) struct Clerkless {
    pub(super) ledger: Option<Ledger>,
    pub(super) database: usize,
}

impl Desk for Clerkless {
    type Input = Input;
    /// The number of a new order.
    type Effect = Option<i64>;

    fn take_in(&self, input: &Input, effect: Option<i64>, now_ns: u64) {
        let (Some(ledger), Some(order)) = (&self.ledger, effect) else { return };
        if let Input::NewOrder { warehouse, district, customer, .. } = input {
            ledger.add(Acknowledged {
                database: self.database,
                warehouse: *warehouse,
                district: *district,
                order,
                customer: *customer,
                at_ns: now_ns,
            });
        }
    }

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn give_out(&self, _now_ns: u64) -> Option<(u64, usize, Input)> {
        None
    }
}
