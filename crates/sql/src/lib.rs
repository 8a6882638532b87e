//! Connections to databases: statements known by number, rows as streams, and nothing of their purpose.
//!
//! Start with [`Driver`]: a connection runs a [`Batch`] of statements, gives their rows as [`Results`], and loads the [`Rows`] of a
//! table in bulk. [`AnyDriver`] is a connection to whichever server a [`Connection`] names; a [`Pool`] shares connections.

mod any;
mod batch;
mod connection;
mod dates;
mod driver;
mod error;
mod mssql;
mod mysql;
mod own;
mod pool;
mod postgresql;
mod rows;
mod sections;
mod session;
mod socket;
mod statements;
mod tls;

pub use any::AnyDriver;
pub use batch::{Batch, Parameters, Results, Row, write_int};
pub use connection::{Connection, Isolation, Kind, Password, Tls};
pub use dates::{write_date, write_time};
pub use driver::{Driver, Setup};
pub use error::{Cause, DbError};
pub use own::{Answers, Asked, Protocol, Values, placeholder};
pub use pool::{Pool, Slot, Taken};
pub use rows::{RowSink, Rows, Table};
pub use sections::{Layers, Section};
pub use session::session_sections;
pub use statements::{BEGIN, COMMIT, ROLLBACK, Statement, StatementId, TRANSACTION_NAMES, statements_of};
