use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
};

use super::{bulk_update::GATHER_PAGES, flushing::flush};
use crate::{
    core::Event,
    kernel::Kernel,
    phase::Phase,
    stamp::PageId,
    user::{User, UserKind},
};

const USER: User = User { kind: UserKind::Checkpoint, number: 0 };
/// A checkpoint comes at least this often while pages change.
const INTERVAL_NS: u64 = 10_000_000_000;
/// Time between two checkpoints, at least.
const GAP_NS: u64 = 1_000_000;
/// Runs of pages that a checkpoint writes at the same time.
const WRITERS: u32 = 32;

/// Writes changed pages when the pool or the log fills up, and every while.
pub(crate) async fn checkpoint_writer(kernel: Kernel) {
    kernel.spawn(timer(kernel.clone()));
    while kernel.wanted(Event::CheckpointWanted, |core| core.course.checkpoint_wanted).await {
        checkpoint(&kernel).await;
        // The user that wants the next one may be waiting for I/O that is still to be issued.
        kernel.pause(GAP_NS).await;
    }
}

async fn timer(kernel: Kernel) {
    while !kernel.with(|core| core.course.closing) {
        kernel.pause(INTERVAL_NS).await;
        kernel.with(|core| {
            core.course.checkpoint_wanted = true;
            core.wake(Event::CheckpointWanted);
        });
    }
}

/// Writes every page that is changed now, neighbours together, and frees the log they needed.
pub(crate) async fn checkpoint(kernel: &Kernel) {
    let (begin, pages) = kernel.with(|core| {
        core.course.checkpoint_wanted = false;
        // The first checkpoint may come in a burst, as the last does.
        core.course.bursting |= core.plan.bursts && core.course.checkpoints == 0;
        (core.log.head, core.dirty.keys().copied().collect::<Vec<PageId>>())
    });
    let work = Rc::new(Work { runs: RefCell::new(runs(kernel, &pages)), writers: Cell::new(WRITERS) });
    let all = work.runs.borrow().len() as u64;
    for _ in 0..WRITERS {
        kernel.spawn(write_runs(kernel.clone(), Rc::clone(&work), all));
    }
    kernel.wanted(Event::Written, |_| work.writers.get() == 0).await;
    if kernel.failed() {
        return;
    }
    kernel.writes_certain().await;
    let mut durable = true;
    for file in kernel.data_files() {
        durable &= flush(kernel, file, USER).await;
    }
    kernel.with(|core| {
        // Records of pages that may have got lost on their way stay needed.
        let begin = if durable { begin } else { 0 };
        core.log.clean = core.log.clean.max(begin.min(core.log.durable));
        core.log.free(core.plan.look_first);
        core.course.checkpoints += 1;
        core.course.bursting = core.plan.bursts && core.course.phase != Phase::Stress;
        core.wake(Event::LogSpace);
        core.wake(Event::Cleaned);
    });
}

/// State that the writers of one checkpoint share.
struct Work {
    runs: RefCell<VecDeque<(PageId, u32)>>,
    writers: Cell<u32>,
}

/// Pages that are written together.
fn runs(kernel: &Kernel, pages: &[PageId]) -> VecDeque<(PageId, u32)> {
    let mut runs: VecDeque<(PageId, u32)> = VecDeque::new();
    for &id in pages {
        let most = kernel.most_pages_of_write(id.file).min(GATHER_PAGES);
        match runs.back_mut() {
            Some((first, count)) if id == (PageId { page: first.page + *count, ..*first }) && *count < most => {
                *count += 1
            }
            _ => runs.push_back((id, 1)),
        }
    }
    runs
}

async fn write_runs(kernel: Kernel, work: Rc<Work>, all: u64) {
    loop {
        let next = work.runs.borrow_mut().pop_front();
        let Some((first, count)) = next.filter(|_| !kernel.failed()) else { break };
        write(&kernel, first, count).await;
        kernel.progress(Phase::Checkpoint, all - work.runs.borrow().len() as u64, all);
    }
    kernel.settle().await;
    work.writers.set(work.writers.get() - 1);
    kernel.with(|core| core.wake(Event::Written));
}

/// Writes neighbouring pages, each with its own log record; the log goes first.
async fn write(kernel: &Kernel, first: PageId, pages: u32) {
    let in_range = |page: u32| PageId { page: first.page + page, ..first };
    let last = kernel.with(|core| (0..pages).filter_map(|page| core.dirty.get(&in_range(page))).max().copied());
    // Another write was quicker, or the file was cut.
    let Some(last) = last else { return };
    kernel.durable(last).await;
    kernel.look(first, pages, USER).await;
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
