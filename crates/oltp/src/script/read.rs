//! Scripts in pgbench's language, read into commands: statements of SQL, `\set`, `\if`, `\sleep`, pipelines.

use super::{
    expression::{Expression, parse},
    names::{Names, is_name},
    scan::{End, Scanner},
    tokens::name_length,
};

/// Bytes of a script.
pub(crate) const TEXT_MAX: usize = 1 << 20;
/// Variables that a statement takes.
const VARIABLES_MAX: usize = 255;
/// Words of a line.
const WORDS_MAX: usize = 256;
/// Letters of a line that messages show.
const SHOWN_MAX: usize = 200;
/// `\if` within one another.
const NESTED_MAX: usize = 100;

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Variable(u16),
    /// A variable in quotes, where only the simple protocol fills it in.
    Quoted(u16),
}

/// Use of a statement's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keeps {
    /// Whether the rows of all statements that go together are kept (`\aset`), or the only row of the last (`\gset`).
    pub(crate) all: bool,
    pub(crate) prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sql {
    pub(crate) parts: Vec<Part>,
    pub(crate) keeps: Option<Keeps>,
    pub(crate) is_compound: bool,
    /// Its number among the statements of a run.
    pub(crate) number: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Time {
    Us(i64),
    /// A variable, in units of this length in microseconds.
    Variable(u16, i64),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Sql(Sql),
    Set(u16, Expression),
    /// Goes on at a place unless the expression is true.
    Unless(Expression, usize),
    Jump(usize),
    Sleep(Time),
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

/// An action with the number of its command in the script, counted from 1 as `debug()` shows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    pub(crate) number: usize,
    pub(crate) line: usize,
    pub(crate) action: Action,
}

/// A line that is not taken.
enum Refusal {
    /// The whole line is told of.
    Line(String),
    /// A mistake in its command, and its place in the line.
    Command(String, Option<usize>),
}

/// A branch that is open: where its last test goes when it fails, and what goes on behind `\endif`.
struct Branch {
    test: Option<usize>,
    ends: Vec<usize>,
    line: usize,
}

struct Reader<'a> {
    name: &'a str,
    names: &'a mut Names,
    commands: Vec<Command>,
    number: usize,
    line: usize,
    branches: Vec<Branch>,
}

/// Reads a script. Errors are one line with the script's name and the number of the line.
pub(crate) fn read(name: &str, text: &str, names: &mut Names) -> Result<Vec<Command>, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("{name}: has {} bytes; scripts of {TEXT_MAX} bytes at most are read", text.len()));
    }
    if text.contains('\0') {
        return Err(format!("{name}: is not a text"));
    }
    let mut reader = Reader { name, names, commands: Vec::new(), number: 0, line: 0, branches: Vec::new() };
    let mut scanner = Scanner::new(text);
    // Whether the command before is a statement whose rows may be kept.
    let mut keeps_next = false;
    loop {
        let piece = scanner.statement();
        if !piece.text.is_empty() || piece.end == End::Semicolon {
            let line = scanner.line(piece.at);
            reader.line = line;
            let sql = reader.sql(&piece.text, &piece.quoted, piece.is_compound, line)?;
            reader.push(Action::Sql(sql));
            keeps_next = true;
        }
        match piece.end {
            End::Semicolon => (),
            End::Text => break,
            End::Backslash => {
                let (text, at) = scanner.backslash_line();
                let line = scanner.line(at);
                keeps_next = reader.line(text, line, keeps_next)?;
            }
        }
    }
    if let Some(open) = reader.branches.last() {
        return Err(format!("{name}:{}: \\if without matching \\endif", open.line));
    }
    if reader.number == 0 {
        return Err(format!("{name}: empty command list for script"));
    }
    Ok(reader.commands)
}

/// Words of a line with their places; `\` at the end of a line goes on in the next.
fn words(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let ends_line = |at: usize| bytes[at..].starts_with(b"\\\n") || bytes[at..].starts_with(b"\\\r\n");
    let is_space = |at: usize| bytes[at].is_ascii_whitespace() || bytes[at] == b'\x0b';
    let (mut found, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if is_space(at) || ends_line(at) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && !is_space(at) && !ends_line(at) {
            at += 1;
        }
        found.push((start, &text[start..at]));
    }
    found
}

