//! PostgreSQL: prepared statements, all of a batch on their way before the first answer, parameters and rows as text; rows in bulk
//! as binary COPY. The client is our own because nothing on the way of a transaction may allocate or pass through another task.

mod binary;
mod own;
mod unix;
mod wire;

use bytes::{Buf, BufMut, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::{
    IsNull,
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
    },
    message::{
        backend::{self as tags, Message},
        frontend,
    },
};

use self::{
    binary::BinarySink,
    own::OwnState,
    wire::{Answer, Wire, last_words},
};
use crate::{
    batch::{Batch, Results},
    connection::{Connection, Kind},
    driver::{Driver, Setup},
    error::DbError,
    own::{Answers, Asked},
    rows::{Rows, Table},
    session::isolation_statement,
    statements::{ByStatement, Statement, StatementId},
};

/// Rows go to the server in pieces of about this size.
const COPY_BYTES: usize = 64 << 10;
/// Bytes that a socket takes at once, so that the server's answers cannot hold up what asks for them.
const PIPELINE_BYTES_MAX: usize = 64 << 10;
/// More iterations of SCRAM take seconds; PostgreSQL's default is 4,096.
const SCRAM_ITERATIONS_MAX: u32 = 1 << 20;

pub(crate) struct Postgresql {
    wire: Wire,
    pipeline: bool,
    /// Names of prepared statements.
    names: ByStatement<&'static str>,
    own: OwnState,
}

