/// What an error of the database means for the transaction that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    Deadlock,
    Serialization,
    /// A procedure rolled its transaction back as its input wanted it, and said so: SQLSTATE AS001 from PostgreSQL, 45001 from
    /// MariaDB and MySQL, error 50001 from SQL Server.
    RolledBack,
    Connection,
    NoSpace,
    /// A key that is there already.
    Duplicate,
    /// What the server stands on failed it, such as its disk.
    System,
    Other,
}

/// An error of a database. After one other than [`Cause::Connection`] the connection is outside any transaction.
#[derive(Debug, Clone)]
pub struct DbError {
    pub cause: Cause,
    pub text: String,
}

impl DbError {
    pub fn new(cause: Cause, text: impl Into<String>) -> Self {
        Self { cause, text: text.into() }
    }

    pub fn connection(text: impl Into<String>) -> Self {
        Self::new(Cause::Connection, text)
    }

    pub fn other(text: impl Into<String>) -> Self {
        Self::new(Cause::Other, text)
    }

    /// The same of an attempt to connect again. A server whose disk is gone still takes connections until it is ended or notices,
    /// and fails while it opens its own files: it is as far away as one that is not there.
    pub fn while_reconnecting(self) -> Self {
        if self.cause == Cause::System { Self::connection(self.text) } else { self }
    }
}

impl From<std::io::Error> for DbError {
    fn from(error: std::io::Error) -> Self {
        Self::connection(error.to_string())
    }
}
