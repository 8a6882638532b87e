use rand::RngExt;

use super::pace::{Pace, any_pages};
use crate::{kernel::Kernel, stamp::PageId, user::User};

/// Scans: many consecutive pages in one scattered read.
pub(super) async fn read_ahead(kernel: Kernel, user: User) {
    let plan = kernel.with(|core| core.plan.read_ahead.clone());
    let mut rng = kernel.rng(user);
    let mut pace = Pace::new(plan.delay_after_cycles, plan.delay_ns);
    while kernel.stressing() {
        let wanted = rng.random_range(plan.pages_min..=plan.pages_max);
        let (start, pages) = any_pages(&kernel, wanted, &mut rng);
        let step = kernel.most_pages(start.file);
        for first in (0..pages).step_by(step as usize) {
            let id = PageId { page: start.page + first, ..start };
            kernel.read(id, step.min(pages - first), user).await;
        }
        kernel.settle().await;
        pace.cycle(&kernel).await;
    }
}
