//! Which content each block of the volumes has.

use super::wire::{Reading, Writing};

/// A block of zeroes has no content.
pub(super) const NONE: u32 = u32::MAX;
const PAGE_BLOCKS: usize = 1024;

type Page = Box<[u32; PAGE_BLOCKS]>;

/// Blocks by number, in pages of which those with contents are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Map {
    pages: Vec<Option<Page>>,
    /// Blocks that have a content.
    pub(super) count: u64,
}

impl Map {
    pub(super) fn new(blocks: u64) -> Self {
        Self { pages: vec![None; blocks.div_ceil(PAGE_BLOCKS as u64) as usize], count: 0 }
    }

    pub(super) fn get(&self, block: u64) -> u32 {
        let (page, within) = (block as usize / PAGE_BLOCKS, block as usize % PAGE_BLOCKS);
        self.pages[page].as_ref().map_or(NONE, |page| page[within])
    }

    /// Gives a block another content; returns the one before.
    pub(super) fn set(&mut self, block: u64, content: u32) -> u32 {
        let (page, within) = (block as usize / PAGE_BLOCKS, block as usize % PAGE_BLOCKS);
        if content == NONE && self.pages[page].is_none() {
            return NONE;
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([NONE; PAGE_BLOCKS]));
        let before = std::mem::replace(&mut page[within], content);
        self.count += u64::from(content != NONE);
        self.count -= u64::from(before != NONE);
        before
    }

    /// Whether there is such a block.
    pub(super) fn has(&self, block: u64) -> bool {
        block / (PAGE_BLOCKS as u64) < self.pages.len() as u64
    }

    /// The contents of all blocks.
    pub(super) fn contents(&self) -> impl Iterator<Item = u32> {
        self.pages.iter().flatten().flat_map(|page| page.iter().copied())
    }

    pub(super) fn write(&self, out: &mut Writing) {
        let there = self.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.as_ref()?)));
        out.word(there.clone().count() as u32);
        for (number, page) in there {
            out.word(number as u32);
            page.iter().for_each(|content| out.word(*content));
        }
    }

    pub(super) fn read(&mut self, from: &mut Reading<'_>) -> Option<()> {
        for _ in 0..from.word()? {
            let first = u64::from(from.word()?) * PAGE_BLOCKS as u64;
            if first / PAGE_BLOCKS as u64 >= self.pages.len() as u64 {
                return None;
            }
            for block in first..first + PAGE_BLOCKS as u64 {
                self.set(block, from.word()?);
            }
        }
        Some(())
    }
}