impl Postgresql {
    async fn authenticate(&mut self, connection: &Connection) -> Result<(), DbError> {
        let parameters = [
            ("user", connection.user.as_str()),
            ("database", &connection.database),
            ("client_encoding", "UTF8"),
            ("application_name", "assay"),
        ];
        frontend::startup_message(parameters, &mut self.wire.out)?;
        self.wire.send().await?;
        let password = connection.password.as_ref().map_or("", |password| password.reveal());
        let mut scram: Option<ScramSha256> = None;
        let mut proven = false;
        let mixed_up = || DbError::other("the server mixes up authentication");
        loop {
            let answer = self.wire.receive().await?;
            match self.wire.message(answer)? {
                // A peer that does not know the password cannot prove to be the server.
                Message::AuthenticationOk if scram.is_some() && !proven => {
                    return Err(DbError::other("the server did not prove that it knows the password"));
                }
                Message::AuthenticationOk => (),
                Message::AuthenticationSaslFinal(body) => {
                    let exchange = scram.as_mut().ok_or_else(mixed_up)?;
                    exchange.finish(body.data()).map_err(|error| DbError::other(error.to_string()))?;
                    proven = true;
                }
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password.as_bytes(), &mut self.wire.out)?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(connection.user.as_bytes(), password.as_bytes(), body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.wire.out)?;
                }
                Message::AuthenticationSasl(body) => {
                    if !body.mechanisms().any(|mechanism| Ok(mechanism == SCRAM_SHA_256))? {
                        return Err(DbError::other("the server wants an authentication that is not SCRAM-SHA-256"));
                    }
                    let exchange = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
                    frontend::sasl_initial_response(SCRAM_SHA_256, exchange.message(), &mut self.wire.out)?;
                    scram = Some(exchange);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let exchange = scram.as_mut().ok_or_else(mixed_up)?;
                    if scram_iterations(body.data()).is_none_or(|count| count > SCRAM_ITERATIONS_MAX) {
                        return Err(DbError::other("the server asks for a proof that takes too long to compute"));
                    }
                    exchange.update(body.data()).map_err(|error| DbError::other(error.to_string()))?;
                    frontend::sasl_response(exchange.message(), &mut self.wire.out)?;
                }
                Message::ErrorResponse(_) => return Err(self.wire.error(answer)),
                Message::ReadyForQuery(_) => return Ok(()),
                Message::BackendKeyData(_) | Message::ParameterStatus(_) | Message::NoticeResponse(_) => (),
                _ => return Err(DbError::other("the server wants an authentication that is not known here")),
            }
            if !self.wire.out.is_empty() {
                self.wire.send().await?;
            }
        }
    }

    async fn prepare(&mut self, statements: &[Statement]) -> Result<(), DbError> {
        for statement in statements {
            self.names.put(statement.id, statement.name);
            frontend::parse(statement.name, &statement.text, [], &mut self.wire.out)?;
        }
        frontend::sync(&mut self.wire.out);
        self.wire.send().await?;
        self.finish(None).await
    }

    fn put(&mut self, batch: &Batch, index: usize) -> Result<(), DbError> {
        let statement = batch.statement(index);
        let Some(name) = self.names.get(statement) else { return Err(statement.not_prepared()) };
        let write = |value: &[u8], out: &mut BytesMut| {
            out.put_slice(value);
            Ok(IsNull::No)
        };
        let bound = frontend::bind("", name, [], batch.parameters(index), write, [], &mut self.wire.out);
        bound.map_err(|_| DbError::other("a parameter is longer than the protocol allows"))?;
        frontend::execute("", 0, &mut self.wire.out)?;
        Ok(())
    }

    /// Reads until the server is ready again. After an error the transaction is ended.
    async fn finish(&mut self, mut results: Option<&mut Results>) -> Result<(), DbError> {
        let mut failed: Option<DbError> = None;
        let status = loop {
            let answer = match self.wire.receive().await {
                Ok(answer) => answer,
                Err(ended) => return Err(last_words(failed, ended)),
            };
            match answer.tag {
                tags::DATA_ROW_TAG => {
                    if let Some(results) = results.as_deref_mut() {
                        read_row(self.wire.body(answer), results)?;
                    }
                }
                tags::BIND_COMPLETE_TAG => {
                    if let Some(results) = results.as_deref_mut() {
                        results.begin_statement();
                    }
                }
                tags::ERROR_RESPONSE_TAG => {
                    let error = self.wire.error(answer);
                    failed.get_or_insert(error);
                }
                tags::READY_FOR_QUERY_TAG => break self.wire.body(answer).first().copied().unwrap_or(b'I'),
                _ => (),
            }
        };
        let Some(error) = failed else { return Ok(()) };
        if status != b'I' {
            frontend::query("ROLLBACK", &mut self.wire.out)?;
            self.wire.send().await?;
            while self.wire.receive().await?.tag != tags::READY_FOR_QUERY_TAG {}
        }
        Err(error)
    }

    /// Types of a table's columns.
    async fn types_of(&mut self, table: Table) -> Result<Vec<u32>, DbError> {
        let Table { name, columns } = table;
        let query = format!("SELECT {columns} FROM {name}");
        frontend::parse("", &query, [], &mut self.wire.out)?;
        frontend::describe(b'S', "", &mut self.wire.out)?;
        frontend::sync(&mut self.wire.out);
        self.wire.send().await?;
        let description = self.wait_for(tags::ROW_DESCRIPTION_TAG).await?;
        let Message::RowDescription(body) = self.wire.message(description)? else {
            return Err(DbError::other("the server does not describe a table"));
        };
        let types = body.fields().map(|field| Ok(field.type_oid())).collect()?;
        self.finish(None).await?;
        Ok(types)
    }

    /// Reads up to an answer of this kind; an error is read to its end.
    async fn wait_for(&mut self, tag: u8) -> Result<Answer, DbError> {
        loop {
            let answer = self.wire.receive().await?;
            if answer.tag == tag {
                return Ok(answer);
            }
            if answer.tag == tags::ERROR_RESPONSE_TAG {
                let error = self.wire.error(answer);
                // The status tells whether a transaction is left open; that the rest is in order does not matter then.
                loop {
                    match self.wire.receive().await {
                        Ok(answer) if answer.tag == tags::READY_FOR_QUERY_TAG => break,
                        Ok(_) => (),
                        Err(ended) => return Err(last_words(Some(error), ended)),
                    }
                }
                self.execute("ROLLBACK").await?;
                return Err(error);
            }
        }
    }
}

