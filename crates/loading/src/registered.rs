//! Registered data sets, for callers of any of them.

use crate::{
    columns::{ChunkColumns, ColumnBatches},
    dataset::{Chunk, ChunkKey, Dataset, Key, TableCount, chunk},
    error::DatabaseError,
    load::Load,
    plan::parse,
};

type Asked<T> = Result<T, DatabaseError>;

/// Gives the rows of a chunk by scale, shape, seed and key.
type ColumnsOf = fn(u32, &str, u64, &ChunkKey) -> Asked<Box<dyn ColumnBatches>>;

/// A data set as its kind alone names it, its shape as JSON text. Scales that it does not have are a [`DatabaseError::InvalidPlan`].
#[derive(Debug, Clone, Copy)]
pub struct Registered {
    pub kind: &'static str,
    /// Starts loading into tables that are there, from a plan as JSON text.
    pub start_load: fn(&str) -> Asked<Load>,
    /// Rows of each table of a database of a scale; where they are drawn, as many as are to be expected.
    pub row_counts: fn(u32, &str) -> Asked<Vec<TableCount>>,
    /// The chunks of a database of a scale in the order in which they are loaded.
    pub chunks: fn(u32, &str) -> Asked<Vec<Key>>,
    /// The rows of a chunk by scale, shape, seed and key.
    pub columns: ColumnsOf,
}

impl Registered {
    pub const fn of<D: Dataset>() -> Self {
        Self {
            kind: D::KIND,
            start_load: |plan| Load::start::<D>(parse(plan)?, parse(plan)?),
            row_counts: |scale, shape| {
                D::SCALE.check(scale)?;
                Ok(D::row_counts(scale, parse(shape)?))
            },
            chunks: |scale, shape| {
                D::SCALE.check(scale)?;
                Ok(D::Chunk::all(scale, parse(shape)?).map(Chunk::key).collect())
            },
            columns: |scale, shape, seed, key| {
                D::SCALE.check(scale)?;
                Ok(Box::new(ChunkColumns::new(chunk::<D>(scale, parse(shape)?, key)?.tables(seed))))
            },
        }
    }
}
