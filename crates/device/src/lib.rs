//! Queues on real storage and the sessions that drive them.
//!
//! [`Session`] hosts the workers of [`assay_load`], one thread each, on [`UringQueue`], [`ThreadQueue`] or [`NullQueue`].

mod buffers;
mod clock;
mod error;
mod file;
mod null;
mod session;
mod threads;
mod uring;

pub use buffers::BufferPool;
pub use clock::SessionClock;
pub use error::DeviceError;
pub use file::{VolumeFile, allocate, claim};
pub use null::{NullOptions, NullQueue};
pub use session::{Backend, Engine, Session, SessionPlan, Status, VolumeKind, VolumePlan};
pub use threads::ThreadQueue;
pub use uring::UringQueue;