/// Iterations that a server's first message of SCRAM asks for (RFC 5802, section 5.1: attribute `i`).
fn scram_iterations(message: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(message).ok()?;
    text.split(',').find_map(|attribute| attribute.strip_prefix("i="))?.parse().ok()
}

/// Appends a row's cells.
fn read_row(mut body: &[u8], results: &mut Results) -> Result<(), DbError> {
    let cut_off = || DbError::connection("a row of the server is cut off");
    results.begin_row()?;
    let columns = body.try_get_u16().map_err(|_| cut_off())?;
    for _ in 0..columns {
        let length = body.try_get_i32().map_err(|_| cut_off())?;
        if length < 0 {
            results.push(None);
            continue;
        }
        let (cell, rest) = body.split_at_checked(length as usize).ok_or_else(cut_off)?;
        results.push(Some(cell));
        body = rest;
    }
    Ok(())
}

impl Driver for Postgresql {
    async fn connect(connection: &Connection, setup: Setup<'_>) -> Result<Self, DbError> {
        let wire = Wire::open(connection).await?;
        let mut driver =
            Self { wire, pipeline: setup.pipeline, names: ByStatement::default(), own: OwnState::default() };
        driver.authenticate(connection).await?;
        if let Some(statement) = isolation_statement(Kind::Postgresql, setup.isolation) {
            driver.execute(&statement).await?;
        }
        driver.prepare(setup.statements).await?;
        Ok(driver)
    }

    fn kind(&self) -> Kind {
        Kind::Postgresql
    }

    fn has(&self, statement: StatementId) -> bool {
        self.names.get(statement).is_some()
    }

    async fn run(&mut self, batch: &Batch, results: &mut Results) -> Result<(), DbError> {
        if !self.pipeline {
            for index in 0..batch.len() {
                self.put(batch, index)?;
                frontend::sync(&mut self.wire.out);
                self.wire.send().await?;
                self.finish(Some(results)).await?;
            }
            return Ok(());
        }
        for index in 0..batch.len() {
            self.put(batch, index)?;
        }
        frontend::sync(&mut self.wire.out);
        self.wire.send().await?;
        self.finish(Some(results)).await
    }

    async fn copy(&mut self, table: Table, mut rows: impl Rows) -> Result<(u64, u64), DbError> {
        let types = self.types_of(table).await?;
        let copy = format!("COPY {} ({}) FROM STDIN (FORMAT binary)", table.name, table.columns);
        frontend::query(&copy, &mut self.wire.out)?;
        self.wire.send().await?;
        self.wait_for(tags::COPY_IN_RESPONSE_TAG).await?;
        let mut sink = BinarySink::new(&types, BytesMut::with_capacity(COPY_BYTES + (16 << 10)));
        let (mut rows_count, mut bytes_count) = (0, 0);
        begin_copy_data(&mut sink.out);
        sink.out.put_slice(binary::HEADER);
        let mut more = true;
        while more {
            match rows.write_next(&mut sink) {
                Some(count) => rows_count += count,
                None => {
                    sink.out.put_i16(binary::TRAILER);
                    more = false;
                }
            }
            if sink.out.len() >= COPY_BYTES || !more {
                let length = sink.out.len() as u32 - 1;
                sink.out[1..5].copy_from_slice(&length.to_be_bytes());
                self.wire.send_bytes(&sink.out).await?;
                bytes_count += u64::from(length);
                begin_copy_data(&mut sink.out);
            }
        }
        frontend::copy_done(&mut self.wire.out);
        self.wire.send().await?;
        self.finish(None).await?;
        Ok((rows_count, bytes_count))
    }

    async fn execute(&mut self, sql: &str) -> Result<(), DbError> {
        frontend::query(sql, &mut self.wire.out)?;
        self.wire.send().await?;
        self.finish(None).await
    }

    async fn ask(&mut self, asked: Asked<'_>, answers: Option<&mut Answers>) -> Result<(), DbError> {
        self.own.ask(&mut self.wire, asked, answers).await
    }

