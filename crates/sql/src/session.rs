//! Statements of every session: how transactions begin and end, and how they are isolated.

use crate::{
    connection::{Isolation, Kind},
    layers,
    sections::{Layers, Section},
};

const SESSION: Layers = layers!("../sql", "session", postgresql, mssql);

/// Statements that begin and end a transaction, and those that set the isolation level, in a dialect.
pub fn session_sections(dialect: Kind) -> Vec<Section> {
    SESSION.sections(dialect)
}

/// The statement that sets a session's isolation level, unless the server's own is wanted.
pub(crate) fn isolation_statement(kind: Kind, isolation: Isolation) -> Option<String> {
    let level = match isolation {
        Isolation::Default => return None,
        Isolation::ReadCommitted => "session.isolation.read-committed",
        Isolation::RepeatableRead => "session.isolation.repeatable-read",
        Isolation::Serializable => "session.isolation.serializable",
    };
    session_sections(kind).into_iter().find(|section| section.name == level).map(|section| section.text)
}
