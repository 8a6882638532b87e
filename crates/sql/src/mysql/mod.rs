//! MariaDB and MySQL, which speak the same protocol: prepared statements, one after the other; rows in bulk as a file that LOAD DATA
//! reads while they are computed, or as long INSERTs where the server does not allow that.

mod bulk;
mod failures;
mod own;

use std::{sync::Arc, time::Duration};

use mysql_async::{
    Conn, DriverError, Error, InfileData, OptsBuilder, Params, SslOpts, Statement as Prepared, Value,
    prelude::Queryable,
};
use rustls::RootCertStore;

use self::bulk::{Inserts, Lines, Sent};
use crate::{
    batch::{Batch, Results, plain_number, write_int},
    connection::{Connection, Kind, Tls},
    driver::{Driver, Setup},
    error::{Cause, DbError},
    own::{Answers, Asked},
    rows::{Rows, Table},
    sections::placeholders,
    session::isolation_statement,
    socket::KEEPALIVE_AFTER_S,
    statements::{ByStatement, Statement, StatementId},
};

/// Statements of a load are far smaller, and every server takes this much unless it was told otherwise.
const PACKET_BYTES_MAX: usize = 16 << 20;
/// The longest time the server allows a user to think.
const IDLE_SECONDS_MAX: usize = 31_536_000;

pub(crate) struct Mysql {
    conn: Conn,
    kind: Kind,
    prepared: ByStatement<Prepared>,
    /// Statements of the user's own that are not prepared.
    as_text: ByStatement<()>,
    reads_files: bool,
    /// Whether the client ends transactions that failed.
    leaves_open: bool,
}

impl Mysql {
    /// Texts are of one byte per character in the tables; the same here saves the server from converting them. What the server
    /// would otherwise cut short or replace is an error.
    fn setting() -> String {
        format!(
            "SET NAMES latin1 COLLATE latin1_bin, autocommit = 1, sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION', \
             wait_timeout = {IDLE_SECONDS_MAX}"
        )
    }

    async fn open(connection: &Connection, statements_count: usize) -> Result<Conn, DbError> {
        let tls = tls_options(connection)?;
        match Conn::new(options(connection, tls, statements_count)).await {
            Err(Error::Driver(DriverError::NoClientSslFlagFromServer)) if connection.tls == Tls::Prefer => {
                Ok(Conn::new(options(connection, None, statements_count)).await?)
            }
            opened => Ok(opened?),
        }
    }

    async fn prepare(&mut self, statements: &[Statement]) -> Result<(), DbError> {
        for statement in statements {
            let text = placeholders(&statement.text, |out, _| out.push('?'));
            self.prepared.put(statement.id, self.conn.prep(text).await?);
        }
        Ok(())
    }

    async fn run_one(&mut self, batch: &Batch, index: usize, results: &mut Results) -> Result<(), DbError> {
        let statement = batch.statement(index);
        let Some(prepared) = self.prepared.get(statement) else { return Err(statement.not_prepared()) };
        let values = batch.parameters(index).map(value_of).collect();
        let mut answer = self.conn.exec_iter(prepared, Params::Positional(values)).await?;
        while let Some(row) = answer.next().await? {
            results.begin_row()?;
            (0..row.len()).for_each(|column| push_cell(row.as_ref(column), results));
        }
        // After the rows of a procedure comes how it ended.
        Ok(answer.drop_result().await?)
    }

    /// Undoes the transaction that met an error.
    async fn recover(&mut self, error: DbError) -> DbError {
        if error.cause == Cause::Connection {
            return error;
        }
        match self.conn.query_drop("ROLLBACK").await {
            Ok(()) => error,
            Err(lost) => DbError::connection(DbError::from(lost).text),
        }
    }

