//! Transactional workloads: each is a folder beside this file, registered in `workloads.rs`.

use std::borrow::Cow;

use assay_loading::DatabaseError;
use assay_sql::{DbError, Driver, Kind, Section, session_sections};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    plan::RunPlan,
    random::Random,
    talk::{Outcome, Talk},
};

/// A kind of transaction, and the times of a user around it.
#[derive(Debug, Clone)]
pub(crate) struct Transaction {
    pub(crate) name: Cow<'static, str>,
    /// Keying before it in seconds, always the same.
    pub(crate) keying_s: f64,
    /// Mean thinking after it in seconds.
    pub(crate) thinking_mean_s: f64,
}

impl Transaction {
    pub(crate) const fn new(name: &'static str, keying_s: f64, thinking_mean_s: f64) -> Self {
        Self { name: Cow::Borrowed(name), keying_s, thinking_mean_s }
    }
}

/// Desk of a thread's users on a database: work that follows from transactions. Clerks do it when its time has come.
pub(crate) trait Desk: 'static {
    type Input;
    type Effect;

    /// Takes the work that a committed transaction leaves to others.
    fn take_in(&self, input: &Self::Input, effect: Self::Effect, now_ns: u64);

    /// Ends work that the desk gave out, whatever its outcome.
    fn ended(&self, _input: &Self::Input) {}

    /// When there is something to do next.
    fn next_ns(&self) -> Option<u64>;

    /// Gives out the next due work: the time when it was due, its transaction, and its input.
    fn give_out(&self, now_ns: u64) -> Option<(u64, usize, Self::Input)>;
}

/// A workload. Its value holds the fields of plans for this workload alone.
pub(crate) trait Workload: DeserializeOwned + Send + Sync + 'static {
    /// Its name in plans.
    const KIND: &'static str;
    /// Name of the unit of scale; a database has at least one.
    const UNIT: &'static str;
    /// Names of its statements by number. Those that begin with `call.` call procedures.
    const STATEMENTS: &'static [&'static str];
    /// Whether a user ends at an error that trying again does not mend; else it goes on with its next transaction.
    const ENDS_AT_ERROR: bool = false;

    /// State of a user, different from that of other users.
    type User;
    /// Input of a transaction.
    type Input: 'static;
    /// Work that a committed transaction leaves to others.
    type Effect: Default;
    type Desk: Desk<Input = Self::Input, Effect = Self::Effect>;
    /// Users that keep a clerk of the desk busy; 0 if clerks have no work.
    const USERS_PER_CLERK: u32 = 0;

    /// Prepares what follows from the whole plan, before users begin.
    ///
    /// # Errors
    /// [`DatabaseError::InvalidPlan`] when the plan is impossible.
    fn ready(&mut self, _plan: &RunPlan) -> Result<(), DatabaseError> {
        Ok(())
    }

    /// The transactions in the order of a mix.
    fn transactions(&self) -> Vec<Transaction>;

    /// The statements of an SQL file in a dialect; `None` for unknown files. Sessions begin with the statements of
    /// `session`.
    fn sections(dialect: Kind, file: &str) -> Option<Vec<Section>>;

    /// User `number` of database `database` of the run, both counted from 0.
    fn user(&self, database: usize, scale: u32, number: u32) -> Self::User;

    /// The user's own choice of its next transaction, where it does not draw as all users do.
    fn choose(&self, _user: &mut Self::User, _mix: &[u32]) -> Option<usize> {
        None
    }

    /// The input of a user's next transaction, which is of this kind.
    fn draw(&self, user: &mut Self::User, transaction: usize, random: &mut Random) -> Self::Input;

    /// The desk of a thread, counted from 0, on database `database` of the run, which is of that scale.
    fn desk(&self, seed: u64, database: usize, scale: u32, thread: u32) -> Self::Desk;

    /// Recent acknowledged transactions, if the workload keeps them.
    fn acknowledged(&self) -> Value {
        Value::Null
    }

    /// A transaction is about to begin, so long after the start.
    fn begins(&self, _input: &mut Self::Input, _now_ns: u64) {}

    /// Runs a transaction once, as statements. After an error of [`assay_sql::Cause::Other`] it is rolled back for it.
    async fn run<D: Driver>(&self, talk: &mut Talk<'_, D>, user: &mut Self::User, input: &Self::Input) -> Done<Self>;

    /// Runs a transaction once, with the procedures of the database.
    async fn call<D: Driver>(&self, talk: &mut Talk<'_, D>, input: &Self::Input) -> Done<Self>;

    /// Whether connections prepare a statement of this name: calls alone where procedures are used, all others where not.
    fn prepares(name: &str, procedures: bool) -> bool {
        name.starts_with("call.") == procedures
    }
}

/// Outcome of a transaction, and the work it leaves to others if it was committed.
pub(crate) type Done<W> = Result<(Outcome, <W as Workload>::Effect), DbError>;

/// The statements of a file of a workload, with the statements of every session before them.
pub(crate) fn all_sections<W: Workload>(dialect: Kind, file: &str) -> Option<Vec<Section>> {
    let own = W::sections(dialect, file)?;
    let before = if file == "statements" { session_sections(dialect) } else { Vec::new() };
    Some(before.into_iter().chain(own).collect())
}
