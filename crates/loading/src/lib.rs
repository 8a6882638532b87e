//! Data sets: rows in chunks that follow from a scale and a seed, whichever tables they are for.
//!
//! Start with [`Dataset`]: what a data set says of itself. [`Load`] fills the tables of databases over several connections, a chunk
//! and its entry in one transaction; [`ColumnBatches`] gives the rows of a chunk as columns in Arrow's layout, for column stores in
//! this process. [`Registered`] is a data set for callers that do not know which it is.

mod columns;
mod dataset;
mod error;
mod load;
mod panics;
mod plan;
mod registered;

pub use columns::{Batch, Column, ColumnBatches, Values};
pub use dataset::{ByScale, Chunk, ChunkKey, Dataset, Key, Scale, TableCount};
pub use error::DatabaseError;
pub use load::{Load, LoadState, LoadStatus};
pub use panics::{Alive, OnPanic};
pub use plan::{LoadPlan, LoadedDatabase, connect_s, named_by, parse, validate_connecting};
pub use registered::Registered;
