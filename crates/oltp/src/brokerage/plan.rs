use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use serde::Deserialize;

/// Parameters besides the number of customers that decide the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Shape {
    /// Days of trading that lie behind the database.
    #[serde(default = "days")]
    pub(crate) days: u32,
    /// Length of the text of a news item.
    #[serde(default = "news_bytes")]
    pub(crate) news_bytes: u32,
}

fn days() -> u32 {
    10
}

fn news_bytes() -> u32 {
    100_000
}

/// Fields of a plan for this workload alone.
#[derive(Debug, Deserialize)]
pub(crate) struct Brokerage {
    /// The seed of the rows that are there, and the days behind them.
    pub(crate) rows_seed: u64,
    pub(crate) days: u32,
    /// For each database the key of the next trade.
    next_trades: Vec<AtomicI64>,
    /// For each database which of its brokers a Trade-Result is at work for.
    #[serde(skip)]
    busy: Mutex<Vec<Arc<[AtomicBool]>>>,
}

impl Brokerage {
    /// The key of a new trade of a database.
    pub(crate) fn next_trade(&self, database: usize) -> i64 {
        self.next_trades[database].fetch_add(1, Ordering::Relaxed)
    }

    /// Which brokers of a database are busy; all its desks share them.
    pub(crate) fn busy(&self, database: usize, brokers: u32) -> Arc<[AtomicBool]> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        while busy.len() <= database {
            busy.push(Arc::new([]));
        }
        if busy[database].is_empty() {
            busy[database] = (0..brokers).map(|_| AtomicBool::default()).collect();
        }
        busy[database].clone()
    }
}
