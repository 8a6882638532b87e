//! The general log of MySQL and MariaDB: time, session, command, argument, with tabs; a text goes on in lines of its own. It has no
//! response times. Prepared statements are there as they ran, with their values.

use std::{
    collections::HashMap,
    io::{self, BufRead},
};

use super::{
    entry::{Logged, News, Takes, Way},
    lines::Lines,
    postgresql::{NO_STATEMENT, session_key},
    reader::LogReader,
    times,
};

const TEXT_MAX_BYTES: usize = 16 << 20;

/// Spaces that an editor made of the tabs of a line without a time.
const NO_TIME: &str = "                ";

/// Commands of the protocol that the log names.
const COMMANDS: [&str; 22] = [
    "Connect",
    "Query",
    "Execute",
    "Prepare",
    "Quit",
    "Init DB",
    "Close stmt",
    "Reset stmt",
    "Field List",
    "Ping",
    "Statistics",
    "Change user",
    "Set option",
    "Fetch",
    "Long Data",
    "Refresh",
    "Shutdown",
    "Kill",
    "Sleep",
    "Binlog Dump",
    "Daemon",
    "Reset Connection",
];

struct Pending {
    session: u64,
    at_ns: i64,
    text: String,
    is_statement: bool,
}

pub(super) struct GeneralLog<R> {
    lines: Lines<R>,
    at_ns: i64,
    /// How often the server was started, and each session's number was used.
    starts: u32,
    sessions: HashMap<u64, u32>,
    pending: Option<Pending>,
}

/// A line that begins an entry.
struct Entry<'a> {
    at_ns: Option<i64>,
    session: u64,
    command: &'static str,
    argument: &'a str,
}

/// Reads the first line of an entry; gives `None` for a line that continues the entry before.
fn entry_of(line: &str) -> Option<Entry<'_>> {
    let (at_ns, rest) = if let Some(rest) = line.strip_prefix("\t\t").or_else(|| line.strip_prefix(NO_TIME)) {
        (None, rest)
    } else {
        let bytes = line.as_bytes();
        let (ns, length) = times::timestamp(bytes).or_else(|| times::short_timestamp(bytes))?;
        let rest = line.get(length..)?;
        let zone = rest.find(['\t', ' ']).unwrap_or(rest.len());
        (Some(ns), rest[zone..].strip_prefix('\t').or_else(|| rest[zone..].strip_prefix(' '))?)
    };
    let rest = rest.trim_start_matches([' ', '\t']);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let session = rest.get(..digits)?.parse().ok()?;
    let rest = rest[digits..].strip_prefix(' ')?;
    let command = COMMANDS.into_iter().find(|command| {
        rest.strip_prefix(command).is_some_and(|after| after.is_empty() || after.starts_with(['\t', ' ']))
    })?;
    Some(Entry { at_ns, session, command, argument: rest[command.len()..].trim_start_matches(['\t', ' ']) })
}

/// Whether a line is one of this log.
pub(super) fn recognises(line: &str) -> bool {
    entry_of(line).is_some_and(|entry| entry.at_ns.is_some())
}

impl<R: BufRead> GeneralLog<R> {
    pub(super) fn new(file: R) -> Self {
        Self { lines: Lines::new(file), at_ns: 0, starts: 0, sessions: HashMap::new(), pending: None }
    }
}

/// Hands over the statement that is complete.
fn hand_over(pending: Option<Pending>, takes: &mut dyn Takes) {
    let Some(Pending { session, at_ns, text, is_statement: true }) = pending else { return };
    takes.take(
        session,
        News::Statement(Logged {
            start_ns: at_ns,
            duration_ns: None,
            way: Way::Simple,
            text,
            parameters: Vec::new(),
            code: None,
        }),
    );
}

/// The database of `user@host on shop using Socket`.
fn database_of(argument: &str) -> &str {
    let behind = argument.split_once(" on ").map_or("", |(_, behind)| behind);
    behind.split_whitespace().next().filter(|name| *name != "using").unwrap_or("")
}

impl<R: BufRead + Send> LogReader for GeneralLog<R> {
    fn read_some(&mut self, bytes: u64, takes: &mut dyn Takes) -> io::Result<bool> {
        let mut left = bytes as i64;
        while left > 0 {
            let Some((line, _)) = self.lines.next()? else {
                hand_over(self.pending.take(), takes);
                return Ok(false);
            };
            let text = String::from_utf8_lossy(line);
            if let Some(entry) = entry_of(&text) {
                hand_over(self.pending.take(), takes);
                self.at_ns = entry.at_ns.unwrap_or(self.at_ns);
                let generation = self.sessions.entry(entry.session).or_default();
                if entry.command == "Connect" {
                    *generation += 1;
                }
                let number = [entry.session, u64::from(self.starts), u64::from(*generation)];
                let session =
                    session_key(&number.each_ref().map(|part| part.to_le_bytes()).each_ref().map(|part| &part[..]));
                match entry.command {
                    "Connect" => {
                        let database = database_of(entry.argument).to_owned();
                        takes.take(session, News::Begins { at_ns: self.at_ns, database });
                    }
                    "Init DB" => {
                        takes.take(session, News::Begins { at_ns: self.at_ns, database: entry.argument.to_owned() });
                    }
                    "Query" | "Execute" => (),
                    _ => takes.left_out(NO_STATEMENT, 1),
                }
                let is_statement = matches!(entry.command, "Query" | "Execute");
                // Older servers write the number of the prepared statement before it.
                let argument = entry.argument;
                let numbered = argument.strip_prefix('[').and_then(|rest| rest.split_once("] "));
                let argument = match numbered {
                    Some((number, text)) if entry.command == "Execute" && number.parse::<u64>().is_ok() => text,
                    _ => argument,
                };
                let text = if is_statement { argument.to_owned() } else { String::new() };
                self.pending = Some(Pending { session, at_ns: self.at_ns, text, is_statement });
            } else if text.contains(", Version: ") && text.ends_with("started with:") {
                hand_over(self.pending.take(), takes);
                (self.starts, self.pending) = (self.starts + 1, None);
                self.sessions.clear();
            } else if let Some(pending) = &mut self.pending {
                if pending.is_statement && pending.text.len() + text.len() < TEXT_MAX_BYTES {
                    pending.text.push('\n');
                    pending.text.push_str(&text);
                }
            } else if !text.starts_with("Tcp port:") && !text.starts_with("Time  ") && !text.is_empty() {
                takes.not_understood(line);
            }
            left -= self.lines.take_read() as i64;
        }
        Ok(true)
    }
}
