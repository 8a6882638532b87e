use std::time::Duration;

use crate::{
    batch::{Batch, Results},
    connection::{Connection, Isolation, Kind},
    error::DbError,
    rows::{Rows, Table},
    statements::{Statement, StatementId},
};

/// Setup of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    pub isolation: Isolation,
    /// Statements to be prepared.
    pub statements: &'a [Statement],
    /// Whether all statements of a batch are on the way at once, or one after the other.
    pub pipeline: bool,
    /// Whether rows are loaded in bulk.
    pub bulk: bool,
    /// A server that has not taken the connection and prepared its statements by then does not answer.
    pub within: Duration,
}

/// A connection to a database. After an error other than a lost connection it is outside any transaction.
#[expect(async_fn_in_trait, reason = "connections stay on the thread that made them")]
pub trait Driver: Sized {
    /// Connects, chooses the isolation level and prepares the statements.
    async fn connect(connection: &Connection, setup: Setup<'_>) -> Result<Self, DbError>;

    /// The dialect of the server.
    fn kind(&self) -> Kind;

    /// Whether a statement was prepared.
    fn has(&self, statement: StatementId) -> bool;

    /// Runs the statements of a batch in order; their rows are in `results`.
    async fn run(&mut self, batch: &Batch, results: &mut Results) -> Result<(), DbError>;

    /// Loads rows in bulk within the transaction that is open; returns how many and how many bytes went to the server.
    async fn copy(&mut self, table: Table, rows: impl Rows) -> Result<(u64, u64), DbError>;

    /// Runs a statement of text without parameters, whose rows do not matter.
    async fn execute(&mut self, sql: &str) -> Result<(), DbError>;

    /// Says goodbye.
    async fn close(self);
}
