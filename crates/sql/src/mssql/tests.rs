//! The driver against a server that knows just enough of the protocol (MS-TDS) to be talked to.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use proptest::prelude::*;
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    login::{ENCRYPT_NOT_SUPPORTED, ENCRYPT_ON, Enveloped, Wire, encryption, options, packet},
    *,
};
use crate::{
    connection::{Isolation, Password, Tls},
    rows::sample::{TABLE, rows},
    sections::Section,
    session::session_sections,
    statements::{Statement, statements_of},
};

const BATCH: u8 = 1;
const CALL: u8 = 3;
const ANSWER: u8 = 4;
const BULK: u8 = 7;
const LOGIN: u8 = 16;
const PRE_LOGIN: u8 = 18;

const CERTIFICATE: &[u8] = include_bytes!("test_certificate.der");
const KEY: &[u8] = include_bytes!("test_key.der");

/// Messages to a server: their kinds and contents.
type Seen = Arc<Mutex<Vec<(u8, Vec<u8>)>>>;
/// The server's answer to a message after the login; without one, the connection ends.
type Script = fn(u8, &[u8]) -> Option<Vec<u8>>;

struct Server {
    connection: Connection,
    seen: Seen,
}

impl Server {
    /// Takes connections one after the other. `offer` is how it wants to encrypt.
    async fn start(tls: Tls, offer: u8, answer: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Seen::default();
        let own = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, offer, answer, &own).await;
            }
        });
        let connection = Connection {
            kind: Kind::Mssql,
            host: Some("localhost".into()),
            port,
            socket: None,
            user: "tester".into(),
            password: Some(Password::new("secret".into())),
            database: "tpcc".into(),
            tls,
            tls_ca: None,
        };
        Self { connection, seen }
    }

    async fn connect(&self, pipeline: bool) -> Result<Mssql, DbError> {
        self.connect_for(pipeline, false).await
    }

    async fn connect_to_load(&self) -> Result<Mssql, DbError> {
        self.connect_for(true, true).await
    }

    async fn connect_for(&self, pipeline: bool, bulk: bool) -> Result<Mssql, DbError> {
        let setup = Setup {
            isolation: Isolation::Default,
            statements: &statements(),
            pipeline,
            bulk,
            within: Duration::from_secs(60),
        };
        Mssql::connect(&self.connection, setup).await
    }

    /// Kinds of the messages so far.
    fn kinds(&self) -> Vec<u8> {
        self.seen.lock().unwrap().iter().map(|(kind, _)| *kind).collect()
    }

    /// Whether a message of a kind had a text in it.
    fn saw(&self, kind: u8, text: &str) -> bool {
        self.seen.lock().unwrap().iter().any(|(known, body)| *known == kind && has(body, text))
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(Duration::from_secs(60), test).await.expect("the test hangs") })
}

async fn serve(mut stream: TcpStream, offer: u8, answer: Script, seen: &Seen) {
    let Some((PRE_LOGIN, mut asked)) = message(&mut stream).await else {
        panic!("a connection begins with a pre-login")
    };
    let wish = *encryption(&mut asked).unwrap();
    let mut own = options();
    *encryption(&mut own).unwrap() = offer;
    stream.write_all(&packet(ANSWER, &own)).await.unwrap();
    let is_encrypted = wish == ENCRYPT_ON && offer == ENCRYPT_ON;
    let mut stream: Box<dyn Wire> = if is_encrypted {
        let key = PrivateKeyDer::try_from(KEY).unwrap();
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CERTIFICATE.into()], key)
            .unwrap();
        let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(Enveloped::new(stream)).await else { return };
        stream.get_mut().0.open();
        Box::new(stream)
    } else {
        Box::new(stream)
    };
    while let Some((kind, body)) = message(&mut stream).await {
        let reply = match kind {
            LOGIN => Some(logged_in()),
            BATCH if has(&body, SETTING) => Some(done()),
            _ => answer(kind, &body),
        };
        seen.lock().unwrap().push((kind, body));
        let Some(reply) = reply else { return };
        stream.write_all(&packet(ANSWER, &reply)).await.unwrap();
        stream.flush().await.unwrap();
    }
}

