//! PostgreSQL's messages about statements, in each form of its log: `log_min_duration_statement`, `log_statement`,
//! `log_duration` and errors (PostgreSQL's manual, "Error Reporting and Logging"; texts of `postgres.c`).

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    entry::{Logged, News, Takes, Way},
    times,
};
use crate::statements::lex::{Dialect, Token, Tokens};

/// Sessions of which something is remembered at once; a log without disconnections has ever more of them.
const OPEN_MAX: usize = 100_000;
/// Most parameters of a statement, by the protocol.
const PARAMETERS_MAX: usize = 65_535;

pub(super) const NO_STATEMENT: &str = "messages that are no statements";
const BACKGROUND: &str = "messages of the server's own processes";
const FETCHES: &str = "fetches from portals: the first execution takes all rows";
const FAST_PATH: &str = "fast-path function calls";
const LOST_PARAMETERS: &str = "statements whose parameters the log does not hold";
const NO_TEXT: &str = "errors whose statement the log does not hold";

/// A message of the log.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) at_ns: i64,
    pub(super) session: u64,
    /// When the session began.
    pub(super) began_ns: Option<i64>,
    pub(super) database: &'a str,
    pub(super) backend: &'a str,
    pub(super) severity: &'a str,
    /// SQLSTATE; empty where the log has none.
    pub(super) code: &'a str,
    pub(super) text: &'a str,
    pub(super) detail: &'a str,
    /// The statement of an error.
    pub(super) statement: &'a str,
}

/// A session's number, from whatever tells it from others.
pub(super) fn session_key(parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

#[derive(Debug, Default)]
struct Open {
    /// A statement that was logged when it began.
    pending: Option<Logged>,
    /// Time of parsing and binding, which belong to the execution that follows.
    before_ns: u64,
    has_database: bool,
}

/// Makes statements of messages.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    open: HashMap<u64, Open>,
}

impl Assembler {
    pub(super) fn message(&mut self, message: &Message<'_>, takes: &mut dyn Takes) {
        if !matches!(message.backend, "" | "client backend" | "not initialized") {
            return takes.left_out(BACKGROUND, 1);
        }
        self.begin(message, takes);
        match message.severity {
            "LOG" => self.log(message, takes),
            "ERROR" | "FATAL" | "PANIC" => self.error(message, takes),
            _ => takes.left_out(NO_STATEMENT, 1),
        }
    }

    /// Tells of a session when it is seen first, and when its database is.
    fn begin(&mut self, message: &Message<'_>, takes: &mut dyn Takes) {
        let database = if message.database == "[unknown]" { "" } else { message.database };
        let known = self.open.get(&message.session).map(|open| open.has_database);
        if known == Some(true) || (known == Some(false) && database.is_empty()) {
            return;
        }
        if known.is_none() && self.open.len() >= OPEN_MAX {
            self.end(takes);
        }
        self.open.entry(message.session).or_default().has_database = !database.is_empty();
        let at_ns = message.began_ns.unwrap_or(message.at_ns);
        takes.take(message.session, News::Begins { at_ns, database: database.to_owned() });
    }

    fn log(&mut self, message: &Message<'_>, takes: &mut dyn Takes) {
        if let Some(rest) = message.text.strip_prefix("duration: ") {
            return self.duration(message, rest, takes);
        }
        if message.text.starts_with("disconnection: ") {
            if let Some(Open { pending: Some(pending), .. }) = self.open.remove(&message.session) {
                takes.take(message.session, News::Statement(pending));
            }
            return;
        }
        let Some((way, text)) = of_text(message.text) else { return takes.left_out(NO_STATEMENT, 1) };
        let Some(statement) = self.statement(message, way, text, None, takes) else { return };
        let open = self.open.entry(message.session).or_default();
        if let Some(before) = open.pending.replace(statement) {
            takes.take(message.session, News::Statement(before));
        }
    }

    /// `0.101 ms`, perhaps with what took it.
    fn duration(&mut self, message: &Message<'_>, rest: &str, takes: &mut dyn Takes) {
        let (number, rest) = rest.split_once(" ms").unwrap_or((rest, ""));
        let Some(duration_ns) = times::duration(number, 1e6) else {
            return takes.not_understood(message.text.as_bytes());
        };
        let open = self.open.entry(message.session).or_default();
        let rest = rest.trim_start();
        if rest.is_empty() {
            // The statement itself was logged before.
            let Some(mut pending) = open.pending.take() else {
                return takes.left_out("durations without a statement", 1);
            };
            let taken_ns = duration_ns.saturating_add(std::mem::take(&mut open.before_ns));
            pending.duration_ns = Some(taken_ns);
            pending.start_ns = message.at_ns.saturating_sub_unsigned(taken_ns);
            return takes.take(message.session, News::Statement(pending));
        }
        if rest.starts_with("parse ") {
            open.before_ns = duration_ns;
            return;
        }
        if rest.starts_with("bind ") {
            open.before_ns = open.before_ns.saturating_add(duration_ns);
            return;
        }
        let Some((way, text)) = of_text(rest) else {
            let reason = if rest.starts_with("fastpath ") { FAST_PATH } else { FETCHES };
            return if rest.starts_with("fastpath ") || rest.starts_with("execute fetch ") {
                takes.left_out(reason, 1);
            } else {
                takes.not_understood(message.text.as_bytes());
            };
        };
        let before_ns = if way == Way::Simple { 0 } else { std::mem::take(&mut open.before_ns) };
        let before = open.pending.take();
        if let Some(before) = before {
            takes.take(message.session, News::Statement(before));
        }
        if let Some(statement) = self.statement(message, way, text, Some(duration_ns.saturating_add(before_ns)), takes)
        {
            takes.take(message.session, News::Statement(statement));
        }
    }

