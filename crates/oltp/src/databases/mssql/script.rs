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

    /// Appends the statement; `before` parameters belong to those in front of it.
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
    use crate::{batch::Statement, plan::Kind, sql};

    fn scripts() -> Vec<(String, Script)> {
        let sections = sql::sections(Kind::Mssql, "statements").unwrap().into_iter();
        sections.map(|section| (section.name, Script::new(&section.text))).collect()
    }

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
        let giving = |name: &str| scripts().iter().any(|(known, script)| known == name && script.gives_rows);
        for name in ["new_order.district", "new_order.stock", "payment.by_name", "stock_level.count", "call.delivery"] {
            assert!(giving(name), "{name}");
        }
        for name in ["begin", "commit", "rollback", "new_order.order", "delivery.delete", "payment.customer_update"] {
            assert!(!giving(name), "{name}");
        }
    }

    #[test]
    fn only_what_begins_and_ends_a_transaction_has_no_parameters() {
        let bare: Vec<_> =
            scripts().into_iter().filter(|(_, script)| script.parameter_count() == 0).map(|(name, _)| name).collect();
        let known: Vec<_> = bare.iter().filter(|name| !name.starts_with("session.")).collect();
        assert_eq!(known, ["begin", "commit", "rollback"]);
    }

    #[test]
    fn the_text_is_in_this_dialect() {
        for (name, script) in scripts() {
            let mut text = String::new();
            script.write(0, &mut text);
            for foreign in ["FOR UPDATE", "LIMIT ", "utc_timestamp", "SIGNED", "CALL ", "RETURNING", "$"] {
                assert!(!text.contains(foreign), "{name}: {foreign}");
            }
        }
        assert!(Statement::ALL.iter().all(|statement| {
            let is_of_others = ["new_order.district_next", "new_order.stock_read", "new_order.stock_update"];
            scripts().iter().any(|(name, _)| name == statement.name()) != is_of_others.contains(&statement.name())
        }));
    }
}
