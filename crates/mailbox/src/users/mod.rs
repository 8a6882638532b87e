//! Tasks on the databases, a file for each kind.

mod backup;
mod checkpoint;
mod log_writer;
mod mailboxes;
mod maintenance;
mod prepare;
mod recovery;
mod replay;
mod script;
mod shipping;
mod verify;

pub(crate) use script::script;
