use std::collections::VecDeque;

use assay_device::Backend;
use assay_load::{Completion, Op, Queue, QueueError, Request};

use super::*;
use crate::{
    core::Core,
    kernel::Kernel,
    node::{Content, Slot},
    page::{PageName, decode},
    plan::{DatabasePlan, Extent, Mix, Test, VolumePlan},
};

const PAGE_BYTES: u32 = 32 << 10;
const DATA_BYTES: u64 = 8 << 20;
const LOG_BYTES: u64 = 8 << 20;
const MS: u64 = 1_000_000;

/// Databases with a log each, one after the other on one volume.
pub(crate) fn plan(databases: u64) -> MailboxPlan {
    let database = |number: u64| {
        let start_bytes = number * (DATA_BYTES + LOG_BYTES);
        DatabasePlan {
            name: format!("db{}", number + 1),
            passive: false,
            data: Extent { volume: 0, start_bytes, size_bytes: DATA_BYTES },
            log: Extent { volume: 0, start_bytes: start_bytes + DATA_BYTES, size_bytes: LOG_BYTES },
        }
    };
    MailboxPlan {
        volumes: vec![VolumePlan { name: "v".into(), path: Some("memory".into()), held: None }],
        databases: (0..databases).map(database).collect(),
        test: Test::Performance,
        page_bytes: PAGE_BYTES,
        cache_bytes: databases * 32 * u64::from(PAGE_BYTES),
        mix: Mix { insert: 0.4, replace: 0.05, delete: 0.2 },
        lazy_share: 0.7,
        checkpoint_depth_bytes: 1 << 20,
        passive_depth_bytes: 1 << 20,
        log_file_bytes: 256 << 10,
        log_write_max_bytes: 128 << 10,
        maintenance_bytes_per_s: 1e6,
        shipped_copies: 1,
        backup_streams: 0,
        recovery_files: 8,
        rate: 200.0 * databases as f64,
        depth: 64,
        seed: 1,
        run_id: 7,
        interval_ns: 100 * MS,
        io_timeout_ns: 30_000 * MS,
        backend: Backend::Auto,
        direct: false,
        write_through: true,
    }
}

/// A volume in memory on a virtual clock: every I/O takes as long, and moves its bytes at its end.
struct MemoryQueue {
    bytes: Vec<u8>,
    frames: Vec<u8>,
    now_ns: u64,
    takes_ns: u64,
    under_way: VecDeque<(u64, Request)>,
    /// Places to be damaged, and when.
    damage: Vec<(u64, usize)>,
    /// From when on every I/O fails.
    fails_from_ns: u64,
}

impl MemoryQueue {
    fn new(plan: &MailboxPlan, takes_ns: u64) -> Self {
        let ends = plan.databases.iter().flat_map(|one| [one.data, one.log]);
        let size_bytes = ends.map(|extent| extent.start_bytes + extent.size_bytes).max().unwrap();
        let (_, frames) = Engine::queue_needs(plan);
        Self {
            bytes: vec![0; size_bytes as usize],
            frames: vec![0; (frames * PAGE_BYTES) as usize],
            now_ns: 0,
            takes_ns,
            under_way: VecDeque::new(),
            damage: Vec::new(),
            fails_from_ns: u64::MAX,
        }
    }
}

impl Queue for MemoryQueue {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        for request in requests {
            assert_eq!(request.offset_bytes % 4096, 0);
            let range =
                |request: &Request| request.offset_bytes..request.offset_bytes + u64::from(request.length_bytes);
            for (_, other) in &self.under_way {
                let (one, two) = (range(request), range(other));
                let overlap = one.start < two.end && two.start < one.end;
                assert!(!overlap || request.op == Op::Read && other.op == Op::Read, "{request:?} and {other:?}");
            }
            self.under_way.push_back((self.now_ns + self.takes_ns, *request));
        }
        Ok(())
    }

    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        let first_ns = self.under_way.front().map_or(u64::MAX, |(at_ns, _)| *at_ns);
        if min > 0 {
            self.now_ns = self.now_ns.max(first_ns.min(until_ns));
        }
        let now_ns = self.now_ns;
        let (bytes, damage) = (&mut self.bytes, &mut self.damage);
        damage.retain(|(at_ns, place)| {
            let comes = *at_ns <= now_ns;
            bytes[*place] ^= u8::from(comes);
            !comes
        });
        while self.under_way.front().is_some_and(|(at_ns, _)| *at_ns <= now_ns) {
            let Some((at_ns, request)) = self.under_way.pop_front() else { break };
            let (at, length) = (request.offset_bytes as usize, request.length_bytes as usize);
            let frame = (request.buffer * PAGE_BYTES) as usize;
            if at_ns >= self.fails_from_ns {
                completions.push(Completion { tag: request.tag, result: -5, at_ns });
                continue;
            }
            match request.op {
                Op::Read => self.frames[frame..frame + length].copy_from_slice(&self.bytes[at..at + length]),
                Op::Write => self.bytes[at..at + length].copy_from_slice(&self.frames[frame..frame + length]),
                Op::Flush => {}
            }
            completions.push(Completion { tag: request.tag, result: length as i32, at_ns });
        }
        Ok(())
    }
}

