//! A PostgreSQL server that does what a test says: it speaks the protocol, knows no SQL and keeps nothing.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufReader, Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use crate::{TIMEOUT, scram};

/// What a client asks a server for.
pub(crate) enum Request<'a> {
    Connect,
    /// A prepared statement, by its name.
    Execute {
        statement: &'a str,
        parameters: &'a [String],
    },
    Query(&'a str),
    /// Some of the rows of a COPY; what goes wrong there is told by last words alone.
    CopyData,
}

/// What a test lets the server answer. Errors are a SQLSTATE and a text.
pub(crate) enum Reply {
    Fine,
    Error(&'static str, &'static str),
    /// An error, and then nothing more.
    LastWords(&'static str, &'static str),
    Cut,
    /// To [`Request::Connect`]: a password is asked for, and the server proves that it knows it, or does not.
    Scram(scram::Proof),
}

/// Answers requests of a connection, which are numbered from 0; while it waits, so does the connection.
type Script = dyn Fn(u64, &Request<'_>) -> Reply + Send + Sync;

/// What some wait for until it is opened.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    pub(crate) fn pass(&self) {
        drop(self.changed.wait_timeout_while(self.open.lock().unwrap(), TIMEOUT, |open| !*open).unwrap());
    }
}

/// Listens until it is dropped.
pub(crate) struct Server {
    socket: PathBuf,
    peers: Arc<Peers>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Peers {
    over: AtomicBool,
    accepted: AtomicU64,
    sockets: Mutex<BTreeMap<u64, UnixStream>>,
}

impl Server {
    pub(crate) fn start(script: impl Fn(u64, &Request<'_>) -> Reply + Send + Sync + 'static) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = std::env::temp_dir().join(format!("assay-scripted-{}-{number}", process::id()));
        let listener = UnixListener::bind(&socket).unwrap();
        let peers = Arc::new(Peers::default());
        let script: Arc<Script> = Arc::new(script);
        let listening = peers.clone();
        let listener = thread::spawn(move || listening.listen(&listener, &script));
        Self { socket, peers, listener: Some(listener) }
    }

    /// Answers everything as it should be.
    pub(crate) fn well() -> Self {
        Self::start(|_, _| Reply::Fine)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// How many connections were made.
    pub(crate) fn accepted(&self) -> u64 {
        self.peers.accepted.load(Ordering::SeqCst)
    }

    /// Ends those connections there are whose number is chosen.
    pub(crate) fn cut(&self, chosen: impl Fn(u64) -> bool) {
        self.peers.end(chosen, &[]);
    }

    /// Tells all clients why before it ends their connections.
    pub(crate) fn cut_with_words(&self, code: &str, text: &str) {
        self.peers.end(|_| true, &message(b'E', &error_fields(code, text)));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.peers.over.store(true, Ordering::SeqCst);
        // Wakes the listener.
        let _ = UnixStream::connect(&self.socket);
        self.listener.take().unwrap().join().unwrap();
        self.cut(|_| true);
        let _ = fs::remove_file(&self.socket);
    }
}

impl Peers {
    fn listen(self: &Arc<Self>, listener: &UnixListener, script: &Arc<Script>) {
        while let Ok((stream, _)) = listener.accept() {
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let number = self.accepted.fetch_add(1, Ordering::SeqCst);
            self.sockets.lock().unwrap().insert(number, stream.try_clone().unwrap());
            let (peers, script) = (self.clone(), script.clone());
            thread::spawn(move || {
                let _ = Peer::new(number, stream, script).serve();
                peers.end(|ended| ended == number, &[]);
            });
        }
    }

    fn end(&self, chosen: impl Fn(u64) -> bool, words: &[u8]) {
        self.sockets.lock().unwrap().retain(|number, socket| {
            if !chosen(*number) {
                return true;
            }
            let _ = socket.write_all(words);
            let _ = socket.shutdown(Shutdown::Both);
            false
        });
    }
}

/// A connection as the server sees it.
struct Peer {
    number: u64,
    script: Arc<Script>,
    input: BufReader<UnixStream>,
    out: Vec<u8>,
    /// As the protocol tells it: idle, in a transaction, or in one that failed.
    status: u8,
    /// After an error the rest of a batch is left out.
    skipping: bool,
    columns: u16,
    statement: String,
    parameters: Vec<String>,
}

impl Peer {
    fn new(number: u64, stream: UnixStream, script: Arc<Script>) -> Self {
        let (input, out, status) = (BufReader::new(stream), Vec::new(), b'I');
        let (statement, parameters) = (String::new(), Vec::new());
        Self { number, script, input, out, status, skipping: false, columns: 0, statement, parameters }
    }

    fn serve(&mut self) -> io::Result<()> {
        let _startup = self.read_body()?;
        match (self.script)(self.number, &Request::Connect) {
            Reply::Scram(proof) => self.ask_for_password(proof)?,
            reply => {
                if !self.follow(reply)? {
                    return self.flush();
                }
            }
        }
        self.put(b'R', &0_i32.to_be_bytes());
        self.ready()?;
        loop {
            let mut tag = [0];
            self.input.read_exact(&mut tag)?;
            let body = self.read_body()?;
            match tag[0] {
                b'S' => self.ready()?,
                b'Q' => self.query(&text(&body))?,
                b'c' => {
                    self.put(b'C', b"COPY 1\0");
                    self.ready()?;
                }
                b'X' => return Ok(()),
                b'd' => {
                    let reply = (self.script)(self.number, &Request::CopyData);
                    self.follow(reply)?;
                }
                _ if self.skipping => (),
                b'P' => self.parse(&body),
                b'D' => self.describe(),
                b'B' => self.bind(&body),
                b'E' => self.execute()?,
                _ => (),
            }
        }
    }

