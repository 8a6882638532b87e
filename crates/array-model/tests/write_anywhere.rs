//! What a write-anywhere layout costs and gains on the disks, seen from outside.

use assay_array_model::{
    ArrayError, ArrayModel, ArrayPlan, CachePlan, ControllerPlan, DiskPlan, LayoutPlan, LinkPlan, MechanicalPlan,
    MemberPlan, PartialWrite, PathPolicy, PoolPlan, RaidPlan, RaidPolicy, SpacePlan, StatePlan, VolumePlan,
};
use assay_load::{Op, Request, Simulated};
use plans::{KIB, MIB, hosts};

mod plans;

const DISKS: u32 = 8;

fn plan(policy: RaidPolicy, layout: LayoutPlan, disk_bytes: u64, volume_bytes: u64) -> ArrayPlan {
    ArrayPlan {
        seed: 1,
        page_bytes: MIB,
        pools: vec![PoolPlan {
            members: 1,
            member: MemberPlan {
                disks: DISKS,
                spares: 0,
                disk: DiskPlan::Mechanical(MechanicalPlan {
                    capacity_bytes: disk_bytes,
                    revolution_ns: 4_000_000,
                    seek_track_ns: 600_000,
                    seek_average_ns: 3_500_000,
                    seek_full_ns: 6_800_000,
                    write_settle_ns: 400_000,
                    rate_outer_bytes_per_s: 125e6,
                    rate_inner_bytes_per_s: 73e6,
                    command_overhead_ns: 300_000,
                    queue_depth: 32,
                    reorder_weight: 0.9,
                    age_credit: 0.05,
                    read_ahead_bytes: 512 * KIB,
                    interface_bytes_per_s: 300e6,
                }),
                raid: RaidPlan {
                    policy,
                    set_disks: 0,
                    chunk_bytes: 64 * KIB,
                    partial_write: PartialWrite::ReadModify,
                    misalign_bytes: 0,
                },
                controller: ControllerPlan {
                    count: 1,
                    ports: 1,
                    cpu_per_io_ns: 20_000,
                    cpu_bytes_per_s: 2e9,
                    cores: 1,
                },
                cache: CachePlan {
                    bytes: 64 * MIB,
                    write_back: true,
                    dirty_low: 0.25,
                    dirty_high: 0.5,
                    dirty_most: 0.75,
                    destage_depth: 2,
                    read_preference_ns: 0,
                    keep_reads: true,
                    sequential_after: 2,
                    prefetch_bytes: MIB,
                    starts_warm: false,
                },
                layout,
                state: StatePlan::Healthy,
                others: None,
                software: None,
                rebuild_bytes_per_s: 0.0,
            },
            volumes: vec![VolumePlan { name: "volume".into(), bytes: volume_bytes }],
        }],
        links: LinkPlan {
            hosts: hosts(1, 400e6),
            policy: PathPolicy::RoundRobin,
            port_bytes_per_s: 400e6,
            overhead_bytes: 128,
            latency_ns: 200_000,
            max_transfer_bytes: 0,
            fault: None,
        },
    }
}

fn anywhere(run_blocks: u32, read_realloc: bool) -> LayoutPlan {
    LayoutPlan::WriteAnywhere {
        block_bytes: 4 * KIB,
        run_blocks,
        read_realloc,
        reduction: 1.0,
        space: SpacePlan::default(),
    }
}

/// A model and what it has been given; I/Os in closed loop, eight at a time.
#[derive(Clone)]
struct Bench {
    model: ArrayModel,
    now_ns: u64,
    draws: u64,
}

/// What the disks did: commands, and bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Done {
    reads: u64,
    writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    destaged_bytes: u64,
    reallocated_bytes: u64,
}

impl Bench {
    fn new(plan: &ArrayPlan) -> Self {
        Self { model: ArrayModel::new(plan).unwrap(), now_ns: 0, draws: 1 }
    }

    fn sums(&self) -> Done {
        let reading = &self.model.readings()[0];
        let sum = |of: fn(&assay_array_model::DiskReading) -> u64| reading.disks.iter().map(of).sum();
        Done {
            reads: sum(|disk| disk.reads),
            writes: sum(|disk| disk.writes),
            read_bytes: sum(|disk| disk.read_bytes),
            write_bytes: sum(|disk| disk.write_bytes),
            destaged_bytes: reading.destaged_bytes,
            reallocated_bytes: reading.reallocated_bytes,
        }
    }

