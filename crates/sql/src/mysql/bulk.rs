//! Rows as text: lines of a file that LOAD DATA reads while it is being written, and lists of values of an INSERT.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;

use crate::{
    batch::{write_decimal, write_int},
    dates::{write_date, write_time},
    rows::{RowSink, Rows},
};

/// Rows go to the server in pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;

/// How rows are written.
struct Form {
    begin: &'static [u8],
    between: &'static [u8],
    end: &'static [u8],
    quote: &'static [u8],
    null: &'static [u8],
    /// Bytes of a text that a backslash has to go before.
    special: &'static [u8],
}

/// Form that LOAD DATA expects by default.
const LINES: Form = Form { begin: b"", between: b"\t", end: b"\n", quote: b"", null: b"\\N", special: b"\\\t\n" };
const VALUES: Form = Form { begin: b"(", between: b",", end: b"),", quote: b"'", null: b"NULL", special: b"\\'" };

struct TextSink {
    form: &'static Form,
    is_first: bool,
    out: Vec<u8>,
}

impl TextSink {
    fn new(form: &'static Form) -> Self {
        Self { form, is_first: true, out: Vec::new() }
    }

    /// Writes rows up to the size of a piece; how many they are, 0 at the end.
    fn fill(&mut self, rows: &mut impl Rows) -> u64 {
        self.out.reserve(PIECE_BYTES + (16 << 10));
        let mut rows_count = 0;
        while self.out.len() < PIECE_BYTES
            && let Some(count) = rows.write_next(self)
        {
            rows_count += count;
        }
        rows_count
    }

    fn next_column(&mut self) -> &mut Vec<u8> {
        if !self.is_first {
            self.out.extend_from_slice(self.form.between);
        }
        self.is_first = false;
        &mut self.out
    }
}

impl RowSink for TextSink {
    fn begin_row(&mut self) {
        self.is_first = true;
        self.out.extend_from_slice(self.form.begin);
    }

    fn int(&mut self, value: i64) {
        write_int(value, self.next_column());
    }

    fn decimal(&mut self, digits: i64, scale: u8) {
        write_decimal(digits, scale, self.next_column());
    }

    fn text(&mut self, text: &[u8]) {
        self.next_column();
        self.out.extend_from_slice(self.form.quote);
        for byte in text {
            if self.form.special.contains(byte) {
                self.out.push(b'\\');
            }
            self.out.push(*byte);
        }
        self.out.extend_from_slice(self.form.quote);
    }

    fn date(&mut self, days: i32) {
        let quote = self.form.quote;
        self.next_column().extend_from_slice(quote);
        write_date(days.into(), &mut self.out);
        self.out.extend_from_slice(quote);
    }

    fn time(&mut self, at_us: Option<i64>) {
        let Some(at_us) = at_us else { return self.null() };
        let quote = self.form.quote;
        self.next_column().extend_from_slice(quote);
        write_time(at_us, &mut self.out);
        self.out.extend_from_slice(quote);
    }

    fn null(&mut self) {
        let null = self.form.null;
        self.next_column().extend_from_slice(null);
    }

    fn end_row(&mut self) {
        self.out.extend_from_slice(self.form.end);
    }
}

/// Bytes sent to the server so far.
#[derive(Default)]
pub(super) struct Sent {
    rows_count: AtomicU64,
    bytes_count: AtomicU64,
}

impl Sent {
    pub(super) fn add(&self, rows_count: u64, bytes_count: u64) {
        self.rows_count.fetch_add(rows_count, Ordering::Relaxed);
        self.bytes_count.fetch_add(bytes_count, Ordering::Relaxed);
    }

    /// Rows and bytes.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.rows_count.load(Ordering::Relaxed), self.bytes_count.load(Ordering::Relaxed))
    }
}

/// The file that LOAD DATA reads, piece by piece.
pub(super) struct Lines<R> {
    rows: R,
    sent: Arc<Sent>,
}

impl<R> Lines<R> {
    pub(super) fn new(rows: R, sent: Arc<Sent>) -> Self {
        Self { rows, sent }
    }
}

impl<R: Rows> Stream for Lines<R> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut sink = TextSink::new(&LINES);
        let rows_count = sink.fill(&mut self.rows);
        self.sent.add(rows_count, sink.out.len() as u64);
        Poll::Ready((rows_count > 0).then(|| Ok(sink.out.into())))
    }
}

