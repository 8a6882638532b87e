//! Fingerprints: statements that differ in their literals alone are one.

use super::lex::{Dialect, Token, Tokens};

/// Bytes of a fingerprint's text that are kept.
const TEXT_MAX: usize = 600;

/// The text with `?` in place of literals and parameters, lists of them shortened, words in lower case, without comments.
pub(crate) fn fingerprint(text: &str, dialect: Dialect) -> String {
    let mut out = String::new();
    for token in Tokens::new(text, dialect) {
        match token {
            Token::Word(word) => {
                space(&mut out);
                out.extend(word.chars().flat_map(char::to_lowercase));
            }
            Token::Quoted(name) => {
                space(&mut out);
                out.push_str(name);
            }
            Token::Literal | Token::Parameter => literal(&mut out),
            Token::Sign(')') => close(&mut out),
            Token::Sign(sign) => {
                if !matches!(sign, ',' | ';' | '.' | '(' | '[' | ']' | ':') {
                    space(&mut out);
                }
                out.push(sign);
            }
        }
        if out.len() > TEXT_MAX {
            let end = (0..=TEXT_MAX).rev().find(|end| out.is_char_boundary(*end)).unwrap_or(0);
            out.truncate(end);
            out.push('…');
            return out;
        }
    }
    while out.ends_with([';', ' ']) {
        out.pop();
    }
    out
}

fn space(out: &mut String) {
    if !out.is_empty() && !out.ends_with(['(', '.', '[', ':', ' ']) {
        out.push(' ');
    }
}

/// Adds a literal. A list of literals is told once: the second and later ones add nothing.
fn literal(out: &mut String) {
    if out.ends_with(" -") || out.ends_with("(-") || out.ends_with(",-") {
        // The sign of a number is part of it where no value stands before.
        let before = out[..out.len() - 1].trim_end();
        if before.ends_with(['(', ',', '=', '<', '>']) {
            out.truncate(before.len());
        }
    }
    if out.ends_with("?,") {
        out.truncate(out.len() - 1);
        out.push_str(", …");
    } else if out.ends_with("…,") {
        out.truncate(out.len() - 1);
    } else {
        space(out);
        out.push('?');
    }
}

/// Closes parentheses; a list of literals behind an equal one is already told.
fn close(out: &mut String) {
    out.push(')');
    for list in ["(?)", "(?, …)"] {
        let twice = format!("{list}, {list}");
        let tight = format!("{list},{list}");
        for seen in [twice, tight] {
            if out.ends_with(&seen) {
                out.truncate(out.len() - seen.len());
                out.push_str(list);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_differ_in_literals_alone_are_one() {
        let of = |text| fingerprint(text, Dialect::Postgresql);
        assert_eq!(of("SELECT a FROM t WHERE k = 5  AND s='x'"), "select a from t where k = ? and s = ?");
        assert_eq!(of("select a from T where k = -7 and s = $1;"), "select a from t where k = ? and s = ?");
        assert_eq!(of("SELECT 1 -- me\n"), "select ?");
        assert_eq!(of("select * from t where k in (1,2, 3)"), of("select * from t where k in (4, 5)"));
        assert_eq!(of("insert into t values (1,'a'),(2,'b'),(3,'c')"), of("insert into t values (1, 'a'), (2, 'b')"));
        assert_ne!(of("select a - 1 from t"), of("select a from t"));
        assert_eq!(of("select x::int, a.b from t"), "select x::int, a.b from t");
        assert_eq!(fingerprint("select \"x\" from `T`", Dialect::Mysql), "select ? from `T`");
        assert!(of(&"a ".repeat(5000)).ends_with('…'));
    }
}
