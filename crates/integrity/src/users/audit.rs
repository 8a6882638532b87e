use rand::RngExt;

use super::pace::{Pace, any_pages};
use crate::{kernel::Kernel, stamp::PageId, user::User};

/// Pages of one read: an extent.
const EXTENT_PAGES: u32 = 8;
/// Cycles of which one looks at the log instead of data.
const LOG_CYCLES: u32 = 8;

/// Consistency checks: a stretch of pages is read in order, extent by extent; now and then a stretch of the log.
pub(super) async fn audit(kernel: Kernel, user: User) {
    let plan = kernel.with(|core| core.plan.audit.clone());
    let mut rng = kernel.rng(user);
    let mut pace = Pace::new(plan.delay_after_cycles, plan.delay_ns);
    while kernel.stressing() {
        if rng.random_ratio(1, LOG_CYCLES) {
            let blocks = u64::from(plan.pages);
            let (durable, round) = kernel.with(|core| (core.log.durable, core.log.blocks()));
            let oldest = durable.saturating_sub(round - round / 4).max(1);
            let first = rng.random_range(oldest..durable.max(oldest + 1));
            let last = (first + blocks).min(durable.saturating_sub(1));
            kernel.read_log(first, last, user).await;
        } else {
            let (start, pages) = any_pages(&kernel, plan.pages, &mut rng);
            let step = EXTENT_PAGES.min(kernel.most_pages(start.file));
            for first in (0..pages).step_by(step as usize) {
                let id = PageId { page: start.page + first, ..start };
                kernel.read(id, step.min(pages - first), user).await;
            }
        }
        kernel.settle().await;
        pace.cycle(&kernel).await;
    }
}
