use rand::{RngExt, seq::IndexedRandom};

use crate::{expected::Flag, kernel::Kernel, stamp::PageId, user::User};

/// Files shrink no further than to this part of their first size.
const MIN_SHARE: u64 = 4;

/// Files that grow and shrink: every while, some data file by some extents of its increment.
pub(super) async fn shrink(kernel: Kernel, user: User) {
    let plan = kernel.with(|core| core.plan.shrink.clone());
    let mut rng = kernel.rng(user);
    let resizable: Vec<u16> = kernel.with(|core| {
        let of_file = core.files.iter().enumerate();
        of_file
            .filter(|(_, file)| {
                !file.plan.log && file.plan.max_bytes > file.plan.size_bytes && file.plan.increment_bytes > 0
            })
            .map(|(index, _)| index as u16)
            .collect()
    });
    let Some(_) = resizable.first() else { return };
    loop {
        kernel.rest(rng.random_range(plan.interval_min_ns..=plan.interval_max_ns)).await;
        if !kernel.stressing() {
            return;
        }
        let file = *resizable.choose(&mut rng).expect("there is one");
        let extents = rng.random_range(plan.extents_min..=plan.extents_max);
        let (least, most, by) = kernel.with(|core| {
            let file = &core.files[usize::from(file)];
            let pages = |bytes: u64| (bytes / u64::from(file.page_bytes)) as u32;
            let least = pages(file.plan.size_bytes / MIN_SHARE).max(1);
            (least, file.states.len() as u32, pages(file.plan.increment_bytes).saturating_mul(extents).max(1))
        });
        let pages = kernel.pages(file);
        if rng.random_bool(0.5) {
            grow(&kernel, file, pages.saturating_add(by).min(most), user).await;
        } else {
            cut(&kernel, file, pages.saturating_sub(by).max(least)).await;
        }
    }
}

async fn grow(kernel: &Kernel, file: u16, pages: u32, user: User) {
    let before = kernel.pages(file);
    if pages <= before || kernel.resize(file, pages).is_err() {
        return;
    }
    let step = kernel.most_pages_of_write(file);
    for page in (before..pages).step_by(step as usize) {
        if !kernel.stressing() {
            break;
        }
        // New pages are written before any user may read them.
        let end = (page + step).min(pages);
        kernel.with(|core| core.files[usize::from(file)].pages = end);
        hold(kernel, file, page, end);
        kernel.write_latched(PageId { file, page }, end - page, user, |_| 0).await;
    }
    kernel.settle().await;
}

/// Latches pages that no user can have latched.
fn hold(kernel: &Kernel, file: u16, first: u32, end: u32) {
    kernel.with(|core| {
        for state in &mut core.files[usize::from(file)].states[first as usize..end as usize] {
            state.set(Flag::Latched, true);
        }
    });
}

async fn cut(kernel: &Kernel, file: u16, pages: u32) {
    let before = kernel.pages(file);
    if pages >= before {
        return;
    }
    // From here on nobody begins anything there; what is under way ends first.
    kernel.with(|core| core.files[usize::from(file)].pages = pages);
    kernel.unlatched(PageId { file, page: pages }, before - pages).await;
    kernel.with(|core| {
        core.pool.forget(&mut core.files, file, pages);
        core.dirty.retain(|id, _| id.file != file || id.page < pages);
        for state in &mut core.files[usize::from(file)].states[pages as usize..before as usize] {
            core.verdict.uncertain -= u32::from(state.has(Flag::Uncertain));
            for flag in [Flag::SeenRight, Flag::Dirty, Flag::Uncertain] {
                state.set(flag, false);
            }
        }
    });
    let _ = kernel.resize(file, pages);
}
