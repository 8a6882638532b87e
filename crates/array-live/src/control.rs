//! The socket for commands to a served array: one JSON line each, and one in answer.
//!
//! The control socket. A client may send anything: a line has a bound in bytes and in time, and the number of clients
//! at once has one.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::sync_channel,
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    ServeError,
    command::Command,
    folder::Folder,
    inbox::{Inbox, Message},
    store::files::SOCKET,
};

/// The server answers commands between I/Os; a rebuild or a snapshot of much takes a moment.
const ANSWER: Duration = Duration::from_secs(60);
/// A line that has begun has ended by then, and an answer has been taken.
const LINE: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(5) };
/// A script of thousands of events has less.
const LINE_MOST_BYTES: u64 = 4 << 20;
/// Most clients at once.
const ASKING_MOST: usize = 64;

/// Listens in a folder of which only the owner may use the socket.
///
/// # Errors
/// The socket cannot be made.
pub(crate) fn listen(folder: &Folder, inbox: Arc<Inbox>) -> Result<(), ServeError> {
    folder.remove(SOCKET)?;
    let failed = |error| folder.failed(SOCKET, error);
    // The path of a socket has 107 bytes at most: the folder's descriptor keeps it short.
    let path = folder.held_path().join(SOCKET);
    let listener = UnixListener::bind(&path).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let serve = move || hear(&listener, &inbox);
    thread::Builder::new().name("assay-control".into()).spawn(serve).map_err(failed)?;
    Ok(())
}

/// One who asks, for as long as that lasts.
struct Asking(Arc<AtomicUsize>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn hear(listener: &UnixListener, inbox: &Arc<Inbox>) {
    let count = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // No descriptors are left; some may be later.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let asking = Asking(Arc::clone(&count));
        if count.fetch_add(1, Ordering::Relaxed) >= ASKING_MOST {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(10)));
            let _ = answer(&stream, &json!({"refused": format!("{ASKING_MOST} others ask; try again later")}));
            continue;
        }
        let inbox = Arc::clone(inbox);
        let converse = move || {
            let _asking = asking;
            let _ = converse(&stream, &inbox);
        };
        let _ = thread::Builder::new().name("assay-control".into()).spawn(converse);
    }
}

/// Answers line after line, until the client ends or sends nothing in time.
fn converse(stream: &UnixStream, inbox: &Inbox) -> io::Result<()> {
    stream.set_write_timeout(Some(LINE))?;
    let mut lines = BufReader::new(Timed { stream, until: None });
    loop {
        // Between lines nothing is late.
        lines.get_mut().until = None;
        if lines.fill_buf()?.is_empty() {
            return Ok(());
        }
        lines.get_mut().until = Some(Instant::now() + LINE);
        let mut line = Vec::new();
        let read = (&mut lines).take(LINE_MOST_BYTES).read_until(b'\n', &mut line);
        match read {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return answer(stream, &json!({"refused": "not a command: its line does not end"}));
            }
            read => read?,
        };
        if line.len() as u64 == LINE_MOST_BYTES && line.last() != Some(&b'\n') {
            return answer(stream, &json!({"refused": format!("not a command: more than {LINE_MOST_BYTES} bytes")}));
        }
        answer(stream, &done(&line, inbox))?;
    }
}

/// What of a stream comes until a moment.
struct Timed<'a> {
    stream: &'a UnixStream,
    until: Option<Instant>,
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(left)?;
        self.stream.read(bytes)
    }
}

fn answer(mut stream: &UnixStream, answer: &Value) -> io::Result<()> {
    stream.write_all(format!("{answer}\n").as_bytes())
}

fn done(line: &[u8], inbox: &Inbox) -> Value {
    match serde_json::from_slice(line) {
        Ok(command) => match ask(inbox, command) {
            Ok(answer) => json!({"done": answer}),
            Err(refusal) => json!({"refused": refusal}),
        },
        Err(error) => json!({"refused": format!("not a command: {error}")}),
    }
}

/// Has the server carry out a command.
pub(crate) fn ask(inbox: &Inbox, command: Command) -> Result<Value, String> {
    let (answer, answered) = sync_channel(1);
    inbox.put(Message::Command(command, answer));
    answered.recv_timeout(ANSWER).unwrap_or_else(|_| Err("the array is stopping or does not answer".into()))
}

#[cfg(test)]
mod tests;