    async fn copy_file(&mut self, table: Table, rows: impl Rows) -> Result<(u64, u64), DbError> {
        let sent = Arc::new(Sent::default());
        let lines = Lines::new(rows, sent.clone());
        self.conn.set_infile_handler(async move { Ok(Box::pin(lines) as InfileData) });
        let Table { name, columns } = table;
        self.conn
            .query_drop(format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET latin1 ({columns})"))
            .await?;
        let (rows_count, bytes_count) = sent.counts();
        let (loaded, warnings) = (self.conn.affected_rows(), self.conn.get_warnings());
        if warnings > 0 || loaded != rows_count {
            // A file of the client is loaded as far as possible: what is an error elsewhere is only a warning here.
            let warning: Option<(String, u16, String)> = self.conn.query_first("SHOW WARNINGS LIMIT 1").await?;
            let first = warning.map_or(String::new(), |(_, code, text)| format!(": {text} (error {code})"));
            return Err(DbError::other(format!(
                "{name}: {loaded} of {rows_count} rows were loaded, {warnings} warnings{first}"
            )));
        }
        Ok((rows_count, bytes_count))
    }

    async fn copy_inserts(&mut self, table: Table, rows: impl Rows) -> Result<(u64, u64), DbError> {
        let mut inserts = Inserts::new(format!("INSERT INTO {} ({}) VALUES ", table.name, table.columns), rows);
        let sent = Sent::default();
        while let Some((sql, rows_count)) = inserts.next() {
            self.conn.query_drop(sql).await?;
            sent.add(rows_count, sql.len() as u64);
        }
        Ok(sent.counts())
    }
}

impl Driver for Mysql {
    async fn connect(connection: &Connection, setup: Setup<'_>) -> Result<Self, DbError> {
        let conn = Self::open(connection, setup.statements.len()).await?;
        let (prepared, as_text) = (ByStatement::default(), ByStatement::default());
        let mut driver =
            Self { conn, kind: connection.kind, prepared, as_text, reads_files: false, leaves_open: false };
        if let Some(statement) = isolation_statement(connection.kind, setup.isolation) {
            driver.execute(&statement).await?;
        }
        driver.prepare(setup.statements).await?;
        if setup.bulk {
            let allowed: Option<u8> = driver.conn.query_first("SELECT @@local_infile").await?;
            driver.reads_files = allowed == Some(1);
        }
        Ok(driver)
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn has(&self, statement: StatementId) -> bool {
        self.prepared.get(statement).is_some()
    }

    async fn run(&mut self, batch: &Batch, results: &mut Results) -> Result<(), DbError> {
        for index in 0..batch.len() {
            results.begin_statement();
            if let Err(error) = self.run_one(batch, index, results).await {
                return Err(self.recover(error).await);
            }
        }
        Ok(())
    }

    async fn copy(&mut self, table: Table, rows: impl Rows) -> Result<(u64, u64), DbError> {
        let copied =
            if self.reads_files { self.copy_file(table, rows).await } else { self.copy_inserts(table, rows).await };
        match copied {
            Ok(counts) => Ok(counts),
            Err(error) => Err(self.recover(error).await),
        }
    }

    async fn execute(&mut self, sql: &str) -> Result<(), DbError> {
        match self.conn.query_drop(sql).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.recover(error.into()).await),
        }
    }

    async fn ask(&mut self, asked: Asked<'_>, answers: Option<&mut Answers>) -> Result<(), DbError> {
        match self.ask_own(asked, answers).await {
            Ok(()) => Ok(()),
            Err(error) if self.leaves_open => Err(error),
            Err(error) => Err(self.recover(error).await),
        }
    }

    fn leave_open(&mut self) {
        self.leaves_open = true;
    }

    fn in_transaction(&self) -> bool {
        self.is_in_transaction()
    }

    async fn roll_back(&mut self) -> Result<(), DbError> {
        self.roll_back_own().await
    }

    async fn close(self) {
        // The server may be gone already.
        let _ = self.conn.disconnect().await;
    }
}

fn options(connection: &Connection, tls: Option<SslOpts>, statements_count: usize) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname(connection.host.as_deref().unwrap_or("localhost"))
        .tcp_port(connection.port)
        .socket(connection.socket.as_deref())
        // Who names a host means the network, even where a socket would do.
        .prefer_socket(false)
        .tcp_nodelay(true)
        .user(Some(&connection.user))
        .pass(connection.password.as_ref().map(|password| password.reveal()))
        .db_name(Some(&connection.database))
        .ssl_opts(tls)
        .stmt_cache_size(statements_count)
        // Given here, they are not asked for.
        .max_allowed_packet(Some(PACKET_BYTES_MAX))
        .tcp_keepalive(Some(Duration::from_secs(KEEPALIVE_AFTER_S as u64)))
        .wait_timeout(Some(IDLE_SECONDS_MAX))
        .init(vec![Mysql::setting()])
}

/// How to encrypt; not at all on a socket, which stays on the machine.
fn tls_options(connection: &Connection) -> Result<Option<SslOpts>, DbError> {
    let options = SslOpts::default();
    Ok(match connection.tls {
        _ if connection.socket.is_some() => None,
        Tls::Disable => None,
        Tls::Prefer | Tls::Require => {
            Some(options.with_danger_accept_invalid_certs(true).with_danger_skip_domain_validation(true))
        }
        Tls::VerifyCa | Tls::VerifyFull => {
            // This version of the client looks at the name nevertheless, which errs on the safe side.
            let skips_name = connection.tls == Tls::VerifyCa;
            let roots = roots(connection.tls_ca.as_deref())?;
            let options =
                options.with_disable_built_in_roots(true).with_root_certs(roots.into_iter().map(Into::into).collect());
            Some(options.with_danger_skip_domain_validation(skips_name))
        }
    })
}

