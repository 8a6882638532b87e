use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// Faults: the names of the decision table in docs/integrity.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    Torn,
    Lost,
    MisdirectedWrite,
    MisdirectedRead,
    Corrupt,
    ShortRead,
    LogBreak,
    IoError,
    LongIo,
}

impl Fault {
    pub const ALL: [Self; 9] = [
        Self::Torn,
        Self::Lost,
        Self::MisdirectedWrite,
        Self::MisdirectedRead,
        Self::Corrupt,
        Self::ShortRead,
        Self::LogBreak,
        Self::IoError,
        Self::LongIo,
    ];

    /// Its name in plans and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Torn => "torn",
            Self::Lost => "lost",
            Self::MisdirectedWrite => "misdirected_write",
            Self::MisdirectedRead => "misdirected_read",
            Self::Corrupt => "corrupt",
            Self::ShortRead => "short_read",
            Self::LogBreak => "log_break",
            Self::IoError => "io_error",
            Self::LongIo => "long_io",
        }
    }
}

/// A count for each fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounts([u64; Fault::ALL.len()]);

impl FaultCounts {
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Index<Fault> for FaultCounts {
    type Output = u64;

    fn index(&self, fault: Fault) -> &u64 {
        &self.0[fault as usize]
    }
}

impl IndexMut<Fault> for FaultCounts {
    fn index_mut(&mut self, fault: Fault) -> &mut u64 {
        &mut self.0[fault as usize]
    }
}
