//! What a transactional workload says of itself. Each is a folder beside this file; `workloads.rs` registers it.

use assay_loading::Dataset;
use assay_sql::{DbError, Driver, Kind, Section, session_sections};
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

/// A workload on its data set, and as a value what plans say of it alone.
pub(crate) trait Workload: Dataset + DeserializeOwned + Send + Sync {
    /// Its transactions in the order of a mix. Throughput is that of the first.
    const TRANSACTIONS: &'static [Transaction];
    /// Names of its statements by number. Those that begin with `call.` call procedures.
    const STATEMENTS: &'static [&'static str];

    /// What makes one user different from others.
    type User;
    /// What one transaction is asked for.
    type Input;

    /// The statements of a file of SQL in a dialect; `None` for unknown files.
    fn sections(dialect: Kind, file: &str) -> Option<Vec<Section>>;

    /// User `number` of a database, counted from 0.
    fn user(&self, scale: u32, number: u32) -> Self::User;

    /// The input of a user's next transaction, which is of this kind.
    fn draw(&self, user: &mut Self::User, transaction: usize, random: &mut Random) -> Self::Input;

    /// Runs a transaction once, as statements. After an error of [`assay_sql::Cause::Other`] it is rolled back for it.
    async fn run<D: Driver>(talk: &mut Talk<'_, D>, input: &Self::Input) -> Result<Outcome, DbError>;

    /// Adds the call of the procedure that runs a transaction once. It gives a row.
    fn call<D: Driver>(talk: &mut Talk<'_, D>, input: &Self::Input);
}

/// The statements of a file of a workload; among its statements those of every session, in front.
pub(crate) fn all_sections<W: Workload>(dialect: Kind, file: &str) -> Option<Vec<Section>> {
    let own = W::sections(dialect, file)?;
    let before = if file == "statements" { session_sections(dialect) } else { Vec::new() };
    Some(before.into_iter().chain(own).collect())
}
