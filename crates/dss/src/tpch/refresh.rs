//! Keys of the refresh functions (clauses 2.5.1 and 4.2.3, comment on order keys).
//!
//! Of every 32 order keys the data set uses the first 8: two bits between say which eighth, the sequence. A set of refresh function
//! 1 inserts the orders of a thousandth of the data set once more in the next sequence, and function 2 deletes them in the one
//! before, so that after 1,000 sets all orders have moved on by one sequence and after 4,000 the database is what it was.

use super::{span::Span, tables::TpchTable};

/// Sets until the data set went through once.
pub(super) const SETS: u32 = 1000;
const SEQUENCES: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshFunction {
    Insert,
    Delete,
}

/// Which orders a refresh function inserts or deletes: keys from `first` to `last` of which `key / 8 % 4` is the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshKeys {
    pub sequence: u32,
    pub first: i64,
    pub last: i64,
}

/// The keys of a set, counted from 1; `None` where there is no such scale or set.
pub fn tpch_refresh_keys(thousandths: u32, set: u32, function: RefreshFunction) -> Option<RefreshKeys> {
    if thousandths == 0 {
        return None;
    }
    let sequence = sequence(set.checked_sub(1)?, function);
    let span = span(set, thousandths);
    Some(RefreshKeys { sequence, first: order_key(span.first + 1, sequence), last: order_key(span.end(), sequence) })
}

/// The sequence in which a function works on a set, counted from 0.
pub(super) fn sequence(set: u32, function: RefreshFunction) -> u32 {
    let before = set / SETS;
    let sequence = match function {
        RefreshFunction::Insert => before + 1,
        RefreshFunction::Delete => before,
    };
    sequence % SEQUENCES
}

/// The orders of a set, counted from 1.
pub(super) fn span(set: u32, thousandths: u32) -> Span {
    Span::of(TpchTable::Orders.key_count(thousandths), (set - 1) % SETS + 1, SETS)
}

/// The key of the order at an index, counted from 1, in a sequence.
fn order_key(index: u64, sequence: u32) -> i64 {
    ((index >> 3 << 2 | u64::from(sequence)) << 3 | index & 7) as i64
}