/// The next message; nothing once the client has gone.
async fn message(stream: &mut (impl Wire + ?Sized)) -> Option<(u8, Vec<u8>)> {
    let mut body = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).await.ok()?;
        let start = body.len();
        body.resize(start + usize::from(u16::from_be_bytes([header[2], header[3]])) - header.len(), 0);
        stream.read_exact(&mut body[start..]).await.ok()?;
        if header[1] == 1 {
            return Some((header[0], body));
        }
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn has(body: &[u8], text: &str) -> bool {
    let text = utf16(text);
    body.windows(text.len()).any(|part| part == text)
}

fn done() -> Vec<u8> {
    let mut token = vec![0xfd];
    token.extend_from_slice(&[0; 12]);
    token
}

fn logged_in() -> Vec<u8> {
    let mut body = vec![1, 0x74, 0, 0, 4, 4];
    body.extend(utf16("Test"));
    body.extend_from_slice(&[15, 0, 0, 0]);
    let mut token = vec![0xad];
    token.extend_from_slice(&(body.len() as u16).to_le_bytes());
    token.append(&mut body);
    token.append(&mut done());
    token
}

fn failed(number: u32, text: &str) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend_from_slice(&[1, 16]);
    body.extend_from_slice(&(text.len() as u16).to_le_bytes());
    body.extend(utf16(text));
    body.extend_from_slice(&[0; 6]);
    let mut token = vec![0xaa];
    token.extend_from_slice(&(body.len() as u16).to_le_bytes());
    token.append(&mut body);
    // The error is counted in what ends the answer.
    token.extend_from_slice(&[0xfd, 2]);
    token.extend_from_slice(&[0; 11]);
    token
}

const INT: &[u8] = &[0x38];
const INT_OR_NULL: &[u8] = &[0x26, 4];
const VARCHAR: &[u8] = &[0xa7, 50, 0, 9, 4, 0xd0, 0, 0x34];
const DECIMAL: &[u8] = &[0x6a, 9, 12, 2];
const TIME_OR_NULL: &[u8] = &[0x2a, 3];

/// Columns of a result: names and types.
fn columns(columns: &[(&str, &[u8])]) -> Vec<u8> {
    let mut token = vec![0x81];
    token.extend_from_slice(&(columns.len() as u16).to_le_bytes());
    for (name, kind) in columns {
        let may_be_null = matches!(*kind, INT_OR_NULL | TIME_OR_NULL);
        // No type of a user's; may be written.
        token.extend_from_slice(&[0, 0, 0, 0, 8 | u8::from(may_be_null), 0]);
        token.extend_from_slice(kind);
        token.push(name.len() as u8);
        token.extend(utf16(name));
    }
    token
}

fn one_row(order: i32) -> Vec<u8> {
    let mut answer = columns(&[("o_id", INT), ("name", VARCHAR), ("tax", DECIMAL), ("carrier", INT_OR_NULL)]);
    answer.push(0xd1);
    answer.extend_from_slice(&order.to_le_bytes());
    answer.extend_from_slice(b"\x04\0abcd");
    answer.extend_from_slice(&[5, 0, 5, 0, 0, 0]);
    answer.push(0);
    answer
}

/// Answers every batch, and a call with a row for each of its statements that gives some.
fn answers(kind: u8, body: &[u8]) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    if kind == CALL {
        let selects = ["SELECT w_tax", "OUTPUT deleted"].iter().filter(|text| has(body, text));
        for (number, _) in selects.enumerate() {
            answer.append(&mut one_row(3001 + number as i32));
        }
    }
    answer.append(&mut done());
    Some(answer)
}

const NAMES: [&str; 6] = ["begin", "commit", "rollback", "read", "insert", "update"];

fn statements() -> Vec<Statement> {
    let mut sections = session_sections(Kind::Mssql);
    for (name, text) in [
        ("read", "SELECT w_tax FROM warehouse WHERE w_id = $1"),
        ("insert", "INSERT INTO new_order (o_id, d_id, w_id) VALUES ($1, $2, $3)"),
        ("update", "UPDATE district SET o_id = o_id + 1\nOUTPUT deleted.o_id\nWHERE w_id = $1 AND d_id = $2"),
    ] {
        sections.push(Section { name: name.into(), text: text.into() });
    }
    statements_of(&NAMES, &sections, |_| true)
}

