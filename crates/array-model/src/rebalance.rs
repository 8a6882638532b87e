//! Move of pieces of volumes onto a member that has joined, several at once.

/// How far the moves of a group have come by the model's time.
#[derive(Debug, Clone)]
pub(crate) struct Rebalance {
    /// Pieces under way.
    pub(crate) slots: Vec<Option<u64>>,
    pub(crate) next: u64,
    pub(crate) pieces: u64,
}

impl Rebalance {
    pub(crate) fn new(depth: u32, next: u64, pieces: u64) -> Self {
        Self { slots: vec![None; depth.clamp(1, 1024) as usize], next, pieces }
    }

    /// Pieces, from the first, whose moves are over.
    pub(crate) fn done(&self) -> u64 {
        self.slots.iter().flatten().copied().min().unwrap_or(self.next)
    }
}
