use rand::{RngExt, rngs::SmallRng};

use crate::{kernel::Kernel, stamp::PageId};

/// Where `pages` consecutive pages of some data file may begin, and how many there are.
pub(super) fn any_pages(kernel: &Kernel, pages: u32, rng: &mut SmallRng) -> (PageId, u32) {
    let file = kernel.any_data_file(rng);
    let there = kernel.pages(file);
    let count = pages.min(there);
    let page = rng.random_range(0..=there - count);
    (PageId { file, page }, count)
}

/// Pace of a user: a rest after every `cycles` cycles.
pub(super) struct Pace {
    cycles: u32,
    after: u32,
    delay_ns: u64,
}

impl Pace {
    pub(super) fn new(after: u32, delay_ns: u64) -> Self {
        Self { cycles: 0, after: after.max(1), delay_ns }
    }

    pub(super) async fn cycle(&mut self, kernel: &Kernel) {
        self.cycles += 1;
        if self.cycles.is_multiple_of(self.after) {
            kernel.rest(self.delay_ns).await;
        }
        kernel.yield_now().await;
    }
}
