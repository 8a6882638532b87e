//! Rows in the binary form of COPY (PostgreSQL's manual, COPY, "Binary Format").

use bytes::{BufMut, BytesMut};

use crate::rows::RowSink;

/// Signature, flags and length of the extension.
pub(super) const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
pub(super) const TRAILER: i16 = -1;

mod oid {
    pub(super) const INT8: u32 = 20;
    pub(super) const INT2: u32 = 21;
    pub(super) const INT4: u32 = 23;
    pub(super) const NUMERIC: u32 = 1700;
}

/// Digits of a numeric are in groups of four.
const GROUP: u64 = 10_000;
/// Most digits after the point.
const SCALE_MAX: u8 = 8;

/// Writes rows of a table whose columns have these types.
pub(super) struct BinarySink<'a> {
    types: &'a [u32],
    column: usize,
    pub(super) out: BytesMut,
}

impl<'a> BinarySink<'a> {
    pub(super) fn new(types: &'a [u32], out: BytesMut) -> Self {
        Self { types, column: 0, out }
    }

    fn next_type(&mut self) -> u32 {
        let oid = self.types.get(self.column).copied().unwrap_or(0);
        self.column += 1;
        oid
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.put_i32(bytes.len() as i32);
        self.out.put_slice(bytes);
    }

    fn put_numeric(&mut self, digits: i64, scale: u8) {
        debug_assert!(scale <= SCALE_MAX, "digits after the point are in two groups");
        let magnitude = digits.unsigned_abs();
        let one = 10_u64.pow(scale.into());
        let (mut whole, fraction) = (magnitude / one, magnitude % one * 10_u64.pow(u32::from(SCALE_MAX - scale)));
        let mut groups = [0_i16; 8];
        let mut count = 0;
        while whole > 0 {
            groups[count] = (whole % GROUP) as i16;
            whole /= GROUP;
            count += 1;
        }
        groups[..count].reverse();
        let mut weight = count as i16 - 1;
        let after_point = [(fraction / GROUP) as i16, (fraction % GROUP) as i16];
        // The first group is not zero.
        if after_point[0] > 0 || (count > 0 && after_point[1] > 0) {
            groups[count] = after_point[0];
            count += 1;
        }
        if after_point[1] > 0 {
            weight -= i16::from(count == 0);
            groups[count] = after_point[1];
            count += 1;
        }
        self.out.put_i32(8 + 2 * count as i32);
        self.out.put_i16(count as i16);
        self.out.put_i16(if count == 0 { 0 } else { weight });
        self.out.put_u16(if digits < 0 { 0x4000 } else { 0 });
        self.out.put_u16(scale.into());
        groups[..count].iter().for_each(|group| self.out.put_i16(*group));
    }
}

impl RowSink for BinarySink<'_> {
    fn begin_row(&mut self) {
        self.column = 0;
        self.out.put_i16(self.types.len() as i16);
    }

    fn int(&mut self, value: i64) {
        match self.next_type() {
            oid::INT2 => self.put(&(value as i16).to_be_bytes()),
            oid::INT4 => self.put(&(value as i32).to_be_bytes()),
            oid::INT8 => self.put(&value.to_be_bytes()),
            _ => self.put_numeric(value, 0),
        }
    }

    fn decimal(&mut self, digits: i64, scale: u8) {
        let oid = self.next_type();
        debug_assert_eq!(oid, oid::NUMERIC);
        self.put_numeric(digits, scale);
    }

    fn text(&mut self, text: &[u8]) {
        self.next_type();
        self.put(text);
    }

    fn date(&mut self, days: i32) {
        self.next_type();
        self.put(&days.to_be_bytes());
    }

    fn time(&mut self, at_us: Option<i64>) {
        self.next_type();
        match at_us {
            Some(at_us) => self.put(&at_us.to_be_bytes()),
            None => self.out.put_i32(-1),
        }
    }

    fn null(&mut self) {
        self.next_type();
        self.out.put_i32(-1);
    }

    fn end_row(&mut self) {
        debug_assert_eq!(self.column, self.types.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The value of a numeric of eight fraction digits at most, from its bytes, in units of the last of them.
    fn read_numeric(bytes: &[u8]) -> i128 {
        let word = |at: usize| i16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (count, weight) = (word(4), word(6));
        let mut value = 0_i128;
        for index in 0..count {
            let power = weight - index;
            assert!((-2..=5).contains(&power));
            let group = word(12 + 2 * index as usize);
            assert!(group > 0 || index > 0, "leading zeros are not written");
            value += i128::from(group) * 10_000_i128.pow((power + 2) as u32);
        }
        if word(8) == 0x4000 { -value } else { value }
    }

    proptest! {
        #[test]
        fn numerics_keep_their_value(digits in -1_000_000_000_000_000_i64..1_000_000_000_000_000, scale in 0_u8..=8) {
            let mut sink = BinarySink::new(&[oid::NUMERIC], BytesMut::new());
            sink.decimal(digits, scale);
            let bytes = sink.out.to_vec();
            prop_assert_eq!(bytes.len(), 4 + i32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize);
            prop_assert_eq!(read_numeric(&bytes), i128::from(digits) * 10_i128.pow(u32::from(8 - scale)));
        }
    }

    #[test]
    fn whole_numbers_have_the_width_of_their_column() {
        let types = [oid::INT2, oid::INT4, oid::INT8];
        let mut sink = BinarySink::new(&types, BytesMut::new());
        sink.begin_row();
        (0..3).for_each(|_| sink.int(-2));
        let lengths = [sink.out[5], sink.out[11], sink.out[19]];
        assert_eq!((lengths, sink.out.len()), ([2, 4, 8], 2 + 3 * 4 + 14));
    }
}
