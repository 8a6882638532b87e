//! The five transactions, each as statements in its file and as one call of a procedure in `procedures.rs`.

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod procedures;
mod stock_level;

use crate::{
    batch::{Batch, Parameters, Results, Row, Statement},
    databases::Driver,
    error::{Cause, DbError},
    input::Input,
};

/// How a transaction ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    /// By the user: an item does not exist.
    RolledBack,
}

/// A connection with the batch and the results it works with, which are reused.
pub(crate) struct Talk<'a, D> {
    driver: &'a mut D,
    batch: &'a mut Batch,
    results: &'a mut Results,
}

impl<'a, D: Driver> Talk<'a, D> {
    pub(crate) fn new(driver: &'a mut D, batch: &'a mut Batch, results: &'a mut Results) -> Self {
        batch.clear();
        Self { driver, batch, results }
    }

    /// Adds a statement to what is sent next; its place there is the number of those before it.
    fn add(&mut self, statement: Statement) -> Parameters<'_> {
        self.batch.add(statement)
    }

    /// Sends what was added and waits for all rows.
    async fn send(&mut self) -> Result<(), DbError> {
        self.results.clear();
        let sent = self.driver.run(self.batch, self.results).await;
        self.batch.clear();
        sent
    }

    /// The only row of the statement at a place.
    fn row(&self, place: usize) -> Result<Row<'_>, DbError> {
        self.results
            .row(place, 0)
            .ok_or_else(|| DbError::other("a row that must be there is missing: run `assay oltp tpcc ... check`"))
    }

    /// A whole number of the only row of the statement at a place.
    fn int(&self, place: usize, column: usize) -> Result<i64, DbError> {
        self.row(place)?.int(column).ok_or_else(unreadable)
    }

    /// Of customers of one name the one in the middle, rounded up, by first name (clauses 2.5.2.2 and 2.6.2.2).
    fn middle_customer(&self, place: usize) -> Result<u32, DbError> {
        let count = self.results.count(place);
        let row = self.results.row(place, count.div_ceil(2).saturating_sub(1));
        let id = row
            .and_then(|row| row.int(0))
            .ok_or_else(|| DbError::other("no customer has a last name that all districts have"))?;
        Ok(id as u32)
    }

    /// Gives a transaction up, so that an error in the middle of it leaves the connection as any other.
    async fn abandon(&mut self) -> Result<(), DbError> {
        self.batch.clear();
        self.add(Statement::Rollback);
        self.send().await
    }
}

fn unreadable() -> DbError {
    DbError::other("a value of the database is not the number it should be")
}

/// Runs one transaction once, as statements.
pub(crate) async fn run_statements<D: Driver>(talk: &mut Talk<'_, D>, input: &Input) -> Result<Outcome, DbError> {
    let done = match input {
        Input::NewOrder { warehouse, district, customer, lines } => {
            new_order::run(talk, *warehouse, *district, *customer, lines).await
        }
        Input::Payment { warehouse, district, customer_warehouse, customer_district, customer, amount } => {
            let payer =
                payment::Payer { warehouse: *customer_warehouse, district: *customer_district, customer: *customer };
            payment::run(talk, *warehouse, *district, payer, *amount).await
        }
        Input::OrderStatus { warehouse, district, customer } => {
            order_status::run(talk, *warehouse, *district, *customer).await
        }
        Input::Delivery { warehouse, carrier } => delivery::run(talk, *warehouse, *carrier).await,
        Input::StockLevel { warehouse, district, threshold } => {
            stock_level::run(talk, *warehouse, *district, *threshold).await
        }
    };
    if let Err(error) = &done
        && error.cause == Cause::Other
    {
        // What the transaction itself objected to left it open; after the database's own errors this does nothing.
        talk.abandon().await?;
    }
    done
}

/// Runs one transaction once, as a procedure of the database.
pub(crate) async fn run_procedure<D: Driver>(talk: &mut Talk<'_, D>, input: &Input) -> Result<Outcome, DbError> {
    match procedures::call(talk, input).await {
        Err(error) if error.cause == Cause::UnknownItem => Ok(Outcome::RolledBack),
        Err(error) => Err(error),
        Ok(()) => Ok(Outcome::Committed),
    }
}
