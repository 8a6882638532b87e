//! Description of a data set: its size at a scale, and its chunks.

use assay_sql::{Rows, Table};
use serde::{Deserialize, de::DeserializeOwned};

use crate::error::DatabaseError;

/// Unit in which the size of a database is counted.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub one: &'static str,
    pub many: &'static str,
    /// The least scale; all others are multiples of it.
    pub step: u32,
    pub max: u32,
}

impl Scale {
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when there is no database of this scale.
    pub(crate) fn check(&self, scale: u32) -> Result<(), DatabaseError> {
        if (1..=self.max).contains(&scale) && scale.is_multiple_of(self.step) {
            return Ok(());
        }
        let steps = if self.step > 1 { format!(" in steps of {}", self.step) } else { String::new() };
        Err(DatabaseError::InvalidPlan(format!("{}: accepted: {} to {}{steps}", self.many, self.step, self.max)))
    }
}

/// A table's name and how many rows it has.
pub type TableCount = (&'static str, u64);

/// Of a data set of which the scale alone decides how many rows there are.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct ByScale {}

/// Rows of tables that follow from a scale, a shape and a seed.
pub trait Dataset: 'static {
    /// Its name in plans.
    const KIND: &'static str;
    const SCALE: Scale;

    /// Parameters besides the scale that decide the rows: fields of plans.
    type Shape: DeserializeOwned + Copy + Send + 'static;

    /// Chunk that is loaded in one transaction.
    type Chunk: Chunk<Shape = Self::Shape>;

    /// Rows of each table of a database of a scale; where they are drawn, as many as are to be expected.
    fn row_counts(scale: u32, shape: Self::Shape) -> Vec<TableCount>;
}

/// Kind, unit of the scale and part of a chunk.
pub type Key = (&'static str, u32, u32);

/// A key as plans have it.
pub type ChunkKey = (String, u32, u32);

/// A part of a database that is loaded in one transaction, together with its entry in `assay_chunk`.
pub trait Chunk: Copy + Send + 'static {
    /// Column of `assay_chunk` with the unit of the scale that a chunk belongs to.
    const UNIT_COLUMN: &'static str;

    type Shape: Copy;

    type Rows: Rows;

    /// All chunks of a database in the order in which they are loaded.
    fn all(scale: u32, shape: Self::Shape) -> impl Iterator<Item = Self>;

    /// The chunk of a database with this key, one of [`Self::all`] or a later chunk.
    fn of_key(scale: u32, shape: Self::Shape, kind: &str, unit: u32, part: u32) -> Option<Self> {
        Self::all(scale, shape).find(|chunk| chunk.key() == (kind, unit, part))
    }

    /// Kind, unit and part, as `assay_chunk` has them.
    fn key(self) -> Key;

    /// Rows of all its tables; where they are drawn, as many as are to be expected.
    fn row_count(self) -> u64;

    /// The tables it fills, one after the other.
    fn tables(self, seed: u64) -> impl Iterator<Item = (Table, Self::Rows)> + Send + 'static;
}

/// A chunk by its key.
///
/// # Errors
/// [`DatabaseError::InvalidPlan`] when a database of this scale has no such chunk.
pub(crate) fn chunk<D: Dataset>(scale: u32, shape: D::Shape, key: &ChunkKey) -> Result<D::Chunk, DatabaseError> {
    let (kind, unit, part) = key;
    D::Chunk::of_key(scale, shape, kind, *unit, *part)
        .ok_or_else(|| DatabaseError::InvalidPlan(format!("chunk {kind:?} {unit} {part}: not one of {}", D::KIND)))
}
