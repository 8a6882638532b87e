//! Load: which I/Os, and when.
//!
//! An [`Activity`] is one role's [`Access`] under one [`Load`]. A [`Worker`] turns it into [`Request`]s for a [`Queue`]:
//! a state machine without threads or clocks of its own, so that the same code drives real devices on the wall clock
//! and modelled arrays on a virtual one. Workers count into [`Interval`]s that a [`Collector`] merges;
//! what they count is a [`Tally`], of I/Os an [`IoTally`].
//! This crate makes no operating-system call.

mod access;
mod arrivals;
mod collector;
pub mod content;
mod counts;
mod driver;
mod error;
mod feed;
mod histogram;
mod interval;
mod io;
mod pattern;
mod pulse;
mod queue;
mod random;
mod simulated;
pub mod tasks;
mod turns;
mod worker;
mod workers;

pub use access::{Access, Activity, BlockShare, Load, Pace, Region, Skew, Sync};
pub use arrivals::{Arrivals, BurstGate};
pub use collector::{Collector, Tick};
pub use driver::run_worker;
pub use error::LoadError;
pub use feed::{Feed, Feeds, TracedIo, TracedOp};
pub use histogram::{Bins, LatencyHistogram};
pub use interval::{Counter, Exchange, Interval, Tally};
pub use io::{Counted, DirectionTick, Errors, GroupKey, GroupTick, IoCollector, IoTally, IoTick, Totals};
pub use pattern::{NextAccess, Pattern};
pub use pulse::{Pulse, STANDSTILL_MIN_NS, Standstills, Watch};
pub use queue::{Completion, DataQueue, Op, Queue, QueueError, Request};
pub use random::SplitMix;
pub use simulated::{Simulated, SimulatedQueue, VirtualDriver};
pub use turns::Turns;
pub use worker::{Outcome, Step, Worker, WorkerPlan};
pub use workers::{Sources, VolumeWorkers, WORKERS_MAX, WorkersPlan, plan_workers, validate_feeds};
