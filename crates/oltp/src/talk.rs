//! Talk of a transaction with its database.

use assay_sql::{Batch, Cause, DbError, Driver, Parameters, ROLLBACK, Results, Row, StatementId};

/// How a transaction ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// By the user: its input wants it.
    RolledBack,
}

/// A connection with the batch and the results it works with, which are reused.
pub(crate) struct Talk<'a, D> {
    pub(crate) driver: &'a mut D,
    pub(crate) batch: &'a mut Batch,
    pub(crate) results: &'a mut Results,
    /// The workload, for messages.
    kind: &'static str,
}

impl<'a, D: Driver> Talk<'a, D> {
    pub(crate) fn new(driver: &'a mut D, batch: &'a mut Batch, results: &'a mut Results, kind: &'static str) -> Self {
        batch.clear();
        Self { driver, batch, results, kind }
    }

    /// Adds a statement to the next batch; its place there is the number of statements before it.
    pub(crate) fn add(&mut self, statement: impl Into<StatementId>) -> Parameters<'_> {
        self.batch.add(statement)
    }

    /// Sends the batch and waits for all rows.
    pub(crate) async fn send(&mut self) -> Result<(), DbError> {
        self.results.clear();
        let sent = self.driver.run(self.batch, self.results).await;
        self.batch.clear();
        sent
    }

    /// The only row of the statement at a place.
    pub(crate) fn row(&self, place: usize) -> Result<Row<'_>, DbError> {
        self.results.row(place, 0).ok_or_else(|| {
            DbError::other(format!("a row that must be there is missing: run `assay oltp {} ... check`", self.kind))
        })
    }

    /// A whole number of the only row of the statement at a place.
    pub(crate) fn int(&self, place: usize, column: usize) -> Result<i64, DbError> {
        self.row(place)?.int(column).ok_or_else(unreadable)
    }

    /// Sends the call of a procedure that is a transaction of its own, and gives a row.
    pub(crate) async fn call(&mut self) -> Result<Outcome, DbError> {
        match self.send().await {
            Err(error) if error.cause == Cause::RolledBack => Ok(Outcome::RolledBack),
            Err(error) => Err(error),
            Ok(()) => self.row(0).map(|_| Outcome::Committed),
        }
    }

    /// Gives a transaction up, so that an error in the middle of it leaves the connection as any other.
    pub(crate) async fn abandon(&mut self) -> Result<(), DbError> {
        self.batch.clear();
        self.add(ROLLBACK);
        self.send().await
    }
}

pub(crate) fn unreadable() -> DbError {
    DbError::other("a value of the database is not the number it should be")
}