/// A transaction, with a statement that gives no rows between two that do.
fn order() -> Batch {
    let id = |name| StatementId(NAMES.iter().position(|known| *known == name).unwrap() as u16);
    let mut batch = Batch::default();
    batch.add(id("begin"));
    batch.add(id("read")).int(7);
    batch.add(id("insert")).int(1).int(2).int(7);
    batch.add(id("update")).int(7).int(2);
    batch.add(id("commit"));
    batch
}

#[test]
fn statements_go_together_and_their_rows_come_back_as_text() {
    run(async {
        let server = Server::start(Tls::Disable, ENCRYPT_NOT_SUPPORTED, answers).await;
        let mut driver = server.connect(true).await.unwrap();
        let mut results = Results::default();
        driver.run(&order(), &mut results).await.unwrap();
        assert_eq!((0..5).map(|place| results.count(place)).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
        let row = results.row(3, 0).unwrap();
        assert_eq!(
            (row.int(0), row.text(1), row.text(2), row.text(3)),
            (Some(3002), Some(&b"abcd"[..]), Some(&b"-0.05"[..]), None)
        );
        assert_eq!(server.kinds(), [LOGIN, BATCH, BATCH, CALL, BATCH]);
        assert!(server.saw(LOGIN, "tester") && server.saw(LOGIN, "tpcc") && !server.saw(LOGIN, "secret"));
        assert!(server.saw(BATCH, "BEGIN TRANSACTION") && server.saw(BATCH, "COMMIT"));
        assert!(server.saw(CALL, "w_id = @P1;\n") && server.saw(CALL, "VALUES (@P2, @P3, @P4);\n"));
        assert!(server.saw(CALL, "@P5 int,@P6 int"));
    });
}

#[test]
fn without_pipelining_each_statement_is_a_call() {
    run(async {
        let server = Server::start(Tls::Disable, ENCRYPT_NOT_SUPPORTED, answers).await;
        let mut driver = server.connect(false).await.unwrap();
        let mut results = Results::default();
        driver.run(&order(), &mut results).await.unwrap();
        assert_eq!(server.kinds(), [LOGIN, BATCH, BATCH, CALL, CALL, CALL, BATCH]);
        assert_eq!(results.row(3, 0).unwrap().int(0), Some(3001));
    });
}

#[test]
fn after_an_error_the_transaction_is_undone() {
    run(async {
        let deadlock: Script =
            |kind, _| Some(if kind == CALL { failed(1205, "chosen as the\nvictim") } else { done() });
        let server = Server::start(Tls::Disable, ENCRYPT_NOT_SUPPORTED, deadlock).await;
        let mut driver = server.connect(true).await.unwrap();
        let error = driver.run(&order(), &mut Results::default()).await.unwrap_err();
        assert_eq!((error.cause, error.text.as_str()), (Cause::Deadlock, "chosen as the victim (error 1205)"));
        assert_eq!(server.kinds(), [LOGIN, BATCH, BATCH, CALL, BATCH]);
        assert!(server.saw(BATCH, ROLLBACK));
        driver.execute("SELECT 1").await.unwrap();
    });
}

#[test]
fn a_connection_that_ends_is_lost() {
    run(async {
        let server = Server::start(Tls::Disable, ENCRYPT_NOT_SUPPORTED, |_, _| None).await;
        let mut driver = server.connect(true).await.unwrap();
        let error = driver.run(&order(), &mut Results::default()).await.unwrap_err();
        assert_eq!(error.cause, Cause::Connection, "{}", error.text);
    });
}

#[test]
fn the_handshake_of_tls_is_wrapped_and_what_follows_is_not() {
    run(async {
        for tls in [Tls::Prefer, Tls::Require] {
            let server = Server::start(tls, ENCRYPT_ON, answers).await;
            let mut driver = server.connect(true).await.unwrap();
            driver.execute("SELECT 1").await.unwrap();
            assert_eq!(server.kinds(), [LOGIN, BATCH, BATCH]);
        }
    });
}

#[test]
fn a_wrapped_handshake_begins_as_a_message_of_a_pre_login() {
    run(async {
        let (stream, mut other) = tokio::io::duplex(1 << 16);
        let mut wrapped = Enveloped::new(stream);
        wrapped.write_all(b"\x16\x03\x01").await.unwrap();
        wrapped.write_all(&[9; 5000]).await.unwrap();
        wrapped.flush().await.unwrap();
        let mut sent = vec![0; 5003 + 16];
        other.read_exact(&mut sent).await.unwrap();
        assert_eq!(sent[..11], [18, 0, 0x10, 0, 0, 0, 1, 0, 0x16, 3, 1]);
        assert_eq!(sent[4096..4104], [18, 1, 0x03, 0x9b, 0, 0, 2, 0]);
        // Packets of the answer may arrive in pieces.
        other.write_all(&packet(ANSWER, b"ab")[..9]).await.unwrap();
        let mut read = [0; 4];
        assert_eq!(wrapped.read(&mut read).await.unwrap(), 1);
        other.write_all(b"b").await.unwrap();
        assert_eq!(wrapped.read(&mut read).await.unwrap(), 1);
        wrapped.open();
        other.write_all(b"bare").await.unwrap();
        wrapped.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"bare");
    });
}

