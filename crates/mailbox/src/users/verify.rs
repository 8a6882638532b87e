use crate::{
    kernel::Kernel,
    plan::{Activity, BULK_BYTES},
};

/// Reads every page of a database and compares its checksum.
pub(super) async fn verify(kernel: Kernel, at: usize) {
    let (pages, most) =
        kernel.with(|core| (core.databases[at].shape.pages, u64::from(BULK_BYTES / core.plan.page_bytes)));
    let mut page = 0;
    while page < pages && !kernel.with(|core| core.aborting) {
        let count = most.min(pages - page);
        kernel.scan(at, page, count, Activity::Whole, kernel.now_ns()).await;
        kernel.with(|core| core.progress.0 += count);
        page += count;
    }
}
