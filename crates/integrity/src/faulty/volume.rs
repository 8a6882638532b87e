/// The device knows right from wrong in units of this many bytes.
pub(super) const UNIT_BYTES: usize = 512;
/// A page has no more units than this.
pub(super) const UNITS_PER_PAGE_MAX: usize = 64;

/// A volume of a faulty device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultyFile {
    /// Faults concern pages of this size, counted from `base_bytes`. I/O is aligned to it.
    pub page_bytes: u32,
    /// Where the volume begins in its file or device.
    pub base_bytes: u64,
    /// Bytes of the volume, from `base_bytes` on.
    pub size_bytes: u64,
    pub log: bool,
    /// Writes are durable when they complete.
    pub write_through: bool,
    pub scattered: bool,
}

impl FaultyFile {
    pub(super) fn pages(&self) -> u64 {
        self.size_bytes / u64::from(self.page_bytes)
    }
}
