use serde::Serialize;

/// What a run does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Every page is written.
    Prepare,
    /// Users read and change pages.
    Stress,
    /// What was changed and not yet written is written.
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
