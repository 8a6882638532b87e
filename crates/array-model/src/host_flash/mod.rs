//! Arrays whose hosts have the flash: reads are looked up in a host's memory, in its flash, in that of other hosts, and
//! at last on the disks of data nodes; writes are acknowledged from the memory of a data node and go in containers, cut into
//! pieces and erasure-coded, over the disks of all nodes.
//!
//! The structure differs from a group of members, and so does the model. Both are driven alike ([`crate::Model`]).

mod held;
mod live;
mod log;
mod lookup;
mod model;
mod plan;
mod pool;
mod stages;

pub(crate) use log::Log;
pub use model::HostFlashModel;
pub(crate) use plan::LIVE_MOST;
pub use plan::{DataNodePlan, FlashHostPlan, HostFlashPlan, LogPlan};
