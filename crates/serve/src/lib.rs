//! A modelled array that answers on the wall clock, with real bytes.
//!
//! One thread owns the model and the bytes ([`Served`], `server.rs`). A [`Transport`] brings it the I/Os of whoever uses the
//! volumes; commands to the array come over a socket ([`Command`]).

mod command;
mod control;
mod damage;
mod error;
mod floor;
mod growing;
mod inbox;
mod io;
mod lateness;
mod logged;
mod scheduling;
mod server;
mod store;
mod transport;

pub use command::{Command, PlannedEvent};
pub use error::{ServeError, StoreFault};
pub use io::{Answer, Io, IoKind, Shown};
pub use logged::{LoggedReading, LoggedStore, PlacedBlock};
pub use server::{ServePlan, Served};
pub use store::{DiskState, Durability, SnapshotReading, Store, disk_name};
pub use transport::Transport;
