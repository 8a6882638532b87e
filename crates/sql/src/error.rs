/// Cause of a database error, as far as it matters to the transaction that met it.
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
    /// The server's own system failed it, such as its disk.
    System,
    Other,
}

/// Letters of a text that are kept.
const TEXT_MAX: usize = 1000;

fn one_line(text: String) -> String {
    let is_plain =
        |letter: char| !letter.is_control() && !matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if text.len() <= TEXT_MAX && text.chars().all(is_plain) {
        return text;
    }
    let mut kept: String =
        text.chars().take(TEXT_MAX).map(|letter| if is_plain(letter) { letter } else { ' ' }).collect();
    if text.chars().nth(TEXT_MAX).is_some() {
        kept.push('…');
    }
    kept
}

/// An error of a database. After one other than [`Cause::Connection`] the connection is outside any transaction.
#[derive(Debug, Clone)]
pub struct DbError {
    pub cause: Cause,
    pub text: String,
    /// SQLSTATE, or the number of SQL Server's error; empty where no server gave one.
    pub code: String,
}

impl DbError {
    /// The text may be a server's: one line of it is kept, without what a terminal obeys.
    pub fn new(cause: Cause, text: impl Into<String>) -> Self {
        Self { cause, text: one_line(text.into()), code: String::new() }
    }

    /// The same error with the server's code.
    #[must_use]
    pub fn with_code(self, code: &str) -> Self {
        let code = code.chars().filter(char::is_ascii_alphanumeric).take(10).collect();
        Self { code, ..self }
    }

    pub fn connection(text: impl Into<String>) -> Self {
        Self::new(Cause::Connection, text)
    }

    pub fn other(text: impl Into<String>) -> Self {
        Self::new(Cause::Other, text)
    }

    /// Cause of a failed attempt to connect again. A server whose disk is gone still takes connections until it is
    /// ended or notices, and fails while it opens its own files: it counts as away.
    pub fn while_reconnecting(self) -> Self {
        if self.cause == Cause::System { Self::connection(self.text) } else { self }
    }
}

impl From<std::io::Error> for DbError {
    fn from(error: std::io::Error) -> Self {
        Self::connection(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_server_is_one_plain_line() {
        let error = DbError::other("a\n\u{1b}[2Jb\u{202e}c");
        assert_eq!(error.text, "a  [2Jb c");
        assert_eq!(DbError::other("x".repeat(1 << 20)).text.chars().count(), TEXT_MAX + 1);
        assert_eq!(DbError::other("größer als 5").text, "größer als 5");
    }
}
