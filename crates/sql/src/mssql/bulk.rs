//! Rows as a bulk load takes them (MS-TDS, "Bulk Load BCP"): the columns' types, then each row, then the end.
//!
//! The client's own bulk load gives a decimal the length of its digits; here it has the length of its column's precision, which the
//! types announce. Texts are ASCII, which is the same in every code page.

use tiberius::{FixedLenType, MetaDataColumn, TypeInfo, VarLenType};

use super::login::{END_OF_MESSAGE, HEADER_BYTES};
use crate::{error::DbError, rows::RowSink};

const BULK: u8 = 7;
const COLUMNS: u8 = 0x81;
const ROW: u8 = 0xd1;
/// The end, without status, command and count of rows.
const DONE: [u8; 13] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// The longest text of a column that keeps it in the row.
const TEXT_BYTES_MAX: usize = 8000;
/// Marks of a long `varchar(max)` and of its null value (MS-TDS 2.2.5.2.3, "Partially Length-prefixed Bytes").
const LONG_TEXT: u16 = 0xffff;
const LONG_NULL: [u8; 8] = [0xff; 8];

/// 2000-01-01 in days since the first day of the year 1.
const EPOCH_DAYS: i64 = 730_119;
const DAY_US: i64 = 86_400_000_000;

/// How a column's values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    /// A whole number; a nullable one has its length before it.
    Int {
        bytes: usize,
        is_nullable: bool,
    },
    /// A sign and the digits' bytes; the length counts both.
    Decimal {
        bytes: usize,
        scale: u8,
    },
    Text {
        bytes_max: usize,
    },
    /// A text of any length, in pieces.
    LongText,
    Date,
    /// A time of day in units of 10^-scale seconds, and a date.
    DateTime {
        scale: u8,
    },
}

/// Columns to load, as the server describes them.
pub(super) struct Columns {
    /// Names and types, as `INSERT BULK` takes them.
    listed: String,
    cells: Vec<Cell>,
    /// Token before the rows.
    token: Vec<u8>,
}

impl Columns {
    pub(super) fn new(columns: &[MetaDataColumn<'_>]) -> Result<Self, DbError> {
        let mut token = vec![COLUMNS];
        token.extend((columns.len() as u16).to_le_bytes());
        let mut cells = Vec::with_capacity(columns.len());
        for column in columns {
            token.extend([0; 4]); // no type of a user's
            token.extend(column.base.flags.bits().to_le_bytes());
            let cell = write_type(&column.base.ty, &mut token).ok_or_else(|| {
                DbError::other(format!("column {} has a type that no row is loaded into", column.col_name))
            })?;
            cells.push(cell);
            token.push(column.col_name.encode_utf16().count() as u8);
            token.extend(column.col_name.encode_utf16().flat_map(u16::to_le_bytes));
        }
        let listed = columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Ok(Self { listed, cells, token })
    }

    /// Statement that announces the load.
    pub(super) fn statement(&self, table: &str) -> String {
        format!("INSERT BULK {table} ({})", self.listed)
    }
}

/// Appends a type to the description of its column; none where rows have nothing for it.
fn write_type(info: &TypeInfo, out: &mut Vec<u8>) -> Option<Cell> {
    Some(match info {
        TypeInfo::FixedLen(kind) => {
            out.push(*kind as u8);
            let bytes = match kind {
                FixedLenType::Int2 => 2,
                FixedLenType::Int4 => 4,
                FixedLenType::Int8 => 8,
                _ => return None,
            };
            Cell::Int { bytes, is_nullable: false }
        }
        TypeInfo::VarLenSized(sized) => {
            out.push(sized.r#type() as u8);
            match sized.r#type() {
                VarLenType::Intn => {
                    out.push(sized.len() as u8);
                    Cell::Int { bytes: sized.len(), is_nullable: true }
                }
                VarLenType::BigVarChar | VarLenType::BigChar => {
                    let is_long = sized.len() > TEXT_BYTES_MAX;
                    let collation = sized.collation()?;
                    out.extend(if is_long { LONG_TEXT } else { sized.len() as u16 }.to_le_bytes());
                    out.extend(collation.info().to_le_bytes());
                    out.push(collation.sort_id());
                    if is_long { Cell::LongText } else { Cell::Text { bytes_max: sized.len() } }
                }
                VarLenType::Daten => Cell::Date,
                VarLenType::Datetime2 => {
                    out.push(sized.len() as u8);
                    Cell::DateTime { scale: sized.len() as u8 }
                }
                _ => return None,
            }
        }
        TypeInfo::VarLenSizedPrecision { ty, precision, scale, .. } => {
            let bytes = decimal_bytes(*precision);
            out.extend([*ty as u8, bytes as u8, *precision, *scale]);
            Cell::Decimal { bytes, scale: *scale }
        }
        _ => return None,
    })
}

/// Bytes of a decimal with its sign (Microsoft's documentation, "decimal and numeric (Transact-SQL)").
fn decimal_bytes(precision: u8) -> usize {
    match precision {
        ..=9 => 5,
        10..=19 => 9,
        20..=28 => 13,
        _ => 17,
    }
}

/// Writes rows of columns, in packets.
pub(super) struct BulkSink<'a> {
    cells: &'a [Cell],
    column: usize,
    misfits: bool,
    /// Bytes that are not in packets yet.
    rows: Vec<u8>,
    packets: Vec<u8>,
    body_bytes: usize,
    packet_number: u8,
}

