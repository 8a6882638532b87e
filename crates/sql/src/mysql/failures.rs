//! Causes of errors of the server or of the client.

use std::io;

use mysql_async::{DriverError, Error, IoError, ServerError};

use crate::error::{Cause, DbError};

/// SQLSTATE with which a procedure says that it rolled back on purpose.
const ROLLED_BACK: &str = "45001";
const CLOSED: &str = "the server closed the connection";

impl From<Error> for DbError {
    fn from(error: Error) -> Self {
        match error {
            Error::Server(error) => {
                let text = error.message.split_whitespace().collect::<Vec<_>>().join(" ");
                let shown = format!("{text} (error {}, SQLSTATE {})", error.code, error.state);
                Self::new(cause_of(&error), shown).with_code(&error.state)
            }
            Error::Io(IoError::Io(error)) => of_system(&error),
            Error::Io(IoError::Tls(error)) => Self::other(format!("TLS: {error}")),
            Error::Driver(DriverError::NoClientSslFlagFromServer) => {
                Self::other("the server offers no TLS, which the connection demands")
            }
            Error::Driver(DriverError::ConnectionClosed) => Self::connection(CLOSED),
            Error::Driver(error @ DriverError::PacketOutOfOrder) => Self::connection(error.to_string()),
            error => Self::other(error.to_string()),
        }
    }
}

/// A handshake of TLS that fails comes as an error of the system, but does not pass.
fn of_system(error: &io::Error) -> DbError {
    let inner = error.get_ref();
    if inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
        return DbError::other(format!("TLS: {error}"));
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => DbError::connection(CLOSED),
        _ => DbError::connection(error.to_string()),
    }
}

/// Cause of an error number (MariaDB's manual, "MariaDB Error Code Reference").
fn cause_of(error: &ServerError) -> Cause {
    if error.state == ROLLED_BACK {
        return Cause::RolledBack;
    }
    match error.code {
        // A lock that was waited for too long undoes only the statement; the driver undoes the rest.
        1205 | 1213 => Cause::Deadlock,
        // The row was changed since the transaction's snapshot (`innodb_snapshot_isolation`).
        1020 => Cause::Serialization,
        1021 | 1114 => Cause::NoSpace,
        1062 => Cause::Duplicate,
        // Too many connections, of all or of this user, may pass; shut down, killed, idle for too long; lost on the way.
        1040 | 1053 | 1203 | 1927 | 3169 | 4031 | 1152..=1161 => Cause::Connection,
        _ if is_out_of_space(&error.message) => Cause::NoSpace,
        _ => Cause::Other,
    }
}

/// Many messages carry the system's error number, each in words of its own.
fn is_out_of_space(message: &str) -> bool {
    ["errno: 28 ", "Errcode: 28 ", "Got error 28 ", "No space left on device"].iter().any(|text| message.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16, state: &str, message: &str) -> DbError {
        Error::from(ServerError { code, message: message.into(), state: state.into() }).into()
    }

    #[test]
    fn numbers_are_told_apart_by_what_they_mean() {
        let cause = |code, state, message| error(code, state, message).cause;
        assert_eq!(cause(1213, "40001", "Deadlock found"), Cause::Deadlock);
        assert_eq!(cause(1205, "HY000", "Lock wait timeout exceeded"), Cause::Deadlock);
        assert_eq!(cause(1020, "HY000", "Record has changed since last read"), Cause::Serialization);
        assert_eq!(cause(1644, "45001", "item"), Cause::RolledBack);
        assert_eq!(cause(1644, "45000", "item"), Cause::Other);
        assert_eq!(cause(1114, "HY000", "The table 'x' is full"), Cause::NoSpace);
        assert_eq!(
            cause(1026, "HY000", "Error writing file 'x' (errno: 28 \"No space left on device\")"),
            Cause::NoSpace
        );
        assert_eq!(cause(1026, "HY000", "Error writing file 'x' (errno: 5 \"Input/output error\")"), Cause::Other);
        assert_eq!(cause(1927, "70100", "Connection was killed"), Cause::Connection);
        assert_eq!(cause(1062, "23000", "Duplicate entry"), Cause::Duplicate);
        assert_eq!(cause(1146, "42S02", "Table does not exist"), Cause::Other);
    }

    #[test]
    fn a_message_is_one_line_with_its_number() {
        let error = error(1064, "42000", "You have an error\nnear 'x'");
        assert_eq!(error.text, "You have an error near 'x' (error 1064, SQLSTATE 42000)");
    }

    #[test]
    fn a_closed_connection_is_lost() {
        assert_eq!(DbError::from(Error::from(DriverError::ConnectionClosed)).cause, Cause::Connection);
        assert_eq!(
            DbError::from(Error::from(std::io::Error::from_raw_os_error(libc::ECONNRESET))).cause,
            Cause::Connection
        );
        assert_eq!(DbError::from(Error::from(DriverError::PacketTooLarge)).cause, Cause::Other);
    }
}
