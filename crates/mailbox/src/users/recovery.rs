use crate::{
    database::Event,
    kernel::Kernel,
    plan::Activity,
    users::{mailboxes::flood, replay::replay_log},
};

/// Operations of a database at the same time while its log is made.
const AT_ONCE: u32 = 32;

/// Makes log files while checkpoints rest, so that much of the log is needed.
pub(super) async fn make_log(kernel: Kernel, at: usize) {
    kernel.of(at, |database| {
        database.cleaning.checkpoint_rests = true;
        // All of the log is replayed, though many of its pages are written already: so the checkpoint stays at its begin.
        database.replayed_lsn = Some(1);
    });
    for _ in 0..AT_ONCE {
        kernel.spawn(flood(kernel.clone(), at, |kernel, at| !is_made(kernel, at)));
    }
    // Those that were spawned have not begun yet.
    kernel
        .until(at, Event::Load, |core| {
            let database = &core.databases[at];
            (database.running == 0 && (core.stopping || has_files(database, core.plan.recovery_files))).then_some(())
        })
        .await;
    let end = kernel.of(at, |database| database.log.next_lsn);
    kernel.durable(at, end).await;
    kernel.until(at, Event::Room, |core| (core.databases[at].cleaning.writes_under_way == 0).then_some(())).await;
}

fn is_made(kernel: &Kernel, at: usize) -> bool {
    kernel.with(|core| {
        let files = core.plan.recovery_files;
        let done = has_files(&core.databases[at], files);
        core.progress.0 =
            core.databases.iter().map(|database| database.log.head_block / database.log.file_blocks()).sum();
        done
    })
}

fn has_files(database: &crate::database::Database, files: u32) -> bool {
    database.log.head_block >= u64::from(files) * database.log.file_blocks()
}

/// Recovery: memory is lost as if the server broke off, and pages are made from the log again.
pub(super) async fn recover(kernel: Kernel, at: usize) {
    let blocks = kernel.of(at, |database| {
        database.cache.forget();
        0..database.log.head_block
    });
    let count = || {
        kernel.with(|core| {
            core.counts.log_files_replayed += 1;
            core.progress.0 += 1;
        });
    };
    replay_log(&kernel, at, blocks, Activity::Recovery, count).await;
    kernel.of(at, |database| {
        database.replayed_lsn = None;
        database.cleaning.checkpoint_rests = false;
    });
}
