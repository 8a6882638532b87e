//! `log_line_prefix`: what stands before each message of PostgreSQL's stderr log.

use super::times;

/// Prefixes that are tried where none is given: the default, those of packages and of log analysers, and those of cloud services.
const KNOWN: [&str; 15] = [
    "%m [%p] %q%u@%d %c ",
    "%m [%p] %q%u@%d ",
    "%m [%p] ",
    "%m %u %d %c %l ",
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: db=%d,user=%u,app=%a,client=%h ",
    "%m [%p]: db=%d,user=%u,app=%a,client=%h ",
    "%t [%p]: [%l-1] db=%d,user=%u,app=%a,client=%h ",
    "%t [%p]: [%l-1] db=%d,user=%u ",
    "%t [%p]: [%l-1] user=%u,db=%d ",
    "%t:%r:%u@%d:[%p]:",
    "%t [%p]: [%l-1] ",
    "%t [%p]: ",
];

/// Severities that begin a message, and parts of a message that follow it.
const WORDS: [&str; 16] = [
    "LOG",
    "ERROR",
    "FATAL",
    "PANIC",
    "WARNING",
    "NOTICE",
    "INFO",
    "DEBUG",
    "DEBUG1",
    "DEBUG2",
    "DEBUG3",
    "DETAIL",
    "HINT",
    "CONTEXT",
    "STATEMENT",
    "QUERY",
];

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Escape(char),
}

/// A prefix, ready to read lines.
#[derive(Debug, Clone)]
pub(super) struct Prefix {
    pieces: Vec<Piece>,
}

/// Fields of a prefix, and the text behind it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Prefixed<'a> {
    pub(super) at_ns: i64,
    pub(super) began_ns: Option<i64>,
    /// The session's identifier or its process.
    pub(super) session: &'a str,
    pub(super) is_process: bool,
    pub(super) database: &'a str,
    pub(super) code: &'a str,
    /// `LOG`, `DETAIL` and so on.
    pub(super) word: &'a str,
    pub(super) text: &'a str,
}

impl Prefix {
    /// Reads a prefix as the server's configuration has it.
    ///
    /// # Errors
    /// The prefix lacks a time or a session.
    pub(super) fn new(template: &str) -> Result<Self, String> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut letters = template.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                match pieces.last_mut() {
                    Some(Piece::Text(text)) => text.push(letter),
                    _ => pieces.push(Piece::Text(letter.into())),
                }
                continue;
            }
            // A width may stand before the letter.
            let escape = letters.find(|letter| !letter.is_ascii_digit() && *letter != '-').unwrap_or('%');
            pieces.push(if escape == '%' { Piece::Text("%".into()) } else { Piece::Escape(escape) });
        }
        let has = |wanted: &[char]| wanted.iter().any(|letter| pieces.contains(&Piece::Escape(*letter)));
        if !has(&['m', 't', 'n']) {
            return Err("log_line_prefix has no time; a replay needs %m".into());
        }
        if !has(&['c', 'p']) {
            return Err("log_line_prefix has no session; a replay needs %c or %p".into());
        }
        Ok(Self { pieces })
    }

    /// The known prefix that most lines begin with.
    pub(super) fn found(head: &str) -> Option<Self> {
        let known = KNOWN.iter().filter_map(|template| Self::new(template).ok());
        let counted = known.map(|prefix| {
            let count = head.lines().filter(|line| prefix.read(line).is_some()).count();
            (count, prefix)
        });
        // Of those that fit equally well the first says most.
        let best = counted.reduce(|best, other| if other.0 > best.0 { other } else { best })?;
        (best.0 > 0).then_some(best.1)
    }

    /// Reads a line; gives `None` where it does not begin with this prefix and a severity.
    pub(super) fn read<'a>(&self, line: &'a str) -> Option<Prefixed<'a>> {
        let of_session = self.matched(line, &self.pieces);
        of_session.or_else(|| {
            let end = self.pieces.iter().position(|piece| *piece == Piece::Escape('q'))?;
            self.matched(line, &self.pieces[..end])
        })
    }

    fn matched<'a>(&self, line: &'a str, pieces: &[Piece]) -> Option<Prefixed<'a>> {
        let (mut found, mut rest) = (Prefixed::default(), line);
        let mut has_time = false;
        for (place, piece) in pieces.iter().enumerate() {
            let letter = match piece {
                Piece::Text(text) => {
                    rest = rest.strip_prefix(text.as_str())?;
                    continue;
                }
                Piece::Escape('q') => continue,
                Piece::Escape(letter) => *letter,
            };
            let (length, time_ns) = match letter {
                'm' | 't' | 's' => {
                    let (ns, length) = times::timestamp(rest.as_bytes())?;
                    (length + zone_length(rest.get(length..)?), Some(ns))
                }
                'n' => times::epoch(rest.as_bytes()).map(|(ns, length)| (length, Some(ns)))?,
                _ => (value_length(rest, pieces.get(place + 1)), None),
            };
            let value = rest.get(..length)?;
            rest = &rest[length..];
            match letter {
                'm' | 't' | 'n' => (found.at_ns, has_time) = (time_ns?, true),
                's' => found.began_ns = time_ns,
                'c' => (found.session, found.is_process) = (value, false),
                'p' if found.session.is_empty() => (found.session, found.is_process) = (value, true),
                'd' => found.database = value,
                'e' => found.code = value,
                _ => (),
            }
        }
        let (word, text) = rest.split_once(':')?;
        let is_known = has_time && WORDS.contains(&word);
        is_known.then(|| Prefixed { word, text: text.trim_start_matches(' '), ..found })
    }
}

/// The length of ` UTC` or ` +02` behind a time.
fn zone_length(rest: &str) -> usize {
    let is_zone = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '/' | '_');
    let Some(after) = rest.strip_prefix(' ') else { return 0 };
    let length = after.find(|letter| !is_zone(letter)).unwrap_or(after.len());
    if length == 0 { 0 } else { length + 1 }
}

/// The length of a value: up to the text behind it, else to the next blank.
fn value_length(rest: &str, next: Option<&Piece>) -> usize {
    let end = match next {
        Some(Piece::Text(text)) => rest.find(text.as_str()),
        _ => rest.find(char::is_whitespace),
    };
    end.unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_by_the_prefix_that_fits() {
        let line = "2026-11-27 10:00:00.123 UTC [17] u@shop LOG:  duration: 1.0 ms  statement: select 1";
        let found = Prefix::found(line).unwrap().read(line).unwrap();
        assert_eq!((found.session, found.database, found.word), ("17", "shop", "LOG"));
        assert_eq!(found.text, "duration: 1.0 ms  statement: select 1");
        let own = Prefix::new("%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ").unwrap();
        let line = "2026-11-27 10:00:00 CET [9]: [3-1] user=u,db=d,app=psql,client=[local] ERROR:  no";
        let found = own.read(line).unwrap();
        assert_eq!((found.session, found.database, found.word, found.text), ("9", "d", "ERROR", "no"));
        let line = "2026-11-27 10:00:00 UTC:10.0.0.1(52):u@d:[99]:LOG:  statement: x";
        assert_eq!(Prefix::found(line).unwrap().read(line).unwrap().session, "99");
    }

    #[test]
    fn a_prefix_without_time_or_session_is_refused() {
        assert!(Prefix::new("[%p] ").is_err());
        assert!(Prefix::new("%m ").is_err());
        assert!(Prefix::found("no log at all").is_none());
    }
}
