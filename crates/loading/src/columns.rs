//! Rows as columns in the layout of Arrow's format 1.5: values, offsets of texts, and a bit for each row that is not null.

use assay_sql::{RowSink, Rows, Table};

/// 2000-01-01 in days since 1970-01-01.
const EPOCH_DAYS: i32 = 10_957;
const DAY_US: i64 = 86_400_000_000;
/// Room for a text before it is known how long texts are.
const TEXT_BYTES: usize = 16;

/// Rows of a table, column by column.
#[derive(Debug)]
pub struct Batch {
    pub table: &'static str,
    pub rows: u64,
    pub columns: Vec<Column>,
}

/// A column of a batch.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub values: Values,
    /// A bit for each row, 1 unless it is null; `None` when no row is.
    pub valid: Option<Vec<u8>>,
}

/// The values of a column; rows that are null have one too.
#[derive(Debug, PartialEq, Eq)]
pub enum Values {
    Int(Vec<i64>),
    /// Whole numbers of the last digit after the point, of which there are `scale`.
    Decimal {
        scale: u8,
        digits: Vec<i64>,
    },
    /// Texts one behind the other; text `n` is from offset `n` to the next.
    Text {
        offsets: Vec<i32>,
        bytes: Vec<u8>,
    },
    /// Days since 1970-01-01.
    Date(Vec<i32>),
    /// Microseconds since 1970-01-01T00:00:00.
    Time(Vec<i64>),
}

/// The rows of a chunk in batches.
pub trait ColumnBatches: Send {
    /// The next rows, all of one table: so many, or some more where the last key has several; `None` at the end.
    fn next_batch(&mut self, rows_max: u64) -> Option<Batch>;
}

/// The rows of the tables of a chunk.
pub(crate) struct ChunkColumns<T, R> {
    tables: T,
    current: Option<(Table, R)>,
}

impl<T: Iterator<Item = (Table, R)>, R> ChunkColumns<T, R> {
    pub(crate) fn new(mut tables: T) -> Self {
        let current = tables.next();
        Self { tables, current }
    }
}

impl<T: Iterator<Item = (Table, R)> + Send, R: Rows> ColumnBatches for ChunkColumns<T, R> {
    fn next_batch(&mut self, rows_max: u64) -> Option<Batch> {
        while let Some((table, rows)) = &mut self.current {
            let mut sink = ColumnSink::new(rows_max);
            let mut count = 0;
            while count < rows_max
                && let Some(more) = rows.write_next(&mut sink)
            {
                count += more;
            }
            if count > 0 {
                let named = table.columns.split(", ").zip(sink.columns);
                let columns = named.map(|(name, column)| column.named(name, count)).collect();
                return Some(Batch { table: table.name, rows: count, columns });
            }
            self.current = self.tables.next();
        }
        None
    }
}

/// A column that is being written.
struct Growing {
    values: Values,
    /// Numbers of the rows that are null.
    nulls: Vec<usize>,
}

impl Growing {
    fn named(self, name: &'static str, rows: u64) -> Column {
        let valid = (!self.nulls.is_empty()).then(|| {
            let mut bits = vec![u8::MAX; rows.div_ceil(8) as usize];
            self.nulls.iter().for_each(|row| bits[row / 8] &= !(1 << (row % 8)));
            bits
        });
        Column { name, values: self.values, valid }
    }
}

/// Takes rows column by column. The first row says of which type each column is.
struct ColumnSink {
    columns: Vec<Growing>,
    next: usize,
    capacity: usize,
}

impl ColumnSink {
    fn new(rows_max: u64) -> Self {
        Self { columns: Vec::new(), next: 0, capacity: rows_max as usize }
    }

    /// The next column of the row; for the first row it is made with space for the expected rows.
    fn column(&mut self, new: fn(usize) -> Values) -> &mut Growing {
        if self.next == self.columns.len() {
            self.columns.push(Growing { values: new(self.capacity), nulls: Vec::new() });
        }
        self.next += 1;
        &mut self.columns[self.next - 1]
    }

    fn ints(&mut self) -> (&mut Vec<i64>, &mut Vec<usize>) {
        let column = self.column(|capacity| Values::Int(Vec::with_capacity(capacity)));
        let Values::Int(values) = &mut column.values else { unreachable!("a column has one type") };
        (values, &mut column.nulls)
    }
}

impl RowSink for ColumnSink {
    fn begin_row(&mut self) {
        self.next = 0;
    }

    fn int(&mut self, value: i64) {
        self.ints().0.push(value);
    }

    fn decimal(&mut self, value: i64, digits_after_point: u8) {
        let column = self.column(|capacity| Values::Decimal { scale: 0, digits: Vec::with_capacity(capacity) });
        let Values::Decimal { scale, digits } = &mut column.values else { unreachable!("a column has one type") };
        *scale = digits_after_point;
        digits.push(value);
    }

