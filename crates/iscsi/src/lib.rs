//! An iSCSI target (RFC 7143): any store of blocks as disks that initiators of Linux, Windows and ESXi log in to.
//!
//! A [`Server`] listens at portals and serves sessions in event loops, a thread each. What keeps the blocks is a [`Blocks`]: it
//! takes I/Os and answers each when it is over, so that a modelled array decides how long it takes.

mod active;
mod blocks;
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

pub use blocks::{Answer, Blocks, Change, Op};
pub use config::{Access, Config, Disk, Secret};
pub use server::{Listener, Server, StartError};
pub use shared::SessionReading;
