//! How programs reach a served array. FUSE is the one way so far; another, such as ublk, NBD or iSCSI, is a file
//! beside it.

pub(crate) mod fuse;

use crate::ServeError;

/// One way to the volumes. It takes the I/Os of programs to the array's thread until it is stopped.
pub trait Transport: Send {
    /// Drops the kernel's cache of the volumes, because their bytes have changed beneath it.
    fn forget_cached(&self);

    /// Numbers of the volumes that programs have open.
    fn in_use(&self) -> Vec<usize>;

    /// Takes the volumes away. Each I/O under way is answered or fails.
    ///
    /// # Errors
    /// The volumes cannot be taken away, because a program still uses them.
    fn stop(self: Box<Self>) -> Result<(), ServeError>;
}