impl<'a> BulkSink<'a> {
    pub(super) fn new(columns: &'a Columns, packet_bytes: usize) -> Self {
        Self {
            cells: &columns.cells,
            column: 0,
            misfits: false,
            rows: columns.token.clone(),
            packets: Vec::new(),
            body_bytes: packet_bytes - HEADER_BYTES,
            packet_number: 0,
        }
    }

    /// Packets that are full by now.
    pub(super) fn packets(&mut self) -> Option<&[u8]> {
        self.packets.clear();
        // The last packet of a message is one that says so, so some of it always stays.
        let full = self.rows.len().saturating_sub(1) / self.body_bytes;
        for number in 0..full {
            self.write_packet(number * self.body_bytes..(number + 1) * self.body_bytes, 0);
        }
        self.rows.drain(..full * self.body_bytes);
        (full > 0).then_some(&self.packets)
    }

    /// The rest of the packets.
    pub(super) fn end(&mut self) -> &[u8] {
        self.rows.extend(DONE);
        self.packets();
        self.write_packet(0..self.rows.len(), END_OF_MESSAGE);
        &self.packets
    }

    fn write_packet(&mut self, body: std::ops::Range<usize>, status: u8) {
        self.packet_number = self.packet_number.wrapping_add(1);
        self.packets.extend([BULK, status]);
        self.packets.extend(((HEADER_BYTES + body.len()) as u16).to_be_bytes());
        self.packets.extend([0, 0, self.packet_number, 0]);
        self.packets.extend(&self.rows[body]);
    }

    /// An error if a value was not one of its column's type: it was sent as null, so that the message could be ended.
    pub(super) fn check(&self) -> Result<(), DbError> {
        if self.misfits {
            return Err(DbError::other("rows do not fit the table's columns; make the tables anew"));
        }
        Ok(())
    }

    fn next_cell(&mut self) -> Cell {
        let cell = self.cells[self.column];
        self.column += 1;
        cell
    }

    fn misfit(&mut self, cell: Cell) {
        self.misfits = true;
        self.put_null(cell);
    }

    fn put_null(&mut self, cell: Cell) {
        match cell {
            Cell::Int { bytes, is_nullable: false } => {
                self.misfits = true;
                self.rows.extend(&[0; 8][..bytes]);
            }
            Cell::Int { .. } | Cell::Decimal { .. } | Cell::Date | Cell::DateTime { .. } => self.rows.push(0),
            Cell::Text { .. } => self.rows.extend([0xff; 2]),
            Cell::LongText => self.rows.extend(LONG_NULL),
        }
    }

    fn put_date(&mut self, days: i64) {
        self.rows.extend(&((EPOCH_DAYS + days) as u32).to_le_bytes()[..3]);
    }
}

