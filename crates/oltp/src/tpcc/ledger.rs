//! Acknowledged orders: the newest ones, so that each can be looked for after a power cut.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

/// Orders kept. Older ones are forgotten: a power cut takes the orders acknowledged last.
const KEPT: usize = 100_000;

/// An order as its user knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledged {
    pub(super) database: usize,
    pub(super) warehouse: u32,
    pub(super) district: u32,
    pub(super) order: i64,
    pub(super) customer: u32,
    /// Since the start.
    pub(super) at_ns: u64,
}

/// The newest orders of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<VecDeque<Acknowledged>>>);

impl Ledger {
    /// Each order's database, warehouse, district, number and customer, and when it was acknowledged.
    pub(super) fn told(&self) -> Value {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = kept
            .iter()
            .map(|one| json!([one.database, one.warehouse, one.district, one.order, one.customer, one.at_ns]));
        rows.collect()
    }

    pub(super) fn add(&self, one: Acknowledged) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(one);
    }
}
