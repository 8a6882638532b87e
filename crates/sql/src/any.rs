use tokio::time::timeout;

use crate::{
    batch::{Batch, Results},
    connection::{Connection, Kind},
    driver::{Driver, Setup},
    error::DbError,
    mssql::Mssql,
    mysql::Mysql,
    own::{Answers, Asked},
    postgresql::Postgresql,
    rows::{Rows, Table},
    statements::StatementId,
};

/// A connection to whichever database a plan names: users of one run may be on several kinds.
#[expect(private_interfaces, reason = "only the driver of a connection knows its kind")]
pub enum AnyDriver {
    Postgresql(Box<Postgresql>),
    Mysql(Box<Mysql>),
    Mssql(Box<Mssql>),
}

macro_rules! each {
    ($driver:expr, $name:ident => $action:expr) => {
        match $driver {
            AnyDriver::Postgresql($name) => $action,
            AnyDriver::Mysql($name) => $action,
            AnyDriver::Mssql($name) => $action,
        }
    };
}

impl AnyDriver {
    async fn of_kind(connection: &Connection, setup: Setup<'_>) -> Result<Self, DbError> {
        match connection.kind {
            Kind::Postgresql => Ok(Self::Postgresql(Box::new(Postgresql::connect(connection, setup).await?))),
            Kind::Mariadb | Kind::Mysql => Ok(Self::Mysql(Box::new(Mysql::connect(connection, setup).await?))),
            Kind::Mssql => Ok(Self::Mssql(Box::new(Mssql::connect(connection, setup).await?))),
        }
    }
}

impl Driver for AnyDriver {
    async fn connect(connection: &Connection, setup: Setup<'_>) -> Result<Self, DbError> {
        let connected = timeout(setup.within, Self::of_kind(connection, setup)).await;
        connected.unwrap_or_else(|_| Err(DbError::connection("does not answer")))
    }

    fn kind(&self) -> Kind {
        each!(self, driver => driver.kind())
    }

    fn has(&self, statement: StatementId) -> bool {
        each!(self, driver => driver.has(statement))
    }

    async fn run(&mut self, batch: &Batch, results: &mut Results) -> Result<(), DbError> {
        each!(self, driver => driver.run(batch, results).await)
    }

    async fn copy(&mut self, table: Table, rows: impl Rows) -> Result<(u64, u64), DbError> {
        each!(self, driver => driver.copy(table, rows).await)
    }

    async fn execute(&mut self, sql: &str) -> Result<(), DbError> {
        each!(self, driver => driver.execute(sql).await)
    }

    async fn ask(&mut self, asked: Asked<'_>, answers: Option<&mut Answers>) -> Result<(), DbError> {
        each!(self, driver => driver.ask(asked, answers).await)
    }

    async fn begin_pipeline<'a>(&mut self, asked: impl Iterator<Item = Asked<'a>>) -> Result<(), DbError> {
        each!(self, driver => driver.begin_pipeline(asked).await)
    }

    fn put(&mut self, asked: Asked<'_>) -> Result<(), DbError> {
        each!(self, driver => driver.put(asked))
    }

    fn sync(&mut self) {
        each!(self, driver => driver.sync());
    }

    async fn end_pipeline(&mut self) -> Result<(), DbError> {
        each!(self, driver => driver.end_pipeline().await)
    }

    fn in_transaction(&self) -> bool {
        each!(self, driver => driver.in_transaction())
    }

    fn leave_open(&mut self) {
        each!(self, driver => driver.leave_open());
    }

    async fn roll_back(&mut self) -> Result<(), DbError> {
        each!(self, driver => driver.roll_back().await)
    }

    async fn close(self) {
        each!(self, driver => driver.close().await);
    }
}
