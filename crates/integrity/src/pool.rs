//! The imitated buffer pool: which pages it holds. What they hold can be computed, so it is not kept.

use rand::{RngExt, rngs::SmallRng};

use crate::{
    expected::{File, Flag, state_mut},
    stamp::PageId,
};

const VICTIM_TRIES: usize = 8;

pub(crate) struct Pool {
    pages: Vec<PageId>,
    capacity: usize,
}

impl Pool {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { pages: Vec::new(), capacity }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// A page of a file that the pool holds.
    pub(crate) fn any(&self, rng: &mut SmallRng) -> Option<PageId> {
        (!self.pages.is_empty()).then(|| self.pages[rng.random_range(0..self.pages.len())])
    }

    /// Takes a page in, in the place of a page that need not be written.
    pub(crate) fn touch(&mut self, files: &mut [File], id: PageId, rng: &mut SmallRng) {
        if state_mut(files, id).has(Flag::Pooled) {
            return;
        }
        if self.pages.len() < self.capacity {
            self.pages.push(id);
            state_mut(files, id).set(Flag::Pooled, true);
            return;
        }
        for _ in 0..VICTIM_TRIES {
            let place = rng.random_range(0..self.pages.len());
            let victim = state_mut(files, self.pages[place]);
            if !victim.has(Flag::Dirty) {
                victim.set(Flag::Pooled, false);
                self.pages[place] = id;
                state_mut(files, id).set(Flag::Pooled, true);
                return;
            }
        }
    }

    /// Forgets the pages of a file from `first` on.
    pub(crate) fn forget(&mut self, files: &mut [File], file: u16, first: u32) {
        self.pages.retain(|id| id.file != file || id.page < first);
        for page in first..files[usize::from(file)].states.len() as u32 {
            state_mut(files, PageId { file, page }).set(Flag::Pooled, false);
        }
    }
}
