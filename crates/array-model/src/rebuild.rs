//! A lost disk is computed again, row by row, onto a spare.

/// How far a rebuild has come.
#[derive(Debug, Clone)]
pub(crate) struct Rebuild {
    pub(crate) depth: u32,
    pub(crate) rows: u64,
    pub(crate) next_row: u64,
    pub(crate) under_way: Vec<u64>,
    /// Time between the beginnings of two rows, at least.
    interval_ns: u64,
    due_ns: u64,
    waits: bool,
}

impl Rebuild {
    pub(crate) fn new(depth: u32, rows: u64, interval_ns: u64) -> Self {
        let under_way = Vec::new();
        Self { depth: depth.max(1), rows, next_row: 0, under_way, interval_ns, due_ns: 0, waits: false }
    }

    /// Whether the next row may begin now; if not, gives the time at which it may, once.
    pub(crate) fn may_begin(&mut self, now_ns: u64) -> Result<(), Option<u64>> {
        if now_ns < self.due_ns {
            let first = !std::mem::replace(&mut self.waits, true);
            return Err(first.then_some(self.due_ns));
        }
        self.due_ns = self.due_ns.max(now_ns) + self.interval_ns;
        self.waits = false;
        Ok(())
    }

    /// Whether the spare holds a row.
    #[inline]
    pub(crate) fn has(&self, row: u64) -> bool {
        row < self.next_row && !self.under_way.contains(&row)
    }
}
