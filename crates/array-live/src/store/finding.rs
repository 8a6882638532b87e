//! Damage of a store's files.

/// A fault in files of a store, found when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    /// The disk that is gone with it.
    pub disk: Option<(u32, u32)>,
}
