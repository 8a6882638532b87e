//! Rows as tests look at them.

use assay_sql::{RowSink, Rows};

/// A row of texts, `None` for null.
pub(crate) type TextRow = Vec<Option<String>>;

/// Rows as lists of text, `None` for null.
#[derive(Default)]
pub(crate) struct TextSink {
    pub(crate) rows: Vec<TextRow>,
}

impl TextSink {
    fn put(&mut self, value: Option<String>) {
        self.rows.last_mut().unwrap().push(value);
    }
}

impl RowSink for TextSink {
    fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }
    fn int(&mut self, value: i64) {
        self.put(Some(value.to_string()));
    }
    fn decimal(&mut self, digits: i64, scale: u8) {
        self.put(Some(format!("{digits}e-{scale}")));
    }
    fn text(&mut self, text: &[u8]) {
        self.put(Some(String::from_utf8(text.to_vec()).unwrap()));
    }
    fn date(&mut self, days: i32) {
        self.put(Some(days.to_string()));
    }
    fn time(&mut self, at_us: Option<i64>) {
        self.put(at_us.map(|at_us| at_us.to_string()));
    }
    fn null(&mut self) {
        self.put(None);
    }
    fn end_row(&mut self) {}
}

/// All rows of a table.
pub(crate) fn text_rows(mut rows: impl Rows) -> Vec<TextRow> {
    let mut sink = TextSink::default();
    while rows.write_next(&mut sink).is_some() {}
    sink.rows
}
