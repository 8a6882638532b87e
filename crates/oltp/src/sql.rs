//! SQL from files: `sql/base` and a folder per dialect that overrides single named sections of it.

use crate::plan::Kind;

/// A file of SQL with its text in every dialect.
struct File {
    name: &'static str,
    base: &'static str,
    postgresql: &'static str,
    mariadb: &'static str,
    mysql: &'static str,
    mssql: &'static str,
}

macro_rules! file {
    ($name:literal) => {
        File {
            name: $name,
            base: include_str!(concat!("../sql/base/", $name, ".sql")),
            postgresql: include_str!(concat!("../sql/postgresql/", $name, ".sql")),
            mariadb: include_str!(concat!("../sql/mariadb/", $name, ".sql")),
            mysql: include_str!(concat!("../sql/mysql/", $name, ".sql")),
            mssql: include_str!(concat!("../sql/mssql/", $name, ".sql")),
        }
    };
}

const FILES: [File; 6] =
    [file!("schema"), file!("indexes"), file!("statements"), file!("procedures"), file!("conditions"), file!("drop")];

/// One named statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub text: String,
}

/// The sections of a file in one dialect, in the order of base with those of the dialect after them; `None` for unknown files.
pub fn sections(dialect: Kind, file: &str) -> Option<Vec<Section>> {
    let file = FILES.iter().find(|known| known.name == file)?;
    let layers: &[&str] = match dialect {
        Kind::Postgresql => &[file.base, file.postgresql],
        Kind::Mariadb => &[file.base, file.mariadb],
        Kind::Mysql => &[file.base, file.mariadb, file.mysql],
        Kind::Mssql => &[file.base, file.mssql],
    };
    let mut merged: Vec<Section> = Vec::new();
    for section in layers.iter().flat_map(|text| parse(text)) {
        match merged.iter_mut().find(|known| known.name == section.name) {
            Some(known) => known.text = section.text,
            None => merged.push(section),
        }
    }
    // A section without text takes away what a layer below it has.
    merged.retain(|section| !section.text.is_empty());
    Some(merged)
}

/// Sections begin with `-- name: NAME`; other lines of comment before a statement belong to it.
fn parse(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("-- name:") {
            sections.push(Section { name: name.trim().into(), text: String::new() });
        } else if let Some(section) = sections.last_mut() {
            section.text.push_str(line);
            section.text.push('\n');
        }
    }
    for section in &mut sections {
        let has_statement = section.text.lines().any(|line| !line.trim().is_empty() && !line.starts_with("--"));
        section.text = if has_statement { section.text.trim().trim_end_matches(';').into() } else { String::new() };
    }
    sections
}

/// `$1, $2` as the placeholders of a dialect.
pub(crate) fn placeholders(text: &str, write: impl Fn(&mut String, u32)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        match rest[at + 1..=at + digits].parse() {
            Ok(number) => write(&mut out, number),
            Err(_) => out.push('$'),
        }
        rest = &rest[at + 1 + digits..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keep_their_comments_and_lose_their_last_semicolon() {
        let parsed = parse("-- a file\n-- name: one\n-- why\nSELECT 1;\n\n-- name: two\n-- nothing here\n");
        assert_eq!(parsed[0], Section { name: "one".into(), text: "-- why\nSELECT 1".into() });
        assert_eq!(parsed[1], Section { name: "two".into(), text: String::new() });
    }

    #[test]
    fn placeholders_are_replaced_and_other_dollars_left() {
        let marks = |text| placeholders(text, |out, _| out.push('?'));
        assert_eq!(marks("a = $1 AND b = $12, $$ x $"), "a = ? AND b = ?, $$ x $");
        assert_eq!(placeholders("$2", |out, number| *out += &format!("@P{number}")), "@P2");
    }
}
