//! The phases of a run, as SQLIOSim has them: prepare, stress, final checkpoint, audit of every page.

use crate::{
    core::Event,
    kernel::Kernel,
    phase::Phase,
    stamp::PageId,
    user::{User, UserKind},
    users,
};

const PREPARE: User = User { kind: UserKind::Prepare, number: 0 };
const FINAL_AUDIT: User = User { kind: UserKind::FinalAudit, number: 0 };

/// All cycles of a run.
pub(crate) async fn script(kernel: Kernel) {
    let (cycles, stress_ns) = kernel.with(|core| (core.plan.cycles, core.plan.stress_ns));
    let mut cycle = 0;
    while cycles == 0 || cycle < cycles {
        cycle += 1;
        kernel.with(|core| core.course.cycle = cycle);
        begin(&kernel, Phase::Prepare);
        prepare(&kernel).await;
        end(&kernel, Phase::Prepare).await;
        if stress_ns > 0 && goes_on(&kernel) {
            begin(&kernel, Phase::Stress);
            stress(&kernel).await;
            end(&kernel, Phase::Stress).await;
        }
        if !goes_on(&kernel) {
            break;
        }
        begin(&kernel, Phase::Checkpoint);
        users::checkpoint(&kernel).await;
        end(&kernel, Phase::Checkpoint).await;
        begin(&kernel, Phase::Audit);
        audit(&kernel).await;
        end(&kernel, Phase::Audit).await;
        if !goes_on(&kernel) {
            break;
        }
    }
    kernel.with(|core| core.course.closing = true);
}

fn goes_on(kernel: &Kernel) -> bool {
    kernel.with(|core| !core.course.stopping && core.failure.is_none())
}

fn begin(kernel: &Kernel, phase: Phase) {
    kernel.with(|core| {
        core.course.phase = phase;
        if phase == Phase::Stress {
            core.course.stress_ends_ns = core.now_ns.saturating_add(core.plan.stress_ns);
            core.course.checkpoints = 0;
        }
        core.course.bursting = core.plan.bursts && phase != Phase::Stress;
        core.verdict.audited = false;
        core.verdict.skipped = false;
        core.course.phase_done = 0.0;
        core.observe(|observer, view| observer.phase_began(view));
    });
}

async fn end(kernel: &Kernel, phase: Phase) {
    kernel.quiet().await;
    kernel.with(|core| {
        core.verdict.audited = phase == Phase::Audit
            && !core.course.stopping
            && core.verdict.uncertain == 0
            && !core.verdict.skipped
            && !core.verdict.findings.any_persistent_in(phase, core.course.cycle);
        core.observe(|observer, view| observer.phase_ended(view));
    });
}

/// Writes every page and a whole round of the log, and makes them durable.
async fn prepare(kernel: &Kernel) {
    users::write_log_round(kernel).await;
    let files = kernel.data_files();
    let all = files.iter().map(|file| u64::from(kernel.pages(*file))).sum();
    let mut done = 0;
    for file in files {
        let pages = kernel.pages(file);
        let step = kernel.most_pages_of_write(file);
        let mut page = 0;
        while page < pages && goes_on(kernel) {
            let count = step.min(pages - page);
            kernel.write(PageId { file, page }, count, 0, PREPARE).await;
            page += count;
            done += u64::from(count);
            kernel.progress(Phase::Prepare, done, all);
        }
    }
    kernel.settle().await;
    kernel.quiet().await;
    users::flush_all(kernel, PREPARE).await;
}

async fn stress(kernel: &Kernel) {
    users::spawn_all(kernel);
    let ends_ns = kernel.with(|core| core.course.stress_ends_ns);
    kernel.rest(ends_ns).await;
    kernel.wanted(Event::Quiet, |core| core.course.users_alive == 0).await;
}

/// Reads every page of every file.
async fn audit(kernel: &Kernel) {
    users::flush_all(kernel, FINAL_AUDIT).await;
    kernel.with(|core| (0..core.files.len() as u16).for_each(|file| core.queue.forget_cached(file)));
    let files: Vec<u16> = kernel.with(|core| (0..core.files.len() as u16).collect());
    let all = files.iter().map(|file| u64::from(kernel.pages(*file))).sum();
    let mut done = 0;
    for file in files {
        let pages = kernel.pages(file);
        let most = kernel.most_pages_of_write(file);
        let step = if kernel.with(|core| core.is_log(file)) { kernel.most_pages(file) } else { most };
        let mut page = 0;
        while page < pages && goes_on(kernel) {
            let count = step.min(pages - page);
            kernel.read(PageId { file, page }, count, FINAL_AUDIT).await;
            page += count;
            done += u64::from(count);
            kernel.progress(Phase::Audit, done, all);
        }
    }
    kernel.settle().await;
}
