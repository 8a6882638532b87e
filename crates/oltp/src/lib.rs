//! Transactions on real databases: users, rates and retries, for any workload; and the workloads, a folder each.
//!
//! Start with [`OltpRun`]: threads (`users.rs`) host users as tasks; a user draws an input (`inputs.rs`), runs it as statements or
//! as a procedure on a connection of `assay-sql`, and counts it (`counts.rs`).
//! `workload.rs` says what a workload is, `workloads.rs` which there are. Logs of statements are replayed without users (`statements/`).

mod brokerage;
mod counts;
mod inputs;
mod local;
mod pacer;
mod plan;
mod random;
mod run;
mod script;
mod serial;
mod shared;
mod statements;
mod talk;
#[cfg(test)]
mod text_rows;
mod tpcc;
mod users;
mod workload;
mod workloads;

pub use plan::{RunLoad, RunPlan, UsedDatabase};
pub use run::{DatabaseSum, OltpRun, RunStatus, State, TransactionSum, TransactionTick, Window};
pub use script::{check as check_scripts, statements as sql_statements};
pub use serial::SerialCount;
pub use shared::Gap;
pub use statements::{LogIntake, LogOptions, Report, StatementReplay, StoredLog, Survey};
pub use workloads::{DATASETS, Registered, workload, workload_of};
