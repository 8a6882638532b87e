//! A modelled array that answers on the wall clock, with real bytes.
//!
//! One thread owns the model and the bytes ([`server`]). A [`Transport`] brings it the I/Os of whoever uses the volumes; commands
//! to the array come over a socket ([`control`]).

mod error;
mod store;

pub use error::{ServeError, StoreFault};
pub use store::{DiskState, Durability, SnapshotReading, Store, disk_name};
