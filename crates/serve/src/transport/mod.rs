//! How I/Os come to a served array: FUSE now; ublk, NBD and iSCSI can stand beside it.

pub(crate) mod fuse;

use crate::ServeError;

/// The volumes as their users see them, until it is stopped.
pub trait Transport: Send {
    /// What users keep of volumes in memory is no longer so.
    fn forget_cached(&self);

    /// Numbers of the volumes that someone has open.
    fn in_use(&self) -> Vec<usize>;

    /// Takes the volumes away. I/Os under way are answered or fail.
    ///
    /// # Errors
    /// They cannot be taken away; something still uses them.
    fn stop(self: Box<Self>) -> Result<(), ServeError>;
}
