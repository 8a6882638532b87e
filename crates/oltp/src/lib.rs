//! Transactions on real databases: loading, users, rates and retries, for any workload; and the workloads, a folder each.
//!
//! Start with [`OltpRun`]: threads (`users.rs`) host users as tasks; a user draws an input (`inputs.rs`), runs it as statements or
//! as a procedure on a connection of `assay-sql`, and counts it (`counts.rs`). [`OltpLoad`] fills a database with a workload's rows.
//! `workload.rs` says what a workload is, `workloads.rs` which there are.

mod counts;
mod error;
mod inputs;
mod load;
mod pacer;
mod panics;
mod plan;
mod random;
mod run;
mod shared;
mod talk;
mod tpcc;
mod users;
mod workload;
mod workloads;

pub use error::OltpError;
pub use load::{LoadState, LoadStatus, OltpLoad};
pub use plan::{LoadPlan, LoadedDatabase, RunLoad, RunPlan, UsedDatabase};
pub use run::{DatabaseSum, OltpRun, RunStatus, State, TransactionSum, TransactionTick, Window};
pub use shared::Gap;
pub use workloads::{Registered, workload, workload_of};