#[test]
fn encryption_is_what_the_plan_says_or_an_error() {
    run(async {
        let demanded = 3;
        for (tls, offer, said) in [
            (Tls::Disable, demanded, "the server demands TLS, which the connection forgoes"),
            (Tls::Require, ENCRYPT_NOT_SUPPORTED, "the server offers no TLS, which the connection demands"),
            (Tls::VerifyFull, ENCRYPT_NOT_SUPPORTED, "the server offers no TLS, which the connection demands"),
        ] {
            let server = Server::start(tls, offer, answers).await;
            let error = server.connect_to_load().await.err().unwrap();
            assert_eq!((error.cause, error.text.as_str()), (Cause::Other, said));
        }
        let server = Server::start(Tls::VerifyFull, ENCRYPT_ON, answers).await;
        let error = server.connect_to_load().await.err().unwrap();
        assert!(error.text.starts_with("TLS: "), "{}", error.text);
        assert!(server.kinds().is_empty());
        let server = Server::start(Tls::Prefer, ENCRYPT_NOT_SUPPORTED, answers).await;
        server.connect_to_load().await.unwrap();
    });
}

#[test]
fn what_is_not_sql_server_is_told_so() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut server = Server::start(Tls::Prefer, ENCRYPT_ON, answers).await;
        server.connection.port = listener.local_addr().unwrap().port();
        let answer = async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        };
        tokio::spawn(answer);
        let opened = server.connect_to_load().await;
        assert_eq!(opened.err().unwrap().text, "what answers is not SQL Server");
    });
}

/// Describes the tables that are loaded, and takes their rows.
fn takes_rows(kind: u8, body: &[u8]) -> Option<Vec<u8>> {
    let mut answer = match kind {
        BATCH if has(body, "SELECT TOP 0 id") => {
            columns(&[("id", INT), ("amount", DECIMAL), ("name", VARCHAR), ("at", TIME_OR_NULL), ("note", INT_OR_NULL)])
        }
        _ => Vec::new(),
    };
    answer.append(&mut done());
    Some(answer)
}

