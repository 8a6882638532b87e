//! How a transaction begins.

use assay_sql::{Driver, Kind as Dialect};

use crate::{
    brokerage::statements::Statement::{Begin, IsolateReadCommitted, IsolateRepeatableRead, IsolateSerializable},
    talk::Talk,
};

/// The least that a transaction has to be isolated from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// Begins a transaction. The level of its own comes first or second, as the dialect wants it; SQL Server keeps the last one, so that it
/// is said each time.
pub(super) fn begin<D: Driver>(talk: &mut Talk<'_, D>, level: Level) {
    let isolate = match level {
        Level::ReadCommitted => IsolateReadCommitted,
        Level::RepeatableRead => IsolateRepeatableRead,
        Level::Serializable => IsolateSerializable,
    };
    let dialect = talk.driver.kind();
    let is_said = level != Level::ReadCommitted || dialect == Dialect::Mssql;
    if is_said && dialect != Dialect::Postgresql {
        talk.add(isolate);
    }
    talk.add(Begin);
    if is_said && dialect == Dialect::Postgresql {
        talk.add(isolate);
    }
}

/// Statements that [`begin`] adds.
pub(super) fn begun<D: Driver>(talk: &Talk<'_, D>, level: Level) -> usize {
    1 + usize::from(level != Level::ReadCommitted || talk.driver.kind() == Dialect::Mssql)
}
