//! What a transactional workload says of itself. Each is a folder beside this file; `workloads.rs` registers it.

use assay_loading::Dataset;
use assay_sql::{DbError, Driver, Kind, Section, session_sections};
use serde::de::DeserializeOwned;
use serde_json::Value;

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

/// What follows from transactions by itself, without a user who asks for it: of the users of a thread on a database. Clerks do it when
/// its time has come.
pub(crate) trait Desk: 'static {
    type Input;
    type Effect;

    /// Takes in what a transaction that was committed at a time has for others to do.
    fn take_in(&self, input: &Self::Input, effect: Self::Effect, now_ns: u64);

    /// What it gave out has ended, however.
    fn ended(&self, _input: &Self::Input) {}

    /// When there is something to do next.
    fn next_ns(&self) -> Option<u64>;

    /// Gives out what is to be done by now: when it was due, which transaction it is, and its input.
    fn give_out(&self, now_ns: u64) -> Option<(u64, usize, Self::Input)>;
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
    type Input: 'static;
    /// What a committed transaction has for others to do.
    type Effect: Default;
    type Desk: Desk<Input = Self::Input, Effect = Self::Effect>;
    /// So many users keep a clerk of the desk busy; 0 where there is nothing for clerks to do.
    const USERS_PER_CLERK: u32 = 0;

    /// The statements of a file of SQL in a dialect; `None` for unknown files. Sessions begin with those of `session`.
    fn sections(dialect: Kind, file: &str) -> Option<Vec<Section>>;

    /// User `number` of database `database` of the run, both counted from 0.
    fn user(&self, database: usize, scale: u32, number: u32) -> Self::User;

    /// The input of a user's next transaction, which is of this kind.
    fn draw(&self, user: &mut Self::User, transaction: usize, random: &mut Random) -> Self::Input;

    /// The desk of a thread, counted from 0, on database `database` of the run, which is of that scale.
    fn desk(&self, seed: u64, database: usize, scale: u32, thread: u32) -> Self::Desk;

    /// What was acknowledged lately, where it is kept.
    fn acknowledged(&self) -> Value {
        Value::Null
    }

    /// A transaction is about to begin, so long after the start.
    fn begins(&self, _input: &mut Self::Input, _now_ns: u64) {}

    /// Runs a transaction once, as statements. After an error of [`assay_sql::Cause::Other`] it is rolled back for it.
    async fn run<D: Driver>(&self, talk: &mut Talk<'_, D>, input: &Self::Input) -> Done<Self>;

    /// Runs a transaction once, with the procedures of the database.
    async fn call<D: Driver>(&self, talk: &mut Talk<'_, D>, input: &Self::Input) -> Done<Self>;

    /// Whether connections prepare a statement of this name: calls alone where procedures are used, all others where not.
    fn prepares(name: &str, procedures: bool) -> bool {
        name.starts_with("call.") == procedures
    }
}

/// How a transaction ended, and what it has for others to do if it was committed.
pub(crate) type Done<W> = Result<(Outcome, <W as Workload>::Effect), DbError>;

/// The statements of a file of a workload; among its statements those of every session, in front.
pub(crate) fn all_sections<W: Workload>(dialect: Kind, file: &str) -> Option<Vec<Section>> {
    let own = W::sections(dialect, file)?;
    let before = if file == "statements" { session_sections(dialect) } else { Vec::new() };
    Some(before.into_iter().chain(own).collect())
}
