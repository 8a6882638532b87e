//! SQL from files: a base, and for each dialect a file that overrides single named sections of it.

use crate::connection::Kind;

/// The [`Layers`] of a file of SQL in a folder beside the source: `FOLDER/base/NAME.sql`, and for each dialect that is named
/// a file that differs from it: `layers!("sql", "schema", postgresql, mssql)`.
#[macro_export]
macro_rules! layers {
    ($folder:literal, $name:literal $(, $dialect:ident)*) => {
        $crate::Layers::of(include_str!(concat!($folder, "/base/", $name, ".sql")))
            $(.$dialect(include_str!(concat!($folder, "/", stringify!($dialect), "/", $name, ".sql"))))*
    };
}

/// One named statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub text: String,
}

/// A file of SQL in all dialects: a base, and the sections that each dialect overrides. MySQL takes those of MariaDB.
#[derive(Debug, Clone, Copy)]
pub struct Layers {
    base: &'static str,
    postgresql: &'static str,
    mariadb: &'static str,
    mssql: &'static str,
}

impl Layers {
    /// A base from which no dialect differs.
    pub const fn of(base: &'static str) -> Self {
        Self { base, postgresql: "", mariadb: "", mssql: "" }
    }

    /// PostgreSQL differs.
    #[must_use]
    pub const fn postgresql(self, postgresql: &'static str) -> Self {
        Self { postgresql, ..self }
    }

    /// MariaDB and MySQL differ.
    #[must_use]
    pub const fn mariadb(self, mariadb: &'static str) -> Self {
        Self { mariadb, ..self }
    }

    /// SQL Server differs.
    #[must_use]
    pub const fn mssql(self, mssql: &'static str) -> Self {
        Self { mssql, ..self }
    }

    /// The sections in one dialect: the base's in their order, then the dialect's own.
    pub fn sections(&self, dialect: Kind) -> Vec<Section> {
        let layers: &[&str] = match dialect {
            Kind::Postgresql => &[self.base, self.postgresql],
            Kind::Mariadb | Kind::Mysql => &[self.base, self.mariadb],
            Kind::Mssql => &[self.base, self.mssql],
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
        merged
    }
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