impl RowSink for BulkSink<'_> {
    fn begin_row(&mut self) {
        self.column = 0;
        self.rows.push(ROW);
    }

    fn int(&mut self, value: i64) {
        match self.next_cell() {
            Cell::Int { bytes, is_nullable } if value << (64 - 8 * bytes) >> (64 - 8 * bytes) == value => {
                if is_nullable {
                    self.rows.push(bytes as u8);
                }
                self.rows.extend(&value.to_le_bytes()[..bytes]);
            }
            cell => self.misfit(cell),
        }
    }

    fn decimal(&mut self, digits: i64, scale: u8) {
        match self.next_cell() {
            Cell::Decimal { bytes, scale: own } if own == scale && (bytes > 5 || digits.unsigned_abs() >> 32 == 0) => {
                self.rows.extend([bytes as u8, u8::from(digits >= 0)]);
                self.rows.extend(&u128::from(digits.unsigned_abs()).to_le_bytes()[..bytes - 1]);
            }
            cell => self.misfit(cell),
        }
    }

    fn text(&mut self, text: &[u8]) {
        match self.next_cell() {
            Cell::Text { bytes_max } if text.len() <= bytes_max && text.is_ascii() => {
                self.rows.extend((text.len() as u16).to_le_bytes());
                self.rows.extend(text);
            }
            Cell::LongText if text.is_ascii() => {
                self.rows.extend((text.len() as u64).to_le_bytes());
                if !text.is_empty() {
                    self.rows.extend((text.len() as u32).to_le_bytes());
                    self.rows.extend(text);
                }
                self.rows.extend([0; 4]);
            }
            cell => self.misfit(cell),
        }
    }

    fn date(&mut self, days: i32) {
        match self.next_cell() {
            Cell::Date => {
                self.rows.push(3);
                self.put_date(days.into());
            }
            cell => self.misfit(cell),
        }
    }

    fn time(&mut self, at_us: Option<i64>) {
        let cell = self.next_cell();
        let Some(at_us) = at_us else { return self.put_null(cell) };
        let Cell::DateTime { scale } = cell else { return self.misfit(cell) };
        let bytes = match scale {
            ..=2 => 3,
            3..=4 => 4,
            _ => 5,
        };
        let units = at_us.rem_euclid(DAY_US) as u64 * 10_u64.pow(scale.into()) / 1_000_000;
        self.rows.push(bytes as u8 + 3);
        self.rows.extend(&units.to_le_bytes()[..bytes]);
        self.put_date(at_us.div_euclid(DAY_US));
    }

    fn null(&mut self) {
        let cell = self.next_cell();
        self.put_null(cell);
    }

    fn end_row(&mut self) {
        debug_assert_eq!(self.column, self.cells.len());
    }
}

#[cfg(test)]
mod tests {
    use tiberius::{BaseMetaDataColumn, Collation, VarLenContext};

    use super::*;
    use crate::rows::sample::AT_US;