impl Reader<'_> {
    fn push(&mut self, action: Action) {
        self.number += 1;
        self.put(action);
    }

    /// Adds an action that belongs to the present command.
    fn put(&mut self, action: Action) {
        self.commands.push(Command { number: self.number, line: self.line, action });
    }

    fn sql(&mut self, text: &str, quoted: &[(usize, usize)], is_compound: bool, line: usize) -> Result<Sql, String> {
        let (bytes, mut parts) = (text.as_bytes(), Vec::new());
        let (mut copied, mut at, mut count) = (0, 0, 0);
        while at < bytes.len() {
            if bytes[at] != b':' {
                at += 1;
                continue;
            }
            let length = name_length(&bytes[at + 1..]);
            if length == 0 {
                // Colons that follow are no begin of a variable either: `::int` is a type.
                at += bytes[at..].iter().take_while(|letter| **letter == b':').count();
                continue;
            }
            count += 1;
            if count > VARIABLES_MAX {
                return Err(format!(
                    "{}:{line}: statement has too many arguments (maximum is {VARIABLES_MAX})",
                    self.name
                ));
            }
            let end = at + 1 + length;
            let is_quoted = quoted.iter().any(|(from, to)| (*from..*to).contains(&at));
            parts.push(Part::Text(text[copied..at].into()));
            let slot = self.names.slot(&text[at + 1..end]).map_err(|text| format!("{}:{line}: {text}", self.name))?;
            parts.push(if is_quoted { Part::Quoted(slot) } else { Part::Variable(slot) });
            (copied, at) = (end, end);
        }
        parts.push(Part::Text(text[copied..].into()));
        Ok(Sql { parts, keeps: None, is_compound, number: 0 })
    }

    /// Reads a line behind its backslash; whether a statement is still the command before.
    fn line(&mut self, text: &str, line: usize, keeps_next: bool) -> Result<bool, String> {
        self.line = line;
        let found = words(text);
        let Some(&(_, command)) = found.first() else { return Ok(keeps_next) };
        match self.command(command, &found[1..], text, keeps_next) {
            Ok(()) => Ok(false),
            Err(Refusal::Line(told)) => Err(format!("{}:{line}: {told}", self.name)),
            Err(Refusal::Command(mistake, at)) => {
                let whole = text.trim_end().chars().take(SHOWN_MAX);
                let shown: String = whole.map(|letter| if letter == '\n' { ' ' } else { letter }).collect();
                let place = at.map_or(String::new(), |at| format!(", at column {}", at + 2));
                Err(format!("{}:{line}: {mistake} in command \"{command}\"{place}: \\{shown}", self.name))
            }
        }
    }

    /// Reads the command of a line with the words behind it.
    fn command(
        &mut self,
        command: &str,
        arguments: &[(usize, &str)],
        text: &str,
        keeps_next: bool,
    ) -> Result<(), Refusal> {
        if arguments.len() >= WORDS_MAX {
            return Err(Refusal::Command("too many arguments".into(), None));
        }
        let name = command.to_ascii_lowercase();
        let takes_none = matches!(name.as_str(), "else" | "endif" | "startpipeline" | "syncpipeline" | "endpipeline");
        if takes_none && let Some((at, _)) = arguments.first() {
            return Err(Refusal::Command("unexpected argument".into(), Some(*at)));
        }
        match name.as_str() {
            "set" => self.set(arguments, text)?,
            "if" | "elif" => {
                let expression = self.expression(text, command.len())?;
                self.number += 1;
                self.branch(name == "if")?;
                let test = self.commands.len();
                self.put(Action::Unless(expression, 0));
                self.branches.last_mut().expect("a branch is open").test = Some(test);
            }
            "else" => {
                self.number += 1;
                self.other("else")?;
                self.branches.last_mut().expect("a branch is open").test = None;
            }
            "endif" => self.end_if()?,
            "sleep" => {
                let time = self.sleep(arguments)?;
                self.push(Action::Sleep(time));
            }
            "gset" | "aset" => self.keep(name == "aset", arguments, keeps_next)?,
            "startpipeline" => self.push(Action::StartPipeline),
            "syncpipeline" => self.push(Action::SyncPipeline),
            "endpipeline" => self.push(Action::EndPipeline),
            "shell" if arguments.is_empty() => return Err(Refusal::Command("missing command".into(), None)),
            "setshell" if arguments.len() < 2 => return Err(Refusal::Command("missing argument".into(), None)),
            "shell" | "setshell" => {
                let told = "no command of this host is run for a script, leave it out; not allowed";
                return Err(Refusal::Command(told.into(), None));
            }
            _ => return Err(Refusal::Command("invalid command".into(), None)),
        }
        Ok(())
    }

    fn set(&mut self, arguments: &[(usize, &str)], text: &str) -> Result<(), Refusal> {
        let Some(&(at, name)) = arguments.first() else {
            return Err(Refusal::Command("missing argument".into(), None));
        };
        if !is_name(name.as_bytes()) {
            return Err(Refusal::Command(format!("invalid variable name ({name})"), Some(at)));
        }
        let expression = self.expression(text, at + name.len())?;
        let slot = self.names.slot(name).map_err(Refusal::Line)?;
        self.push(Action::Set(slot, expression));
        Ok(())
    }

    fn end_if(&mut self) -> Result<(), Refusal> {
        self.number += 1;
        let Some(branch) = self.branches.pop() else {
            return Err(Refusal::Line("\\endif without matching \\if".into()));
        };
        let end = self.commands.len();
        branch.ends.into_iter().for_each(|place| self.commands[place].action = Action::Jump(end));
        self.fail_to(branch.test, end);
        Ok(())
    }

    /// Keeps the rows of the statement before.
    fn keep(&mut self, all: bool, arguments: &[(usize, &str)], keeps_next: bool) -> Result<(), Refusal> {
        if let Some((at, _)) = arguments.get(1) {
            return Err(Refusal::Command("too many arguments".into(), Some(*at)));
        }
        let prefix = arguments.first().map_or(String::new(), |(_, prefix)| (*prefix).into());
        match self.commands.last_mut().map(|last| &mut last.action) {
            Some(Action::Sql(sql)) if keeps_next && sql.keeps.is_none() => sql.keeps = Some(Keeps { all, prefix }),
            _ => return Err(Refusal::Line("\\gset must follow an SQL command".into())),
        }
        Ok(())
    }

    fn expression(&mut self, text: &str, from: usize) -> Result<Expression, Refusal> {
        let parsed = parse(&text[from..], self.names);
        parsed.map_err(|mistake| Refusal::Command(mistake.text, Some(mistake.at + from)))
    }

    /// Begins a branch: the first, or one that is tried when those before it were not taken.
    fn branch(&mut self, is_first: bool) -> Result<(), Refusal> {
        if !is_first {
            return self.other("elif");
        }
        if self.branches.len() == NESTED_MAX {
            return Err(Refusal::Line(format!("\\if within {NESTED_MAX} others is not read")));
        }
        self.branches.push(Branch { test: None, ends: Vec::new(), line: self.line });
        Ok(())
    }

    /// Ends the branch before `\elif` or `\else`, and lets its failed test go on here.
    fn other(&mut self, command: &str) -> Result<(), Refusal> {
        let here = self.commands.len();
        let Some(branch) = self.branches.last_mut() else {
            return Err(Refusal::Line(format!("\\{command} without matching \\if")));
        };
        let Some(test) = branch.test else {
            return Err(Refusal::Line(format!("\\{command} after \\else")));
        };
        branch.ends.push(here);
        self.put(Action::Jump(0));
        self.fail_to(Some(test), here + 1);
        Ok(())
    }

    fn fail_to(&mut self, test: Option<usize>, place: usize) {
        if let Some(test) = test
            && let Action::Unless(_, otherwise) = &mut self.commands[test].action
        {
            *otherwise = place;
        }
    }

    fn sleep(&mut self, arguments: &[(usize, &str)]) -> Result<Time, Refusal> {
        let Some(&(at, time)) = arguments.first() else {
            return Err(Refusal::Command("missing argument".into(), None));
        };
        if let Some((at, _)) = arguments.get(2) {
            return Err(Refusal::Command("too many arguments".into(), Some(*at)));
        }
        let digits_from = time.find(|letter| !matches!(letter, '+' | '-')).unwrap_or(time.len()).min(1);
        let digits = time[digits_from..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, mut unit) = time.split_at(digits_from + digits);
        let is_variable = time.starts_with(':');
        let mut unit_at = at + number.len();
        if is_variable || unit.is_empty() {
            (unit_at, unit) = arguments.get(1).copied().unwrap_or((at, "s"));
        } else if digits == 0 || arguments.len() > 1 {
            return Err(Refusal::Command(format!("invalid sleep time, must be an integer ({time})"), Some(at)));
        }
        let unit_us = match unit.to_ascii_lowercase().as_str() {
            "us" => 1,
            "ms" => 1000,
            "s" => 1_000_000,
            _ => {
                let told = format!("unrecognized time unit, must be us, ms or s ({unit})");
                return Err(Refusal::Command(told, Some(unit_at)));
            }
        };
        if is_variable {
            let slot = self.names.slot(&time[1..]).map_err(Refusal::Line)?;
            return Ok(Time::Variable(slot, unit_us));
        }
        let number: i64 = number.parse().unwrap_or(i64::MAX);
        Ok(Time::Us(number.saturating_mul(unit_us)))
    }
}
