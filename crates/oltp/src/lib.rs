//! A TPC-C-like workload on real databases: rows, bulk loading, users, and the drivers that carry their transactions.
//!
//! Start with [`OltpRun`]: threads (`users.rs`) host users as tasks; a user draws an input (`input.rs`), runs it as statements or
//! procedures (`transactions/`) on a connection (`databases/`) and counts it (`counts.rs`). [`OltpLoad`] fills a database with the
//! rows of `rows.rs`.

mod batch;
mod counts;
mod databases;
mod error;
mod input;
mod load;
mod pacer;
mod panics;
mod plan;
mod pool;
mod random;
mod rows;
mod run;
mod shared;
mod socket;
mod sql;
mod tls;
mod transactions;
mod users;

pub use error::OltpError;
pub use input::{TRANSACTIONS, Transaction};
pub use load::{LoadState, LoadStatus, OltpLoad};
pub use plan::{
    Connection, Home, Isolation, Kind, LoadPlan, LoadedDatabase, Password, RunLoad, RunPlan, Tls, UsedDatabase,
};
pub use run::{OltpRun, RunStatus, State, TransactionSum, TransactionTick, Window};
pub use shared::Gap;
pub use sql::{Section, sections};

/// Rows of each table of a database of so many warehouses; of order lines as many as are to be expected.
pub fn row_counts(warehouses: u32) -> [(&'static str, u64); 9] {
    rows::Table::ALL.map(|table| (table.name(), table.row_count(warehouses)))
}
