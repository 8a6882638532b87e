//! Places for I/Os under way: a tag and frames of memory each, for a page or for many.

use crate::plan::{BULK_BYTES, MailboxPlan};

/// How much an I/O moves at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Page,
    Bulk,
}

pub(crate) struct Slots {
    pages: u32,
    bulk_frames: u32,
    free_pages: Vec<u32>,
    free_bulk: Vec<u32>,
    count: u32,
}

impl Slots {
    pub(crate) fn new(plan: &MailboxPlan) -> Self {
        let (pages, bulk) = counts(plan);
        Self {
            pages,
            bulk_frames: BULK_BYTES / plan.page_bytes,
            free_pages: (0..pages).rev().collect(),
            free_bulk: (pages..pages + bulk).rev().collect(),
            count: pages + bulk,
        }
    }

    /// Places and frames of a page each that a queue must have.
    pub(crate) fn needed(plan: &MailboxPlan) -> (u32, u32) {
        let (pages, bulk) = counts(plan);
        (pages + bulk, pages + bulk * (BULK_BYTES / plan.page_bytes))
    }

    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    pub(crate) fn used(&self) -> u32 {
        self.count - (self.free_pages.len() + self.free_bulk.len()) as u32
    }

    pub(crate) fn take(&mut self, size: Size) -> Option<u32> {
        match size {
            Size::Page => self.free_pages.pop(),
            Size::Bulk => self.free_bulk.pop(),
        }
    }

    /// Gives a place back; tells of which size it was.
    pub(crate) fn give_back(&mut self, tag: u32) -> Size {
        if tag < self.pages {
            self.free_pages.push(tag);
            Size::Page
        } else {
            self.free_bulk.push(tag);
            Size::Bulk
        }
    }

    pub(crate) fn first_frame(&self, tag: u32) -> u32 {
        if tag < self.pages { tag } else { self.pages + (tag - self.pages) * self.bulk_frames }
    }
}

fn counts(plan: &MailboxPlan) -> (u32, u32) {
    // A log write and a scan of each database, and some more for all.
    (plan.depth.max(8), 2 * plan.databases.len() as u32 + 2)
}