    /// Carries out I/Os and lets the disks come to rest.
    fn run(&mut self, op: Op, length: u64, offsets: impl IntoIterator<Item = u64>) -> Done {
        let before = self.sums();
        let mut completions = Vec::new();
        let (mut outstanding, mut answered) = (0, 0);
        for (tag, offset_bytes) in offsets.into_iter().enumerate() {
            let request =
                Request { tag: tag as u32, op, volume: 0, offset_bytes, length_bytes: length as u32, buffer: 0 };
            self.model.submit(self.now_ns, &request);
            outstanding += 1;
            while outstanding - answered >= 8 {
                self.now_ns = self.model.advance(self.model.next_event_ns().unwrap(), &mut completions);
                answered = completions.len();
            }
        }
        while let Some(at_ns) = self.model.next_event_ns() {
            self.now_ns = self.model.advance(at_ns, &mut completions);
        }
        assert!(completions.iter().all(|completion| completion.result == length as i32));
        let mut tags: Vec<u32> = completions.iter().map(|completion| completion.tag).collect();
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..outstanding as u32), "each I/O is answered once");
        let after = self.sums();
        Done {
            reads: after.reads - before.reads,
            writes: after.writes - before.writes,
            read_bytes: after.read_bytes - before.read_bytes,
            write_bytes: after.write_bytes - before.write_bytes,
            destaged_bytes: after.destaged_bytes - before.destaged_bytes,
            reallocated_bytes: after.reallocated_bytes - before.reallocated_bytes,
        }
    }

    /// Writes 8 KiB at random places of the first `bytes`.
    fn overwrite(&mut self, count: u32, bytes: u64) -> Done {
        let offsets: Vec<u64> = (0..count)
            .map(|_| {
                self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (self.draws >> 20) % (bytes / (8 * KIB)) * 8 * KIB
            })
            .collect();
        self.run(Op::Write, 8 * KIB, offsets)
    }

    /// Reads or writes the first `bytes` in order.
    fn in_order(&mut self, op: Op, bytes: u64) -> Done {
        self.run(op, 64 * KIB, (0..bytes).step_by(64 * KIB as usize))
    }
}

const FILE: u64 = 256 * MIB;

#[test]
fn random_writes_fill_whole_stripes_of_a_fresh_array() {
    // So large that two dirty blocks are hardly ever in one stripe.
    let volume = 64 << 30;
    let run = |policy, layout| Bench::new(&plan(policy, layout, 16 << 30, volume)).overwrite(20_000, volume);
    let done = run(RaidPolicy::Dp, anywhere(64, false));
    assert_eq!(done.reads, 0);
    // n disks for n - 2 of data.
    let cost = done.write_bytes as f64 / done.destaged_bytes as f64;
    let least = f64::from(DISKS) / f64::from(DISKS - 2);
    assert!((least..least * 1.01).contains(&cost), "{cost} blocks written for each");

    let done = run(RaidPolicy::Raid6, LayoutPlan::InPlace);
    let cost = (done.read_bytes + done.write_bytes) as f64 / done.destaged_bytes as f64;
    assert!((5.9..=6.0).contains(&cost), "{cost} blocks read and written for each in place");
}

#[test]
fn a_filled_pool_has_partial_stripes_whose_parity_needs_reads() {
    let volume = 64 << 30;
    let mut bench = Bench::new(&plan(RaidPolicy::Dp, anywhere(64, false), 16 << 30, volume));
    let fresh = bench.overwrite(5_000, volume);
    let used = bench.model.fill(0.9).unwrap().unwrap();
    assert!((0.88..=0.92).contains(&used), "{used}");
    let filled = bench.overwrite(5_000, volume);
    let cost = |done: Done| (done.read_bytes + done.write_bytes) as f64 / done.destaged_bytes as f64;
    assert!(fresh.reads == 0 && filled.reads > 0);
    assert!(cost(filled) > 1.5 * cost(fresh), "{} blocks for each, then {}", cost(fresh), cost(filled));
    assert!(bench.model.fill(0.5).unwrap_err().to_string().contains("used already"));
    let mut in_place = Bench::new(&plan(RaidPolicy::Raid6, LayoutPlan::InPlace, 1024 * MIB, FILE));
    assert_eq!(in_place.model.fill(0.9).unwrap(), None);
}

#[test]
fn random_writes_scatter_what_is_read_in_order_until_it_is_reallocated() {
    let mut bench = Bench::new(&plan(RaidPolicy::Dp, anywhere(64, false), 1024 * MIB, 2 * FILE));
    let fresh = bench.in_order(Op::Read, FILE);
    bench.overwrite(20_000, FILE);
    let scattered = bench.in_order(Op::Read, FILE);
    assert!(scattered.reads > 10 * fresh.reads, "{fresh:?}, then {scattered:?}");

    let mut without = bench.clone();
    bench.model.set_read_realloc(true);
    let first = bench.in_order(Op::Read, FILE);
    let second = bench.in_order(Op::Read, FILE);
    assert!(first.reallocated_bytes > FILE / 2, "{first:?}");
    // Dirty chunks that the cache held were not read in the first pass.
    assert!(second.reallocated_bytes < FILE / 10, "{second:?}");
    assert!(second.reads * 3 < scattered.reads, "{scattered:?}, then {second:?}");
    let third = bench.in_order(Op::Read, FILE);
    assert!(third.reallocated_bytes < FILE / 100, "what was written in one piece stays so: {third:?}");

    without.in_order(Op::Read, FILE);
    let second = without.in_order(Op::Read, FILE);
    assert_eq!(second.reallocated_bytes, 0);
    // What the cache kept is not read again; the rest is as scattered as before.
    let commands_per_byte = |done: &Done| done.reads as f64 / done.read_bytes as f64;
    assert!(commands_per_byte(&second) > 0.9 * commands_per_byte(&scattered), "{scattered:?}, then {second:?}");
}

