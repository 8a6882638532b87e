//! SQL Server: the statements of a batch together in one call of `sp_executesql`, rows in bulk.
//!
//! Not verified on SQL Server: the client is, what is done with it here ran against a server of the tests' own only.

mod bulk;
mod failures;
mod login;
mod own;
mod script;

use std::{future::poll_fn, pin::Pin};

use futures_core::Stream;
use tiberius::{AuthMethod, Client, ColumnData, Config, EncryptionLevel, Query, QueryItem, QueryStream};

use self::{
    bulk::{BulkSink, Columns},
    login::{PACKET_BYTES, Session},
    script::Script,
};
use crate::{
    batch::{Batch, Results, plain_number, write_int},
    connection::{Connection, Kind},
    driver::{Driver, Setup},
    error::{Cause, DbError},
    own::{Answers, Asked},
    rows::{Rows, Table},
    session::isolation_statement,
    statements::{ByStatement, StatementId},
};

/// Packets of a load. TLS lets 16,383 bytes through whole, and servers round what they are asked for down; none rounds this.
const LOAD_PACKET_BYTES: usize = 31 * 512;
/// An error ends the batch and the transaction, whichever it is; counts of rows are not read; what would be cut off is an error.
const SETTING: &str = "SET XACT_ABORT ON; SET NOCOUNT ON; SET ANSI_WARNINGS ON";
const ROLLBACK: &str = "IF @@TRANCOUNT > 0 ROLLBACK";

pub(crate) struct Mssql {
    client: Client<Session>,
    pipeline: bool,
    scripts: ByStatement<Script>,
    session: Session,
    packet_bytes: usize,
}

impl Mssql {
    async fn log_in(
        connection: &Connection,
        session: Session,
        packet_bytes: usize,
    ) -> Result<Client<Session>, DbError> {
        let mut config = Config::new();
        config.host(connection.host.as_deref().unwrap_or("localhost"));
        config.port(connection.port);
        config.database(&connection.database);
        config.application_name("assay");
        let password = connection.password.as_ref().map_or("", |password| password.reveal());
        config.authentication(AuthMethod::sql_server(&connection.user, password));
        config.encryption(EncryptionLevel::NotSupported);
        // What takes how long is ours to judge.
        config.handshake_timeout(None);
        config.command_timeout(None);
        config.packet_size(packet_bytes as u32);
        Ok(Client::connect(config, session).await?)
    }

    /// Runs statements that stand one behind the other in a batch, in one call.
    async fn call(&mut self, batch: &Batch, first: usize, count: usize, results: &mut Results) -> Result<(), DbError> {
        let (mut text, mut gives_rows) = (String::new(), Vec::with_capacity(count));
        let mut values = Vec::new();
        for index in first..first + count {
            let script = self.script(batch.statement(index))?;
            script.write(values.len(), &mut text);
            gives_rows.push(script.gives_rows);
            for parameter in batch.parameters(index) {
                values.push(value_of(parameter)?);
            }
        }
        if values.is_empty() {
            return read(self.client.simple_query(text).await?, &gives_rows, results).await;
        }
        let mut query = Query::new(text);
        values.into_iter().for_each(|value| query.bind(value));
        read(query.query(&mut self.client).await?, &gives_rows, results).await
    }

    fn script(&self, statement: StatementId) -> Result<&Script, DbError> {
        self.scripts.get(statement).ok_or_else(|| statement.not_prepared())
    }

    /// How many statements from a place on go together. What begins or ends a transaction goes alone and as plain text: a call must
    /// leave as many transactions open as it found (error 266).
    fn together(&self, batch: &Batch, first: usize) -> Result<usize, DbError> {
        let mut count = 0;
        for index in first..batch.len() {
            if self.script(batch.statement(index))?.parameter_count() == 0 {
                return Ok(count.max(1));
            }
            count += 1;
            if !self.pipeline {
                break;
            }
        }
        Ok(count)
    }

    async fn run_all(&mut self, batch: &Batch, results: &mut Results) -> Result<(), DbError> {
        let mut next = 0;
        while next < batch.len() {
            let count = self.together(batch, next)?;
            self.call(batch, next, count, results).await?;
            next += count;
        }
        Ok(())
    }

    async fn execute_text(&mut self, text: &str) -> Result<(), DbError> {
        let mut answer = self.client.simple_query(text).await?;
        while next_item(&mut answer).await?.is_some() {}
        Ok(())
    }

    async fn copy_rows(&mut self, table: Table, mut rows: impl Rows) -> Result<u64, DbError> {
        let names: Vec<_> = table.columns.split(", ").collect();
        let columns = Columns::new(&self.client.column_metadata(table.name, &names).await?)?;
        self.execute_text(&columns.statement(table.name)).await?;
        let mut sink = BulkSink::new(&columns, self.packet_bytes);
        let mut rows_count = 0;
        while let Some(count) = rows.write_next(&mut sink) {
            rows_count += count;
            if let Some(packets) = sink.packets() {
                self.session.send(packets).await?;
            }
        }
        self.session.send(sink.end()).await?;
        self.session.keep_back();
        self.execute_text("").await?;
        sink.check()?;
        Ok(rows_count)
    }

