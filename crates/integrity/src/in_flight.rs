//! I/Os under way.

use assay_load::{Op, tasks::TaskId};

use crate::{stamp::PageId, user::User};

/// What becomes of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Pages are verified and unlatched.
    Verify,
    /// Pages are unlatched.
    Write,
    /// The task that asked looks at it; latches stay.
    Raw,
}

/// An I/O under way.
#[derive(Debug, Clone, Copy)]
pub struct InFlight {
    pub op: Op,
    pub id: PageId,
    pub pages: u32,
    pub first_frame: u32,
    pub user: User,
    pub purpose: Purpose,
    pub task: TaskId,
    pub submitted_ns: u64,
    pub history: u64,
    pub reported_long: bool,
}
