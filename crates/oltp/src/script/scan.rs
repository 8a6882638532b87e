//! Scripts cut into statements of SQL and lines that begin with a backslash, as psql cuts what it reads: a semicolon ends a statement
//! unless it stands in quotes, comments, parentheses or the body of a function.

use super::tokens::{begins_name, is_of_name};

/// Comments within one another that are followed.
const COMMENTS_MAX: u32 = 1000;

/// The end of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Semicolon,
    /// A line of its own follows the backslash.
    Backslash,
    Text,
}

/// A statement, perhaps empty, and what ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Without comments before it and without the semicolon behind it.
    pub(crate) text: String,
    /// Places of the text that stand in quotes.
    pub(crate) quoted: Vec<(usize, usize)>,
    /// Whether `\;` parts several statements that go together.
    pub(crate) is_compound: bool,
    /// Where it begins in the script.
    pub(crate) at: usize,
    pub(crate) end: End,
}

pub(crate) struct Scanner<'a> {
    text: &'a str,
    next: usize,
}

/// Kind of a statement, as far as it decides where the body of a function ends.
#[derive(Default)]
struct Head {
    words: Vec<u8>,
    begun: u32,
}

impl Head {
    /// Notes a word. In CREATE FUNCTION and CREATE PROCEDURE, BEGIN and CASE last until their END.
    fn word(&mut self, word: &str, parentheses: u32) {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if self.words.len() < 4 {
            let known = ["create", "or", "replace", "function", "procedure"].into_iter().find(|name| is(name));
            self.words.push(known.map_or(b'-', |name| name.as_bytes()[0]));
        }
        let makes_function = matches!(self.words[..], [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']);
        if makes_function && parentheses == 0 {
            if is("begin") || (is("case") && self.begun > 0) {
                self.begun += 1;
            } else if is("end") {
                self.begun = self.begun.saturating_sub(1);
            }
        }
    }
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, next: 0 }
    }