    type Write = fn(&mut BulkSink<'_>);

    fn sized(kind: VarLenType, length: usize) -> TypeInfo {
        TypeInfo::VarLenSized(VarLenContext::new(kind, length, Some(Collation::new(0x00d0_0409, 0x34))))
    }

    fn decimal(precision: u8, scale: u8) -> TypeInfo {
        // A server may announce the most that a decimal can have.
        TypeInfo::VarLenSizedPrecision { ty: VarLenType::Decimaln, size: 17, precision, scale }
    }

    fn columns(types: impl IntoIterator<Item = TypeInfo>) -> Result<Columns, DbError> {
        let columns: Vec<_> = types
            .into_iter()
            .map(|ty| MetaDataColumn {
                base: BaseMetaDataColumn { flags: Default::default(), ty, table_name: None },
                col_name: "c".into(),
            })
            .collect();
        Columns::new(&columns)
    }

    /// Announced type, and the bytes of a value of it; nothing if the value has another type.
    fn written(info: TypeInfo, write: impl Fn(&mut BulkSink<'_>)) -> (Vec<u8>, Option<Vec<u8>>) {
        let columns = columns([info]).unwrap();
        let mut sink = BulkSink::new(&columns, 4096);
        sink.begin_row();
        write(&mut sink);
        sink.end_row();
        // Before a type: token, count, type of a user's, flags. Behind it: the name.
        let announced = &columns.token[9..columns.token.len() - 3];
        let value = sink.rows[columns.token.len() + 1..].to_vec();
        (announced.to_vec(), sink.check().is_ok().then_some(value))
    }

    #[test]
    fn a_decimal_has_the_length_of_its_columns_precision() {
        for (precision, bytes) in [(1, 5), (9, 5), (10, 9), (19, 9), (20, 13), (28, 13), (29, 17), (38, 17)] {
            for digits in [0_i64, 7, -4_000_000_000] {
                let mut value = vec![bytes, u8::from(digits >= 0)];
                value.extend(&u128::from(digits.unsigned_abs()).to_le_bytes()[..usize::from(bytes) - 1]);
                assert_eq!(
                    written(decimal(precision, 2), |sink| sink.decimal(digits, 2)),
                    (vec![0x6a, bytes, precision, 2], Some(value)),
                    "{digits} of {precision}"
                );
            }
        }
    }

    #[test]
    fn values_are_written_as_their_columns_are() {
        // 2025-01-01 is day 739251 since 0001-01-01.
        const DAY: [u8; 3] = [0xb3, 0x47, 0x0b];
        const SECOND_US: i64 = 1_000_000;
        let varchar = |bytes| vec![0xa7, bytes, 0, 9, 4, 0xd0, 0, 0x34];
        let (long, any_length) =
            (|| sized(VarLenType::BigVarChar, 0xffff), vec![0xa7, 0xff, 0xff, 9, 4, 0xd0, 0, 0x34]);
        let cases: [(TypeInfo, Write, Vec<u8>, &[u8]); 15] = [
            (TypeInfo::FixedLen(FixedLenType::Int4), |sink| sink.int(-7), vec![0x38], &[0xf9, 0xff, 0xff, 0xff]),
            (TypeInfo::FixedLen(FixedLenType::Int2), |sink| sink.int(7), vec![0x34], &[7, 0]),
            (TypeInfo::FixedLen(FixedLenType::Int8), |sink| sink.int(1 << 32), vec![0x7f], &[0, 0, 0, 0, 1, 0, 0, 0]),
            (sized(VarLenType::Intn, 8), |sink| sink.int(1), vec![0x26, 8], &[8, 1, 0, 0, 0, 0, 0, 0, 0]),
            (sized(VarLenType::Intn, 4), |sink| sink.null(), vec![0x26, 4], &[0]),
            (decimal(12, 2), |sink| sink.null(), vec![0x6a, 9, 12, 2], &[0]),
            (sized(VarLenType::BigVarChar, 5), |sink| sink.text(b"a'b"), varchar(5), b"\x03\0a'b"),
            (sized(VarLenType::BigVarChar, 5), |sink| sink.null(), varchar(5), &[0xff, 0xff]),
            (long(), |sink| sink.text(b"ab"), any_length.clone(), b"\x02\0\0\0\0\0\0\0\x02\0\0\0ab\0\0\0\0"),
            (long(), |sink| sink.text(b""), any_length.clone(), &[0; 12]),
            (long(), |sink| sink.null(), any_length, &[0xff; 8]),
            (sized(VarLenType::Daten, 3), |sink| sink.date(9132), vec![0x28], &[3, DAY[0], DAY[1], DAY[2]]),
            (
                sized(VarLenType::Datetime2, 3),
                |sink| sink.time(Some(AT_US + 3 * SECOND_US)),
                vec![0x2a, 3],
                &[7, 0xb8, 0x0b, 0, 0, DAY[0], DAY[1], DAY[2]],
            ),
            (
                sized(VarLenType::Datetime2, 7),
                |sink| sink.time(Some(AT_US + 3)),
                vec![0x2a, 7],
                &[8, 30, 0, 0, 0, 0, DAY[0], DAY[1], DAY[2]],
            ),
            (sized(VarLenType::Datetime2, 3), |sink| sink.time(None), vec![0x2a, 3], &[0]),
        ];
        for (info, write, announced, value) in cases {
            assert_eq!(written(info.clone(), write), (announced, Some(value.to_vec())), "{info:?}");
        }
    }

    #[test]
    fn values_that_a_column_cannot_hold_are_an_error() {
        let cases: [(TypeInfo, Write); 8] = [
            (sized(VarLenType::Daten, 3), |sink| sink.time(Some(AT_US))),
            (TypeInfo::FixedLen(FixedLenType::Int4), |sink| sink.int(1 << 31)),
            (TypeInfo::FixedLen(FixedLenType::Int4), |sink| sink.null()),
            (sized(VarLenType::BigChar, 2), |sink| sink.text(b"abc")),
            (sized(VarLenType::BigChar, 2), |sink| sink.text(b"\xc3\xa4")),
            (sized(VarLenType::BigChar, 2), |sink| sink.int(1)),
            (decimal(9, 2), |sink| sink.decimal(1 << 32, 2)),
            (decimal(9, 2), |sink| sink.decimal(1, 4)),
        ];
        for (info, write) in cases {
            assert_eq!(written(info.clone(), write).1, None, "{info:?}");
        }
        let error = columns([sized(VarLenType::NVarchar, 8)]).err().unwrap();
        assert_eq!(error.text, "column c has a type that no row is loaded into");
    }

    #[test]
    fn packets_are_full_but_for_the_last() {
        let columns = columns([sized(VarLenType::BigVarChar, 100)]).unwrap();
        let (packet_bytes, body_bytes) = (512, 512 - HEADER_BYTES);
        // Whole packets as well: what ends the message is never empty.
        for length in 0..100 {
            let mut sink = BulkSink::new(&columns, packet_bytes);
            let (mut sent, mut expected) = (Vec::new(), columns.token.clone());
            for _ in 0..20 {
                sink.begin_row();
                sink.text(&[b'x'; 100][..length]);
                sink.end_row();
                expected.extend([ROW, length as u8, 0]);
                expected.extend(&[b'x'; 100][..length]);
                sent.extend_from_slice(sink.packets().unwrap_or_default());
            }
            expected.extend(DONE);
            sent.extend_from_slice(sink.end());
            let packets = expected.chunks(body_bytes).enumerate().flat_map(|(number, body)| {
                let is_last = (number + 1) * body_bytes >= expected.len();
                let length = ((HEADER_BYTES + body.len()) as u16).to_be_bytes();
                let header = [BULK, u8::from(is_last), length[0], length[1], 0, 0, number as u8 + 1, 0];
                header.into_iter().chain(body.iter().copied())
            });
            assert_eq!(sent, packets.collect::<Vec<_>>());
        }
    }
}
