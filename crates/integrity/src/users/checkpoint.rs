use super::{bulk_update::GATHER_PAGES, flush};
use crate::{
    core::{Event, User, UserKind},
    kernel::Kernel,
    phases::data_files,
    stamp::PageId,
    verify::Phase,
};

const USER: User = User { kind: UserKind::Checkpoint, number: 0 };
/// A checkpoint comes at least this often while pages change.
const INTERVAL_NS: u64 = 10_000_000_000;

/// Writes changed pages when the pool or the log fills up, and every while.
pub(crate) async fn checkpoint_writer(kernel: Kernel) {
    kernel.spawn(timer(kernel.clone()));
    while kernel.wanted(Event::CheckpointWanted, |core| core.checkpoint_wanted).await {
        checkpoint(&kernel).await;
    }
}

async fn timer(kernel: Kernel) {
    while !kernel.with(|core| core.closing) {
        kernel.pause(INTERVAL_NS).await;
        kernel.with(|core| {
            core.checkpoint_wanted = true;
            core.wake(Event::CheckpointWanted);
        });
    }
}

/// Writes every page that is changed now, neighbours together, and frees the log they needed.
pub(crate) async fn checkpoint(kernel: &Kernel) {
    let (begin, pages) = kernel.with(|core| {
        core.checkpoint_wanted = false;
        // The first checkpoint may come in a burst, as the last does.
        core.bursting |= core.plan.bursts && core.checkpoints == 0;
        (core.log.head, core.dirty.keys().copied().collect::<Vec<PageId>>())
    });
    let mut rest = &pages[..];
    let mut done = 0;
    while let Some(&first) = rest.first() {
        if kernel.failed() {
            return;
        }
        let most = kernel.most_pages(first.file).min(GATHER_PAGES) as usize;
        let neighbours = (1..rest.len().min(most))
            .take_while(|&next| rest[next] == PageId { page: first.page + next as u32, ..first });
        let count = 1 + neighbours.count();
        write(kernel, first, count as u32).await;
        rest = &rest[count..];
        done += count as u64;
        kernel.progress(Phase::Checkpoint, done, pages.len() as u64);
    }
    kernel.settle().await;
    kernel.writes_certain().await;
    for file in data_files(kernel) {
        flush(kernel, file, USER).await;
    }
    kernel.with(|core| {
        core.log.tail = core.log.tail.max(begin.min(core.log.durable));
        core.checkpoints += 1;
        core.bursting = core.plan.bursts && core.phase != Phase::Stress;
        core.wake(Event::LogSpace);
        core.wake(Event::Cleaned);
    });
}

/// Writes neighbouring pages, each with its own log record; the log goes first.
async fn write(kernel: &Kernel, first: PageId, pages: u32) {
    let in_range = |page: u32| PageId { page: first.page + page, ..first };
    let last = kernel.with(|core| (0..pages).filter_map(|page| core.dirty.get(&in_range(page))).max().copied());
    // Another write was quicker, or the file was cut.
    let Some(last) = last else { return };
    kernel.durable(last).await;
    if !kernel.latch(first, pages).await {
        return;
    }
    let lsns: Vec<u64> = kernel.with(|core| {
        let written = |page: u32| core.files[usize::from(first.file)].states[(first.page + page) as usize].stamp().lsn;
        (0..pages).map(|page| core.dirty.get(&in_range(page)).copied().unwrap_or_else(|| written(page))).collect()
    });
    // What changed again meanwhile may wait for later records.
    if let Some(&latest) = lsns.iter().max() {
        kernel.durable(latest).await;
    }
    kernel.write_latched(first, pages, USER, |page| lsns[page as usize]).await;
}
