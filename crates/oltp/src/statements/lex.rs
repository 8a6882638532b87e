//! Tokens of SQL, as far as telling statements apart needs them: words, literals, comments left out.

/// Which server's SQL a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgresql,
    Mysql,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A name or keyword without quotes.
    Word(&'a str),
    /// A name in quotes, with them.
    Quoted(&'a str),
    /// A string or a number.
    Literal,
    /// A place for a parameter.
    Parameter,
    /// Any other letter.
    Sign(char),
}

/// The tokens of a text, in their order, each with the byte behind it. A quote that is never closed ends with the text.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str, dialect: Dialect) -> Self {
        Self { text, at: 0, dialect }
    }

    /// The byte behind the last token.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Goes behind the next `end`, or to the end of the text.
    fn skip_behind(&mut self, from: usize, end: &str) {
        let found = self.text[from..].find(end);
        self.at = found.map_or(self.text.len(), |place| from + place + end.len());
    }

    /// Goes behind blanks and comments.
    fn skip_blanks(&mut self) {
        loop {
            let byte = self.byte(0);
            if byte.is_ascii_whitespace() || byte == 0x0b {
                self.at += 1;
            } else if (byte == b'-' && self.byte(1) == b'-') || (byte == b'#' && self.dialect == Dialect::Mysql) {
                self.skip_behind(self.at, "\n");
            } else if byte == b'/' && self.byte(1) == b'*' && !self.is_executed_comment() {
                self.skip_comment();
            } else {
                return;
            }
        }
    }

    /// Whether a comment begins here that MySQL runs as SQL, as it does with `/*! */`.
    fn is_executed_comment(&self) -> bool {
        self.dialect == Dialect::Mysql && (self.byte(2) == b'!' || self.rest().starts_with("/*M!"))
    }

    /// Comments nest on PostgreSQL.
    fn skip_comment(&mut self) {
        let bytes = self.text.as_bytes();
        let (mut depth, mut at) = (0_usize, self.at);
        while at < bytes.len() {
            match (bytes[at], bytes.get(at + 1)) {
                (b'/', Some(b'*')) => {
                    depth = if self.dialect == Dialect::Postgresql { depth + 1 } else { 1 };
                    at += 2;
                }
                (b'*', Some(b'/')) => {
                    depth -= 1;
                    at += 2;
                    if depth == 0 {
                        break;
                    }
                }
                _ => at += 1,
            }
        }
        self.at = at;
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    /// Goes behind a text in quotes, which begins here; doubled quotes are part of it, and with `escapes` what follows a backslash.
    fn skip_quoted(&mut self, escapes: bool) {
        let bytes = self.text.as_bytes();
        let quote = bytes[self.at];
        let mut at = self.at + 1;
        while at < bytes.len() {
            if escapes && bytes[at] == b'\\' {
                at += 2;
            } else if bytes[at] != quote {
                at += 1;
            } else if bytes.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                at += 1;
                break;
            }
        }
        self.at = at.min(bytes.len());
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    /// Goes behind a text in dollar quotes, if one begins here.
    fn skip_dollars(&mut self) -> bool {
        let rest = self.rest();
        let is_tag = |letter: char| letter.is_alphanumeric() || letter == '_';
        let Some(length) = rest[1..].find(|letter: char| !is_tag(letter)) else { return false };
        if rest.as_bytes()[1 + length] != b'$' || rest.as_bytes()[1].is_ascii_digit() {
            return false;
        }
        let tag = &rest[..length + 2];
        self.skip_behind(self.at + tag.len(), tag);
        true
    }

    fn number(&mut self) {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '_';
        let rest = self.rest();
        let mut length = rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
        // An exponent has a sign.
        if rest[..length].ends_with(['e', 'E']) && !rest.starts_with("0x") && rest[length..].starts_with(['+', '-']) {
            let digits = &rest[length + 1..];
            let more = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
            length += if more > 0 { more + 1 } else { 0 };
        }
        self.at += length;
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
        let length = rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let start = self.at;
        let letter = self.rest().chars().next()?;
        let is_mysql = self.dialect == Dialect::Mysql;
        Some(match letter {
            '\'' => {
                self.skip_quoted(is_mysql);
                Token::Literal
            }
            '"' if is_mysql => {
                self.skip_quoted(true);
                Token::Literal
            }
            '"' | '`' => {
                self.skip_quoted(false);
                Token::Quoted(&self.text[start..self.at])
            }
            'e' | 'E' | 'b' | 'B' | 'x' | 'X' | 'n' | 'N' if self.byte(1) == b'\'' => {
                self.at += 1;
                self.skip_quoted(is_mysql || matches!(letter, 'e' | 'E'));
                Token::Literal
            }
            '$' if self.byte(1).is_ascii_digit() => {
                self.at += 1;
                self.number();
                Token::Parameter
            }
            '$' if !is_mysql && self.rest().len() > 1 && self.skip_dollars() => Token::Literal,
            '?' if is_mysql => {
                self.at += 1;
                Token::Parameter
            }
            '0'..='9' => {
                self.number();
                Token::Literal
            }
            '.' if self.byte(1).is_ascii_digit() => {
                self.number();
                Token::Literal
            }
            _ if letter.is_alphabetic() || letter == '_' => Token::Word(self.word()),
            _ => {
                self.at += letter.len_utf8();
                Token::Sign(letter)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str, dialect: Dialect) -> Vec<Token<'_>> {
        Tokens::new(text, dialect).collect()
    }

    #[test]
    fn literals_comments_and_names_are_told_apart() {
        use Token::{Literal, Parameter, Quoted, Sign, Word};
        assert_eq!(
            tokens(
                "SELECT 'it''s', E'a\\'b', $tag$ ; $tag$, $1, \"a b\" -- 'x\n/* /* ; */ */ FROM t1",
                Dialect::Postgresql
            ),
            [
                Word("SELECT"),
                Literal,
                Sign(','),
                Literal,
                Sign(','),
                Literal,
                Sign(','),
                Parameter,
                Sign(','),
                Quoted("\"a b\""),
                Word("FROM"),
                Word("t1")
            ]
        );
        assert_eq!(
            tokens("select \"it's\" # x\n, 'a\\'b', `t`, ?, 1e-5", Dialect::Mysql),
            [
                Word("select"),
                Literal,
                Sign(','),
                Literal,
                Sign(','),
                Quoted("`t`"),
                Sign(','),
                Parameter,
                Sign(','),
                Literal
            ]
        );
    }
}
