//! One file per database. [`Driver`] is all that the workload asks of one.

mod any;
mod mssql;
mod mysql;
mod postgresql;

pub(crate) use any::AnyDriver;

use crate::{
    batch::{Batch, Results, Statement},
    error::DbError,
    plan::{Connection, Isolation, Kind},
    rows::{Rows, Table},
    sql,
};

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Load,
    /// Transactions as statements; all of a batch on the way at once, or one after the other.
    Statements {
        pipeline: bool,
    },
    Procedures,
}

impl Use {
    /// Whether a statement is prepared for this use.
    pub(crate) fn prepares(self, statement: Statement) -> bool {
        let is_call = statement.name().starts_with("call.");
        match self {
            Self::Load => matches!(statement, Statement::Begin | Statement::Commit | Statement::Rollback),
            Self::Statements { .. } => !is_call,
            Self::Procedures => is_call,
        }
    }
}

/// A connection to a database. After an error other than a lost connection it is outside any transaction.
pub(crate) trait Driver: Sized {
    /// Connects, chooses the isolation level and prepares the statements of the use.
    async fn connect(connection: &Connection, purpose: Use, isolation: Isolation) -> Result<Self, DbError>;

    /// Whether the dialect has a statement.
    fn has(&self, statement: Statement) -> bool;

    /// Whether procedures take the lines of an order as one JSON text instead of as arrays.
    fn lines_as_json(&self) -> bool;

    /// Runs the statements of a batch in order; their rows are in `results`.
    async fn run(&mut self, batch: &Batch, results: &mut Results) -> Result<(), DbError>;

    /// Loads rows in bulk within the transaction that is open; returns how many and how many bytes went to the server.
    async fn copy(&mut self, table: Table, rows: Rows) -> Result<(u64, u64), DbError>;

    /// Runs a statement of text without parameters, whose rows do not matter.
    async fn execute(&mut self, sql: &str) -> Result<(), DbError>;

    /// Says goodbye.
    async fn close(self);
}

/// The statement that sets a session's isolation level, unless the server's own is wanted.
pub(crate) fn isolation_statement(kind: Kind, isolation: Isolation) -> Option<String> {
    let level = match isolation {
        Isolation::Default => return None,
        Isolation::ReadCommitted => "session.isolation.read-committed",
        Isolation::RepeatableRead => "session.isolation.repeatable-read",
        Isolation::Serializable => "session.isolation.serializable",
    };
    let sections = sql::sections(kind, "statements")?;
    sections.into_iter().find(|section| section.name == level).map(|section| section.text)
}
