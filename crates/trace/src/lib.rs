//! Block I/O as the kernel traces it.
//!
//! A [`Capture`] reads pages of ftrace's ring, decodes their events by the layout that the kernel states, puts those of all
//! processors in order and joins them into [`Io`]s: when an I/O was asked for, issued and completed. It hands these out as
//! [`Columns`], or counts their times into [`Latencies`].

mod capture;
mod columns;
mod error;
mod event;
mod join;
mod latencies;
mod page;

pub use capture::{Capture, Counts};
pub use columns::Columns;
pub use error::TraceError;
pub use event::{EventKind, EventLayout, Layout, PageLayout};
pub use join::{Io, UNKNOWN_NS};
pub use latencies::{BUCKETS, Latencies, bucket_of};
