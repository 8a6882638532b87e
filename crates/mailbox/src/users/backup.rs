use crate::{
    kernel::Kernel,
    plan::{Activity, SCAN_BYTES},
};

/// Reads a database from its begin to its end as fast as one stream does, and verifies it.
pub(super) async fn backup(kernel: Kernel, at: usize) {
    let (pages, most) =
        kernel.with(|core| (core.databases[at].shape.pages, u64::from((SCAN_BYTES / core.plan.page_bytes).max(1))));
    let mut page = 0;
    while page < pages && !kernel.with(|core| core.stopping) {
        let count = most.min(pages - page);
        kernel.scan(at, page, count, Activity::Backup, kernel.now_ns()).await;
        kernel.with(|core| core.progress.0 += count);
        page += count;
    }
}

/// A backup that begins again when it is done, beside the load of mailboxes.
pub(super) async fn backups(kernel: Kernel, at: usize) {
    while !kernel.with(|core| core.stopping) {
        backup(kernel.clone(), at).await;
    }
}
