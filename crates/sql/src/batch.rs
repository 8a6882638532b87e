//! Statements that go to the database together, and the rows that come back. Both are reused: a transaction allocates nothing.

use std::io::Write;

use crate::{error::DbError, statements::StatementId};

/// More statements in one batch are a mistake: the server would answer the first before it has taken the last.
const STATEMENTS_MAX: usize = 64;

/// Statements with their parameters as text.
#[derive(Debug, Default)]
pub struct Batch {
    statements: Vec<(StatementId, usize)>,
    ends: Vec<usize>,
    text: Vec<u8>,
}

impl Batch {
    pub fn clear(&mut self) {
        self.statements.clear();
        self.ends.clear();
        self.text.clear();
    }

    /// Adds a statement; its parameters follow.
    pub fn add(&mut self, statement: impl Into<StatementId>) -> Parameters<'_> {
        debug_assert!(self.statements.len() < STATEMENTS_MAX);
        self.statements.push((statement.into(), self.ends.len()));
        Parameters(self)
    }

    pub fn len(&self) -> usize {
        self.statements.len()
    }

    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    pub(crate) fn statement(&self, index: usize) -> StatementId {
        self.statements[index].0
    }

    /// Parameters of the statement at a place, in order.
    pub(crate) fn parameters(&self, index: usize) -> impl Iterator<Item = &[u8]> + Clone {
        let end = self.statements.get(index + 1).map_or(self.ends.len(), |(_, first)| *first);
        (self.statements[index].1..end).map(|place| {
            let start = if place == 0 { 0 } else { self.ends[place - 1] };
            &self.text[start..self.ends[place]]
        })
    }
}

/// Parameters of a statement as they are added.
pub struct Parameters<'a>(&'a mut Batch);

impl Parameters<'_> {
    pub fn int(self, value: impl Into<i64>) -> Self {
        write_int(value.into(), &mut self.0.text);
        self.end()
    }

    pub fn text(self, text: &[u8]) -> Self {
        self.0.text.extend_from_slice(text);
        self.end()
    }

    /// Money in cents.
    pub fn cents(self, cents: i64) -> Self {
        write_decimal(cents, 2, &mut self.0.text);
        self.end()
    }

    /// Text that is written in place.
    pub fn written(self, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        write(&mut self.0.text);
        self.end()
    }

    fn end(self) -> Self {
        self.0.ends.push(self.0.text.len());
        self
    }
}

pub fn write_int(value: i64, out: &mut Vec<u8>) {
    write!(out, "{value}").expect("writing to memory cannot fail");
}

/// A decimal number from all its digits.
pub(crate) fn write_decimal(digits: i64, scale: u8, out: &mut Vec<u8>) {
    let one = 10_u64.pow(scale.into());
    let magnitude = digits.unsigned_abs();
    let sign = if digits < 0 { "-" } else { "" };
    let width = usize::from(scale);
    write!(out, "{sign}{}.{:0width$}", magnitude / one, magnitude % one).expect("writing to memory cannot fail");
}

/// The number that a text of digits alone is, if there is no other way to write it.
pub(crate) fn plain_number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = digits.iter().all(u8::is_ascii_digit) && (!digits.starts_with(b"0") || text == b"0");
    is_plain.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// Rows that are kept of a batch; no transaction asks for a thousandth of it.
pub(crate) const RESULTS_MAX_BYTES: usize = 64 << 20;

/// Rows of a batch, statement by statement.
#[derive(Debug, Default)]
pub struct Results {
    text: Vec<u8>,
    /// Where each cell is in `text`; the start of a null is beyond its end.
    cells: Vec<(u32, u32)>,
    /// Of each row its first cell.
    rows: Vec<u32>,
    /// Of each statement its first row.
    statements: Vec<u32>,
}

impl Results {
    pub fn clear(&mut self) {
        self.text.clear();
        self.cells.clear();
        self.rows.clear();
        self.statements.clear();
    }

    /// Rows from here on belong to the next statement.
    pub(crate) fn begin_statement(&mut self) {
        self.statements.push(self.rows.len() as u32);
    }

    /// # Errors
    /// The server answers with more than any transaction asks for.
    pub(crate) fn begin_row(&mut self) -> Result<(), DbError> {
        if self.text.len() + 8 * self.cells.len() + 4 * self.rows.len() > RESULTS_MAX_BYTES {
            return Err(DbError::connection("the server answers with more rows than were asked for"));
        }
        self.rows.push(self.cells.len() as u32);
        Ok(())
    }

    pub(crate) fn push(&mut self, cell: Option<&[u8]>) {
        let start = self.text.len() as u32;
        match cell {
            Some(bytes) => {
                self.text.extend_from_slice(bytes);
                self.cells.push((start, self.text.len() as u32));
            }
            None => self.cells.push((1, 0)),
        }
    }

