//! A modelled array that answers on the wall clock, with real bytes.
//!
//! One thread owns the model and the bytes ([`Served`], `server.rs`), which an `Array` (`array.rs`) holds: a group of members,
//! hosts with flash, or volumes of a cloud. A [`Transport`] brings it the I/Os of whoever uses the
//! volumes; commands to the array come over a socket ([`Command`]).

mod array;
#[cfg(test)]
mod bench;
mod cloud;
mod command;
mod control;
mod error;
mod floor;
mod folder;
mod group;
mod host_flash;
mod inbox;
mod io;
mod lateness;
mod logged;
mod plan;
mod scheduling;
mod served;
mod server;
mod stall;
mod store;
mod transport;

pub use command::{Command, PlannedEvent};
pub use error::{ServeError, StoreFault};
pub use io::{Answer, Change, Io, IoKind, Shown};
pub use logged::{LoggedReading, LoggedStore, PlacedBlock};
pub use plan::{IscsiPlan, NbdPlan, ServePlan};
pub use served::Served;
pub use store::{Cached, DiskState, Durability, Finding, SnapshotReading, Store, disk_name};
pub use transport::Transport;
