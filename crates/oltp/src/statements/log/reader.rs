//! Readers of logs, one for each format.

use std::io;

use super::entry::Takes;

/// Reads a log from its beginning to its end.
pub(crate) trait LogReader: Send {
    /// Reads about as many bytes; false at the end.
    fn read_some(&mut self, bytes: u64, takes: &mut dyn Takes) -> io::Result<bool>;
}
