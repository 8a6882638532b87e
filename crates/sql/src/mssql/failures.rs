//! Causes of errors of the server or of the client.

use std::io;

use tiberius::error::Error;

use crate::error::{Cause, DbError};

/// Error with which a procedure says that it rolled back on purpose.
const ROLLED_BACK: u32 = 50001;

impl From<Error> for DbError {
    fn from(error: Error) -> Self {
        match error {
            Error::Server(error) => {
                let text = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
                let shown = format!("{text} (error {})", error.code());
                Self::new(cause_of(error.code()), shown).with_code(&error.code().to_string())
            }
            Error::Io { kind: io::ErrorKind::UnexpectedEof, .. } => {
                Self::connection("the server closed the connection")
            }
            Error::Io { message, .. } => Self::connection(message),
            // What came is not what the protocol demands, so nothing that follows can be trusted.
            Error::Protocol(text) => Self::connection(text),
            Error::Routing { host, port } => {
                Self::other(format!("the server sends its connections to {host}:{port}; name that one as the target"))
            }
            error => Self::other(error.to_string()),
        }
    }
}

/// Cause of an error number (Microsoft's documentation, "Database Engine events and errors").
fn cause_of(number: u32) -> Cause {
    match number {
        ROLLED_BACK => Cause::RolledBack,
        // Chosen as the victim; a lock that was waited for too long.
        1205 | 1222 => Cause::Deadlock,
        // The row was changed since the transaction's snapshot; the same for tables in memory, and for what was read of them.
        3960 | 41302 | 41305 | 41325 => Cause::Serialization,
        2601 | 2627 => Cause::Duplicate,
        // A group of files is full, for an extent or for a row; the log is full.
        1101 | 1105 | 9002 => Cause::NoSpace,
        // The database recovers, is not open yet or is restored; killed, shutting down, paused, upgrading; too many connections.
        596 | 921 | 922 | 927 | 4060 | 6005 | 17142 | 17809 | 18401 => Cause::Connection,
        _ => Cause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_apart_by_what_they_mean() {
        for (number, cause) in [
            (1205, Cause::Deadlock),
            (1222, Cause::Deadlock),
            (3960, Cause::Serialization),
            (50001, Cause::RolledBack),
            (50002, Cause::Other),
            (2601, Cause::Duplicate),
            (2627, Cause::Duplicate),
            (1105, Cause::NoSpace),
            (9002, Cause::NoSpace),
            (4060, Cause::Connection),
            (18456, Cause::Other),
            (266, Cause::Other),
        ] {
            assert_eq!(cause_of(number), cause, "{number}");
        }
    }

    #[test]
    fn a_closed_connection_and_a_broken_protocol_are_lost() {
        let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(DbError::from(Error::from(closed)).text, "the server closed the connection");
        assert_eq!(DbError::from(Error::from(io::Error::from_raw_os_error(libc::ECONNRESET))).cause, Cause::Connection);
        assert_eq!(DbError::from(Error::Protocol("invalid token type 7".into())).cause, Cause::Connection);
        assert_eq!(DbError::from(Error::Utf16).cause, Cause::Other);
    }
}
