//! How programs reach a served array: as files of this host by FUSE, as disks by iSCSI and as exports by NBD. Another way, such
//! as ublk, is a file beside them.

pub(crate) mod disks;
pub(crate) mod fuse;
pub(crate) mod iscsi;
pub(crate) mod nbd;
pub(crate) mod ways;

use std::{net::SocketAddr, time::Duration};

use crate::ServeError;

/// One way to the volumes. It takes the I/Os of programs to the array's thread until it is stopped.
pub trait Transport: Send {
    /// Drops the kernel's cache of the volumes, because their bytes have changed beneath it.
    fn forget_cached(&self);

    /// Numbers of the volumes that programs have open.
    fn in_use(&self) -> Vec<usize>;

    /// A volume has more bytes than before: tells its users.
    fn grow(&self, volume: usize, bytes: u64);

    /// Paths of its own to the volumes, which can be lost one by one; none where the model has the paths.
    fn paths(&self) -> usize {
        0
    }

    /// Loses a path; gives its name, or None if none is left.
    fn fail_path(&self) -> Option<String> {
        None
    }

    /// Brings lost paths back; says whether there were any.
    fn mend_paths(&self) -> bool {
        false
    }

    /// Loses the paths of a member.
    fn fail_member(&self, _member: usize) {}

    /// Brings the paths of a member back.
    fn mend_member(&self, _member: usize) {}

    /// Has the users of a path use others, without an error to them; gives its name and their count, or None if there is
    /// no such path or no other one.
    fn retire_path(&self, _path: usize) -> Option<(String, usize)> {
        None
    }

    /// Reserves an address for the paths of a member that is about to join.
    ///
    /// # Errors
    /// There are no addresses, or this one cannot be had.
    fn reserve_portal(&self, _address: SocketAddr) -> Result<(), ServeError> {
        Err(ServeError::refused(
            "add-member: a portal is for disks of iSCSI; serve the array with --iscsi and --portals",
        ))
    }

    /// Makes the reserved address a path to a new member, and has users move there; gives its name and their count.
    fn join_portal(&self, _member: usize) -> Option<(String, usize)> {
        None
    }

    /// Gives a reserved address back.
    fn release_portal(&self) {}

    /// Makes answers through a path later; says whether there is such a path.
    fn delay_path(&self, _path: usize, _delay: Duration) -> bool {
        false
    }

    /// Takes the volumes away. Each I/O under way is answered or fails.
    ///
    /// # Errors
    /// The volumes cannot be taken away, because a program still uses them.
    fn stop(self: Box<Self>) -> Result<(), ServeError>;
}
