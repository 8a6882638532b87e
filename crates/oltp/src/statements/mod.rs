//! Statements that a server logged, run again: logs are read (`log/`), sorted by sessions (`stored.rs`), and replayed (`replay/`).
//!
//! A log is foreign input: what a statement is (`kinds.rs`) decides whether it runs at all, and no more of a log is held in memory than
//! its sessions, texts that come again, and fingerprints (`known.rs`).

mod fingerprint;
mod kinds;
mod known;
mod lex;
mod log;
mod record;
mod replay;
mod sketch;
mod sort;
mod stored;
#[cfg(test)]
mod tests;

pub use replay::{Report, StatementReplay};
pub use stored::{LogIntake, LogOptions, StoredLog, Survey};
