//! A connection's bytes: messages go out in batches, answers are read in place. `postgres-protocol` knows the messages.

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::{
    backend::{ERROR_RESPONSE_TAG, ErrorResponseBody, Header, Message},
    frontend,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::unix::UnixSocket;
use crate::{
    connection::{Connection, Tls},
    error::{Cause, DbError},
    socket::watch_over,
    tls::{TlsStream, encrypt},
};

const READ_BYTES: usize = 8 << 10;
/// Most bytes of an answer: a longer one is not PostgreSQL's.
const ANSWER_MAX_BYTES: usize = 64 << 20;

enum Stream {
    Unix(UnixSocket),
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    async fn open(connection: &Connection) -> Result<Self, DbError> {
        if let Some(socket) = &connection.socket {
            return Ok(Self::Unix(UnixSocket::connect(socket).await?));
        }
        let host = connection.host.as_deref().unwrap_or("localhost");
        let mut stream = TcpStream::connect((host, connection.port)).await?;
        watch_over(&stream)?;
        if connection.tls == Tls::Disable {
            return Ok(Self::Tcp(stream));
        }
        let mut ask = BytesMut::new();
        frontend::ssl_request(&mut ask);
        stream.write_all(&ask).await?;
        match stream.read_u8().await? {
            b'S' => Ok(Self::Tls(Box::new(encrypt(stream, host, connection).await?))),
            _ if connection.tls == Tls::Prefer => Ok(Self::Tcp(stream)),
            _ => Err(DbError::other("the server offers no TLS, which sslmode demands")),
        }
    }

    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.write_all(bytes).await,
            Self::Tcp(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer).await,
            Self::Tcp(stream) => stream.read(buffer).await,
            Self::Tls(stream) => stream.read(buffer).await,
        }
    }
}

/// Where an answer lies in the buffer.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) tag: u8,
    start: usize,
    end: usize,
}

pub(super) struct Wire {
    stream: Stream,
    /// Bytes for the next `send`.
    pub(super) out: BytesMut,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Wire {
    pub(super) async fn open(connection: &Connection) -> Result<Self, DbError> {
        Ok(Self {
            stream: Stream::open(connection).await?,
            out: BytesMut::with_capacity(1024),
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
        })
    }

    pub(super) async fn send(&mut self) -> Result<(), DbError> {
        let sent = self.stream.write_all(&self.out).await;
        self.out.clear();
        self.was_sent(sent).await
    }

    /// Sends and keeps nothing back, for large data that was put elsewhere.
    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), DbError> {
        let sent = self.stream.write_all(bytes).await;
        self.was_sent(sent).await
    }

    /// A server that hung up may have said why before, which is still to be read.
    async fn was_sent(&mut self, sent: io::Result<()>) -> Result<(), DbError> {
        let Err(error) = sent else { return Ok(()) };
        if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            while let Ok(answer) = self.receive().await {
                if answer.tag == ERROR_RESPONSE_TAG {
                    return Err(last_words(Some(self.error(answer)), error.into()));
                }
            }
        }
        Err(error.into())
    }

    /// The next answer of the server.
    pub(super) async fn receive(&mut self) -> Result<Answer, DbError> {
        loop {
            let held = &self.buffer[self.start..self.end];
            let header = Header::parse(held)?;
            let wanted = header.map_or(5, |header| header.len() as usize + 1);
            if wanted > ANSWER_MAX_BYTES {
                return Err(DbError::connection("what answers is no PostgreSQL server"));
            }
            if let Some(header) = header
                && held.len() >= wanted
            {
                let answer = Answer { tag: header.tag(), start: self.start, end: self.start + wanted };
                self.start = answer.end;
                return Ok(answer);
            }
            self.make_room(wanted);
            let count = self.stream.read(&mut self.buffer[self.end..]).await?;
            if count == 0 {
                return Err(DbError::connection("the server closed the connection"));
            }
            self.end += count;
        }
    }

    /// Makes room for a message of `wanted` bytes, after the bytes of it already held.
    fn make_room(&mut self, wanted: usize) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.start + wanted.max(READ_BYTES / 4) > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if wanted > self.buffer.len() {
            self.buffer.resize(wanted.next_power_of_two(), 0);
        }
    }

    /// Body of an answer, without its tag and length; to be read before the next answer is received.
    pub(super) fn body(&self, answer: Answer) -> &[u8] {
        &self.buffer[answer.start + 5..answer.end]
    }

    /// An answer as a message, for rare answers.
    pub(super) fn message(&self, answer: Answer) -> Result<Message, DbError> {
        let mut bytes = BytesMut::from(&self.buffer[answer.start..answer.end]);
        Message::parse(&mut bytes)?.ok_or_else(|| DbError::connection("an answer of the server is cut off"))
    }

    /// An answer with the tag of an error, as an error.
    pub(super) fn error(&self, answer: Answer) -> DbError {
        match self.message(answer) {
            Ok(Message::ErrorResponse(body)) => read_error(&body),
            Ok(_) => DbError::other("an answer of the server is not the error it should be"),
            Err(error) => error,
        }
    }
}

/// Error of a connection that ended: the server's last words, if it had any.
pub(super) fn last_words(said: Option<DbError>, ended: DbError) -> DbError {
    match said {
        Some(said) if said.cause == Cause::NoSpace => said,
        Some(said) => DbError::connection(said.text),
        None => ended,
    }
}

/// The error with its code, as one line.
fn read_error(body: &ErrorResponseBody) -> DbError {
    use postgres_protocol::message::backend::ErrorField;

    let mut fields = body.fields();
    let (mut code, mut text) = (String::new(), String::new());
    while let Ok(Some(field)) = fallible_iterator::FallibleIterator::next(&mut fields) {
        let value = |field: &ErrorField<'_>| String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = value(&field),
            b'M' => text = value(&field),
            _ => (),
        }
    }
    DbError::new(cause_of(&code), format!("{text} (SQLSTATE {code})")).with_code(&code)
}

/// Cause of a SQLSTATE (PostgreSQL's manual, appendix A).
fn cause_of(code: &str) -> Cause {
    match code {
        "40P01" => Cause::Deadlock,
        "40001" => Cause::Serialization,
        "AS001" => Cause::RolledBack,
        "53100" => Cause::NoSpace,
        "23505" => Cause::Duplicate,
        // Shut down, crashed, starting up, the connection's own end; too many connections may pass.
        "57P01" | "57P02" | "57P03" | "57P05" | "53300" => Cause::Connection,
        code if code.starts_with("08") => Cause::Connection,
        code if code.starts_with("58") => Cause::System,
        _ => Cause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_told_apart_by_what_they_mean() {
        assert_eq!(cause_of("40P01"), Cause::Deadlock);
        assert_eq!(cause_of("40001"), Cause::Serialization);
        assert_eq!(cause_of("57P01"), Cause::Connection);
        assert_eq!(cause_of("08006"), Cause::Connection);
        assert_eq!(cause_of("53100"), Cause::NoSpace);
        assert_eq!(cause_of("23505"), Cause::Duplicate);
        assert_eq!(cause_of("58030"), Cause::System);
        assert_eq!(cause_of("42601"), Cause::Other);
    }
}
