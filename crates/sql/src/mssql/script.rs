//! Statements as the server takes them: one behind the other in one text, whose parameters count on.

use std::fmt::Write;

/// A statement, cut where its parameters go.
pub(super) struct Script {
    parts: Vec<String>,
    pub(super) gives_rows: bool,
}

impl Script {
    /// Reads a statement whose parameters are `$1, $2, ...`, each used once and in this order.
    pub(super) fn new(section: &str) -> Self {
        let lines: Vec<_> = section.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
        let text = lines.join("\n");
        let gives_rows = text.starts_with("SELECT") || text.starts_with("EXECUTE") || text.contains("\nOUTPUT");
        let cut =
            text.split('$').map(|part| part.trim_start_matches(|letter: char| letter.is_ascii_digit()).to_owned());
        Self { parts: cut.collect(), gives_rows }
    }

    pub(super) fn parameter_count(&self) -> usize {
        self.parts.len() - 1
    }

    /// Appends the statement; `before` parameters belong to earlier statements.
    pub(super) fn write(&self, before: usize, out: &mut String) {
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                write!(out, "@P{}", before + index).expect("writing to memory cannot fail");
            }
            out.push_str(part);
        }
        out.push_str(";\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{connection::Kind, session::session_sections};

    #[test]
    fn parameters_count_on_behind_other_statements() {
        let script = Script::new("-- why\nUPDATE t SET a = $1,\n    b = b - $2 - 20\nWHERE c = $3");
        let mut text = String::new();
        script.write(0, &mut text);
        script.write(script.parameter_count(), &mut text);
        assert_eq!(
            text,
            "UPDATE t SET a = @P1,\n    b = b - @P2 - 20\nWHERE c = @P3;\nUPDATE t SET a = @P4,\n    b = b - @P5 - 20\nWHERE c = @P6;\n"
        );
    }

    #[test]
    fn statements_that_give_rows_are_known() {
        for text in ["SELECT a FROM t WHERE b = $1", "-- why\nEXECUTE p $1", "UPDATE t SET a = $1\nOUTPUT deleted.a"] {
            assert!(Script::new(text).gives_rows, "{text}");
        }
        for text in ["INSERT INTO t (a) VALUES ($1)", "UPDATE t SET a = $1", "DELETE FROM t WHERE a = $1"] {
            assert!(!Script::new(text).gives_rows, "{text}");
        }
    }

    #[test]
    fn what_is_said_to_a_session_has_no_parameters_and_gives_no_rows() {
        let scripts: Vec<_> = session_sections(Kind::Mssql).iter().map(|section| Script::new(&section.text)).collect();
        assert_eq!(scripts.len(), 6);
        assert!(scripts.iter().all(|script| script.parameter_count() == 0 && !script.gives_rows));
    }
}