    fn text(&mut self, text: &[u8]) {
        let column = self.column(|capacity| {
            let mut offsets = Vec::with_capacity(capacity + 1);
            offsets.push(0);
            Values::Text { offsets, bytes: Vec::with_capacity(capacity * TEXT_BYTES) }
        });
        let Values::Text { offsets, bytes } = &mut column.values else { unreachable!("a column has one type") };
        bytes.extend_from_slice(text);
        offsets.push(bytes.len() as i32);
    }

    fn date(&mut self, days: i32) {
        let column = self.column(|capacity| Values::Date(Vec::with_capacity(capacity)));
        let Values::Date(values) = &mut column.values else { unreachable!("a column has one type") };
        values.push(days + EPOCH_DAYS);
    }

    fn time(&mut self, at_us: Option<i64>) {
        let column = self.column(|capacity| Values::Time(Vec::with_capacity(capacity)));
        let Values::Time(values) = &mut column.values else { unreachable!("a column has one type") };
        if at_us.is_none() {
            column.nulls.push(values.len());
        }
        values.push(at_us.unwrap_or(0) + i64::from(EPOCH_DAYS) * DAY_US);
    }

    fn null(&mut self) {
        let (values, nulls) = self.ints();
        nulls.push(values.len());
        values.push(0);
    }

    fn end_row(&mut self) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of a column of each type; some have null for the whole number and the time.
    struct Sample {
        nulls: Vec<bool>,
        next: usize,
    }

    const TABLE: Table = Table { name: "sample", columns: "id, amount, name, day, at" };

    impl Rows for Sample {
        fn write_next(&mut self, sink: &mut impl RowSink) -> Option<u64> {
            let is_null = *self.nulls.get(self.next)?;
            let number = self.next as i64;
            self.next += 1;
            sink.begin_row();
            if is_null {
                sink.null()
            } else {
                sink.int(number)
            }
            sink.decimal(-number, 2);
            sink.text(&b"0123456789"[..self.next % 10]);
            sink.date(number as i32);
            sink.time((!is_null).then_some(number));
            sink.end_row();
            Some(1)
        }
    }

    fn columns_of(tables: Vec<Vec<bool>>) -> impl ColumnBatches {
        ChunkColumns::new(tables.into_iter().map(|nulls| (TABLE, Sample { nulls, next: 0 })))
    }

    #[test]
    fn a_batch_has_the_types_and_places_of_arrow() {
        let mut batches = columns_of(vec![vec![false, true, false]]);
        let batch = batches.next_batch(10).unwrap();
        assert_eq!((batch.table, batch.rows), ("sample", 3));
        let names: Vec<_> = batch.columns.iter().map(|column| column.name).collect();
        assert_eq!(names.join(", "), TABLE.columns);
        let values: Vec<_> = batch.columns.iter().map(|column| &column.values).collect();
        // 2000-01-01 is day 10,957 of Unix, and second 946,684,800.
        let at = |us: i64| 946_684_800_000_000 + us;
        assert_eq!(
            values,
            [
                &Values::Int(vec![0, 0, 2]),
                &Values::Decimal { scale: 2, digits: vec![0, -1, -2] },
                &Values::Text { offsets: vec![0, 1, 3, 6], bytes: b"001012".to_vec() },
                &Values::Date(vec![10_957, 10_958, 10_959]),
                &Values::Time(vec![at(0), at(0), at(2)]),
            ]
        );
        let valid: Vec<_> = batch.columns.into_iter().map(|column| column.valid).collect();
        let second_is_null = Some(vec![0b1111_1101]);
        assert_eq!(valid, [second_is_null.clone(), None, None, None, second_is_null]);
        assert!(batches.next_batch(10).is_none());
    }

    proptest! {
        #[test]
        fn batches_together_have_the_rows_of_all_tables(
            tables in prop::collection::vec(prop::collection::vec(any::<bool>(), 0..50), 0..4),
            rows_max in 1_u64..60,
        ) {
            let mut batches = columns_of(tables.clone());
            let mut read: Vec<Vec<bool>> = Vec::new();
            while let Some(batch) = batches.next_batch(rows_max) {
                prop_assert!(batch.rows <= rows_max);
                let is_null = |row: usize| {
                    batch.columns[0].valid.as_ref().is_some_and(|bits| bits[row / 8] >> (row % 8) & 1 == 0)
                };
                let Values::Int(numbers) = &batch.columns[0].values else { unreachable!() };
                let Values::Date(days) = &batch.columns[3].values else { unreachable!() };
                prop_assert_eq!(numbers.len() as u64, batch.rows);
                for (row, day) in days.iter().enumerate() {
                    if *day == 10_957 {
                        read.push(Vec::new());
                    }
                    read.last_mut().unwrap().push(is_null(row));
                }
            }
            let expected: Vec<_> = tables.into_iter().filter(|table| !table.is_empty()).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
