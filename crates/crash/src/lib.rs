//! Possible contents of a volume after a crash.
//!
//! A [`Log`] holds every write, flush and discard of a volume in order, and marks where a client was told something.
//! [`Promises`] say what storage guarantees. [`Course`] goes through the log from crash point to crash point and knows
//! at each what is durable and what may be lost. [`Plan`] chooses states from all that are possible, each with a
//! [`Name`], and [`View`] shows one of them as a volume, without a copy of its bytes.

mod course;
mod error;
mod image;
mod log;
mod log_file;
mod minimiser;
mod name;
mod piece;
mod plan;
mod promises;
mod random;
mod serve;
mod view;

pub use course::{Course, CrashPoint};
pub use error::CrashError;
pub use image::{Base, Contents, Image};
pub use log::{Entry, Kind, Log, SECTOR_BYTES};
pub use log_file::{Recorder, read_log};
pub use minimiser::Minimiser;
pub use name::{Mask, Name};
pub use piece::Piece;
pub use plan::{Coverage, Plan, Planned};
pub use promises::{Order, Promises};
pub use serve::ServedVolume;
pub use view::View;
