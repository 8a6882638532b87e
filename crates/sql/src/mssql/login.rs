//! The way into a server: pre-login, TLS, and the stream that the client works on.
//!
//! The client's own TLS would bring a second library of cryptography, so this is done before it begins. It still sends a pre-login,
//! which is not passed on: it reads the answer that the server gave to ours, changed to one that offers no encryption. In the same way
//! it reads the answer to rows that were sent past it.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};

use crate::{
    batch::RESULTS_MAX_BYTES,
    connection::{Connection, Tls},
    error::DbError,
    socket::watch_over,
    tls,
};

/// Type, status, length, process, number and window.
pub(super) const HEADER_BYTES: usize = 8;
pub(super) const END_OF_MESSAGE: u8 = 1;
const ANSWER: u8 = 4;
const PRE_LOGIN: u8 = 18;
/// Bytes of a packet that every server accepts before another size is agreed on.
pub(super) const PACKET_BYTES: usize = 4096;

/// Bytes of one answer. The client keeps a value whole before anybody sees it; kept rows are text of half as many bytes.
const ANSWER_MAX_BYTES: u64 = 2 * RESULTS_MAX_BYTES as u64;

/// Option of a pre-login: how to encrypt.
const ENCRYPTION: u8 = 1;
const OPTIONS_END: u8 = 0xff;
const ENCRYPT_OFF: u8 = 0;
pub(super) const ENCRYPT_ON: u8 = 1;
pub(super) const ENCRYPT_NOT_SUPPORTED: u8 = 2;

/// A pre-login without the answer to how to encrypt: version 0, the default instance, no thread, one result at a time.
const OPTIONS: [(u8, &[u8]); 5] = [(0, &[0; 6]), (ENCRYPTION, &[ENCRYPT_OFF]), (2, &[0]), (3, &[0; 4]), (4, &[0])];

pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire for S {}

/// Stream for the client after the encryption is agreed on. A clone is another handle of the same connection.
#[derive(Clone)]
pub(super) struct Session(Arc<Mutex<Line>>);

struct Line {
    wire: Box<dyn Wire>,
    /// The rest of the answer to the client's pre-login. It sends nothing else before it has read this.
    greeting: Vec<u8>,
    /// Whether the client's bytes up to its next flush stay here.
    keeps_back: bool,
    sent_bytes: u64,
    /// Bytes received since something was sent.
    answer_bytes: u64,
}

impl Session {
    /// Connects, and encrypts as the plan demands.
    pub(super) async fn open(connection: &Connection) -> Result<Self, DbError> {
        let host = connection.host.as_deref().unwrap_or("localhost");
        let wish = if connection.tls == Tls::Disable { ENCRYPT_NOT_SUPPORTED } else { ENCRYPT_ON };
        let (mut stream, mut answer) = pre_login(connection, host, wish).await?;
        let mut answered = encryption(&mut answer)?;
        if connection.tls == Tls::Prefer && *answered == ENCRYPT_NOT_SUPPORTED {
            // A server without TLS does not go on after being asked for it.
            drop(stream);
            (stream, answer) = pre_login(connection, host, ENCRYPT_NOT_SUPPORTED).await?;
            answered = encryption(&mut answer)?;
        }
        let is_encrypted = !matches!(*answered, ENCRYPT_OFF | ENCRYPT_NOT_SUPPORTED);
        *answered = ENCRYPT_NOT_SUPPORTED;
        let wire: Box<dyn Wire> = match (is_encrypted, connection.tls) {
            (true, Tls::Disable) => return Err(DbError::other("the server demands TLS, which the connection forgoes")),
            (true, _) => {
                let mut stream = tls::encrypt(Enveloped::new(stream), host, connection).await?;
                stream.get_mut().0.open();
                Box::new(stream)
            }
            (false, Tls::Disable | Tls::Prefer) => Box::new(stream),
            (false, Tls::Require | Tls::VerifyCa | Tls::VerifyFull) => {
                return Err(DbError::other("the server offers no TLS, which the connection demands"));
            }
        };
        let line = Line { wire, greeting: packet(ANSWER, &answer), keeps_back: false, sent_bytes: 0, answer_bytes: 0 };
        Ok(Self(Arc::new(Mutex::new(line))))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().expect("no thread panics with the line in hand")
    }

    /// Bytes sent since the login began.
    pub(super) fn sent_bytes(&self) -> u64 {
        self.line().sent_bytes
    }

    /// Sends packets past the client, which has read all answers.
    pub(super) async fn send(&self, packets: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < packets.len() {
            sent += poll_fn(|context| self.line().poll_write(context, &packets[sent..])).await?;
        }
        poll_fn(|context| Pin::new(&mut self.line().wire).poll_flush(context)).await
    }

    /// Keeps the client's next message back: the client then reads the answer to the message sent past it.
    pub(super) fn keep_back(&self) {
        self.line().keeps_back = true;
    }
}

impl Line {
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.wire).poll_write(context, bytes))?;
        self.sent_bytes += count as u64;
        self.answer_bytes = 0;
        Poll::Ready(Ok(count))
    }
}

/// Connects and says how to encrypt; gives the server's options.
async fn pre_login(connection: &Connection, host: &str, wish: u8) -> Result<(TcpStream, Vec<u8>), DbError> {
    let mut stream = TcpStream::connect((host, connection.port)).await?;
    watch_over(&stream)?;
    let mut message = options();
    *encryption(&mut message)? = wish;
    stream.write_all(&packet(PRE_LOGIN, &message)).await?;
    let mut answer = Vec::new();
    loop {
        let mut header = [0; HEADER_BYTES];
        stream.read_exact(&mut header).await?;
        if header[0] != ANSWER {
            return Err(DbError::other("what answers is not SQL Server"));
        }
        let start = answer.len();
        if start > PACKET_BYTES {
            return Err(DbError::other("what answers is not SQL Server"));
        }
        answer.resize(start + body_bytes(&header)?, 0);
        stream.read_exact(&mut answer[start..]).await?;
        if header[1] & END_OF_MESSAGE != 0 {
            return Ok((stream, answer));
        }
    }
}

