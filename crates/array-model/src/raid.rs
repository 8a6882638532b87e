//! RAID policies and their disks.

use serde::{Deserialize, Serialize};

/// A way to spread data and redundancy over disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RaidPolicy {
    #[serde(rename = "0")]
    Raid0,
    #[serde(rename = "1")]
    Raid1,
    #[serde(rename = "10")]
    Raid10,
    #[serde(rename = "5")]
    Raid5,
    #[serde(rename = "50")]
    Raid50,
    #[serde(rename = "6")]
    Raid6,
    #[serde(rename = "60")]
    Raid60,
    /// Row and diagonal parity on two disks of their own.
    #[serde(rename = "dp")]
    Dp,
}

impl RaidPolicy {
    /// Name as people write it after "RAID".
    pub fn name(self) -> &'static str {
        match self {
            Self::Raid0 => "0",
            Self::Raid1 => "1",
            Self::Raid10 => "10",
            Self::Raid5 => "5",
            Self::Raid50 => "50",
            Self::Raid6 => "6",
            Self::Raid60 => "60",
            Self::Dp => "DP",
        }
    }

    /// Disks of a set that hold parity.
    pub fn parity_disks(self) -> u32 {
        match self {
            Self::Raid0 | Self::Raid1 | Self::Raid10 => 0,
            Self::Raid5 | Self::Raid50 => 1,
            Self::Raid6 | Self::Raid60 | Self::Dp => 2,
        }
    }

    /// Copies of every block.
    pub fn copies(self) -> u32 {
        if matches!(self, Self::Raid1 | Self::Raid10) { 2 } else { 1 }
    }

    /// Whether one set is all there is.
    pub fn has_one_set(self) -> bool {
        matches!(self, Self::Raid1 | Self::Raid5 | Self::Raid6)
    }
}
