//! Modelled disk arrays.
//!
//! An [`ArrayPlan`] says what an array is made of. The model is a pure state machine in virtual time: the same plan and
//! the same I/Os give the same result to the last digit on every machine.

mod added;
mod cache;
mod cloud;
mod destage;
mod disk;
mod enlarging;
mod error;
mod events;
mod geometry;
mod growing;
mod grown;
mod host_flash;
mod links;
mod live;
mod member;
mod model;
mod modelled;
mod parity;
mod plan;
mod processors;
mod raid;
mod readings;
mod rebalance;
mod rebuild;
pub mod reliability;
mod session;
mod slab;
mod software_raid;
mod spread;
mod streams;
mod task;
mod timeline;
mod write_anywhere;

pub use cloud::{
    AccountingPlan, CloudModel, CloudPlan, CloudVolumePlan, LatencyPlan, LimitPlan, MachinePlan, SnapshotPlan,
};
pub use error::ArrayError;
pub use geometry::{Geometry, Place};
pub use growing::RebalanceReading;
pub use host_flash::{DataNodePlan, FlashHostPlan, HostFlashModel, HostFlashPlan, LogPlan};
pub use live::{Part, RebuildReading};
pub use model::ArrayModel;
pub use modelled::{Model, ModelPlan, Modelled};
pub use parity::Code;
pub use plan::{
    ArrayPlan, CachePlan, ControllerPlan, DiskPlan, FaultPlan, FlashAge, FlashPlan, HeatPlan, HostPlan, LayoutPlan,
    LinkPlan, Lost, MechanicalPlan, MemberPlan, OthersPlan, PartialWrite, PathPolicy, PoolPlan, RaidLog, RaidPlan,
    ReadPriority, ReadsPlan, SlcPlan, SoftwarePlan, SolidStatePlan, SpacePlan, StatePlan, StationPlan, VolumePlan,
};
pub use raid::RaidPolicy;
pub use readings::{DiskReading, GateReading, HostReading, LimitReading, LogReading, MemberReading, PortReading};
pub use session::{ModelSession, Reading, SessionPlan, Telemetry, warm};
pub use write_anywhere::Moved;