    fn statement(
        &self,
        message: &Message<'_>,
        way: Way,
        text: &str,
        duration_ns: Option<u64>,
        takes: &mut dyn Takes,
    ) -> Option<Logged> {
        let found = if way == Way::Simple { Some(Vec::new()) } else { parameters(message.detail) };
        let Some(found) = found.filter(|found| way == Way::Simple || found.len() >= placeholders(text)) else {
            takes.left_out(LOST_PARAMETERS, 1);
            return None;
        };
        Some(Logged {
            start_ns: message.at_ns.saturating_sub_unsigned(duration_ns.unwrap_or(0)),
            duration_ns,
            way,
            text: text.to_owned(),
            parameters: found,
            code: None,
        })
    }

    fn error(&mut self, message: &Message<'_>, takes: &mut dyn Takes) {
        let code = Some(if message.code.is_empty() { "?".to_owned() } else { message.code.to_owned() });
        let open = self.open.entry(message.session).or_default();
        open.before_ns = 0;
        if let Some(mut pending) = open.pending.take() {
            pending.code = code;
            return takes.take(message.session, News::Statement(pending));
        }
        if message.statement.is_empty() {
            return takes.left_out(NO_TEXT, 1);
        }
        let has_places = placeholders(message.statement) > 0;
        if has_places {
            return takes.left_out(LOST_PARAMETERS, 1);
        }
        let failed = Logged {
            start_ns: message.at_ns,
            duration_ns: None,
            way: Way::Simple,
            text: message.statement.to_owned(),
            parameters: Vec::new(),
            code,
        };
        takes.take(message.session, News::Statement(failed));
    }

    /// Hands over the statements that are still open at the end of the log.
    pub(super) fn end(&mut self, takes: &mut dyn Takes) {
        let mut left: Vec<_> = self.open.drain().filter_map(|(key, open)| Some((key, open.pending?))).collect();
        left.sort_by_key(|(key, pending)| (pending.start_ns, *key));
        left.into_iter().for_each(|(key, pending)| takes.take(key, News::Statement(pending)));
    }
}

/// `statement: SQL` or `execute NAME: SQL`.
fn of_text(text: &str) -> Option<(Way, &str)> {
    if let Some(sql) = text.strip_prefix("statement: ") {
        return Some((Way::Simple, sql));
    }
    let rest = text.strip_prefix("execute ").filter(|rest| !rest.starts_with("fetch from "))?;
    let (name, sql) = rest.split_once(": ")?;
    let way = if name == "<unnamed>" || name.starts_with("<unnamed>/") { Way::Extended } else { Way::Prepared };
    Some((way, sql))
}

/// The highest number of a parameter in a text.
fn placeholders(text: &str) -> usize {
    if !text.contains('$') {
        return 0;
    }
    let mut tokens = Tokens::new(text, Dialect::Postgresql);
    let mut most = 0;
    while let Some(token) = tokens.next() {
        if token == Token::Parameter {
            let digits = text[..tokens.position()].rsplit('$').next().unwrap_or("");
            most = most.max(digits.parse().unwrap_or(usize::MAX));
        }
    }
    most
}

/// Parameters of `parameters: $1 = 'it''s', $2 = NULL`; none of an empty detail, `None` where it is damaged.
fn parameters(detail: &str) -> Option<Vec<Option<String>>> {
    let mut found = Vec::new();
    let lower = detail.get(..12).map(str::to_ascii_lowercase);
    if lower.as_deref() != Some("parameters: ") {
        return Some(found);
    }
    let mut rest = &detail[12..];
    loop {
        rest = rest.strip_prefix('$')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if rest[..digits].parse() != Ok(found.len() + 1) || found.len() == PARAMETERS_MAX {
            return None;
        }
        rest = rest[digits..].strip_prefix(" = ")?;
        if let Some(after) = rest.strip_prefix("NULL") {
            found.push(None);
            rest = after;
        } else {
            let (value, after) = quoted(rest.strip_prefix('\'')?)?;
            found.push(Some(value));
            rest = after;
        }
        if rest.is_empty() {
            return Some(found);
        }
        rest = rest.strip_prefix(", ")?;
    }
}

/// A text up to its closing quote, doubled ones within made single, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut rest) = (String::new(), text);
    loop {
        let (part, after) = rest.split_once('\'')?;
        value.push_str(part);
        match after.strip_prefix('\'') {
            Some(more) => {
                value.push('\'');
                rest = more;
            }
            None => return Some((value, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_keep_quotes_and_nulls() {
        let found = parameters("parameters: $1 = 'it''s', $2 = NULL, $3 = ', $4 = '").unwrap();
        assert_eq!(found, [Some("it's".into()), None, Some(", $4 = ".into())]);
        assert_eq!(parameters("Parameters: $1 = ''"), Some(vec![Some(String::new())]));
        assert_eq!(parameters(""), Some(vec![]));
        for damaged in ["parameters: $2 = 'a'", "parameters: $1 = 'a", "parameters: $1 = 'a' $2", "parameters: "] {
            assert_eq!(parameters(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn places_of_parameters_are_counted_outside_of_quotes() {
        assert_eq!(placeholders("select $1, '$7', $3"), 3);
        assert_eq!(placeholders("select 1"), 0);
    }
}