impl DataQueue for MemoryQueue {
    fn frame_bytes(&self) -> u32 {
        PAGE_BYTES
    }

    fn frame(&mut self, frame: u32) -> &mut [u8] {
        let start = (frame * PAGE_BYTES) as usize;
        &mut self.frames[start..start + PAGE_BYTES as usize]
    }

    fn frame_of_piece(&self, _volume: u16, first: u32, piece: u32, _pieces: u32) -> u32 {
        first + piece
    }

    fn resize(&mut self, _volume: u16, _size_bytes: u64) -> Result<(), i32> {
        Err(-22)
    }
}

fn engine(plan: &MailboxPlan, queue: MemoryQueue) -> (Engine, IoCollector) {
    let (meters, sources) = meters(plan);
    (Engine::new(plan.clone(), Box::new(queue), meters), IoCollector::new(sources))
}

/// Goes on in ticks until a phase has begun.
fn run_until(engine: &mut Engine, phase: Phase) -> u64 {
    for tick in 1..100_000 {
        assert!(!engine.run_to(tick * 100 * MS).unwrap(), "the run ended before {phase:?}");
        if engine.kernel.with(|core| core.phase == phase) {
            return tick;
        }
    }
    panic!("{phase:?} does not come");
}

fn finish(engine: &mut Engine) {
    engine.kernel.with(Core::stop);
    assert!(engine.run_to(u64::MAX).unwrap());
}

/// All records of a database as its storage has them, by key.
fn stored(kernel: &Kernel, at: usize) -> Vec<Slot> {
    kernel.with(|core| {
        let (shape, start) = (core.databases[at].shape.clone(), core.databases[at].plan.data.start_bytes);
        let queue: &mut dyn Any = core.queue.as_mut();
        let bytes = &queue.downcast_mut::<MemoryQueue>().unwrap().bytes;
        let (mut page, mut slots) = (shape.first_leaf, Vec::new());
        while page != 0 {
            let place = (start + page * u64::from(PAGE_BYTES)) as usize;
            let name = PageName { run_id: 7, database: at as u32, page };
            let node = decode(&bytes[place..place + PAGE_BYTES as usize], name).unwrap();
            slots.extend_from_slice(node.slots());
            page = node.right;
        }
        slots
    })
}

/// The same as the cache has them where it is newer.
fn known(kernel: &Kernel, at: usize) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut page = kernel.of(at, |database| database.shape.first_leaf);
    while page != 0 {
        let cached = kernel.of(at, |database| database.cache.node(page).cloned());
        let node = cached.unwrap_or_else(|| {
            kernel.with(|core| {
                let place = core.databases[at].offset_bytes(page, PAGE_BYTES) as usize;
                let name = core.name(at, page);
                let queue: &mut dyn Any = core.queue.as_mut();
                let bytes = &queue.downcast_mut::<MemoryQueue>().unwrap().bytes;
                decode(&bytes[place..place + PAGE_BYTES as usize], name).unwrap()
            })
        });
        assert!(matches!(node.content, Content::Leaf(_)));
        slots.extend_from_slice(node.slots());
        page = node.right;
    }
    slots
}