    fn read_body(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.input.read_exact(&mut body)?;
        Ok(body)
    }

    fn put(&mut self, tag: u8, body: &[u8]) {
        self.out.extend(message(tag, body));
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.get_mut().write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn ready(&mut self) -> io::Result<()> {
        self.skipping = false;
        self.put(b'Z', &[self.status]);
        self.flush()
    }

    /// Does what the script says; whether all went well.
    fn follow(&mut self, reply: Reply) -> io::Result<bool> {
        match reply {
            Reply::Fine | Reply::Scram(_) => return Ok(true),
            Reply::Error(code, text) | Reply::LastWords(code, text) => self.put(b'E', &error_fields(code, text)),
            Reply::Cut => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        if matches!(reply, Reply::LastWords(..)) {
            self.flush()?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.status = if self.status == b'I' { b'I' } else { b'E' };
        Ok(false)
    }

    fn query(&mut self, sql: &str) -> io::Result<()> {
        let reply = (self.script)(self.number, &Request::Query(sql));
        if !self.follow(reply)? {
            return self.ready();
        }
        if sql.starts_with("COPY") {
            // In binary, as are all columns, of which there may be none in this answer.
            self.put(b'G', &[1, 0, 0]);
            return self.flush();
        }
        if sql == "ROLLBACK" {
            self.status = b'I';
        }
        self.put(b'C', b"OK\0");
        self.ready()
    }

    fn parse(&mut self, body: &[u8]) {
        let query = text(&body[text(body).len() + 1..]);
        let columns = query.strip_prefix("SELECT ").and_then(|rest| rest.split_once(" FROM "));
        self.columns = columns.map_or(0, |(columns, _)| columns.split(',').count() as u16);
        self.put(b'1', &[]);
    }

    fn describe(&mut self) {
        let mut row = self.columns.to_be_bytes().to_vec();
        for _ in 0..self.columns {
            // No name, no table, no place in it; numeric, whatever it holds, of any width, as binary.
            row.extend([0, 0, 0, 0, 0, 0, 0]);
            row.extend(1700_u32.to_be_bytes());
            row.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1]);
        }
        self.put(b't', &[0, 0]);
        self.put(b'T', &row);
    }

    fn bind(&mut self, body: &[u8]) {
        let mut rest = &body[text(body).len() + 1..];
        self.statement = text(rest);
        rest = &rest[self.statement.len() + 1..];
        assert_eq!(take_u16(&mut rest), 0, "parameters are text");
        self.parameters = (0..take_u16(&mut rest))
            .map(|_| {
                let length = usize::from(take_u16(&mut rest)) << 16 | usize::from(take_u16(&mut rest));
                let (value, after) = rest.split_at(length);
                rest = after;
                String::from_utf8(value.to_vec()).unwrap()
            })
            .collect();
        self.put(b'2', &[]);
    }

    fn execute(&mut self) -> io::Result<()> {
        let request = Request::Execute { statement: &self.statement, parameters: &self.parameters };
        let reply = (self.script)(self.number, &request);
        if !self.follow(reply)? {
            self.skipping = true;
            return Ok(());
        }
        match self.statement.as_str() {
            "begin" => self.status = b'T',
            "commit" | "rollback" => self.status = b'I',
            name if name.starts_with("call.") => {
                self.put(b'D', &[0, 3, 0, 0, 0, 1, b'1', 0, 0, 0, 1, b'1', 0, 0, 0, 1, b'1'])
            }
            _ => (),
        }
        self.put(b'C', b"OK\0");
        Ok(())
    }

    fn ask_for_password(&mut self, proof: scram::Proof) -> io::Result<()> {
        self.put(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
        self.flush()?;
        let first = self.read_answer()?;
        let exchange = scram::Exchange::new(first.split_once("n,,").unwrap().1);
        self.put(b'R', &[b"\0\0\0\x0b", exchange.first().as_bytes()].concat());
        self.flush()?;
        let last = self.read_answer()?;
        if let Some(signature) = exchange.last(&last, proof) {
            self.put(b'R', &[b"\0\0\0\x0c", signature.as_bytes()].concat());
        }
        Ok(())
    }

    fn read_answer(&mut self) -> io::Result<String> {
        self.input.read_exact(&mut [0])?;
        Ok(String::from_utf8_lossy(&self.read_body()?).into_owned())
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag], &length[..], body].concat()
}

fn error_fields(code: &str, text: &str) -> Vec<u8> {
    format!("SERROR\0C{code}\0M{text}\0\0").into_bytes()
}

/// A text up to the zero that ends it.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8(bytes[..end].to_vec()).unwrap()
}

fn take_u16(bytes: &mut &[u8]) -> u16 {
    let (taken, rest) = bytes.split_at(2);
    *bytes = rest;
    u16::from_be_bytes([taken[0], taken[1]])
}