    /// A cell that is written in place.
    pub(crate) fn push_written(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.text.len() as u32;
        write(&mut self.text);
        self.cells.push((start, self.text.len() as u32));
    }

    /// How many rows the statement at a place gave.
    pub fn count(&self, statement: usize) -> usize {
        let (first, end) = self.span(statement);
        end - first
    }

    /// A row of the statement at a place.
    pub fn row(&self, statement: usize, row: usize) -> Option<Row<'_>> {
        let (first, end) = self.span(statement);
        let place = first + row;
        (place < end).then(|| Row { results: self, first: self.rows[place] as usize })
    }

    fn span(&self, statement: usize) -> (usize, usize) {
        let first = self.statements.get(statement).map_or(self.rows.len(), |row| *row as usize);
        (first, self.statements.get(statement + 1).map_or(self.rows.len(), |row| *row as usize))
    }
}

/// One row.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    results: &'a Results,
    first: usize,
}

impl<'a> Row<'a> {
    /// A column's text; `None` for null. Columns are those of the statement: the one after the last is the next row's first.
    pub fn text(self, column: usize) -> Option<&'a [u8]> {
        let (start, end) = *self.results.cells.get(self.first + column)?;
        self.results.text.get(start as usize..end as usize)
    }

    pub fn int(self, column: usize) -> Option<i64> {
        std::str::from_utf8(self.text(column)?).ok()?.trim().parse().ok()
    }

    /// A decimal number as a whole number of units of its digit number `scale` behind the point; further digits are not looked at.
    pub fn decimal(self, column: usize, scale: u32) -> Option<i64> {
        parse_decimal(self.text(column)?, scale)
    }

    /// Money as cents: at most two digits after the point are looked at, as columns of money have no more.
    pub fn cents(self, column: usize) -> Option<i64> {
        parse_cents(self.text(column)?)
    }
}

fn parse_cents(text: &[u8]) -> Option<i64> {
    parse_decimal(text, 2)
}

fn parse_decimal(text: &[u8], scale: u32) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, after) = digits.split_once('.').unwrap_or((digits, ""));
    let mut units = if whole.is_empty() { 0_i64 } else { whole.parse::<i64>().ok()?.checked_mul(10_i64.pow(scale))? };
    for (digit, place) in after.bytes().zip(1..=scale) {
        let worth = 10_i64.pow(scale - place);
        units = units.checked_add(i64::from(digit.is_ascii_digit().then(|| digit - b'0')?) * worth)?;
    }
    Some(sign * units)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn money_survives_its_text(cents in -100_000_000_000_i64..100_000_000_000) {
            let mut text = Vec::new();
            write_decimal(cents, 2, &mut text);
            prop_assert_eq!(parse_cents(&text), Some(cents));
        }

        #[test]
        fn no_text_makes_parsing_panic(text in prop::collection::vec(any::<u8>(), 0..20), number in "-?[0-9]{0,20}[.]?[0-9]{0,4}") {
            let _ = parse_cents(&text);
            let _ = parse_cents(number.as_bytes());
        }
    }

    #[test]
    fn a_number_is_plain_if_it_can_be_written_in_one_way() {
        for (text, number) in [("0", 0), ("17", 17), ("-3", -3), ("9223372036854775807", i64::MAX)] {
            assert_eq!(plain_number(text.as_bytes()), Some(number));
        }
        for text in ["", "-", "-0", "007", "1.50", "1e3", "9223372036854775808", "BARBARBAR", " 1", "+1", "\u{661}"] {
            assert_eq!(plain_number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(plain_number(b"\xff"), None);
    }

    #[test]
    fn parameters_come_back_by_statement() {
        let mut batch = Batch::default();
        batch.add(StatementId(0));
        batch.add(StatementId(4)).int(1_u32).text(b"").cents(-5);
        batch.add(StatementId(1));
        let of = |index| batch.parameters(index).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert!(of(0).is_empty() && of(2).is_empty());
        assert_eq!(of(1), [b"1".to_vec(), b"".to_vec(), b"-0.05".to_vec()]);
    }

    #[test]
    fn rows_come_back_by_statement() {
        let mut results = Results::default();
        results.begin_statement();
        results.begin_statement();
        for value in ["7", "8"] {
            results.begin_row().unwrap();
            results.push(Some(value.as_bytes()));
            results.push(None);
        }
        results.begin_statement();
        assert_eq!((results.count(0), results.count(1), results.count(2), results.count(3)), (0, 2, 0, 0));
        let row = results.row(1, 1).unwrap();
        assert_eq!((row.int(0), row.text(1), row.text(2)), (Some(8), None, None));
        assert!(results.row(1, 2).is_none() && results.row(0, 0).is_none());
    }
}