/// Trusted authorities: from a file, else the readable ones of the system.
fn roots(file: Option<&str>) -> Result<Vec<Vec<u8>>, DbError> {
    if let Some(path) = file {
        let pem = std::fs::read(path)
            .map_err(|error| DbError::other(format!("{path}: cannot be read as certificates: {error}")))?;
        return Ok(vec![pem]);
    }
    let mut store = RootCertStore::empty();
    let known = rustls_native_certs::load_native_certs().certs.into_iter();
    Ok(known
        .filter(|certificate| store.add(certificate.clone()).is_ok())
        .map(|certificate| certificate.to_vec())
        .collect())
}

/// A parameter. Whole numbers go as numbers, so that keys are compared as what they are; a text of digits alone that is not the one way to
/// write its number stays a text.
fn value_of(text: &[u8]) -> Value {
    plain_number(text).map_or_else(|| Value::Bytes(text.to_vec()), Value::Int)
}

fn push_cell(value: Option<&Value>, results: &mut Results) {
    match value {
        None | Some(Value::NULL) => results.push(None),
        Some(Value::Bytes(bytes)) => results.push(Some(bytes)),
        Some(Value::Int(value)) => results.push_written(|out| write_int(*value, out)),
        Some(Value::UInt(value)) => results.push_written(|out| out.extend_from_slice(value.to_string().as_bytes())),
        Some(Value::Float(value)) => results.push_written(|out| out.extend_from_slice(value.to_string().as_bytes())),
        Some(Value::Double(value)) => results.push_written(|out| out.extend_from_slice(value.to_string().as_bytes())),
        // No transaction looks at a time.
        Some(Value::Date(..) | Value::Time(..)) => results.push(Some(b"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Password;

    fn connection(tls: Tls, socket: Option<&str>) -> Connection {
        Connection {
            kind: Kind::Mariadb,
            host: Some("db.example".into()),
            port: 3306,
            socket: socket.map(Into::into),
            user: "tester".into(),
            password: Some(Password::new("secret".into())),
            database: "tpcc".into(),
            tls,
            tls_ca: None,
        }
    }

    #[test]
    fn numbers_go_as_numbers_and_all_else_as_text() {
        assert_eq!(value_of(b"-17"), Value::Int(-17));
        for text in ["007", "1.50", "BARBARBAR"] {
            assert_eq!(value_of(text.as_bytes()), Value::Bytes(text.into()), "{text}");
        }
    }

    #[test]
    fn cells_are_text() {
        let cells = [
            None,
            Some(Value::NULL),
            Some(Value::Bytes(b"1.50".to_vec())),
            Some(Value::Int(-3)),
            Some(Value::UInt(u64::MAX)),
            Some(Value::Double(0.5)),
            Some(Value::Date(2025, 1, 1, 0, 0, 0, 0)),
        ];
        let mut results = Results::default();
        results.begin_statement();
        results.begin_row().unwrap();
        cells.iter().for_each(|cell| push_cell(cell.as_ref(), &mut results));
        let row = results.row(0, 0).unwrap();
        let texts: Vec<_> = (0..cells.len()).map(|column| row.text(column).map(String::from_utf8_lossy)).collect();
        let texts: Vec<_> = texts.iter().map(|text| text.as_deref()).collect();
        assert_eq!(texts, [None, None, Some("1.50"), Some("-3"), Some("18446744073709551615"), Some("0.5"), Some("")]);
    }

    #[test]
    fn a_socket_is_not_encrypted_and_tls_is_what_the_plan_says() {
        assert_eq!(tls_options(&connection(Tls::Require, Some("/run/s"))).unwrap(), None);
        assert_eq!(tls_options(&connection(Tls::Disable, None)).unwrap(), None);
        for (tls, accepts, skips) in [
            (Tls::Prefer, true, true),
            (Tls::Require, true, true),
            (Tls::VerifyCa, false, true),
            (Tls::VerifyFull, false, false),
        ] {
            let options = tls_options(&connection(tls, None)).unwrap().unwrap();
            assert_eq!((options.accept_invalid_certs(), options.skip_domain_validation()), (accepts, skips));
        }
    }

    #[test]
    fn an_authority_that_is_not_there_is_named() {
        let mut connection = connection(Tls::VerifyFull, None);
        connection.tls_ca = Some("/nowhere/ca.pem".into());
        assert!(tls_options(&connection).unwrap_err().text.starts_with("/nowhere/ca.pem: cannot be read"));
    }
}
