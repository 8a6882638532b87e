//! The socket for commands to a served array: one JSON line each, and one in answer.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::{Arc, mpsc::sync_channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    ServeError,
    command::Command,
    inbox::{Inbox, Message},
};

/// The server answers commands between I/Os; a rebuild or a snapshot of much takes a moment.
const ANSWER: Duration = Duration::from_secs(60);

/// Listens in a folder of which only the owner may use the socket.
///
/// # Errors
/// The socket cannot be made.
pub(crate) fn listen(folder: &Path, inbox: Arc<Inbox>) -> Result<(), ServeError> {
    let path = folder.join("control.sock");
    let _ = std::fs::remove_file(&path);
    let failed = |error| ServeError::at(&path, error);
    // The path of a socket has 107 bytes at most: the folder's descriptor keeps it short.
    let opened = std::fs::File::open(folder).map_err(failed)?;
    let short = format!("/proc/self/fd/{}/control.sock", std::os::fd::AsRawFd::as_raw_fd(&opened));
    let listener = UnixListener::bind(short).map_err(failed)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    let serve = move || {
        for stream in listener.incoming().flatten() {
            let inbox = Arc::clone(&inbox);
            let _ = thread::Builder::new().name("assay-control".into()).spawn(move || converse(stream, &inbox));
        }
    };
    thread::Builder::new().name("assay-control".into()).spawn(serve).map_err(failed)?;
    Ok(())
}

fn converse(mut stream: UnixStream, inbox: &Inbox) {
    let Ok(copy) = stream.try_clone() else { return };
    for line in BufReader::new(copy).lines() {
        let Ok(line) = line else { return };
        let answer = match serde_json::from_str(&line) {
            Ok(command) => match ask(inbox, command) {
                Ok(answer) => json!({"done": answer}),
                Err(refusal) => json!({"refused": refusal}),
            },
            Err(error) => json!({"refused": format!("not a command: {error}")}),
        };
        if writeln!(stream, "{answer}").is_err() {
            return;
        }
    }
}

/// Has the server carry out a command.
pub(crate) fn ask(inbox: &Inbox, command: Command) -> Result<Value, String> {
    let (answer, answered) = sync_channel(1);
    inbox.put(Message::Command(command, answer));
    answered.recv_timeout(ANSWER).unwrap_or_else(|_| Err("the array is stopping or does not answer".into()))
}