    /// Undoes the transaction that met an error.
    async fn recover(&mut self, error: DbError) -> DbError {
        if error.cause == Cause::Connection {
            return error;
        }
        match self.execute_text(ROLLBACK).await {
            Ok(()) => error,
            Err(lost) => DbError::connection(lost.text),
        }
    }
}

impl Driver for Mssql {
    async fn connect(connection: &Connection, setup: Setup<'_>) -> Result<Self, DbError> {
        let session = Session::open(connection).await?;
        let packet_bytes = if setup.bulk { LOAD_PACKET_BYTES } else { PACKET_BYTES };
        let client = Self::log_in(connection, session.clone(), packet_bytes).await?;
        let scripts = ByStatement::default();
        let mut driver = Self { client, pipeline: setup.pipeline, scripts, session, packet_bytes };
        driver.execute_text(SETTING).await?;
        if let Some(statement) = isolation_statement(Kind::Mssql, setup.isolation) {
            driver.execute_text(&statement).await?;
        }
        for statement in setup.statements {
            driver.scripts.put(statement.id, Script::new(&statement.text));
        }
        Ok(driver)
    }

    fn kind(&self) -> Kind {
        Kind::Mssql
    }

    fn has(&self, statement: StatementId) -> bool {
        self.scripts.get(statement).is_some()
    }

    async fn run(&mut self, batch: &Batch, results: &mut Results) -> Result<(), DbError> {
        match self.run_all(batch, results).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.recover(error).await),
        }
    }

    async fn copy(&mut self, table: Table, rows: impl Rows) -> Result<(u64, u64), DbError> {
        let before = self.session.sent_bytes();
        match self.copy_rows(table, rows).await {
            Ok(rows_count) => Ok((rows_count, self.session.sent_bytes() - before)),
            Err(error) => Err(self.recover(error).await),
        }
    }

    async fn execute(&mut self, sql: &str) -> Result<(), DbError> {
        match self.execute_text(sql).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.recover(error).await),
        }
    }

    async fn ask(&mut self, asked: Asked<'_>, answers: Option<&mut Answers>) -> Result<(), DbError> {
        match self.ask_own(asked, answers).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.recover(error).await),
        }
    }

    async fn roll_back(&mut self) -> Result<(), DbError> {
        self.execute_text(ROLLBACK).await
    }

    async fn close(self) {
        // The server may be gone already.
        let _ = self.client.close().await;
    }
}

async fn next_item(answer: &mut QueryStream<'_>) -> Result<Option<QueryItem>, DbError> {
    Ok(poll_fn(|context| Pin::new(&mut *answer).poll_next(context)).await.transpose()?)
}

/// Reads the answer to statements of which it is known whether they give rows: a statement that gives none has no part in it.
async fn read(mut answer: QueryStream<'_>, gives_rows: &[bool], results: &mut Results) -> Result<(), DbError> {
    let mut statements = gives_rows.iter();
    while let Some(item) = next_item(&mut answer).await? {
        match item {
            QueryItem::Metadata(_) => loop {
                let Some(gives_rows) = statements.next() else {
                    return Err(DbError::other("the server gives more results than there are statements"));
                };
                results.begin_statement();
                if *gives_rows {
                    break;
                }
            },
            QueryItem::Row(row) => {
                results.begin_row()?;
                row.cells().for_each(|(_, cell)| push_cell(cell, results));
            }
        }
    }
    statements.for_each(|_| results.begin_statement());
    Ok(())
}

/// A parameter. Whole numbers go as numbers, so that one text of a statement has one plan.
fn value_of(text: &[u8]) -> Result<ColumnData<'_>, DbError> {
    Ok(match plain_number(text) {
        Some(number) => match i32::try_from(number) {
            Ok(number) => ColumnData::I32(Some(number)),
            Err(_) => ColumnData::I64(Some(number)),
        },
        None => {
            let text = std::str::from_utf8(text).map_err(|_| DbError::other("a parameter is not a text"))?;
            ColumnData::String(Some(text.into()))
        }
    })
}

fn push_cell(cell: &ColumnData<'_>, results: &mut Results) {
    let number = match cell {
        ColumnData::U8(value) => value.map(i64::from),
        ColumnData::I16(value) => value.map(i64::from),
        ColumnData::I32(value) => value.map(i64::from),
        ColumnData::I64(value) => *value,
        ColumnData::Bit(value) => value.map(i64::from),
        ColumnData::Numeric(Some(value)) => {
            return results.push_written(|out| out.extend_from_slice(value.to_string().as_bytes()));
        }
        ColumnData::String(Some(text)) => return results.push(Some(text.as_bytes())),
        ColumnData::Numeric(None) | ColumnData::String(None) => None,
        // No transaction looks at a time.
        ColumnData::DateTime2(Some(_)) => return results.push(Some(b"")),
        _ => None,
    };
    match number {
        Some(number) => results.push_written(|out| write_int(number, out)),
        None => results.push(None),
    }
}

#[cfg(test)]
mod tests;