#[test]
fn rows_are_loaded_in_bulk() {
    run(async {
        let server = Server::start(Tls::Disable, ENCRYPT_NOT_SUPPORTED, takes_rows).await;
        let mut driver = server.connect_to_load().await.unwrap();
        let (count, bytes) = driver.copy(TABLE, rows(3000)).await.unwrap();
        assert!(count == 3000 && bytes > 3000 * 30, "{count} {bytes}");
        let types = "[at] datetime2(3), [note] int)";
        assert!(server.saw(BATCH, "INSERT BULK sample ([id] int") && server.saw(BATCH, types));
        let seen = server.seen.lock().unwrap();
        let (_, body) = seen.iter().find(|(kind, _)| *kind == BULK).unwrap();
        // Of the second row: its token and number, minus two hundredths, the text; then midnight and the date.
        let second = body.windows(5).position(|part| part == [0xd1, 2, 0, 0, 0]).unwrap();
        assert_eq!(body[second + 5..second + 15], [9, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        let text = second + body[second..].windows(2).position(|part| part == b"a ").unwrap();
        assert_eq!(body[text + 30..text + 38], [7, 0, 0, 0, 0, 0xb3, 0x47, 0x0b]);
        assert_eq!(body[body.len() - 13], 0xfd);
    });
}

#[test]
fn a_load_that_the_server_refuses_leaves_the_connection_as_it_was() {
    run(async {
        let full: Script =
            |kind, body| if kind == BULK { Some(failed(1105, "no room")) } else { takes_rows(kind, body) };
        let server = Server::start(Tls::Disable, ENCRYPT_NOT_SUPPORTED, full).await;
        let mut driver = server.connect_to_load().await.unwrap();
        let error = driver.copy(TABLE, rows(3000)).await.unwrap_err();
        assert_eq!(error.cause, Cause::NoSpace);
        assert!(server.saw(BATCH, ROLLBACK));
        driver.execute("SELECT 1").await.unwrap();
    });
}

#[test]
fn parameters_are_numbers_or_text() {
    assert_eq!(value_of(b"17").unwrap(), ColumnData::I32(Some(17)));
    assert_eq!(value_of(b"-5000000000").unwrap(), ColumnData::I64(Some(-5_000_000_000)));
    assert_eq!(value_of(b"1.50").unwrap(), ColumnData::String(Some("1.50".into())));
    assert!(value_of(b"\xff").is_err());
}

/// What a statement is answered: columns, a row, an error and the end.
fn whole_answer() -> Vec<u8> {
    let mut answer = one_row(3001);
    answer.append(&mut failed(1205, "chosen as the victim"));
    answer.append(&mut done());
    answer
}

/// Connects and runs a transaction on a server whose answer to the login, and to each call, is these bytes in a packet;
/// after that it is gone.
fn attack(login: Vec<u8>, call: Vec<u8>) -> Result<(), DbError> {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connection = Connection {
            kind: Kind::Mssql,
            host: Some("127.0.0.1".into()),
            port: listener.local_addr().unwrap().port(),
            socket: None,
            user: "tester".into(),
            password: None,
            database: "tpcc".into(),
            tls: Tls::Disable,
            tls_ca: None,
        };
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            let _ = message(&mut stream).await;
            let mut own = options();
            *encryption(&mut own).unwrap() = ENCRYPT_NOT_SUPPORTED;
            stream.write_all(&packet(ANSWER, &own)).await?;
            while let Some((kind, _)) = message(&mut stream).await {
                let (reply, is_last) = match kind {
                    LOGIN => (login.clone(), login != logged_in()),
                    CALL => (call.clone(), true),
                    _ => (done(), false),
                };
                stream.write_all(&packet(ANSWER, &reply)).await?;
                if is_last {
                    break;
                }
            }
            std::io::Result::Ok(())
        });
        let setup = Setup {
            isolation: Isolation::Default,
            statements: &statements(),
            pipeline: true,
            bulk: false,
            within: Duration::from_secs(60),
        };
        let ended = match Mssql::connect(&connection, setup).await {
            Ok(mut driver) => {
                let ran = driver.run(&order(), &mut Results::default()).await;
                drop(driver);
                ran
            }
            Err(error) => Err(error),
        };
        server.abort();
        ended
    })
}

/// Bytes with some of them changed, and perhaps cut off.
fn broken(bytes: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6);
    (changes, any::<Option<prop::sample::Index>>()).prop_map(move |(changes, cut)| {
        let mut bytes = bytes.clone();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes
    })
}

proptest! {
    #[test]
    fn no_answer_to_a_login_makes_connecting_panic(
        login in prop_oneof![broken(logged_in()), prop::collection::vec(any::<u8>(), 0..60)],
    ) {
        let _ = attack(login, whole_answer());
    }

    #[test]
    fn no_answer_to_a_statement_makes_reading_panic(
        call in prop_oneof![broken(whole_answer()), prop::collection::vec(any::<u8>(), 0..60)],
    ) {
        let _ = attack(logged_in(), call);
    }
}
