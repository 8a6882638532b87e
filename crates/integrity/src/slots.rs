//! Places for I/Os under way: a tag each, and memory for one page or for many.

use crate::VerifyPlan;

/// Frames of the places for large I/Os, at most: 64 pages, SQL Server's usual read-ahead.
const LARGE_MAX_FRAMES: u32 = 64;
const LARGE_MAX: u32 = 64;

#[derive(Debug, Clone, Copy)]
struct Slot {
    first_frame: u32,
    large: bool,
}

pub(crate) struct Slots {
    slots: Vec<Slot>,
    free_small: Vec<u32>,
    free_large: Vec<u32>,
    frame_bytes: u32,
}

impl Slots {
    pub(crate) fn new(plan: &VerifyPlan) -> Self {
        let (small, large) = counts(plan);
        let frames = large_frames(plan);
        let slots: Vec<Slot> = (0..small)
            .map(|slot| Slot { first_frame: slot, large: false })
            .chain((0..large).map(|slot| Slot { first_frame: small + slot * frames, large: true }))
            .collect();
        let free_small = (0..small).rev().collect();
        let free_large = (small..small + large).rev().collect();
        Self { slots, free_small, free_large, frame_bytes: plan.frame_bytes() }
    }

    /// I/Os there can be at once.
    pub(crate) fn depth(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn used(&self) -> u32 {
        (self.slots.len() - self.free_small.len() - self.free_large.len()) as u32
    }

    /// A place for `bytes`; its number is the I/O's tag.
    pub(crate) fn take(&mut self, bytes: u32) -> Option<u32> {
        if bytes <= self.frame_bytes { self.free_small.pop() } else { self.free_large.pop() }
    }

    pub(crate) fn give_back(&mut self, tag: u32) {
        if self.slots[tag as usize].large {
            self.free_large.push(tag);
        } else {
            self.free_small.push(tag);
        }
    }

    pub(crate) fn first_frame(&self, tag: u32) -> u32 {
        self.slots[tag as usize].first_frame
    }

    /// Bytes of the largest I/O.
    pub(crate) fn largest_io_bytes(plan: &VerifyPlan) -> u32 {
        large_frames(plan) * plan.frame_bytes()
    }

    /// How many I/Os and frames a queue must have for this plan.
    pub(crate) fn needed(plan: &VerifyPlan) -> (u32, u32) {
        let (small, large) = counts(plan);
        (small + large, small + large * large_frames(plan))
    }
}

fn counts(plan: &VerifyPlan) -> (u32, u32) {
    (plan.max_outstanding.max(4), plan.max_outstanding.clamp(4, LARGE_MAX))
}

fn large_frames(plan: &VerifyPlan) -> u32 {
    plan.pages_per_io.max(plan.read_ahead.pages_max).max(plan.bulk_update.pages_max).clamp(2, LARGE_MAX_FRAMES)
}
