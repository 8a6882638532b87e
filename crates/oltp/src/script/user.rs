use assay_sql::{Answers, Values};

use super::{machine::Machine, numbers::Stream};

/// A user: its variables and random numbers, and memory that its statements reuse.
pub(crate) struct User {
    pub(super) machine: Machine,
    pub(super) choices: Stream,
    pub(super) values: Values,
    pub(super) answers: Answers,
    pub(super) text: Vec<u8>,
}
