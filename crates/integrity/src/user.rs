//! Who asks for I/Os.

/// Who asks for an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum UserKind {
    Prepare = 1,
    Random,
    Audit,
    ReadAhead,
    BulkUpdate,
    Shrink,
    Checkpoint,
    Log,
    FinalAudit,
    Investigation,
    LogReader,
}

impl UserKind {
    const ALL: [(Self, &str); 11] = [
        (Self::Prepare, "prepare"),
        (Self::Random, "random"),
        (Self::Audit, "audit"),
        (Self::ReadAhead, "read-ahead"),
        (Self::BulkUpdate, "bulk-update"),
        (Self::Shrink, "shrink"),
        (Self::Checkpoint, "checkpoint"),
        (Self::Log, "log"),
        (Self::FinalAudit, "final-audit"),
        (Self::Investigation, "investigation"),
        (Self::LogReader, "log-reader"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize - 1].1
    }

    /// The writer's number on pages: its kind, and its number within the kind.
    pub fn writer(self, number: u32) -> u16 {
        (self as u16) << 12 | (number & 0xfff) as u16
    }

    /// The name of a writer as pages name it.
    pub fn writer_name(writer: u16) -> String {
        let kind = usize::from(writer >> 12);
        let name = kind.checked_sub(1).and_then(|kind| Self::ALL.get(kind)).map_or("nobody", |(_, name)| name);
        format!("{name} {}", writer & 0xfff)
    }
}

/// A user: its kind and its number within the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    pub kind: UserKind,
    pub number: u32,
}
