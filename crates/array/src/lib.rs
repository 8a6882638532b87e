//! Modelled disk arrays.
//!
//! An [`ArrayPlan`] says what an array is made of. The model is a pure state machine in virtual time: the same plan and
//! the same I/Os give the same result to the last digit on every machine.

mod error;
mod geometry;
mod plan;
mod raid;

pub use error::ArrayError;
pub use geometry::{Geometry, Place};
pub use plan::{
    ArrayPlan, CachePlan, ControllerPlan, DiskPlan, LayoutPlan, LinkPlan, MechanicalPlan, MemberPlan, PartialWrite,
    PathPolicy, RaidPlan, SolidStatePlan, StatePlan, VolumePlan,
};
pub use raid::RaidPolicy;
