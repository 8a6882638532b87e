//! Proof that storage keeps acknowledged writes: page stamps, expected state, users like a database engine's, and names
//! of faults. The contract is docs/integrity.md.
//!
//! A [`Verifier`] runs a [`VerifyPlan`] on any [`assay_load::DataQueue`]: a real file or device on the wall clock, or the
//! faulty device in virtual time. Users are tasks on one thread; nothing locks.

mod after_crash;
mod classify;
mod core;
mod course;
mod expected;
mod failure;
mod fault;
mod faulty;
mod finding;
mod history;
mod in_flight;
mod investigate;
mod journal;
mod kernel;
mod log;
mod observer;
mod phase;
mod phases;
mod plan;
mod pool;
mod run;
mod slots;
mod stamp;
mod throttle;
mod user;
mod users;
mod verdict;
mod verify;
mod view;

pub use after_crash::{CrashCheck, CrashProgress, check_after_crash, examine_journal};
pub use expected::expected_state_bytes;
pub use failure::Failure;
pub use fault::{Fault, FaultCounts};
pub use faulty::{
    FaultyClock, FaultyFile, FaultyOptions, FaultyQueue, FileMedium, Injection, Medium, Memory, Observed,
};
pub use finding::{DescribedUnit, Finding, describe_unit};
pub use in_flight::{InFlight, Purpose};
pub use investigate::op_name;
pub use journal::{JournalError, JournalReader, Record};
pub use observer::{Counts, FileStanding, Observer, RunView, Standing};
pub use phase::Phase;
pub use plan::*;
pub use run::{FileTick, PhaseDone, Report, Run, RunError, RunPlan, Truth};
pub use stamp::{PageId, Stamp, Unit, is_stamped};
pub use throttle::Throttle;
pub use user::{User, UserKind};
pub use verify::Verifier;
