//! PostgreSQL's log in plain text: lines with a prefix, and lines that go on with a tab.

use std::{
    collections::HashMap,
    io::{self, BufRead},
};

use super::{
    entry::Takes,
    lines::Lines,
    postgresql::{Assembler, Message, session_key},
    prefix::{Prefix, Prefixed},
    reader::LogReader,
};

/// Processes whose number may come again; one more begins anew.
const PROCESSES_MAX: usize = 1 << 20;

/// A message while its lines come.
#[derive(Debug, Default)]
struct Held {
    at_ns: i64,
    began_ns: Option<i64>,
    session: u64,
    database: String,
    code: String,
    severity: String,
    text: String,
    detail: String,
    statement: String,
    /// Where a line that goes on belongs.
    part: Part,
}

#[derive(Debug, Default, Clone, Copy)]
enum Part {
    #[default]
    Text,
    Detail,
    Statement,
    Other,
}

pub(super) struct StderrLog<R> {
    lines: Lines<R>,
    prefix: Prefix,
    held: Option<Held>,
    /// How often each process number was a session's.
    generations: HashMap<u64, u32>,
    assembler: Assembler,
}

impl<R: BufRead> StderrLog<R> {
    pub(super) fn new(file: R, prefix: Prefix) -> Self {
        let (lines, assembler) = (Lines::new(file), Assembler::default());
        Self { lines, prefix, held: None, generations: HashMap::new(), assembler }
    }
}

/// Hands over the message that is complete.
fn hand_over(held: Option<Held>, assembler: &mut Assembler, takes: &mut dyn Takes) {
    let Some(held) = held else { return };
    assembler.message(
        &Message {
            at_ns: held.at_ns,
            session: held.session,
            began_ns: held.began_ns,
            database: &held.database,
            backend: "",
            severity: &held.severity,
            code: &held.code,
            text: &held.text,
            detail: &held.detail,
            statement: &held.statement,
        },
        takes,
    );
}

/// The number of a session; a process is another one after it ended.
fn session_of(generations: &mut HashMap<u64, u32>, found: &Prefixed<'_>) -> u64 {
    let key = session_key(&[found.session.as_bytes()]);
    if !found.is_process {
        return key;
    }
    if generations.len() > PROCESSES_MAX {
        generations.clear();
    }
    let generation = generations.entry(key).or_default();
    let number = *generation;
    if found.text.starts_with("disconnection: ") {
        *generation += 1;
    }
    session_key(&[found.session.as_bytes(), &number.to_le_bytes()])
}

impl<R: BufRead + Send> LogReader for StderrLog<R> {
    fn read_some(&mut self, bytes: u64, takes: &mut dyn Takes) -> io::Result<bool> {
        let mut left = bytes as i64;
        while left > 0 {
            let Some((line, _)) = self.lines.next()? else {
                hand_over(self.held.take(), &mut self.assembler, takes);
                self.assembler.end(takes);
                return Ok(false);
            };
            let text = String::from_utf8_lossy(line);
            if let Some(more) = text.strip_prefix('\t') {
                if let Some(held) = &mut self.held {
                    go_on(held, more);
                }
            } else if let Some(found) = self.prefix.read(&text) {
                if !belongs(self.held.as_mut(), &found) {
                    hand_over(self.held.take(), &mut self.assembler, takes);
                    self.held = Some(Held {
                        at_ns: found.at_ns,
                        began_ns: found.began_ns,
                        session: session_of(&mut self.generations, &found),
                        database: found.database.into(),
                        code: found.code.into(),
                        severity: found.word.into(),
                        text: found.text.into(),
                        ..Held::default()
                    });
                }
            } else if !line.is_empty() {
                takes.not_understood(line);
            }
            left -= self.lines.take_read() as i64;
        }
        Ok(true)
    }
}

/// Adds a line to the part of the message that it goes on with.
fn go_on(held: &mut Held, more: &str) {
    let part = match held.part {
        Part::Text => &mut held.text,
        Part::Detail => &mut held.detail,
        Part::Statement => &mut held.statement,
        Part::Other => return,
    };
    part.push('\n');
    part.push_str(more);
}

/// Adds a line to the message before it; gives false where the line begins a message of its own.
fn belongs(held: Option<&mut Held>, found: &Prefixed<'_>) -> bool {
    let part = match found.word {
        "DETAIL" => Part::Detail,
        "STATEMENT" => Part::Statement,
        "HINT" | "CONTEXT" | "QUERY" => Part::Other,
        _ => return false,
    };
    let Some(held) = held else { return true };
    held.part = part;
    match part {
        Part::Detail => held.detail = found.text.into(),
        Part::Statement => held.statement = found.text.into(),
        Part::Text | Part::Other => (),
    }
    true
}
