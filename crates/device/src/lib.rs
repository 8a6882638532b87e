//! Queues on real storage and the sessions that drive them.
//!
//! [`Session`] hosts the workers of [`assay_load`], one thread each, on [`UringQueue`], [`ThreadQueue`] or [`NullQueue`].
//! [`open_data_queue`] opens one of the first two for a caller whose bytes matter.

mod buffers;
mod clock;
mod engine;
mod error;
mod file;
mod heartbeat;
mod identity;
mod loans;
mod null;
mod ring;
mod session;
mod threads;
mod uring;

pub use buffers::BufferPool;
pub use clock::{SessionClock, thread_cpu_ns};
pub use engine::{Backend, Engine, open_data_queue};
pub use error::DeviceError;
pub use file::{VolumeFile, allocate, claim};
pub use heartbeat::Heartbeat;
pub use identity::{Identity, duplicate};
pub use null::{NullOptions, NullQueue};
pub use session::{Session, SessionPlan, Status, VolumeKind, VolumePlan};
pub use threads::ThreadQueue;
pub use uring::UringQueue;
