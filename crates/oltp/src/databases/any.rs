use std::time::Duration;

use tokio::time::timeout;

use super::{Driver, Use, mssql::Mssql, mysql::Mysql, postgresql::Postgresql};
use crate::{
    batch::{Batch, Results, Statement},
    error::DbError,
    plan::{Connection, Isolation, Kind},
    rows::{Rows, Table},
};

/// A connection to whichever database a plan names: users of one run may be on several kinds.
pub(crate) enum AnyDriver {
    Postgresql(Box<Postgresql>),
    Mysql(Box<Mysql>),
    Mssql(Box<Mssql>),
}

/// A server that has not taken a connection and prepared its statements by then does not answer.
const CONNECT_WITHIN: Duration = Duration::from_secs(15);

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
    async fn of_kind(connection: &Connection, purpose: Use, isolation: Isolation) -> Result<Self, DbError> {
        match connection.kind {
            Kind::Postgresql => {
                Ok(Self::Postgresql(Box::new(Postgresql::connect(connection, purpose, isolation).await?)))
            }
            Kind::Mariadb | Kind::Mysql => {
                Ok(Self::Mysql(Box::new(Mysql::connect(connection, purpose, isolation).await?)))
            }
            Kind::Mssql => Ok(Self::Mssql(Box::new(Mssql::connect(connection, purpose, isolation).await?))),
        }
    }
}

impl Driver for AnyDriver {
    async fn connect(connection: &Connection, purpose: Use, isolation: Isolation) -> Result<Self, DbError> {
        let connected = timeout(CONNECT_WITHIN, Self::of_kind(connection, purpose, isolation)).await;
        connected.unwrap_or_else(|_| Err(DbError::connection("does not answer")))
    }

    fn has(&self, statement: Statement) -> bool {
        each!(self, driver => driver.has(statement))
    }

    fn lines_as_json(&self) -> bool {
        each!(self, driver => driver.lines_as_json())
    }

    async fn run(&mut self, batch: &Batch, results: &mut Results) -> Result<(), DbError> {
        each!(self, driver => driver.run(batch, results).await)
    }

    async fn copy(&mut self, table: Table, rows: Rows) -> Result<(u64, u64), DbError> {
        each!(self, driver => driver.copy(table, rows).await)
    }

    async fn execute(&mut self, sql: &str) -> Result<(), DbError> {
        each!(self, driver => driver.execute(sql).await)
    }

    async fn close(self) {
        each!(self, driver => driver.close().await);
    }
}
