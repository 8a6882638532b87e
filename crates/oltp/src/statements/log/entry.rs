//! Entries of logs, whatever their format: sessions and their statements.

use std::collections::BTreeMap;

/// How a statement went to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Simple,
    /// With its parameters beside it.
    Extended,
    /// Prepared before, under a name.
    Prepared,
}

/// A statement that a server logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logged {
    /// When it began, in nanoseconds on the log's own clock.
    pub(crate) start_ns: i64,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) way: Way,
    pub(crate) text: String,
    pub(crate) parameters: Vec<Option<String>>,
    /// The SQLSTATE with which it failed; `?` where the log does not say which.
    pub(crate) code: Option<String>,
}

/// News of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// It connected then, to a database. A log may say so several times.
    Begins {
        at_ns: i64,
        database: String,
    },
    Statement(Logged),
}

/// Takes what a log says, session by session in the order of the log.
pub(crate) trait Takes {
    fn take(&mut self, session: u64, news: News);
    /// Lines, messages or statements that are left out: why, and one of them.
    fn left_out(&mut self, reason: &'static str, count: u64);
    fn not_understood(&mut self, line: &[u8]);
}

/// Counts of the lines and statements of a log that are left out or not understood.
#[derive(Debug, Default, Clone)]
pub(crate) struct Account {
    pub(crate) left_out: BTreeMap<&'static str, u64>,
    pub(crate) not_understood: u64,
    pub(crate) example: Option<String>,
}

/// Letters of an example that are kept.
const EXAMPLE_MAX: usize = 120;

impl Account {
    pub(crate) fn left_out(&mut self, reason: &'static str, count: u64) {
        *self.left_out.entry(reason).or_default() += count;
    }

    pub(crate) fn not_understood(&mut self, line: &[u8]) {
        self.not_understood += 1;
        if self.example.is_none() {
            let text = String::from_utf8_lossy(&line[..line.len().min(4 * EXAMPLE_MAX)]);
            let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
            self.example = Some(plain.take(EXAMPLE_MAX).collect());
        }
    }
}
