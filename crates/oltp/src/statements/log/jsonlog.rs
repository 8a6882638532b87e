//! PostgreSQL's jsonlog: an object a line (PostgreSQL's manual, "Using JSON-Format Log Output").

use std::{
    borrow::Cow,
    io::{self, BufRead},
};

use serde::Deserialize;

use super::{
    entry::Takes,
    lines::Lines,
    postgresql::{Assembler, Message, session_key},
    reader::LogReader,
    times,
};

/// The keys that matter.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow, default)]
    dbname: Cow<'a, str>,
    #[serde(borrow, default)]
    session_id: Cow<'a, str>,
    #[serde(borrow, default)]
    session_start: Cow<'a, str>,
    #[serde(borrow, default)]
    error_severity: Cow<'a, str>,
    #[serde(borrow, default)]
    state_code: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    detail: Cow<'a, str>,
    #[serde(borrow, default)]
    statement: Cow<'a, str>,
    #[serde(borrow, default)]
    backend_type: Cow<'a, str>,
}

pub(super) struct JsonLog<R> {
    lines: Lines<R>,
    assembler: Assembler,
}

impl<R: BufRead> JsonLog<R> {
    pub(super) fn new(file: R) -> Self {
        Self { lines: Lines::new(file), assembler: Assembler::default() }
    }
}

impl<R: BufRead + Send> LogReader for JsonLog<R> {
    fn read_some(&mut self, bytes: u64, takes: &mut dyn Takes) -> io::Result<bool> {
        let mut left = bytes as i64;
        while left > 0 {
            let Some((line, _)) = self.lines.next()? else {
                self.assembler.end(takes);
                return Ok(false);
            };
            let text = String::from_utf8_lossy(line);
            match serde_json::from_str::<Line<'_>>(&text) {
                Ok(found) => match times::timestamp(found.timestamp.as_bytes()) {
                    Some((at_ns, _)) => {
                        let message = Message {
                            at_ns,
                            session: session_key(&[found.session_id.as_bytes()]),
                            began_ns: times::timestamp(found.session_start.as_bytes()).map(|found| found.0),
                            database: &found.dbname,
                            backend: &found.backend_type,
                            severity: &found.error_severity,
                            code: &found.state_code,
                            text: &found.message,
                            detail: &found.detail,
                            statement: &found.statement,
                        };
                        self.assembler.message(&message, takes);
                    }
                    None => takes.not_understood(line),
                },
                Err(_) if line.is_empty() => (),
                Err(_) => takes.not_understood(line),
            }
            left -= self.lines.take_read() as i64;
        }
        Ok(true)
    }
}
