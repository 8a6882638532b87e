//! A mail server's databases under load, derived from what Jetstress does: B-trees of checksummed pages behind a page cache, a log
//! written ahead, checkpoints, background maintenance, copies that replay the log, backup and recovery. The contract is docs/mailbox.md.
//!
//! An [`Engine`] runs a [`MailboxPlan`] on any [`assay_load::DataQueue`]: real files and devices on the wall clock, or a modelled array
//! on its virtual one. All that it does are tasks on one thread; nothing locks.

mod cache;
mod core;
mod database;
mod engine;
mod failure;
mod kernel;
mod log;
mod model;
mod node;
mod page;
mod phase;
mod plan;
mod record;
mod session;
mod shape;
mod slots;
mod users;

pub use crate::core::Counts;
pub use database::Operations;
pub use engine::Engine;
pub use failure::{BadPage, Failure};
pub use model::ModelQueue;
pub use phase::Phase;
pub use plan::{Activity, DatabasePlan, Extent, MailboxPlan, Mix, Test, VolumePlan};
pub use session::{DatabaseFacts, PhaseDone, Session, SessionReport, State};
