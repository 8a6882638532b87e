//! What was acknowledged: the newest orders that users were told of, so that each can be looked for after a power cut.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::input::Input;
use crate::workload::Desk;

/// Older orders are forgotten: what a cut takes is what was acknowledged last.
const KEPT: usize = 100_000;

/// An order as its user knows it.
#[derive(Debug, Clone, Copy)]
struct Acknowledged {
    database: usize,
    warehouse: u32,
    district: u32,
    order: i64,
    customer: u32,
    /// Since the start.
    at_ns: u64,
}

/// The newest orders of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<VecDeque<Acknowledged>>>);

impl Ledger {
    /// Of each order its database, warehouse, district, number, customer, and when it was acknowledged.
    pub(super) fn told(&self) -> Value {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = kept
            .iter()
            .map(|one| json!([one.database, one.warehouse, one.district, one.order, one.customer, one.at_ns]));
        rows.collect()
    }

    fn add(&self, one: Acknowledged) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(one);
    }
}

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
