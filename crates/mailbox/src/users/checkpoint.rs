use crate::{database::Event, kernel::Kernel, plan::Activity};

/// Pages of a database that are on their way to the storage at the same time.
const WRITES_MAX: u32 = 32;

/// Writes the pages with the oldest changes, so that neither the cache nor the log between them and its end gets too full.
pub(super) async fn checkpoint_writer(kernel: Kernel, at: usize) {
    let activity = if kernel.of(at, |database| database.plan.passive) { Activity::Replay } else { Activity::Database };
    loop {
        let page = kernel
            .until(at, Event::Cleaning, |core| {
                let database = &mut core.databases[at];
                if database.cleaning.writes_under_way >= WRITES_MAX || !database.wants_cleaning() {
                    return None;
                }
                let scans = database.scans.clone();
                let is_free = |page: u64| !scans.iter().any(|(first, pages)| (*first..first + pages).contains(&page));
                let (lsn, page) = database.cache.choose(is_free)?;
                database.cleaning.writing_lsns.insert(page, lsn);
                database.cleaning.settled = true;
                database.cleaning.writes_under_way += 1;
                Some(page)
            })
            .await;
        kernel.spawn(write(kernel.clone(), at, page, activity));
    }
}

async fn write(kernel: Kernel, at: usize, page: u64, activity: Activity) {
    kernel.write_page(at, page, activity).await;
}

/// Writes everything that is newer than the storage.
pub(super) async fn flush(kernel: &Kernel, at: usize) {
    kernel.with(|core| {
        core.databases[at].cleaning.flushing = true;
        core.wake(at, Event::Cleaning);
    });
    kernel
        .until(at, Event::Room, |core| {
            let database = &core.databases[at];
            (database.cache.dirty_count() == 0 && database.cleaning.writes_under_way == 0).then_some(())
        })
        .await;
    kernel.of(at, |database| database.cleaning.flushing = false);
}
