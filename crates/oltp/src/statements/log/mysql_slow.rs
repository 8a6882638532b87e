//! The slow log of MySQL and MariaDB with `long_query_time = 0`: lines of comments before each statement. It is written when the
//! statement ended; `SET timestamp` is when it began, in most servers to the second.

use std::io::{self, BufRead};

use super::{
    entry::{Logged, News, Takes, Way},
    lines::Lines,
    postgresql::{NO_STATEMENT, session_key},
    reader::LogReader,
    times,
};

const TEXT_MAX_BYTES: usize = 16 << 20;
const SECOND_NS: i64 = 1_000_000_000;

/// A statement while its lines come.
#[derive(Debug, Default)]
struct Held {
    end_ns: Option<i64>,
    began_ns: Option<i64>,
    session: String,
    database: String,
    duration_ns: Option<u64>,
    has_failed: bool,
    text: String,
    has_begun: bool,
}

pub(super) struct SlowLog<R> {
    lines: Lines<R>,
    held: Held,
    /// The last time that the log gave, which later entries of the same second share.
    last_ns: i64,
    starts: u32,
    known: std::collections::HashMap<u64, String>,
}

/// Sessions whose database is remembered.
const KNOWN_MAX: usize = 100_000;

/// Whether a line is one of this log.
pub(super) fn recognises(line: &str) -> bool {
    line.starts_with("# Query_time: ") || line.starts_with("# User@Host: ")
}

/// The value behind a name in a line of comments.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = line.split_once(name)?;
    behind.split_whitespace().next()
}

impl<R: BufRead> SlowLog<R> {
    pub(super) fn new(file: R) -> Self {
        let known = std::collections::HashMap::new();
        Self { lines: Lines::new(file), held: Held::default(), last_ns: 0, starts: 0, known }
    }

    /// Takes a line that begins with `# `.
    fn comment(&mut self, line: &str, takes: &mut dyn Takes) {
        if let Some(time) = line.strip_prefix("# Time: ") {
            let bytes = time.trim_start().as_bytes();
            let found = times::timestamp(bytes).or_else(|| times::short_timestamp(bytes));
            match found {
                Some((ns, _)) => (self.held.end_ns, self.last_ns) = (Some(ns), ns),
                None => takes.not_understood(line.as_bytes()),
            }
        } else if line.starts_with("# User@Host: ") {
            if let Some((_, number)) = line.rsplit_once(" Id:") {
                self.held.session = number.trim().into();
            }
        } else {
            let held = &mut self.held;
            if let Some(number) = value(line, "Thread_id: ") {
                held.session = number.into();
            }
            if let Some(name) = value(line, "Schema: ").filter(|name| !name.ends_with(':')) {
                held.database = name.into();
            }
            if let Some(seconds) = value(line, "Query_time: ") {
                held.duration_ns = times::duration(seconds, 1e9);
            }
            let errno = value(line, "Errno: ").or_else(|| value(line, "Last_errno: "));
            held.has_failed |= errno.is_some_and(|number| number != "0");
        }
    }

    /// Takes a line of the statement; each ends with a semicolon.
    fn line(&mut self, line: &str) {
        let held = &mut self.held;
        if !held.has_begun {
            if let Some(name) = line.strip_prefix("use ").and_then(|rest| rest.strip_suffix(';')) {
                held.database = name.trim_matches('`').into();
                return;
            }
            if let Some(seconds) = line.strip_prefix("SET timestamp=").and_then(|rest| rest.strip_suffix(';')) {
                held.began_ns = times::epoch(seconds.as_bytes()).map(|found| found.0);
                held.has_begun = true;
                return;
            }
        }
        held.has_begun = true;
        if held.text.len() + line.len() < TEXT_MAX_BYTES {
            if !held.text.is_empty() {
                held.text.push('\n');
            }
            held.text.push_str(line);
        }
    }

    fn hand_over(&mut self, takes: &mut dyn Takes) {
        let held = std::mem::take(&mut self.held);
        if held.text.is_empty() {
            return;
        }
        let session = session_key(&[held.session.as_bytes(), &self.starts.to_le_bytes()]);
        let duration_ns = held.duration_ns.unwrap_or(0) as i64;
        // A time to the microsecond says more than a second.
        let by_end = held.end_ns.map(|ns| ns - duration_ns);
        let is_exact = held.end_ns.is_some_and(|ns| ns % SECOND_NS != 0);
        let start_ns = if is_exact { by_end } else { held.began_ns.map(|ns| self.on_clock(ns)).or(by_end) };
        let start_ns = start_ns.unwrap_or(self.last_ns);
        let before = self.known.get(&session);
        let moved = !held.database.is_empty() && before != Some(&held.database);
        if before.is_none() || moved {
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
            self.known.insert(session, held.database.clone());
            takes.take(session, News::Begins { at_ns: start_ns, database: held.database });
        }
        if held.text.starts_with("# administrator command: ") {
            return takes.left_out(NO_STATEMENT, 1);
        }
        let text = held.text.strip_suffix(';').unwrap_or(&held.text).to_owned();
        takes.take(
            session,
            News::Statement(Logged {
                start_ns,
                duration_ns: held.duration_ns,
                way: Way::Simple,
                text,
                parameters: Vec::new(),
                code: held.has_failed.then(|| "?".to_owned()),
            }),
        );
    }

    /// A time since 1970 on the clock of the log's own times, whose zone is not known.
    fn on_clock(&self, ns: i64) -> i64 {
        if self.last_ns == 0 {
            return ns;
        }
        // Zones differ by whole quarters of an hour.
        let quarter_ns = 900 * SECOND_NS;
        let offset_ns = ((self.last_ns - ns) as f64 / quarter_ns as f64).round() as i64 * quarter_ns;
        if offset_ns.abs() <= 26 * 3600 * SECOND_NS { ns + offset_ns } else { self.last_ns }
    }
}

impl<R: BufRead + Send> LogReader for SlowLog<R> {
    fn read_some(&mut self, bytes: u64, takes: &mut dyn Takes) -> io::Result<bool> {
        let mut left = bytes as i64;
        while left > 0 {
            let Some((line, _)) = self.lines.next()? else {
                self.hand_over(takes);
                return Ok(false);
            };
            let text = String::from_utf8_lossy(line).into_owned();
            if text.starts_with("# administrator command: ") {
                self.line(&text);
            } else if text.starts_with("# ") && (self.held.text.is_empty() || is_header(&text)) {
                if !self.held.text.is_empty() {
                    self.hand_over(takes);
                }
                self.comment(&text, takes);
            } else if text.contains(", Version: ") && text.ends_with("started with:") {
                self.hand_over(takes);
                self.starts += 1;
            } else if self.held.duration_ns.is_some() {
                self.line(&text);
            } else if !text.starts_with("Tcp port:") && !text.starts_with("Time  ") && !text.is_empty() {
                takes.not_understood(text.as_bytes());
            }
            left -= self.lines.take_read() as i64;
        }
        Ok(true)
    }
}

/// Whether a line begins the next entry, and is no comment of a statement.
fn is_header(line: &str) -> bool {
    line.starts_with("# Time: ") || line.starts_with("# User@Host: ")
}