#[test]
fn longer_runs_take_fewer_commands_to_read() {
    let [short, long] = [64, 256].map(|run_blocks| {
        let mut bench = Bench::new(&plan(RaidPolicy::Dp, anywhere(run_blocks, false), 1024 * MIB, 2 * FILE));
        bench.in_order(Op::Write, FILE);
        bench.in_order(Op::Read, FILE).reads
    });
    assert!(long * 2 < short, "{short} commands with runs of 64 blocks, {long} with 256");
}

#[test]
fn a_fuller_array_writes_dearer() {
    let cost = |volume_bytes: u64| {
        let mut bench = Bench::new(&plan(RaidPolicy::Dp, anywhere(64, false), 96 * MIB, volume_bytes));
        // All blocks move more than once.
        let writes = (volume_bytes / (8 * KIB)) as u32 * 2;
        bench.overwrite(writes, volume_bytes);
        let done = bench.overwrite(writes / 4, volume_bytes);
        (done.read_bytes + done.write_bytes) as f64 / done.destaged_bytes as f64
    };
    // Of 576 MiB.
    let costs = [230, 400, 550].map(|mib| cost(mib * MIB));
    assert!(costs.is_sorted(), "{costs:?}");
    assert!(costs[2] > 1.5 * costs[0], "{costs:?}");
}

/// 400 MiB of 576 MiB, some snapshots of a twentieth each, and reclamation or not.
fn kept(snapshots: u32, reclaims: bool) -> ArrayPlan {
    let mut layout = anywhere(64, false);
    let LayoutPlan::WriteAnywhere { space, .. } = &mut layout else { unreachable!("it writes anywhere") };
    *space = SpacePlan { snapshots, snapshot_change: 0.05, reclaims };
    plan(RaidPolicy::Dp, layout, 96 * MIB, 400 * MIB)
}

/// Bytes moved for each byte that was destaged, bytes of disks for each, and the live share at the end.
fn reclaimed(snapshots: u32, reclaims: bool) -> (f64, f64, f64) {
    let mut bench = Bench::new(&kept(snapshots, reclaims));
    let done = bench.overwrite(30_000, 400 * MIB);
    let reading = &bench.model.readings()[0];
    let destaged = done.destaged_bytes as f64;
    let on_disks = (done.read_bytes + done.write_bytes) as f64;
    (reading.moved_bytes as f64 / destaged, on_disks / destaged, reading.live_share.unwrap_or(0.0))
}

#[test]
fn reclaiming_space_moves_what_the_formula_says_and_snapshots_make_it_more() {
    let (moved, on_disks, live) = reclaimed(0, true);
    // u = exp(-(1 - u) / r) at r = 400 / 576.
    let mut cleaned = 0.5;
    (0..1000).for_each(|_| cleaned = libm::exp(-(1.0 - cleaned) * 576.0 / 400.0));
    let expected = cleaned / (1.0 - cleaned);
    // That is for overwriting in no order. Destaging sweeps over the volume, and what was written together does not die together.
    assert!((moved / expected - 1.0).abs() < 0.3, "{moved} moved, {expected} expected");
    assert!((live - 400.0 / 576.0).abs() < 0.01, "{live}");
    let (more, dearer, held) = reclaimed(4, true);
    assert!(held > live * 1.1 && more > moved * 1.3 && dearer > on_disks, "{more} moved of {held} live");
    let (nothing, plain, _) = reclaimed(0, false);
    assert!(nothing == 0.0 && plain < on_disks - moved, "{plain} of {on_disks}");
    let (nothing, snapshots, _) = reclaimed(4, false);
    assert!(nothing == 0.0 && snapshots == plain, "what is kept costs nothing until space is reclaimed");
}

#[test]
fn snapshots_that_leave_nothing_to_reclaim_are_refused() {
    let error = ArrayModel::new(&kept(9, true)).unwrap_err().to_string();
    assert!(error.starts_with("reclamation is impossible: volumes and snapshots take 10"), "{error}");
}

#[test]
fn the_same_plan_and_ios_give_the_same_result() {
    let run = || {
        let mut bench = Bench::new(&plan(RaidPolicy::Raid5, anywhere(64, true), 1024 * MIB, FILE));
        let done = [bench.overwrite(3000, FILE), bench.in_order(Op::Read, FILE / 2), bench.overwrite(3000, FILE)];
        (done, bench.now_ns)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_member_without_a_free_row_is_refused() {
    // Six data disks of 64 MiB, of which runs of 256 KiB on each are kept free.
    let new = |mib| ArrayModel::new(&plan(RaidPolicy::Dp, anywhere(64, false), 64 * MIB, mib * MIB));
    assert!(matches!(new(384), Err(ArrayError::TooLarge(_))));
    assert!(matches!(new(383), Err(ArrayError::TooLarge(_))));
    assert!(new(382).is_ok());
}