pub(super) fn options() -> Vec<u8> {
    let (mut table, mut values) = (Vec::new(), Vec::new());
    let start = 5 * OPTIONS.len() + 1;
    for (option, value) in OPTIONS {
        table.push(option);
        table.extend_from_slice(&((start + values.len()) as u16).to_be_bytes());
        table.extend_from_slice(&(value.len() as u16).to_be_bytes());
        values.extend_from_slice(value);
    }
    table.push(OPTIONS_END);
    table.append(&mut values);
    table
}

/// Where options say how to encrypt.
pub(super) fn encryption(options: &mut [u8]) -> Result<&mut u8, DbError> {
    let entries = options.chunks_exact(5).take_while(|entry| entry[0] != OPTIONS_END);
    let place =
        entries.filter(|entry| entry[0] == ENCRYPTION).map(|entry| u16::from_be_bytes([entry[1], entry[2]])).next();
    place
        .and_then(|place| options.get_mut(usize::from(place)))
        .ok_or_else(|| DbError::other("what answers is not SQL Server"))
}

pub(super) fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (HEADER_BYTES + body.len()) as u16;
    let mut packet = vec![kind, END_OF_MESSAGE];
    packet.extend_from_slice(&length.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 1, 0]);
    packet.extend_from_slice(body);
    packet
}

/// Bytes of a packet after its header.
fn body_bytes(header: &[u8; HEADER_BYTES]) -> io::Result<usize> {
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    length
        .checked_sub(HEADER_BYTES)
        .ok_or_else(|| io::Error::other("a packet of the server is shorter than its header"))
}

impl futures_io::AsyncRead for Session {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut line = self.line();
        if !line.greeting.is_empty() {
            let count = out.len().min(line.greeting.len());
            out[..count].copy_from_slice(&line.greeting[..count]);
            line.greeting.drain(..count);
            return Poll::Ready(Ok(count));
        }
        let mut read = ReadBuf::new(out);
        ready!(Pin::new(&mut line.wire).poll_read(context, &mut read))?;
        let count = read.filled().len();
        line.answer_bytes += count as u64;
        if line.answer_bytes > ANSWER_MAX_BYTES {
            return Poll::Ready(Err(io::Error::other("the server answers with more than was asked for")));
        }
        Poll::Ready(Ok(count))
    }
}

impl futures_io::AsyncWrite for Session {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut line = self.line();
        if line.keeps_back || !line.greeting.is_empty() {
            return Poll::Ready(Ok(bytes.len()));
        }
        line.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut line = self.line();
        line.keeps_back = false;
        Pin::new(&mut line.wire).poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.line().wire).poll_shutdown(context)
    }
}

/// A connection whose bytes travel in packets of a pre-login as long as the handshake of TLS lasts, and bare afterwards.
pub(super) struct Enveloped<S> {
    stream: S,
    is_handshake: bool,
    /// Written but not yet sent; and how much of its packets is sent.
    written: Vec<u8>,
    packets: Vec<u8>,
    packets_sent: usize,
    header: [u8; HEADER_BYTES],
    header_filled: usize,
    /// Bytes left of the packet that is being read.
    body_left: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Enveloped<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            is_handshake: true,
            written: Vec::new(),
            packets: Vec::new(),
            packets_sent: 0,
            header: [0; HEADER_BYTES],
            header_filled: 0,
            body_left: 0,
        }
    }

    /// The handshake is over.
    pub(super) fn open(&mut self) {
        self.is_handshake = false;
    }

    /// Makes one message of the written bytes.
    fn envelop(&mut self) {
        let parts = self.written.chunks(PACKET_BYTES - HEADER_BYTES);
        let last = parts.len().saturating_sub(1);
        for (number, part) in parts.enumerate() {
            let start = self.packets.len();
            self.packets.append(&mut packet(PRE_LOGIN, part));
            self.packets[start + 1] = if number == last { END_OF_MESSAGE } else { 0 };
            self.packets[start + 6] = number as u8 + 1;
        }
        self.written.clear();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Enveloped<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_handshake {
            return Pin::new(&mut this.stream).poll_read(context, out);
        }
        while this.body_left == 0 {
            let mut header = ReadBuf::new(&mut this.header[this.header_filled..]);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut header))?;
            let count = header.filled().len();
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
            this.header_filled += count;
            if this.header_filled == HEADER_BYTES {
                this.header_filled = 0;
                this.body_left = body_bytes(&this.header)?;
            }
        }
        let wanted = out.remaining().min(this.body_left);
        let mut body = ReadBuf::new(out.initialize_unfilled_to(wanted));
        ready!(Pin::new(&mut this.stream).poll_read(context, &mut body))?;
        let count = body.filled().len();
        out.advance(count);
        this.body_left -= count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Enveloped<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if !this.is_handshake {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        }
        this.written.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.envelop();
        while this.packets_sent < this.packets.len() {
            let rest = &this.packets[this.packets_sent..];
            this.packets_sent += ready!(Pin::new(&mut this.stream).poll_write(context, rest))?;
        }
        this.packets.clear();
        this.packets_sent = 0;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
