use serde::Serialize;

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Every page is written.
    Prepare,
    /// Users read and change pages.
    Stress,
    /// Changed pages are written.
    Checkpoint,
    /// Every page is read.
    Audit,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Stress => "stress",
            Self::Checkpoint => "checkpoint",
            Self::Audit => "audit",
        }
    }
}
