use crate::{
    kernel::Kernel,
    phase::Phase,
    plan::{Activity, SCAN_BYTES},
};

/// Reads a database from its begin to its end and again, at a rate, and verifies it: background maintenance.
pub(super) async fn maintenance(kernel: Kernel, at: usize) {
    let (gap_ns, pages, most) = kernel.with(|core| {
        let most = u64::from((SCAN_BYTES / core.plan.page_bytes).max(1));
        (f64::from(SCAN_BYTES) / core.plan.maintenance_bytes_per_s * 1e9, core.databases[at].shape.pages, most)
    });
    let mut next_ns = kernel.now_ns() as f64;
    let mut page = 0;
    while kernel.with(|core| core.phase == Phase::Load && !core.stopping) {
        kernel.sleep_until(next_ns as u64).await;
        let count = most.min(pages - page);
        // One at a time: what storage cannot read in time is read later, and the rate shows it.
        kernel.scan(at, page, count, Activity::Maintenance, next_ns as u64).await;
        page = (page + count) % pages;
        next_ns = (next_ns + gap_ns).max(kernel.now_ns() as f64 - gap_ns);
    }
}
