use std::time::Duration;

use crate::{
    batch::{Batch, Results},
    connection::{Connection, Isolation, Kind},
    error::DbError,
    own::{Answers, Asked},
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

    /// Runs a statement of the user's own; its answers are in `answers`, where they are wanted.
    async fn ask(&mut self, asked: Asked<'_>, answers: Option<&mut Answers>) -> Result<(), DbError>;

    /// Begins a pipeline: statements that are put go to the server when it ends. `asked` are prepared before.
    async fn begin_pipeline<'a>(&mut self, asked: impl Iterator<Item = Asked<'a>>) -> Result<(), DbError> {
        let _ = asked;
        Err(DbError::other("pipelines are for PostgreSQL alone"))
    }

    /// Adds a statement to the pipeline.
    fn put(&mut self, asked: Asked<'_>) -> Result<(), DbError> {
        let _ = asked;
        Err(DbError::other("pipelines are for PostgreSQL alone"))
    }

    /// Parts statements that were put from later ones: an error ends neither beyond this place.
    fn sync(&mut self) {}

    /// Sends the pipeline, and waits until all of it is answered.
    async fn end_pipeline(&mut self) -> Result<(), DbError> {
        Ok(())
    }

    /// Whether a transaction is open after a statement of the user's own, as far as the server tells.
    fn in_transaction(&self) -> bool {
        false
    }

    /// From now on an error of the user's own statements leaves a transaction as the server has it; the client ends it.
    fn leave_open(&mut self) {}

    /// Ends a transaction that statements of the user's own left open.
    async fn roll_back(&mut self) -> Result<(), DbError>;

    /// Says goodbye.
    async fn close(self);
}
