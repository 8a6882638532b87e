//! The common part of servers of disks over a network: iSCSI, NBD.
//!
//! [`Blocks`] keeps the blocks. [`Loops`] are event loops, a thread each: they accept connections for a [`Front`], which
//! speaks the protocol. Connections, their memory and the lines about their clients are bounded.

mod blocks;
mod loops;
mod memory;
mod notes;
mod socket;

pub use blocks::{
    Answer, Blocks, Budget, Change, Done, End, MOVED_MOST_BYTES, Op, Part, Taken, begin_all, begin_write,
};
pub use loops::{Front, Listener, Loops, StartError};
pub use memory::Memory;
pub use notes::{Notes, broken};
pub use socket::{ANSWERS_AT_ONCE, GREETING_MOST, READ_BUFFER_BYTES, TAKE_MOST, write_all};