#[test]
fn the_rate_is_held_and_every_page_is_right_at_the_end() {
    let plan = plan(2);
    let (mut engine, mut collector) = engine(&plan, MemoryQueue::new(&plan, MS));
    let began = run_until(&mut engine, Phase::Load);
    for tick in 1..=400 {
        engine.run_to((began + tick) * 100 * MS).unwrap();
        collector.collect();
    }
    let totals = collector.totals(began + 100, began + 400);
    let count = |activity: Activity| -> (u64, u64) {
        let own = totals.iter().filter(|(key, _)| key.activity == activity as usize);
        own.fold((0, 0), |(reads, writes), (_, tally)| {
            (reads + tally.read.latency.count(), writes + tally.write.latency.count())
        })
    };
    let (reads, writes) = count(Activity::Database);
    let rate = (reads + writes) as f64 / 30.0;
    assert!((rate / 400.0 - 1.0).abs() < 0.05, "{rate} I/Os per second of 400");
    assert!(reads > writes && writes > 0);
    let (_, log_writes) = count(Activity::Log);
    assert!(log_writes > 0 && log_writes < writes);
    let (maintained, _) = count(Activity::Maintenance);
    assert!((maintained as f64 * f64::from(256 << 10) / 30.0 / 2e6 - 1.0).abs() < 0.05, "{maintained}");
    assert!(count(Activity::Shipping).0 > 0);
    finish(&mut engine);
    let (counts, pages) = engine.kernel.with(|core| {
        let pages = core.databases.iter().map(|database| database.shape.pages).sum::<u64>();
        (core.counts, pages)
    });
    assert_eq!(counts.bad_pages, 0);
    assert!(counts.pages_verified > pages);
    for at in 0..2 {
        let slots = stored(&engine.kernel, at);
        assert!(slots.windows(2).all(|pair| pair[0].key < pair[1].key), "keys rise through all leaves");
        let (operations, initial) = engine.kernel.of(at, |database| {
            let leaf = database.shape.initial(database.shape.first_leaf).slots().len() as u64;
            (database.operations, leaf * database.shape.leaves)
        });
        assert!(operations.inserts > operations.deletes && operations.deletes > 100);
        assert_ne!(slots.len() as u64, initial);
        assert_eq!(slots, known(&engine.kernel, at), "nothing is left in the cache alone");
    }
}

#[test]
fn leaves_split_until_the_database_is_full() {
    let mut plan = plan(1);
    plan.mix = Mix { insert: 1.0, replace: 0.0, delete: 0.0 };
    (plan.rate, plan.maintenance_bytes_per_s) = (3000.0, 0.0);
    let (mut engine, _) = engine(&plan, MemoryQueue::new(&plan, MS / 10));
    let began = run_until(&mut engine, Phase::Load);
    engine.run_to((began + 100) * 100 * MS).unwrap();
    finish(&mut engine);
    let (operations, free) =
        engine.kernel.of(0, |database| (database.operations, database.shape.pages - database.shape.first_free));
    assert_eq!(operations.splits, free);
    assert!(operations.full > 0);
    assert_eq!(engine.kernel.with(|core| core.counts.bad_pages), 0);
    let slots = stored(&engine.kernel, 0);
    assert!(slots.windows(2).all(|pair| pair[0].key < pair[1].key));
}

#[test]
fn slow_storage_shows_in_the_latency_from_the_intended_start() {
    let mut plan = plan(1);
    // A place for one I/O at a time, each of 20 ms: 50 a second, and 200 are asked.
    plan.maintenance_bytes_per_s = 0.0;
    let mut means = Vec::new();
    for takes_ns in [MS, 200 * MS] {
        let (mut engine, mut collector) = engine(&plan, MemoryQueue::new(&plan, takes_ns));
        let began = run_until(&mut engine, Phase::Load);
        for tick in 1..=200 {
            engine.run_to((began + tick) * 100 * MS).unwrap();
            collector.collect();
        }
        let totals = collector.totals(began + 100, began + 200);
        let own = totals.iter().find(|(key, _)| key.activity == Activity::Database as usize);
        let tally = own.unwrap().1;
        means.push((tally.read.latency.mean_ns().unwrap(), tally.service.mean_ns().unwrap()));
    }
    assert!(means[0].0 < 1.1 * MS as f64, "{means:?}");
    assert!(means[1].0 >= means[1].1 && means[1].1 >= 200.0 * MS as f64, "{means:?}");
}

#[test]
fn damaged_pages_are_found_in_the_end_if_not_before() {
    let plan = plan(1);
    let mut queue = MemoryQueue::new(&plan, MS);
    // Free pages, which no operation reads or writes.
    let places = [250, 251, 253].map(|page| page * PAGE_BYTES as usize + 700);
    queue.damage = places.map(|place| (3_000 * MS, place)).to_vec();
    let (mut engine, _) = engine(&plan, queue);
    let began = run_until(&mut engine, Phase::Load);
    assert!(began < 30);
    engine.run_to(3_500 * MS).unwrap();
    finish(&mut engine);
    let found = engine.kernel.with(|core| core.bad.clone());
    let mut pages: Vec<_> = found.iter().map(|bad| bad.page.unwrap()).collect();
    pages.sort_unstable();
    assert_eq!(pages, [250, 251, 253]);
    assert!(found.iter().all(|bad| bad.what.starts_with("checksum is")));
}

#[test]
fn an_io_that_fails_is_no_bad_page() {
    let plan = plan(1);
    let mut queue = MemoryQueue::new(&plan, MS);
    queue.fails_from_ns = 3_000 * MS;
    let (mut engine, _) = engine(&plan, queue);
    assert!(run_until(&mut engine, Phase::Load) < 30);
    let failure = engine.run_to(4_000 * MS).unwrap_err().to_string();
    assert!(failure.starts_with("db1 on v: a ") && failure.contains("os error 5"), "{failure}");
    assert_eq!(engine.kernel.with(|core| core.counts.bad_pages), 0);
}

