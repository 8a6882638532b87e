//! Expected state of every page, at 24 bytes a page.

use crate::{
    FilePlan,
    stamp::{PageId, Stamp},
};

const WRITER_BITS: u32 = 16;
const FLAG_BITS: u32 = 16;

/// The last write of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageState {
    pub generation: u32,
    pub checksum: u32,
    time_and_writer: u64,
    lsn_and_flags: u64,
}

const _: () = assert!(size_of::<PageState>() == 24);

/// Something that is true of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Flag {
    /// An I/O or an investigation has it.
    Latched = 1,
    /// It was read right since the run began, or since its file grew over it.
    SeenRight = 2,
    /// The imitated buffer pool holds it.
    Pooled = 4,
    /// It was changed in the pool and not yet written.
    Dirty = 8,
    /// A write failed for good: the content is not known.
    Uncertain = 16,
    /// It was found wrong for good and not written since.
    KnownWrong = 32,
}

impl PageState {
    pub fn has(&self, flag: Flag) -> bool {
        self.lsn_and_flags & flag as u64 != 0
    }

    pub fn set(&mut self, flag: Flag, value: bool) {
        if value {
            self.lsn_and_flags |= flag as u64;
        } else {
            self.lsn_and_flags &= !(flag as u64);
        }
    }

    /// Whether reading it wrong would say nothing new.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.has(Flag::Uncertain) || self.has(Flag::KnownWrong)
    }

    pub fn stamp(&self) -> Stamp {
        Stamp {
            generation: self.generation,
            time_us: self.time_and_writer >> WRITER_BITS,
            lsn: self.lsn_and_flags >> FLAG_BITS,
            writer: self.time_and_writer as u16,
        }
    }

    pub fn set_stamp(&mut self, stamp: &Stamp, checksum: u32) {
        self.generation = stamp.generation;
        self.checksum = checksum;
        self.time_and_writer = stamp.time_us << WRITER_BITS | u64::from(stamp.writer);
        self.lsn_and_flags = stamp.lsn << FLAG_BITS | self.lsn_and_flags & ((1 << FLAG_BITS) - 1);
        self.set(Flag::KnownWrong, false);
    }
}

/// One file of the imitated database.
pub(crate) struct File {
    pub plan: FilePlan,
    pub page_bytes: u32,
    /// Pages that users may touch; `states` may be longer, for what the file held or may come to hold.
    pub pages: u32,
    pub states: Vec<PageState>,
}

impl File {
    /// A file with room for all pages it may come to have.
    ///
    /// # Errors
    /// The bytes that cannot be had.
    pub(crate) fn new(plan: FilePlan) -> Result<Self, usize> {
        let page_bytes = plan.page_bytes();
        let most = (plan.max_bytes / u64::from(page_bytes)) as usize;
        let mut states = Vec::new();
        states.try_reserve_exact(most).map_err(|_| most * size_of::<PageState>())?;
        states.resize(most, PageState::default());
        let pages = plan.pages() as u32;
        Ok(Self { plan, page_bytes, pages, states })
    }

    /// Offset of a page in the underlying file; also the size of a file that ends there.
    pub(crate) fn offset_bytes(&self, page: u32) -> u64 {
        self.plan.base_bytes + u64::from(page) * u64::from(self.page_bytes)
    }
}

/// Memory that the expected state of these files takes.
pub fn expected_state_bytes(files: &[FilePlan]) -> u64 {
    files.iter().map(|file| file.max_bytes / u64::from(file.page_bytes()) * size_of::<PageState>() as u64).sum()
}

/// The state of a page.
pub(crate) fn state_mut(files: &mut [File], id: PageId) -> &mut PageState {
    &mut files[usize::from(id.file)].states[id.page as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_flags_do_not_disturb_each_other() {
        let mut state = PageState::default();
        state.set(Flag::Latched, true);
        let stamp = Stamp { generation: 3, time_us: (1 << 48) - 1, lsn: (1 << 48) - 1, writer: 0xffff };
        state.set_stamp(&stamp, 9);
        assert_eq!(state.stamp(), stamp);
        assert!(state.has(Flag::Latched) && !state.has(Flag::Dirty));
        state.set(Flag::Dirty, true);
        state.set(Flag::Latched, false);
        assert_eq!(state.stamp(), stamp);
        assert!(!state.has(Flag::Latched) && state.has(Flag::Dirty));
    }
}
