//! Lines about clients that were refused or broke the protocol: each once a minute at most, and not many.

use std::{
    io::{Error, ErrorKind},
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::Blocks;

/// Time after which the same line is told again.
const NOTE_AGAIN: Duration = Duration::from_secs(60);
/// Lines in that time.
const NOTES_MOST: usize = 32;

/// An error that says how a client broke the protocol.
#[must_use]
pub fn broken(what: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

/// Lines about the clients of one protocol.
pub struct Notes {
    protocol: &'static str,
    blocks: Arc<dyn Blocks>,
    /// Lines that were told of late.
    noted: Mutex<Vec<(String, Instant)>>,
}

impl Notes {
    /// Lines begin with the protocol's name, and go to the store of the blocks.
    pub fn new(protocol: &'static str, blocks: Arc<dyn Blocks>) -> Self {
        Self { protocol, blocks, noted: Mutex::default() }
    }

    /// Tells a line about a client, once a minute at most.
    pub fn note(&self, from: IpAddr, what: &str) {
        let line = format!("{}: {from}{what}", self.protocol);
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        noted.retain(|(_, at)| now.duration_since(*at) < NOTE_AGAIN);
        if noted.len() < NOTES_MOST && noted.iter().all(|(earlier, _)| *earlier != line) {
            noted.push((line.clone(), now));
            drop(noted);
            self.blocks.note(line);
        }
    }

    /// A connection of a client, which may have a name, has ended by an error.
    pub fn ended(&self, from: IpAddr, client: Option<&str>, error: &Error) {
        let who = client.map_or_else(String::new, |name| format!(" ({})", name.escape_default()));
        let why = match error.kind() {
            ErrorKind::InvalidData => error.to_string(),
            ErrorKind::TimedOut => "it takes no answers".to_owned(),
            // Clients come and go.
            _ => return,
        };
        self.note(from, &format!("{who}: its connection was ended: {why}"));
    }
}
