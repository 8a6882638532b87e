//! Values that follow from a plan: disks as the layout sees them, new disks, the number of disks that serve.

use super::{DiskPlan, FlashAge, LayoutPlan, MemberPlan, unreduced};

impl DiskPlan {
    /// The same disk, new.
    pub(crate) fn unwritten(&self) -> Self {
        let mut disk = self.clone();
        if let Self::SolidState(drive) = &mut disk {
            drive.age = FlashAge::Fresh;
        }
        disk
    }

    /// The same disk with another capacity.
    pub(crate) fn with_capacity(mut self, bytes: u64) -> Self {
        match &mut self {
            Self::Mechanical(disk) => disk.capacity_bytes = bytes,
            Self::SolidState(disk) => disk.capacity_bytes = bytes,
            Self::Station(disk) => disk.capacity_bytes = bytes,
        }
        self
    }
}

impl LayoutPlan {
    /// How many times smaller data are on the disks.
    pub(crate) fn reduction(&self) -> f64 {
        if let Self::WriteAnywhere { reduction, .. } = self { *reduction } else { unreduced() }
    }
}

impl MemberPlan {
    /// Time between the beginnings of two rows of a rebuild, of chunks as hosts wrote them.
    pub(crate) fn rebuild_interval_ns(&self, chunk_bytes: u64) -> u64 {
        let rate = self.rebuild_bytes_per_s * self.layout.reduction();
        if rate > 0.0 { (chunk_bytes as f64 / rate * 1e9) as u64 } else { 0 }
    }

    /// Disks that serve: those of the sets, and a drive for the log.
    pub(crate) fn serving_disks(&self) -> u32 {
        let has_drive = self.software.as_ref().is_some_and(|software| software.log.has_drive());
        self.active_disks() + u32::from(has_drive)
    }

    /// The member with disks as large as the data they hold before these are reduced.
    pub(crate) fn unreduced(&self) -> Self {
        let bytes = (self.disk.capacity_bytes() as f64 * self.layout.reduction()) as u64;
        Self { disk: self.disk.clone().with_capacity(bytes), ..self.clone() }
    }
}
