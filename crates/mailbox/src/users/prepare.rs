use assay_load::Op;

use crate::{
    kernel::Kernel,
    page::encode,
    plan::{Activity, BULK_BYTES},
    slots::Size,
};

/// Writes the initial content of every page of a database.
pub(super) async fn prepare(kernel: Kernel, at: usize) {
    let (pages, most) =
        kernel.with(|core| (core.databases[at].shape.pages, u64::from(BULK_BYTES / core.plan.page_bytes)));
    let mut page = 0;
    while page < pages && !kernel.with(|core| core.stopping) {
        let count = most.min(pages - page);
        let needed_ns = kernel.now_ns();
        let tag = kernel.slot(Size::Bulk).await;
        kernel.with(|core| {
            for piece in 0..count {
                let node = core.databases[at].shape.initial(page + piece);
                let name = core.name(at, page + piece);
                encode(&node, name, core.frame(tag, piece as u32));
            }
        });
        kernel.transfer(tag, kernel.page_io(Op::Write, at, page, count, Activity::Whole, needed_ns)).await;
        kernel.release(tag);
        kernel.with(|core| core.progress.0 += count);
        page += count;
    }
}
