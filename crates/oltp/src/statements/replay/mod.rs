//! A replay: the sessions of a log on a database, each with a connection of its own, their statements in their order and at their times.
//!
//! `run.rs` starts the threads (`thread.rs`), `session.rs` a session's life, `alarms.rs` its waiting, `told.rs` what becomes of it.

mod alarms;
mod plan;
mod run;
mod session;
mod thread;
mod told;

pub use run::StatementReplay;
pub use told::Report;
