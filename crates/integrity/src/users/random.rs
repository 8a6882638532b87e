use rand::RngExt;

use crate::{kernel::Kernel, stamp::PageId, user::User};

/// Pages of a region, from which a chain takes its pages.
const REGION_PAGES: u32 = 1024;

/// Transactions: a chain of pages is read, a share of it changed and logged; the log is on the storage before the next
/// begins, the pages are written later. A few are rolled back, which reads their log records again.
pub(super) async fn random(kernel: Kernel, user: User) {
    let plan = kernel.with(|core| core.plan.random.clone());
    let (hit_share, force_read) = kernel.with(|core| (core.plan.cache_hit_share, core.plan.force_read_ahead));
    let mut rng = kernel.rng(user);
    let mut region: Option<PageId> = None;
    let mut chain: Vec<PageId> = Vec::new();
    while kernel.stressing() {
        let jumps = rng.random_bool(plan.jump_share);
        let start = match region {
            Some(start) if !jumps && start.page < kernel.pages(start.file) => start,
            _ => {
                let file = kernel.any_data_file(&mut rng);
                PageId { file, page: rng.random_range(0..kernel.pages(file).max(1)) }
            }
        };
        region = Some(start);
        chain.clear();
        let end = start.page.saturating_add(REGION_PAGES).min(kernel.pages(start.file)).max(start.page + 1);
        for _ in 0..rng.random_range(plan.chain_min..=plan.chain_max) {
            let pooled = kernel.with(|core| if rng.random_bool(hit_share) { core.pool.any(&mut rng) } else { None });
            let id = pooled.unwrap_or_else(|| PageId { page: rng.random_range(start.page..end), ..start });
            chain.push(id);
            if pooled.is_none() || force_read {
                kernel.read(id, 1, user).await;
            }
        }
        kernel.settle().await;
        kernel.room_for_changes().await;
        let first = kernel.with(|core| core.log.head);
        let mut last = None;
        for id in &chain {
            if rng.random_bool(plan.update_share) && kernel.may_change(*id, 1) {
                let lsn = kernel.append(rng.random_range(plan.log_bytes_min..=plan.log_bytes_max)).await;
                kernel.change(*id, lsn);
                last = Some(lsn);
            }
        }
        if let Some(last) = last {
            kernel.durable(last).await;
            if rng.random_bool(plan.rollback_share) {
                kernel.read_log(first, last, user).await;
            }
        }
        kernel.settle().await;
        kernel.rest(plan.sleep_ns).await;
        kernel.yield_now().await;
    }
}