    /// The line, counted from 1, of a place.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at].iter().filter(|letter| **letter == b'\n').count()
    }

    /// Takes the rest of a line whose backslash was read: its text with the ends of lines that go on, and its place.
    pub(crate) fn backslash_line(&mut self) -> (&'a str, usize) {
        let start = self.next;
        let bytes = self.text.as_bytes();
        let mut end = start;
        while end < bytes.len() && bytes[end] != b'\n' {
            let goes_on = ["\\\n", "\\\r\n"].into_iter().find(|ends| bytes[end..].starts_with(ends.as_bytes()));
            end += goes_on.map_or(1, str::len);
        }
        self.next = (end + 1).min(bytes.len());
        (&self.text[start..end], start)
    }

    /// Takes the next statement.
    pub(crate) fn statement(&mut self) -> Piece {
        self.skip_comments();
        let (start, bytes) = (self.next, self.text.as_bytes());
        let mut piece =
            Piece { text: String::new(), quoted: Vec::new(), is_compound: false, at: start, end: End::Text };
        let (mut head, mut parentheses, mut copied) = (Head::default(), 0_u32, start);
        while self.next < bytes.len() {
            let at = self.next;
            match bytes[at] {
                b';' if parentheses == 0 && head.begun == 0 => {
                    piece.end = End::Semicolon;
                    break;
                }
                b'\\' => match bytes.get(at + 1) {
                    // The sign itself, without what it would mean.
                    Some(sign @ (b';' | b':')) => {
                        piece.text.push_str(&self.text[copied..at]);
                        piece.is_compound |= *sign == b';';
                        copied = at + 1;
                        self.next = at + 2;
                    }
                    _ => {
                        piece.end = End::Backslash;
                        break;
                    }
                },
                b'(' => {
                    parentheses += 1;
                    self.next += 1;
                }
                b')' => {
                    parentheses = parentheses.saturating_sub(1);
                    self.next += 1;
                }
                letter if begins_name(letter) => {
                    let word = self.word();
                    head.word(word, parentheses);
                    if word.eq_ignore_ascii_case("e") && bytes.get(self.next) == Some(&b'\'') {
                        self.quoted(&mut piece, copied, |scanner| scanner.skip_quotes(b'\'', true));
                    }
                }
                letter if letter.is_ascii_digit() => {
                    self.word();
                }
                quote @ (b'\'' | b'"') => {
                    self.quoted(&mut piece, copied, |scanner| scanner.skip_quotes(quote, false));
                }
                b'$' => self.quoted(&mut piece, copied, Self::skip_dollars),
                b'-' if bytes[at..].starts_with(b"--") => self.skip_line(),
                b'/' if bytes[at..].starts_with(b"/*") => self.skip_comment(),
                _ => self.next += 1,
            }
        }
        let end = self.next.min(bytes.len());
        piece.text.push_str(&self.text[copied..end]);
        piece.text.truncate(piece.text.trim_end().len());
        self.next = if piece.end == End::Text { end } else { end + 1 };
        piece
    }

    /// Skips a quoted part, and notes its place in the statement.
    fn quoted(&mut self, piece: &mut Piece, copied: usize, skip: impl FnOnce(&mut Self)) {
        let offset = piece.text.len();
        let start = self.next - copied + offset;
        skip(self);
        piece.quoted.push((start, self.next - copied + offset));
    }

    /// Takes a word, with its digits and dollars.
    fn word(&mut self) -> &'a str {
        let (start, bytes) = (self.next, self.text.as_bytes());
        while self.next < bytes.len() && (is_of_name(bytes[self.next]) || bytes[self.next] == b'$') {
            self.next += 1;
        }
        &self.text[start..self.next]
    }

    /// Skips white space and comments of a line before a statement.
    fn skip_comments(&mut self) {
        let bytes = self.text.as_bytes();
        while self.next < bytes.len() {
            if bytes[self.next].is_ascii_whitespace() || bytes[self.next] == b'\x0b' {
                self.next += 1;
            } else if bytes[self.next..].starts_with(b"--") {
                self.skip_line();
            } else {
                return;
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.next..];
        self.next += rest.iter().position(|letter| *letter == b'\n').unwrap_or(rest.len());
    }

    fn skip_comment(&mut self) {
        let bytes = self.text.as_bytes();
        let mut depth = 0_u32;
        while self.next < bytes.len() {
            let rest = &bytes[self.next..];
            if rest.starts_with(b"/*") && depth < COMMENTS_MAX {
                depth += 1;
                self.next += 2;
            } else if rest.starts_with(b"*/") {
                depth -= 1;
                self.next += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.next += 1;
            }
        }
    }

    /// Skips what stands between quotes; without the second, all that follows.
    fn skip_quotes(&mut self, quote: u8, has_escapes: bool) {
        let bytes = self.text.as_bytes();
        self.next += 1;
        while self.next < bytes.len() {
            let letter = bytes[self.next];
            self.next += 1;
            if letter == b'\\' && has_escapes {
                self.next = (self.next + 1).min(bytes.len());
            } else if letter == quote {
                if bytes.get(self.next) != Some(&quote) {
                    return;
                }
                self.next += 1;
            }
        }
    }

    /// Skips what stands between two `$tag$`, or a dollar that begins none.
    fn skip_dollars(&mut self) {
        let rest = &self.text[self.next..];
        let name = super::tokens::name_length(&rest.as_bytes()[1..]);
        if rest.as_bytes().get(1 + name) != Some(&b'$') {
            self.next += 1;
            return;
        }
        let tag = &rest[..name + 2];
        let inside = &rest[tag.len()..];
        self.next += inside.find(tag).map_or(rest.len(), |place| place + 2 * tag.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn statements(text: &str) -> Vec<String> {
        let mut scanner = Scanner::new(text);
        let mut found = Vec::new();
        loop {
            let piece = scanner.statement();
            if !piece.text.is_empty() {
                found.push(piece.text);
            }
            match piece.end {
                End::Semicolon => (),
                End::Backslash => found.push(format!("\\{}", scanner.backslash_line().0)),
                End::Text => return found,
            }
        }
    }

    #[test]
    fn a_semicolon_ends_a_statement_unless_it_is_part_of_one() {
        for (text, wanted) in [
            ("SELECT 1; SELECT 2", vec!["SELECT 1", "SELECT 2"]),
            ("SELECT ';', \";\", E'\\';', ''';';x", vec!["SELECT ';', \";\", E'\\';', ''';'", "x"]),
            ("DO $$ a; b $$; DO $q$ $$; $q$;c", vec!["DO $$ a; b $$", "DO $q$ $$; $q$", "c"]),
            ("-- a; b\nSELECT /* ; /* ; */ ; */ 1 -- ;\n;", vec!["SELECT /* ; /* ; */ ; */ 1 -- ;"]),
            ("CREATE RULE r AS DO (a; b);c", vec!["CREATE RULE r AS DO (a; b)", "c"]),
            ("a\\;b\\;c\\:d;e", vec!["a;b;c:d", "e"]),
            ("BEGIN; a; END;", vec!["BEGIN", "a", "END"]),
            (
                "CREATE OR REPLACE FUNCTION f() BEGIN ATOMIC a; CASE WHEN x THEN y END; END; b;",
                vec!["CREATE OR REPLACE FUNCTION f() BEGIN ATOMIC a; CASE WHEN x THEN y END; END", "b"],
            ),
            ("SELECT a$1$b, $1; x", vec!["SELECT a$1$b, $1", "x"]),
            ("SELECT 1 \\gset p_\nSELECT 2;", vec!["SELECT 1", "\\gset p_", "SELECT 2"]),
            ("\\set x \\\n  1 + \\\n 2\nSELECT 2;", vec!["\\set x \\\n  1 + \\\n 2", "SELECT 2"]),
            ("SELECT 'open", vec!["SELECT 'open"]),
            ("  \n-- nothing", vec![]),
        ] {
            assert_eq!(statements(text), wanted, "{text}");
        }
    }

    #[test]
    fn places_in_quotes_are_known() {
        let piece = Scanner::new("-- c\nSELECT \\; ':a', :b, $$:c$$").statement();
        let quoted: Vec<_> = piece.quoted.iter().map(|(from, to)| &piece.text[*from..*to]).collect();
        assert_eq!((quoted, piece.is_compound, piece.at), (vec!["':a'", "$$:c$$"], true, 5));
    }

    proptest! {
        #[test]
        fn no_text_makes_scanning_panic_or_stand_still(text in "[a-z$'\"\\\\;:(/*\\-) \n\u{e4}EBeginCASEd0]{0,80}") {
            let pieces = statements(&text);
            prop_assert!(pieces.len() <= text.len() + 1);
        }
    }
}
