//! The user's own SQL, in the language of pgbench's scripts: files that exist run unchanged.
//!
//! `scan.rs` cuts a script into statements and lines, `read.rs` makes commands of them, `expression.rs` steps of a machine
//! (`machine.rs`) of each expression; `run.rs` runs the commands of one pass on a connection. All is read once, before users begin.

mod expression;
mod functions;
mod machine;
mod names;
mod numbers;
mod plan;
mod read;
mod ready;
mod run;
mod scan;
#[cfg(test)]
mod tests;
mod tokens;
mod user;
mod value;

use std::borrow::Cow;

use assay_loading::DatabaseError;
use assay_sql::{Driver, Kind, Section};
use serde::Deserialize;

pub use self::ready::{check, statements};
use self::{
    numbers::Stream,
    plan::{ScriptsPlan, Source},
    ready::Ready,
    user::User,
};
use crate::{
    plan::RunPlan,
    random::Random,
    talk::{Outcome, Talk},
    workload::{Desk, Done, Transaction, Workload},
};

/// First statements of a session that runs the user's own SQL on a server.
pub(crate) fn session_statements(kind: Kind) -> Vec<String> {
    let sections = <Scripts as Workload>::sections(kind, "session").unwrap_or_default();
    sections.into_iter().map(|section| section.text).collect()
}

/// The workload of scripts: its fields of a plan, and the scripts once they are ready.
#[derive(Debug, Deserialize)]
#[serde(from = "ScriptsPlan")]
pub(crate) struct Scripts {
    plan: ScriptsPlan,
    ready: Ready,
}

impl From<ScriptsPlan> for Scripts {
    fn from(plan: ScriptsPlan) -> Self {
        Self { plan, ready: Ready::default() }
    }
}

/// A pass of a script: which one, and the random numbers that each attempt begins with.
pub(crate) struct Pass {
    script: usize,
    stream: Stream,
}

/// The desk of a workload that leaves no work to others.
pub(crate) struct NoDesk;

impl Desk for NoDesk {
    type Input = Pass;
    type Effect = ();

    fn take_in(&self, _input: &Pass, _effect: (), _now_ns: u64) {}

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn give_out(&self, _now_ns: u64) -> Option<(u64, usize, Pass)> {
        None
    }
}

impl Workload for Scripts {
    const KIND: &'static str = "sql";
    const UNIT: &'static str = "scale of 1 or more";
    const STATEMENTS: &'static [&'static str] = &[];
    const ENDS_AT_ERROR: bool = true;

    type User = User;
    type Input = Pass;
    type Effect = ();
    type Desk = NoDesk;

    fn ready(&mut self, plan: &RunPlan) -> Result<(), DatabaseError> {
        self.ready = Ready::new(&self.plan, plan)?;
        Ok(())
    }

    fn transactions(&self) -> Vec<Transaction> {
        let named = |source: &Source| Transaction {
            name: Cow::Owned(source.name.clone()),
            keying_s: 0.0,
            thinking_mean_s: self.plan.think_s,
        };
        self.plan.scripts.iter().map(named).collect()
    }

    /// Sessions begin as those of any program: the tables of the other workloads need other settings.
    fn sections(dialect: Kind, file: &str) -> Option<Vec<Section>> {
        if file != "session" || !matches!(dialect, Kind::Mariadb | Kind::Mysql) {
            return None;
        }
        let texts = ["SET NAMES utf8mb4", "SET SESSION sql_mode = @@GLOBAL.sql_mode"];
        Some(texts.into_iter().map(|text| Section { name: String::new(), text: text.into() }).collect())
    }

    fn user(&self, database: usize, scale: u32, number: u32) -> User {
        self.ready.user(database, scale, number)
    }

    /// Only one script needs no choice, and pgbench draws none for it.
    fn choose(&self, user: &mut User, mix: &[u32]) -> Option<usize> {
        if mix.len() == 1 {
            return Some(0);
        }
        let total: i64 = mix.iter().map(|weight| i64::from(*weight)).sum();
        let mut drawn = user.choices.uniform(0, total - 1);
        mix.iter().position(|weight| {
            drawn -= i64::from(*weight);
            drawn < 0
        })
    }

    fn draw(&self, user: &mut User, transaction: usize, _random: &mut Random) -> Pass {
        Pass { script: transaction, stream: user.machine.stream.clone() }
    }

    fn desk(&self, _seed: u64, _database: usize, _scale: u32, _thread: u32) -> NoDesk {
        NoDesk
    }

    async fn run<D: Driver>(&self, talk: &mut Talk<'_, D>, user: &mut User, pass: &Pass) -> Done<Self> {
        user.machine.stream = pass.stream.clone();
        run::run(&self.ready, self.plan.protocol, talk.driver, user, pass.script).await?;
        Ok((Outcome::Committed, ()))
    }

    /// The statements are the user's: there are no procedures of Assay's to call.
    async fn call<D: Driver>(&self, _talk: &mut Talk<'_, D>, _pass: &Pass) -> Done<Self> {
        Err(assay_sql::DbError::other("scripts have no procedures"))
    }
}
