//! An iSCSI target (RFC 7143): any store of blocks as disks that initiators of Linux, Windows and ESXi log in to.
//!
//! A [`Server`] listens at portals and serves sessions in event loops ([`Loops`](assay_disk_server::Loops)). What keeps the
//! blocks is a [`Blocks`](assay_disk_server::Blocks): it takes I/Os and answers each when it is over, so that a modelled array
//! decides how long it takes.

mod active;
mod chap;
mod config;
mod connection;
mod copying;
mod execution;
mod login;
mod parameters;
mod pdu;
mod portals;
mod scsi;
mod server;
mod session;
mod shared;
mod text;

pub use config::{Access, Config, Disk, Secret};
pub use server::Server;
pub use shared::SessionReading;
