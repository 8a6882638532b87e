use super::flushing::flush;
use crate::{
    core::Event,
    kernel::Kernel,
    user::{User, UserKind},
};

const TRIES: u32 = 15;
const EIO: i32 = 5;
const USER: User = User { kind: UserKind::Log, number: 0 };

/// Writes appended log records in order, one piece at a time: a record is durable when all earlier ones are.
pub(crate) async fn log_writer(kernel: Kernel) {
    while kernel.wanted(Event::LogWanted, |core| core.log.written < core.log.head).await {
        let (first, head) = kernel.with(|core| (core.log.written, core.log.head));
        let (id, left) = kernel.with(|core| core.log.place(first));
        let most = u64::from(kernel.most_pages(id.file));
        let blocks = (head - first).min(left).min(most) as u32;
        if !kernel.latch(id, blocks).await {
            return;
        }
        kernel.with(|core| core.log.written = first + u64::from(blocks));
        kernel.write_latched(id, blocks, USER, |block| first + u64::from(block)).await;
        kernel.settle().await;
        kernel.writes_certain().await;
        let mut tries = 0;
        while !flush(&kernel, id.file, USER).await && !kernel.failed() {
            // What a failed flush left behind nobody knows: the records are written again.
            if tries == TRIES {
                kernel.with(|core| core.fail(id.file, EIO, "every flush of the log failed"));
            }
            tries += 1;
            if kernel.latch(id, blocks).await {
                kernel.rewrite(id, blocks, USER).await;
                kernel.with(|core| core.unlatch(id, blocks));
            }
        }
        kernel.with(|core| {
            core.log.durable = first + u64::from(blocks);
            core.wake(Event::LogDurable);
        });
    }
}

/// Fills the log with one round of records, so that every block of it has been written.
pub(crate) async fn write_log_round(kernel: &Kernel) {
    let (first, blocks) = kernel.with(|core| {
        let log = &mut core.log;
        (log.read, log.clean, log.tail) = (log.head, log.head, log.head);
        let first = log.head;
        log.head += log.blocks();
        (first, log.blocks())
    });
    kernel.durable(first + blocks - 1).await;
    kernel.with(|core| {
        let log = &mut core.log;
        (log.read, log.clean, log.tail) = (log.head, log.head, log.head);
    });
}
