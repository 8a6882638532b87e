//! Rows that are loaded in bulk: computed one after the other, and written as each server wants them.

/// A table to load, with its columns in the order in which rows have them, separated by `, `.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static str,
}

/// Rows of a table, one after the other.
pub trait Rows: Send + Sync + Unpin + 'static {
    /// Writes the next rows, few at a time; how many they are, `None` at the end.
    fn write_next(&mut self, sink: &mut impl RowSink) -> Option<u64>;
}

/// Takes rows column by column. Money and shares are whole numbers of the last digit they have.
pub trait RowSink {
    fn begin_row(&mut self);
    fn int(&mut self, value: i64);
    fn decimal(&mut self, digits: i64, scale: u8);
    fn text(&mut self, text: &[u8]);
    /// A day, in days since 2000-01-01.
    fn date(&mut self, days: i32);
    /// A time in microseconds since 2000-01-01T00:00:00, or null.
    fn time(&mut self, at_us: Option<i64>);
    /// A whole number that is null.
    fn null(&mut self);
    fn end_row(&mut self);
}

/// A fixed stream for tests: whole numbers from 1, each with its negative hundredth, a text, and a time in every other row.
#[cfg(test)]
pub(crate) mod sample {
    use super::{RowSink, Rows, Table};

    pub(crate) const TABLE: Table = Table { name: "sample", columns: "id, amount, name, at, note" };
    /// 2025-01-01.
    pub(crate) const AT_US: i64 = 9132 * 86_400_000_000;

    pub(crate) struct Sample {
        pub(crate) next: i64,
        pub(crate) last: i64,
    }

    pub(crate) fn rows(count: i64) -> Sample {
        Sample { next: 1, last: count }
    }

    impl Rows for Sample {
        fn write_next(&mut self, sink: &mut impl RowSink) -> Option<u64> {
            if self.next > self.last {
                return None;
            }
            sink.begin_row();
            sink.int(self.next);
            sink.decimal(-self.next, 2);
            sink.text(b"a text of some thirty letters.");
            sink.time((self.next % 2 == 0).then_some(AT_US));
            sink.null();
            sink.end_row();
            self.next += 1;
            Some(1)
        }
    }
}
