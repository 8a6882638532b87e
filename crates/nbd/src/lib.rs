//! An NBD server (fixed newstyle; `doc/proto.md` of NetworkBlockDevice/nbd): any store of blocks as exports that QEMU, nbd-client
//! and libnbd connect to.
//!
//! A [`Server`] listens at addresses and serves connections in event loops ([`Loops`](assay_disk_server::Loops)). What keeps the
//! blocks is a [`Blocks`](assay_disk_server::Blocks), as for disks of iSCSI.

mod connection;
mod negotiation;
mod server;
mod session;
mod shared;
mod wire;

pub use server::{Config, Server};
pub use shared::Export;