    async fn begin_pipeline<'a>(&mut self, asked: impl Iterator<Item = Asked<'a>>) -> Result<(), DbError> {
        self.own.prepare(&mut self.wire, asked).await
    }

    fn put(&mut self, asked: Asked<'_>) -> Result<(), DbError> {
        self.own.put(&mut self.wire, asked, false)?;
        if self.wire.out.len() > PIPELINE_BYTES_MAX {
            self.wire.out.clear();
            return Err(DbError::other("a pipeline has more than 64 KiB of statements; end it earlier"));
        }
        Ok(())
    }

    fn sync(&mut self) {
        self.own.sync(&mut self.wire);
    }

    async fn end_pipeline(&mut self) -> Result<(), DbError> {
        self.own.sync(&mut self.wire);
        self.own.flush(&mut self.wire, None).await
    }

    fn in_transaction(&self) -> bool {
        self.own.in_transaction()
    }

    fn leave_open(&mut self) {
        self.own.leave_open();
    }

    async fn roll_back(&mut self) -> Result<(), DbError> {
        self.own.roll_back(&mut self.wire).await
    }

    async fn close(mut self) {
        frontend::terminate(&mut self.wire.out);
        // The server may be gone already.
        let _ = self.wire.send().await;
    }
}

/// An empty message of data; its length comes when it is full.
fn begin_copy_data(out: &mut BytesMut) {
    out.clear();
    out.put_slice(b"d\0\0\0\0");
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::Shutdown,
        os::unix::net::UnixListener,
        sync::atomic::{AtomicU32, Ordering},
        time::Duration,
    };

    use proptest::prelude::*;

    use super::*;
    use crate::connection::Isolation;

    /// Connects to a server that reads what comes, answers these bytes, and closes.
    fn connect_to(answer: Vec<u8>) -> Result<(), DbError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = std::env::temp_dir().join(format!("assay-wire-{}-{number}", std::process::id()));
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let _ = peer.read(&mut [0; 1024]);
            // From here on a send fails, so that no case depends on who is faster.
            peer.shutdown(Shutdown::Read).unwrap();
            let _ = peer.write_all(&answer);
        });
        let connection = Connection {
            kind: Kind::Postgresql,
            host: None,
            port: 0,
            socket: Some(socket.to_str().unwrap().into()),
            user: "user".into(),
            password: None,
            database: "database".into(),
            tls: Default::default(),
            tls_ca: None,
        };
        let statements = [Statement { id: StatementId(0), name: "call", text: "SELECT 1".into() }];
        let setup = Setup {
            isolation: Isolation::Default,
            statements: &statements,
            pipeline: true,
            bulk: false,
            within: Duration::from_secs(60),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let connected = runtime.block_on(Postgresql::connect(&connection, setup));
        server.join().unwrap();
        std::fs::remove_file(socket).unwrap();
        connected.map(|_| ())
    }

    proptest! {
        #[test]
        fn no_row_makes_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut results = Results::default();
            results.begin_statement();
            let _ = read_row(&bytes, &mut results);
        }

        #[test]
        fn a_proof_is_computed_for_so_many_iterations_at_most(count in any::<u32>(), nonce in "[a-z]{4,8}") {
            let told = scram_iterations(format!("r={nonce},s=QSXCR+Q6sek8bf92,i={count}").as_bytes());
            prop_assert_eq!(told, Some(count));
        }

        #[test]
        fn no_server_makes_connecting_panic(
            answers in prop::collection::vec(prop::sample::select(&b"RSKZENT12CDnItG"[..]).prop_flat_map(|tag| {
                prop::collection::vec(any::<u8>(), 0..40).prop_map(move |body| (tag, body))
            }), 0..12),
            noise in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut bytes = Vec::new();
            for (tag, body) in answers {
                bytes.push(tag);
                bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
                bytes.extend_from_slice(&body);
            }
            bytes.extend_from_slice(&noise);
            prop_assert!(connect_to(bytes).is_err(), "no statement was prepared");
        }
    }
}
