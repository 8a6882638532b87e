//! Statements of the user's own: their text is known when a run begins, any protocol takes them, and their rows may be asked for by the
//! names of their columns.

use serde::Deserialize;

use crate::{connection::Kind, statements::StatementId};

/// How a statement and its parameters go to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// As one text, in which the parameters are written out.
    Simple,
    /// The text with its parameters beside it, each time.
    Extended,
    /// The text once for each connection, then the parameters alone.
    Prepared,
}

/// Placeholder of a parameter, counted from 1, in a statement for a server.
pub fn placeholder(kind: Kind, number: usize) -> String {
    match kind {
        Kind::Postgresql => format!("${number}"),
        Kind::Mariadb | Kind::Mysql => "?".into(),
        Kind::Mssql => format!("@P{number}"),
    }
}

/// Parameters of a statement as text; an absent one is null.
#[derive(Debug, Default)]
pub struct Values {
    text: Vec<u8>,
    /// Where each ends in `text`, and whether it is there.
    ends: Vec<(usize, bool)>,
}

impl Values {
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Adds a parameter that is written in place; null if `write` says so by `false`.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let is_there = write(&mut self.text);
        self.ends.push((self.text.len(), is_there));
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> + Clone {
        (0..self.ends.len()).map(|place| {
            let start = if place == 0 { 0 } else { self.ends[place - 1].0 };
            let (end, is_there) = self.ends[place];
            is_there.then(|| &self.text[start..end])
        })
    }
}

/// A statement of the user's own on its way.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its place among the statements of the run.
    pub id: StatementId,
    /// The name under which it is prepared.
    pub name: &'a str,
    pub text: &'a str,
    pub values: &'a Values,
    pub protocol: Protocol,
}

/// Where a text lies.
type Span = (usize, usize);

/// Answer to one statement: how many rows it had, and columns and values of the last.
#[derive(Debug, Clone, Copy)]
struct Answer {
    is_query: bool,
    rows: u64,
    /// First of its columns.
    first: usize,
    /// Column of the next cell.
    next: usize,
    /// Where the values of its row begin in the text.
    values_from: usize,
}

/// Answers to a statement, or to several that go together.
#[derive(Debug, Default)]
pub struct Answers {
    text: Vec<u8>,
    columns: Vec<(Span, Option<Span>)>,
    answers: Vec<Answer>,
    is_open: bool,
}

impl Answers {
    pub fn clear(&mut self) {
        self.text.clear();
        self.columns.clear();
        self.answers.clear();
        self.is_open = false;
    }

    fn push_text(&mut self, text: &[u8]) -> Span {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        (start, self.text.len())
    }

    /// A statement answers with rows; its columns follow.
    pub(crate) fn begin(&mut self) {
        let (first, values_from) = (self.columns.len(), self.text.len());
        self.answers.push(Answer { is_query: true, rows: 0, first, next: first, values_from });
        self.is_open = true;
    }

    pub(crate) fn column(&mut self, name: &[u8]) {
        let name = self.push_text(name);
        self.columns.push((name, None));
        if let Some(answer) = self.answers.last_mut() {
            answer.values_from = self.text.len();
        }
    }

    /// A row of the answer takes the place of the row before it; its cells follow.
    pub(crate) fn begin_row(&mut self) {
        let Some(answer) = self.answers.last_mut() else { return };
        answer.rows += 1;
        answer.next = answer.first;
        self.text.truncate(answer.values_from);
    }

    pub(crate) fn cell(&mut self, cell: Option<&[u8]>) {
        let value = cell.map(|cell| self.push_text(cell));
        let Some(answer) = self.answers.last_mut() else { return };
        if let Some(column) = self.columns.get_mut(answer.next) {
            column.1 = value;
            answer.next += 1;
        }
    }

    /// The answer is over; without a begin it had no rows to give.
    pub(crate) fn end(&mut self) {
        if !self.is_open {
            let (first, values_from) = (self.columns.len(), self.text.len());
            self.answers.push(Answer { is_query: false, rows: 0, first, next: first, values_from });
        }
        self.is_open = false;
    }

    pub fn len(&self) -> usize {
        self.answers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Rows of an answer; `None` of a statement that is no query.
    pub fn rows(&self, place: usize) -> Option<u64> {
        let answer = self.answers.get(place)?;
        answer.is_query.then_some(answer.rows)
    }

    /// Columns of the last row of an answer with their values; null is an empty text.
    pub fn last_row(&self, place: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        let first = self.answers.get(place).map_or(self.columns.len(), |answer| answer.first);
        let end = self.answers.get(place + 1).map_or(self.columns.len(), |answer| answer.first);
        self.columns[first..end].iter().map(|(name, value)| {
            let value = value.map_or(&b""[..], |(from, to)| &self.text[from..to]);
            (&self.text[name.0..name.1], value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_order_and_their_nulls() {
        let mut values = Values::default();
        for value in [Some("a"), None, Some(""), Some("bc")] {
            values.push(|out| value.inspect(|value| out.extend_from_slice(value.as_bytes())).is_some());
        }
        let texts: Vec<_> = values.iter().collect();
        assert_eq!(texts, [Some(&b"a"[..]), None, Some(b""), Some(b"bc")]);
    }

    #[test]
    fn of_each_answer_the_last_row_is_kept() {
        let mut answers = Answers::default();
        answers.begin();
        ["one", "two"].iter().for_each(|name| answers.column(name.as_bytes()));
        for row in [[Some("1"), Some("2")], [Some("333"), None]] {
            answers.begin_row();
            row.iter().for_each(|cell| answers.cell(cell.map(str::as_bytes)));
        }
        answers.end();
        answers.end();
        answers.begin();
        answers.column(b"three");
        answers.end();
        assert_eq!(
            [answers.rows(0), answers.rows(1), answers.rows(2), answers.rows(3)],
            [Some(2), None, Some(0), None]
        );
        let row: Vec<_> = answers.last_row(0).collect();
        assert_eq!(row, [(&b"one"[..], &b"333"[..]), (b"two", b"")]);
    }
}
