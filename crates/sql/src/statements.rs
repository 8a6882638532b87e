//! Statements by number: a workload prepares them, and its batches refer to them.

use crate::{error::DbError, sections::Section};

/// A statement's place among the statements of its workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId(pub u16);

impl StatementId {
    pub(crate) fn not_prepared(self) -> DbError {
        DbError::other(format!("statement {} is not prepared", self.0))
    }
}

/// Statements that every workload has, in front of its own.
pub const BEGIN: StatementId = StatementId(0);
pub const COMMIT: StatementId = StatementId(1);
pub const ROLLBACK: StatementId = StatementId(2);

/// Names of [`BEGIN`], [`COMMIT`] and [`ROLLBACK`].
pub const TRANSACTION_NAMES: [&str; 3] = ["begin", "commit", "rollback"];

/// A statement to prepare: its number, its name, and its text in the dialect of the server with parameters `$1, $2, ...`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub id: StatementId,
    pub name: &'static str,
    pub text: String,
}

/// The wanted statements, by name, that have a text in the dialect.
pub fn statements_of(
    names: &[&'static str],
    sections: &[Section],
    wanted: impl Fn(&'static str) -> bool,
) -> Vec<Statement> {
    let numbered = (0..).map(StatementId).zip(names.iter().copied());
    numbered
        .filter(|(_, name)| wanted(name))
        .filter_map(|(id, name)| {
            let section = sections.iter().find(|section| section.name == name)?;
            Some(Statement { id, name, text: section.text.clone() })
        })
        .collect()
}

/// Data that a driver keeps of each statement, found by its number.
#[derive(Debug)]
pub(crate) struct ByStatement<T>(Vec<Option<T>>);

impl<T> Default for ByStatement<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByStatement<T> {
    pub(crate) fn put(&mut self, id: StatementId, kept: T) {
        let place = usize::from(id.0);
        if place >= self.0.len() {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place] = Some(kept);
    }

    #[inline]
    pub(crate) fn get(&self, id: StatementId) -> Option<&T> {
        self.0.get(usize::from(id.0))?.as_ref()
    }
}

/// Names the statements of a workload. Those that begin and end a transaction come first, by themselves.
#[macro_export]
macro_rules! statements {
    ($($variant:ident = $name:literal,)*) => {
        /// A prepared statement; its text is in the workload's files of SQL.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Statement {
            Begin,
            Commit,
            Rollback,
            $($variant,)*
        }

        impl Statement {
            pub(crate) const NAMES: &[&'static str] = &["begin", "commit", "rollback", $($name,)*];
        }

        impl From<Statement> for $crate::StatementId {
            #[inline]
            fn from(statement: Statement) -> Self {
                Self(statement as u16)
            }
        }
    };
}
