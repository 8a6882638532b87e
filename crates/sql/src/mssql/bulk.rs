//! Rows as the client's bulk load takes them.

use tiberius::{
    ColumnData, TokenRow,
    numeric::Numeric,
    time::{Date, DateTime2, Time},
};

use crate::rows::RowSink;

/// 2000-01-01 in days since the first day of the year 1.
const EPOCH_DAYS: i64 = 730_119;
const DAY_US: i64 = 86_400_000_000;

/// Takes the rows of one key; they are sent before the next.
#[derive(Default)]
pub(super) struct TokenSink {
    pub(super) rows: Vec<TokenRow<'static>>,
    row: TokenRow<'static>,
}

impl RowSink for TokenSink {
    fn begin_row(&mut self) {
        self.row = TokenRow::with_capacity(24);
    }

    fn int(&mut self, value: i64) {
        self.row.push(ColumnData::I32(Some(i32::try_from(value).expect("columns of whole numbers have 32 bits"))));
    }

    fn decimal(&mut self, digits: i64, scale: u8) {
        self.row.push(ColumnData::Numeric(Some(Numeric::new_with_scale(digits.into(), scale))));
    }

    fn text(&mut self, text: &[u8]) {
        self.row.push(ColumnData::String(Some(String::from_utf8_lossy(text).into_owned().into())));
    }

    fn date(&mut self, days: i32) {
        self.row.push(ColumnData::Date(Some(Date::new((EPOCH_DAYS + i64::from(days)) as u32))));
    }

    fn time(&mut self, at_us: Option<i64>) {
        let time = at_us.map(|at_us| {
            let day = Date::new((EPOCH_DAYS + at_us.div_euclid(DAY_US)) as u32);
            DateTime2::new(day, Time::new((at_us.rem_euclid(DAY_US) / 1000) as u64, 3))
        });
        self.row.push(ColumnData::DateTime2(time));
    }

    fn null(&mut self) {
        self.row.push(ColumnData::I32(None));
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{
        Rows,
        sample::{AT_US, TABLE, rows},
    };

    #[test]
    fn a_row_has_a_cell_of_the_columns_type_for_each() {
        let mut sink = TokenSink::default();
        sink.begin_row();
        sink.int(-7);
        sink.decimal(-5, 2);
        sink.text(b"a'b");
        sink.time(Some(AT_US));
        sink.time(None);
        sink.null();
        sink.end_row();
        let cells: Vec<_> = sink.rows[0].iter().cloned().collect();
        assert_eq!(
            cells[..3],
            [
                ColumnData::I32(Some(-7)),
                ColumnData::Numeric(Some(Numeric::new_with_scale(-5, 2))),
                ColumnData::String(Some("a'b".into())),
            ]
        );
        // 2025-01-01 is day 739251 since 0001-01-01.
        assert_eq!(cells[3], ColumnData::DateTime2(Some(DateTime2::new(Date::new(739_251), Time::new(0, 3)))));
        assert_eq!(cells[4..], [ColumnData::DateTime2(None), ColumnData::I32(None)]);
    }

    #[test]
    fn rows_have_as_many_cells_as_the_table_has_columns() {
        let mut sink = TokenSink::default();
        let (mut rows, mut count) = (rows(3), 0);
        while let Some(more) = rows.write_next(&mut sink) {
            count += more;
        }
        assert_eq!(sink.rows.len() as u64, count);
        assert!(sink.rows.iter().all(|row| row.len() == TABLE.columns.split(',').count()));
    }
}
