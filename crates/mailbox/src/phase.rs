//! The phases of a run.

/// What a run does one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Prepare,
    /// Operations as fast as they end, until caches are as full of changes as they get.
    Warm,
    Load,
    Backup,
    MakeLog,
    Recovery,
    Flush,
    Verify,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Warm => "warm",
            Self::Load => "load",
            Self::Backup => "backup",
            Self::MakeLog => "make-log",
            Self::Recovery => "recovery",
            Self::Flush => "flush",
            Self::Verify => "verify",
        }
    }
}
