//! What a transactional workload says of itself. Each is a folder beside this file; `workloads.rs` registers it.

use assay_sql::{DbError, Driver, Kind, Rows, Section, Table, session_sections};
use serde::de::DeserializeOwned;

use crate::{
    random::Random,
    talk::{Outcome, Talk},
};

/// A kind of transaction, and the times of a user around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transaction {
    pub(crate) name: &'static str,
    /// Keying before it in seconds, always the same.
    pub(crate) keying_s: f64,
    /// Mean thinking after it in seconds.
    pub(crate) thinking_mean_s: f64,
}

/// What the size of a database is counted in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) one: &'static str,
    pub(crate) many: &'static str,
    pub(crate) max: u32,
}

/// A workload, and as a value what plans say of it alone.
pub(crate) trait Workload: DeserializeOwned + Send + Sync + 'static {
    /// Its name in plans.
    const KIND: &'static str;
    /// Its transactions in the order of a mix. Throughput is that of the first.
    const TRANSACTIONS: &'static [Transaction];
    /// Names of its statements by number. Those that begin with `call.` call procedures.
    const STATEMENTS: &'static [&'static str];
    const SCALE: Scale;

    /// What makes one user different from others.
    type User;
    /// What one transaction is asked for.
    type Input;
    /// What is loaded in one transaction.
    type Chunk: Chunk;

    /// The statements of a file of SQL in a dialect; `None` for unknown files.
    fn sections(dialect: Kind, file: &str) -> Option<Vec<Section>>;

    /// Rows of each table of a database of a scale, as far as they are known before.
    fn row_counts(scale: u32) -> Vec<(&'static str, u64)>;

    /// User `number` of a database, counted from 0.
    fn user(&self, scale: u32, number: u32) -> Self::User;

    /// The input of a user's next transaction, which is of this kind.
    fn draw(&self, user: &mut Self::User, transaction: usize, random: &mut Random) -> Self::Input;

    /// Runs a transaction once, as statements. After an error of [`assay_sql::Cause::Other`] it is rolled back for it.
    async fn run<D: Driver>(talk: &mut Talk<'_, D>, input: &Self::Input) -> Result<Outcome, DbError>;

    /// Adds the call of the procedure that runs a transaction once. It gives a row.
    fn call<D: Driver>(talk: &mut Talk<'_, D>, input: &Self::Input);
}

/// A part of a database that is loaded in one transaction, together with its entry in `assay_chunk`.
pub(crate) trait Chunk: Copy + Send + 'static {
    /// Column of `assay_chunk` with the unit of the scale that a chunk belongs to.
    const UNIT_COLUMN: &'static str;

    type Rows: Rows;

    /// All chunks of a database in the order in which they are loaded.
    fn all(scale: u32) -> impl Iterator<Item = Self>;

    /// Kind, unit and part, as `assay_chunk` has them.
    fn key(self) -> (&'static str, u32, u32);

    /// The tables it fills, one after the other.
    fn tables(self, seed: u64) -> impl Iterator<Item = (Table, Self::Rows)>;
}

/// The statements of a file of a workload; among its statements those of every session, in front.
pub(crate) fn all_sections<W: Workload>(dialect: Kind, file: &str) -> Option<Vec<Section>> {
    let own = W::sections(dialect, file)?;
    let before = if file == "statements" { session_sections(dialect) } else { Vec::new() };
    Some(before.into_iter().chain(own).collect())
}
