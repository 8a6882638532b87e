use rand::RngExt;

use super::pace::{Pace, any_pages};
use crate::{kernel::Kernel, stamp::PageId, user::User};

/// Log of a bulk load: allocations only (minimal logging).
const LOG_BYTES: u32 = 64;
/// Pages that were written just now are left alone; others may be found so much later.
const TRY_AGAIN_NS: u64 = 1_000_000;
/// Pages of one gathered write at most: 256 KiB, as SQL Server's.
pub(super) const GATHER_PAGES: u32 = 32;

/// Bulk loads: many consecutive pages in gathered writes.
pub(super) async fn bulk_update(kernel: Kernel, user: User) {
    let plan = kernel.with(|core| core.plan.bulk_update.clone());
    let mut rng = kernel.rng(user);
    let mut pace = Pace::new(plan.delay_after_cycles, plan.delay_ns);
    while kernel.stressing() {
        let wanted = rng.random_range(plan.pages_min..=plan.pages_max);
        let (start, pages) = any_pages(&kernel, wanted, &mut rng);
        let step = kernel.most_pages_of_write(start.file).min(GATHER_PAGES);
        if kernel.may_change(start, pages) {
            let lsn = kernel.append(LOG_BYTES).await;
            kernel.durable(lsn).await;
            for first in (0..pages).step_by(step as usize) {
                let (id, count) = (PageId { page: start.page + first, ..start }, step.min(pages - first));
                kernel.look(id, count, user).await;
                kernel.write(id, count, lsn, user).await;
            }
            kernel.settle().await;
        } else {
            kernel.rest(TRY_AGAIN_NS).await;
        }
        pace.cycle(&kernel).await;
    }
}
