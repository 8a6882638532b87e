/// A part of a table's keys: the generator cuts a table into equal parts, of which the last takes the remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// Counted from 1, as the generator wants it.
    pub(super) part: u32,
    pub(super) parts: u32,
    /// Keys before it.
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Span {
    pub(super) fn of(keys: u64, part: u32, parts: u32) -> Self {
        let each = keys / u64::from(parts);
        let remainder = if part == parts { keys % u64::from(parts) } else { 0 };
        Self { part, parts, first: each * u64::from(part - 1), count: each + remainder }
    }

    /// End of the span: its keys and all earlier keys.
    pub(super) fn end(self) -> u64 {
        self.first + self.count
    }
}