#[test]
fn a_recovery_brings_back_what_was_lost() {
    let mut plan = plan(2);
    plan.test = Test::Recovery;
    let (mut engine, _) = engine(&plan, MemoryQueue::new(&plan, MS));
    run_until(&mut engine, Phase::MakeLog);
    let mut before = Vec::new();
    // Small steps, so that the last one before the server breaks off is seen.
    let mut to_ns = engine.kernel.with(|core| core.now_ns);
    while engine.kernel.with(|core| core.phase == Phase::MakeLog) {
        before = (0..2).map(|at| known(&engine.kernel, at)).collect();
        to_ns += MS / 4;
        engine.run_to(to_ns).unwrap();
    }
    assert!(engine.run_to(u64::MAX).unwrap());
    let counts = engine.kernel.with(|core| core.counts);
    assert!(counts.log_files_replayed >= 2, "{counts:?}");
    assert_eq!(counts.bad_pages, 0);
    for (at, before) in before.iter().enumerate() {
        assert_eq!(stored(&engine.kernel, at), *before);
    }
}

#[test]
fn a_log_for_a_recovery_is_made_whatever_storage_takes() {
    for (seed, takes_ns) in [(1, MS / 20), (2, MS / 7), (3, MS), (4, 3 * MS), (5, 30 * MS)] {
        let mut plan = plan(2);
        (plan.test, plan.seed, plan.recovery_files, plan.depth) = (Test::Recovery, seed, 5, 128);
        plan.cache_bytes = (30 << 20) / 8;
        let (mut engine, _) = engine(&plan, MemoryQueue::new(&plan, takes_ns));
        let mut ended = false;
        for tick in 1..20_000 {
            ended = engine.run_to(tick * 100 * MS).unwrap();
            if ended {
                break;
            }
        }
        let standing = engine.kernel.with(|core| {
            let of = |one: &crate::database::Database| {
                (
                    one.running,
                    one.cleaning.writes_under_way,
                    one.log.durable_lsn,
                    one.log.next_lsn,
                    one.log.wanted,
                    one.cache.dirty_count(),
                )
            };
            (core.phase, core.used_slots(), core.outstanding(), core.databases.iter().map(of).collect::<Vec<_>>())
        });
        assert!(ended, "{seed}: {standing:?}");
    }
}

#[test]
fn a_passive_copy_replays_as_much_log_as_an_active_database_makes() {
    let mut plan = plan(2);
    plan.databases[1].passive = true;
    plan.rate = 400.0;
    let (mut engine, mut collector) = engine(&plan, MemoryQueue::new(&plan, MS));
    let began = run_until(&mut engine, Phase::Load);
    for tick in 1..=400 {
        engine.run_to((began + tick) * 100 * MS).unwrap();
        collector.collect();
    }
    let totals = collector.totals(began, began + 400);
    let replay = totals.iter().find(|(key, _)| key.activity == Activity::Replay as usize).unwrap().1;
    assert!(replay.read.latency.count() > 100 && replay.write.latency.count() > 100);
    finish(&mut engine);
    let (bad, files, made) = engine.kernel.with(|core| {
        let made = [0, 1].map(|at| core.databases[at].log.next_lsn as f64);
        (core.counts.bad_pages, core.counts.log_files_replayed, made)
    });
    assert_eq!(bad, 0);
    assert!(files > 3);
    assert!((made[1] / made[0] - 1.0).abs() < 0.3, "{made:?}");
}

#[test]
fn a_backup_reads_every_page_once() {
    let mut plan = plan(2);
    plan.test = Test::Backup;
    let (mut engine, mut collector) = engine(&plan, MemoryQueue::new(&plan, MS));
    while !engine.run_to(engine.kernel.with(|core| core.now_ns) + 100 * MS).unwrap() {
        collector.collect();
    }
    assert_eq!(engine.kernel.with(|core| core.counts.pages_verified), 2 * DATA_BYTES / u64::from(PAGE_BYTES));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let plan = plan(2);
    let run = || {
        let (mut engine, _) = engine(&plan, MemoryQueue::new(&plan, MS));
        let began = run_until(&mut engine, Phase::Load);
        engine.run_to((began + 50) * 100 * MS).unwrap();
        engine
            .kernel
            .with(|core| core.databases.iter().map(|one| (one.operations, one.log.next_lsn)).collect::<Vec<_>>())
    };
    assert_eq!(run(), run());
}