/// INSERT statements of many rows each.
pub(super) struct Inserts<R> {
    /// `INSERT INTO ... VALUES`, before each list.
    begin: String,
    rows: R,
    sink: TextSink,
}

impl<R: Rows> Inserts<R> {
    pub(super) fn new(begin: String, rows: R) -> Self {
        Self { begin, rows, sink: TextSink::new(&VALUES) }
    }

    /// The next statement and how many rows it has.
    pub(super) fn next(&mut self) -> Option<(&[u8], u64)> {
        self.sink.out.clear();
        self.sink.out.extend_from_slice(self.begin.as_bytes());
        let rows_count = self.sink.fill(&mut self.rows);
        // Every list of values ends with a comma, the last without.
        self.sink.out.pop();
        (rows_count > 0).then_some((self.sink.out.as_slice(), rows_count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rows::sample::{AT_US, rows};

    fn write_row(form: &'static Form) -> Vec<u8> {
        let mut sink = TextSink::new(form);
        sink.begin_row();
        sink.int(-7);
        sink.decimal(-5, 2);
        sink.text(b"a'b\\c\td\ne");
        sink.date(9132);
        sink.time(Some(AT_US));
        sink.time(None);
        sink.end_row();
        sink.out
    }

    #[test]
    fn a_row_is_a_line_of_a_file_or_a_list_of_values() {
        assert_eq!(write_row(&LINES), b"-7\t-0.05\ta'b\\\\c\\\td\\\ne\t2025-01-01\t2025-01-01 00:00:00\t\\N\n");
        assert_eq!(write_row(&VALUES), b"(-7,-0.05,'a\\'b\\\\c\td\ne','2025-01-01','2025-01-01 00:00:00',NULL),");
    }

    #[test]
    fn times_are_dates_of_the_calendar() {
        const DAY_US: i64 = 86_400_000_000;
        let text = |at_us| {
            let mut out = Vec::new();
            write_time(at_us, &mut out);
            String::from_utf8(out).unwrap()
        };
        for (days, date) in [
            (0, "2000-01-01"),
            (59, "2000-02-29"),
            (60, "2000-03-01"),
            (365, "2000-12-31"),
            (9132, "2025-01-01"),
            (36_583, "2100-02-28"),
            (36_584, "2100-03-01"),
            (-1, "1999-12-31"),
            (-10_957, "1970-01-01"),
        ] {
            assert_eq!(text(days * DAY_US), format!("{date} 00:00:00"));
        }
        assert_eq!(text(AT_US + 45_296_000_007), "2025-01-01 12:34:56.000007");
    }

    proptest! {
        #[test]
        fn a_text_ends_where_it_should(text in prop::collection::vec(any::<u8>(), 0..50)) {
            for form in [&LINES, &VALUES] {
                let mut sink = TextSink::new(form);
                sink.text(&text);
                let inner = &sink.out[form.quote.len()..sink.out.len() - form.quote.len()];
                let (mut read, mut bytes) = (Vec::new(), inner.iter());
                while let Some(byte) = bytes.next() {
                    let is_escaped = *byte == b'\\';
                    prop_assert!(is_escaped || !form.special.contains(byte));
                    read.push(if is_escaped { *bytes.next().unwrap() } else { *byte });
                }
                prop_assert_eq!(&read, &text);
            }
        }
    }

    #[test]
    fn lines_come_in_pieces_and_are_counted() {
        let sent = Arc::new(Sent::default());
        let mut lines = Lines::new(rows(20_000), sent.clone());
        let (mut pieces, mut count) = (0, 0);
        let mut context = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(piece)) = Pin::new(&mut lines).poll_next(&mut context) {
            let piece = piece.unwrap();
            assert!(piece.len() < PIECE_BYTES + 1000 && piece.last() == Some(&b'\n'));
            pieces += 1;
            count += piece.iter().filter(|byte| **byte == b'\n').count();
        }
        assert_eq!((sent.counts().0, count), (20_000, 20_000));
        assert!(pieces > 10);
    }

    #[test]
    fn inserts_hold_all_rows() {
        let mut inserts = Inserts::new("INSERT INTO sample VALUES ".into(), rows(10_000));
        let mut count = 0;
        while let Some((sql, rows)) = inserts.next() {
            assert!(sql.starts_with(b"INSERT INTO sample VALUES (1") || count > 0);
            assert!(sql.ends_with(b",NULL)"));
            count += rows;
        }
        assert_eq!(count, 10_000);
    }
}
