//! Texts and fingerprints of a log, each kept once and in bounded number.

use std::{collections::HashMap, sync::Arc};

use super::{
    fingerprint::fingerprint,
    kinds::{Kind, kind_of},
    lex::Dialect,
    log::entry::Way,
};

/// Fingerprints that are told apart; statements of others are counted together.
const FINGERPRINTS_MAX: usize = 5000;
const TEXTS_MAX: usize = 60_000;
const TEXTS_MAX_BYTES: usize = 32 << 20;
/// A text without parameters beside it is shared if it is no longer: such texts come again, like `COMMIT`.
const SIMPLE_MAX_BYTES: usize = 64;

/// Number of the fingerprint that stands for all beyond [`FINGERPRINTS_MAX`].
pub(super) const OTHERS: u32 = 0;

/// Statements of one fingerprint in the log.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) text: String,
    pub(crate) counted: u8,
    pub(crate) count: u64,
    pub(crate) recorded_ns: f64,
}

/// Facts about a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextFacts {
    pub(super) fingerprint: u32,
    pub(super) kind: Kind,
    /// Its number among the texts that are shared.
    pub(super) shared: Option<u32>,
}

pub(super) struct Texts {
    dialect: Dialect,
    pub(super) fingerprints: Vec<Known>,
    by_fingerprint: HashMap<String, u32>,
    pub(super) shared: Vec<Arc<str>>,
    by_text: HashMap<Arc<str>, TextFacts>,
    shared_bytes: usize,
}

impl Texts {
    pub(super) fn new(dialect: Dialect) -> Self {
        let others = Known { text: "(statements of other kinds)".into(), counted: 3, count: 0, recorded_ns: 0.0 };
        Self {
            dialect,
            fingerprints: vec![others],
            by_fingerprint: HashMap::new(),
            shared: Vec::new(),
            by_text: HashMap::new(),
            shared_bytes: 0,
        }
    }

    /// Gives the facts about a text; keeps a text that will come again.
    pub(super) fn facts(&mut self, text: &str, way: Way) -> TextFacts {
        if let Some(facts) = self.by_text.get(text) {
            return *facts;
        }
        let kind = kind_of(text, self.dialect);
        let fingerprint = self.fingerprint(text, kind);
        let comes_again = way != Way::Simple || text.len() <= SIMPLE_MAX_BYTES;
        let has_room = self.shared.len() < TEXTS_MAX && self.shared_bytes + text.len() <= TEXTS_MAX_BYTES;
        if !comes_again || !has_room {
            return TextFacts { fingerprint, kind, shared: None };
        }
        let (kept, number) = (Arc::<str>::from(text), self.shared.len() as u32);
        let facts = TextFacts { fingerprint, kind, shared: Some(number) };
        self.shared_bytes += text.len();
        self.shared.push(kept.clone());
        self.by_text.insert(kept, facts);
        facts
    }

    fn fingerprint(&mut self, text: &str, kind: Kind) -> u32 {
        let text = fingerprint(text, self.dialect);
        if let Some(number) = self.by_fingerprint.get(&text) {
            return *number;
        }
        if self.fingerprints.len() >= FINGERPRINTS_MAX {
            return OTHERS;
        }
        let number = self.fingerprints.len() as u32;
        self.fingerprints.push(Known { text: text.clone(), counted: kind.counted, count: 0, recorded_ns: 0.0 });
        self.by_fingerprint.insert(text, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_beyond_a_number_are_counted_together() {
        let mut texts = Texts::new(Dialect::Postgresql);
        let found: Vec<_> =
            (0..6000).map(|number| texts.facts(&format!("select c{number}x"), Way::Simple).fingerprint).collect();
        assert_eq!(found.iter().filter(|number| **number == OTHERS).count(), 6000 - (FINGERPRINTS_MAX - 1));
        assert_eq!(texts.facts("select c5x", Way::Simple).fingerprint, found[5]);
        let long = format!("select '{}'", "x".repeat(100));
        assert!(texts.facts(&long, Way::Simple).shared.is_none());
        assert!(texts.facts(&long, Way::Extended).shared.is_some());
    }
}
