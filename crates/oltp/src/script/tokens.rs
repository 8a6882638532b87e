//! Words of expressions.

use super::value::Value;

/// A mistake in words, and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) text: String,
    pub(crate) at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token {
    End,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Open,
    Close,
    Comma,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Pipe,
    Hash,
    Ampersand,
    Tilde,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
    Not,
    Is,
    IsNull,
    NotNull,
    Case,
    When,
    Then,
    Else,
    EndOfCase,
    Constant(Value),
    /// 9223372036854775808, which only a minus makes a number.
    BeyondInt,
    Variable,
    Name,
}

const WORDS: [(&str, Token); 14] = [
    ("and", Token::And),
    ("or", Token::Or),
    ("not", Token::Not),
    ("is", Token::Is),
    ("isnull", Token::IsNull),
    ("notnull", Token::NotNull),
    ("case", Token::Case),
    ("when", Token::When),
    ("then", Token::Then),
    ("else", Token::Else),
    ("end", Token::EndOfCase),
    ("null", Token::Constant(Value::Null)),
    ("true", Token::Constant(Value::Bool(true))),
    ("false", Token::Constant(Value::Bool(false))),
];

const SIGNS: [(&str, Token); 20] = [
    ("<<", Token::ShiftLeft),
    (">>", Token::ShiftRight),
    ("<=", Token::LessOrEqual),
    (">=", Token::GreaterOrEqual),
    ("<>", Token::NotEqual),
    ("!=", Token::NotEqual),
    ("<", Token::Less),
    (">", Token::Greater),
    ("=", Token::Equal),
    ("+", Token::Plus),
    ("-", Token::Minus),
    ("*", Token::Star),
    ("/", Token::Slash),
    ("%", Token::Percent),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
    ("|", Token::Pipe),
    ("#", Token::Hash),
    ("&", Token::Ampersand),
];

/// Whether a letter may begin a name: letters, `_`, and whatever is not ASCII.
pub(crate) fn begins_name(letter: u8) -> bool {
    letter.is_ascii_alphabetic() || letter == b'_' || letter >= 0x80
}

pub(crate) fn is_of_name(letter: u8) -> bool {
    begins_name(letter) || letter.is_ascii_digit()
}

/// Length of the name at the beginning of a text; 0 where there is none.
pub(crate) fn name_length(text: &[u8]) -> usize {
    match text.first() {
        Some(first) if begins_name(*first) => text.iter().position(|letter| !is_of_name(*letter)).unwrap_or(text.len()),
        _ => 0,
    }
}

pub(crate) struct Tokens<'a> {
    text: &'a str,
    /// Where the next token lies.
    next: (usize, usize),
    token: Token,
    last: (usize, usize),
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, Mistake> {
        let mut tokens = Self { text, next: (0, 0), token: Token::End, last: (0, 0) };
        tokens.advance()?;
        Ok(tokens)
    }

    /// The token that comes next.
    pub(crate) fn peek(&self) -> Token {
        self.token
    }

    /// Where it begins.
    pub(crate) fn at(&self) -> usize {
        self.next.0
    }

    /// Text of the token that was taken last.
    pub(crate) fn text_of_last(&self) -> &'a str {
        &self.text[self.last.0..self.last.1]
    }

    /// Takes the next token.
    pub(crate) fn advance(&mut self) -> Result<Token, Mistake> {
        let bytes = self.text.as_bytes();
        let mut start = self.next.1;
        while start < bytes.len() {
            // A backslash at the end of a line goes on in the next.
            let continued = bytes[start..].starts_with(b"\\\n") || bytes[start..].starts_with(b"\\\r\n");
            if !(continued || matches!(bytes[start], b' ' | b'\t' | b'\r' | b'\n' | b'\x0b' | b'\x0c')) {
                break;
            }
            start += 1;
        }
        let (token, length) = if start == bytes.len() { (Token::End, 0) } else { self.read(start)? };
        self.last = self.next;
        self.next = (start, start + length);
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// The token that begins at a place, and its length.
    fn read(&self, start: usize) -> Result<(Token, usize), Mistake> {
        let rest = &self.text[start..];
        let bytes = rest.as_bytes();
        let refused = |text: String| Err(Mistake { text, at: start });
        let length = name_length(bytes);
        if length > 0 {
            let word = &rest[..length];
            let known = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            return Ok((known.map_or(Token::Name, |(_, token)| *token), length));
        }
        if bytes[0] == b':' {
            let length = name_length(&bytes[1..]);
            return if length > 0 {
                Ok((Token::Variable, length + 1))
            } else {
                refused("unexpected character (:)".into())
            };
        }
        if bytes[0] == b'~' {
            return Ok((Token::Tilde, 1));
        }
        let digits = number_length(bytes);
        if digits > 0 {
            let number = &rest[..digits];
            if number.bytes().all(|digit| digit.is_ascii_digit()) {
                return match number.parse() {
                    Ok(number) => Ok((Token::Constant(Value::Int(number)), digits)),
                    Err(_) if number == "9223372036854775808" => Ok((Token::BeyondInt, digits)),
                    Err(_) => refused(format!("bigint constant overflow ({number})")),
                };
            }
            return match number.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok((Token::Constant(Value::Double(number)), digits)),
                _ => refused(format!("double constant overflow ({number})")),
            };
        }
        match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            Some((sign, token)) => Ok((*token, sign.len())),
            None => refused(format!("unexpected character ({})", rest.chars().next().unwrap_or(' '))),
        }
    }
}

/// Length of the number at the beginning of a text: `1`, `1.`, `1.5`, `.5`, each with an exponent or without.
fn number_length(text: &[u8]) -> usize {
    let digits_from = |from: usize| text[from..].iter().take_while(|letter| letter.is_ascii_digit()).count();
    let whole = digits_from(0);
    let mut length = whole;
    if text.get(length) == Some(&b'.') {
        let after_point = digits_from(length + 1);
        if whole + after_point == 0 {
            return 0;
        }
        length += 1 + after_point;
    } else if whole == 0 {
        return 0;
    }
    if matches!(text.get(length), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(text.get(length + 1), Some(b'+' | b'-')));
        if text.len() > length + 1 + signed {
            let exponent = digits_from(length + 1 + signed);
            length += if exponent > 0 { 1 + signed + exponent } else { 0 };
        }
    }
    length
}
