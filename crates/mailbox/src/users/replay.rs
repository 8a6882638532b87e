//! Log records on their way into pages: what a passive copy does all the time, and a recovery once.

use std::{cell::Cell, collections::BTreeSet, rc::Rc};

use rand::RngExt;

use crate::{
    database::Event,
    kernel::Kernel,
    log::{BLOCK_BYTES, Reader},
    node::Change,
    plan::{Activity, SCAN_BYTES},
    record::Record,
};

/// Pages that are fetched ahead at the same time.
const AHEAD: usize = 16;
/// How often a passive copy looks whether more log has come.
const LOOK_NS: u64 = 50_000_000;

/// Makes records of a log to their pages, in their order; the pages are fetched ahead.
pub(super) async fn replay(kernel: &Kernel, at: usize, records: &[(u64, Record)], activity: Activity) {
    let most = kernel.of(at, |database| (database.cache.capacity() / 4).max(1));
    let mut rest = records;
    while !rest.is_empty() {
        let mut pages = BTreeSet::new();
        let count = rest
            .iter()
            .take_while(|(_, record)| pages.contains(&record.page) || pages.len() < most && pages.insert(record.page))
            .count();
        fetch_ahead(kernel, at, pages, activity).await;
        let (now, later) = rest.split_at(count);
        for (begin, record) in now {
            let mut needed_ns = kernel.now_ns();
            // A bad page was noted; its records are lost to it.
            if kernel.fetch(at, record.page, activity, &mut needed_ns).await.is_ok() {
                kernel.redo(at, *begin, record);
            }
        }
        rest = later;
    }
}

async fn fetch_ahead(kernel: &Kernel, at: usize, pages: BTreeSet<u64>, activity: Activity) {
    let pages: Vec<u64> = pages.into_iter().collect();
    let lanes = AHEAD.min(pages.len());
    let left = Rc::new(Cell::new(lanes));
    for lane in 0..lanes {
        let own: Vec<u64> = pages.iter().copied().skip(lane).step_by(lanes).collect();
        let (kernel, left) = (kernel.clone(), Rc::clone(&left));
        kernel.clone().spawn(async move {
            for page in own {
                let mut needed_ns = kernel.now_ns();
                let _ = kernel.fetch(at, page, activity, &mut needed_ns).await;
            }
            left.set(left.get() - 1);
            kernel.with(|core| core.wake(at, Event::Load));
        });
    }
    kernel.until(at, Event::Load, |_| (left.get() == 0).then_some(())).await;
}

/// Reads records out of a log, from a block to another, and makes them to their pages. `file_done` is told of every log file.
pub(super) async fn replay_log(
    kernel: &Kernel,
    at: usize,
    blocks: std::ops::Range<u64>,
    activity: Activity,
    file_done: impl Fn(),
) {
    let file_blocks = kernel.of(at, |database| database.log.file_blocks());
    let mut reader = Reader::at(blocks.start);
    let mut block = blocks.start;
    let mut begin = kernel.of(at, |database| database.log.lsn_at(block));
    while block < blocks.end {
        // Not beyond the file: its end may be the end of the extent.
        let count =
            (u64::from(SCAN_BYTES) / BLOCK_BYTES).min(blocks.end - block).min(file_blocks - block % file_blocks);
        let bytes = kernel.read_log(at, block, (count * BLOCK_BYTES) as u32, activity).await;
        block += count;
        let read = kernel.with(|core| {
            if core.holds_bytes {
                return reader.take(&bytes, core.plan.run_id, at as u32).map(|records| {
                    let records = records.into_iter().map(|record| {
                        let own = begin;
                        begin = record.lsn;
                        (own, record)
                    });
                    records.collect::<Vec<_>>()
                });
            }
            let log = &mut core.databases[at].log;
            let end = log.lsn_at(block);
            let remembered = log.remembered.as_mut();
            Ok(remembered.map_or_else(Vec::new, |all| {
                let from = all.partition_point(|(first, _)| *first < begin);
                let to = all.partition_point(|(first, _)| *first < end);
                begin = end;
                all.range(from..to).cloned().collect()
            }))
        });
        match read {
            Ok(records) => replay(kernel, at, &records, activity).await,
            Err(what) => {
                kernel.find_bad_log(at, block - count, activity, what);
                return;
            }
        }
        if block.is_multiple_of(file_blocks) {
            file_done();
        }
    }
}

/// A passive copy: files of another server's log come in, are written to the log's volume, read again and replayed.
pub(super) async fn passive(kernel: Kernel, at: usize) {
    let actives = kernel.with(|core| core.plan.actives().max(1) as u64);
    let mut made = 0;
    let mut now_ns = kernel.now_ns();
    kernel.of(at, |database| database.running += 1);
    while !kernel.with(|core| core.stopping) {
        now_ns += LOOK_NS;
        kernel.sleep_until(now_ns).await;
        // As much log as the active databases of this server make, in the mean.
        let due = kernel.with(|core| {
            core.databases
                .iter()
                .filter(|database| !database.plan.passive)
                .map(|database| database.changes)
                .sum::<u64>()
                / actives
        });
        while made < due && !kernel.with(|core| core.stopping) {
            made += 1;
            kernel.with(|core| {
                let mix = core.plan.mix;
                let changed = mix.insert + mix.replace + mix.delete;
                make_record(&mut core.databases[at], mix.insert / changed, mix.replace / changed);
            });
            let is_whole = kernel.of(at, |database| database.log.pending_bytes() >= database.log.bytes_to_close());
            if is_whole {
                take_file(&kernel, at).await;
            }
        }
    }
    kernel.with(|core| {
        core.databases[at].running -= 1;
        core.wake(at, Event::Load);
    });
}

/// A record as another server makes it. It changes what was there at first, so that no page gets too full.
fn make_record(database: &mut crate::database::Database, insert_share: f64, replace_share: f64) {
    let leaf = database.next_key() / crate::shape::LEAF_KEYS;
    let page = database.shape.first_leaf + leaf;
    let slots = database.shape.initial(page).slots().to_vec();
    let slot = slots[database.rng.random_range(0..slots.len())];
    let draw: f64 = database.rng.random();
    let change = if draw < insert_share + replace_share {
        Change::Put { key: slot.key, version: database.rng.random() }
    } else {
        Change::Remove { key: slot.key }
    };
    let replaces = (insert_share..insert_share + replace_share).contains(&draw);
    database.log.append(Record { lsn: 0, page, change, replaces });
}

/// Writes a log file that has come, reads it again and replays it.
async fn take_file(kernel: &Kernel, at: usize) {
    // What is pending is all of the file.
    kernel.log_room(at, 0).await;
    let from = kernel.of(at, |database| database.log.head_block);
    loop {
        let unit = kernel.with(|core| {
            let log = &mut core.databases[at].log;
            let closed = log.head_block.is_multiple_of(log.file_blocks()) && log.head_block > from;
            if closed { None } else { log.next_unit(core.plan.run_id, at as u32) }
        });
        let Some(unit) = unit else { break };
        kernel.write_unit(at, unit, Activity::Replay).await;
    }
    let to = kernel.of(at, |database| database.log.head_block);
    let count = || kernel.with(|core| core.counts.log_files_replayed += 1);
    replay_log(kernel, at, from..to, Activity::Replay, count).await;
    kernel.of(at, |database| {
        database.replayed_lsn = Some(database.log.lsn_at(to));
        let needed = database.needed_lsn();
        database.log.forget_before(needed);
    });
}
