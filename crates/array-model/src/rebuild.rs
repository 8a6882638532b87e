//! A lost disk is computed again, row by row, onto a spare.

/// How far a rebuild has come.
#[derive(Debug, Clone)]
pub(crate) struct Rebuild {
    pub(crate) depth: u32,
    pub(crate) rows: u64,
    pub(crate) next_row: u64,
    pub(crate) under_way: Vec<u64>,
}

impl Rebuild {
    pub(crate) fn new(depth: u32, rows: u64) -> Self {
        Self { depth: depth.max(1), rows, next_row: 0, under_way: Vec::new() }
    }

    /// Whether the spare holds a row.
    #[inline]
    pub(crate) fn has(&self, row: u64) -> bool {
        row < self.next_row && !self.under_way.contains(&row)
    }
}
