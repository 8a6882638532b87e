//! Host I/Os that one core simulates in a second, workers and histograms included, and what a search takes.

use std::{fs, hint::black_box, time::Duration};

use assay_array::{
    ArrayModel, ArrayPlan, CachePlan, ControllerPlan, DiskPlan, LayoutPlan, LinkPlan, MechanicalPlan, MemberPlan,
    ModelSession, PartialWrite, PathPolicy, RaidPlan, RaidPolicy, SessionPlan, SolidStatePlan, StatePlan, VolumePlan,
};
use assay_load::{Access, Activity, BlockShare, Load, Region, Skew, Sync};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const VOLUME_BYTES: u64 = 100_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// Twenty-two disks of 15,000 revolutions per minute and two spares behind four 1 GbE ports.
fn plan(policy: RaidPolicy, set_disks: u32, volumes: usize, members: u32) -> ArrayPlan {
    let disk = MechanicalPlan {
        capacity_bytes: 146_815_733_760,
        revolution_ns: 4_000_000,
        seek_track_ns: 600_000,
        seek_average_ns: 2_900_000,
        seek_full_ns: 5_800_000,
        write_settle_ns: 400_000,
        rate_outer_bytes_per_s: 160e6,
        rate_inner_bytes_per_s: 121.6e6,
        command_overhead_ns: 700_000,
        queue_depth: 32,
        reorder_weight: 0.9,
        age_credit: 0.05,
        read_ahead_bytes: 512 << 10,
        interface_bytes_per_s: 300e6,
    };
    ArrayPlan {
        seed: 1,
        members,
        page_bytes: 15 << 20,
        volumes: (0..volumes).map(|n| VolumePlan { name: format!("v{n}"), bytes: VOLUME_BYTES }).collect(),
        member: MemberPlan {
            disks: 24,
            spares: 2,
            disk: DiskPlan::Mechanical(disk),
            raid: RaidPlan {
                policy,
                set_disks,
                chunk_bytes: 64 << 10,
                partial_write: PartialWrite::ReadModify,
                misalign_bytes: 4096,
            },
            controller: ControllerPlan { cpu_per_io_ns: 20_000, cpu_bytes_per_s: 2e9, cores: 1 },
            cache: CachePlan {
                bytes: 2 << 30,
                write_back: true,
                dirty_low: 0.5,
                dirty_high: 0.52,
                dirty_most: 0.9,
                destage_depth: 16,
                read_preference_ns: 0,
                keep_reads: true,
                sequential_after: 3,
                prefetch_bytes: 1 << 20,
                starts_warm: true,
            },
            layout: LayoutPlan::InPlace,
            state: StatePlan::Healthy,
        },
        links: LinkPlan {
            paths: 4,
            policy: PathPolicy::LeastQueueDepth,
            port_bytes_per_s: 117e6,
            overhead_bytes: 128,
            latency_ns: 200_000,
            max_transfer_bytes: 0,
            hosts: 1,
        },
    }
}

/// The same array with disks of flash and ports that keep up with them.
fn flash(policy: RaidPolicy) -> ArrayPlan {
    let mut plan = plan(policy, 0, 12, 1);
    plan.member.disk = DiskPlan::SolidState(SolidStatePlan {
        capacity_bytes: 400_000_000_000,
        channels: 16,
        page_bytes: 16 << 10,
        read_ns: 60_000,
        program_ns: 600_000,
        erase_ns: 3_000_000,
        pages_per_block: 256,
        over_provisioning: 0.28,
        command_overhead_ns: 10_000,
        interface_bytes_per_s: 2e9,
        write_buffer_bytes: 4 << 20,
        queue_depth: 64,
    });
    plan.links.port_bytes_per_s = 3e9;
    plan.member.controller.cores = 16;
    plan
}

fn session(model: ArrayModel, volumes: usize, block_bytes: u32, queue_depth: u32) -> ModelSession {
    let activity = Activity {
        name: "io".into(),
        role: "data".into(),
        volumes: (0..volumes).collect(),
        workers: 1,
        access: Access {
            blocks: vec![BlockShare { bytes: block_bytes, weight: 1.0 }],
            read_share: 0.7,
            random_share: 1.0,
            skew: Skew::Uniform,
            region: Region { start_bytes: 0, end_bytes: VOLUME_BYTES },
            align_bytes: u64::from(block_bytes),
            streams: 1,
            stride_bytes: None,
            duplicate_share: 0.0,
        },
        load: Load::Closed { queue_depth },
        direct: true,
        sync: Sync::None,
        sync_every: 1,
        compressible_share: 0.0,
        limit_bytes: None,
    };
    let plan = SessionPlan { activities: vec![activity], seed: 7, interval_ns: SECOND, warm: true };
    ModelSession::start(model, &plan).expect("the load is possible")
}

/// Lets `seconds` pass: I/Os ended, and the larger of the mean read and write latencies in ms.
fn run(session: &mut ModelSession, seconds: u64) -> (u64, f64) {
    session.run_ticks(seconds);
    let (mut read, mut write) = ((0, 0.0), (0, 0.0));
    for tick in session.collector().fresh_ticks() {
        for (sum, side) in [(&mut read, tick.read), (&mut write, tick.write)] {
            sum.0 += side.count;
            sum.1 += side.mean_ns.unwrap_or(0.0) * side.count as f64;
        }
    }
    let mean_ms = |(count, sum_ns): (u64, f64)| sum_ns / count.max(1) as f64 / 1e6;
    (read.0 + write.0, mean_ms(read).max(mean_ms(write)))
}

/// CPU time this thread has used: what others do on the machine is not the model's. To a few milliseconds.
fn cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says what a thread has used");
    let used_ns = text.split(' ').next().and_then(|first| first.parse().ok()).expect("the first number is nanoseconds");
    Duration::from_nanos(used_ns)
}

fn host_ios(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("host I/O");
    group
        .throughput(Throughput::Elements(1))
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    group.sample_size(20);
    let kib = 1024;
    let cases = [
        ("RAID 10, 8 KiB 70/30, 12 volumes, queue depth 5", plan(RaidPolicy::Raid10, 0, 12, 1), 8 * kib, 5),
        ("RAID 10, 8 KiB, 3 members, 36 volumes", plan(RaidPolicy::Raid10, 0, 36, 3), 8 * kib, 5),
        ("RAID 10, 64 KiB", plan(RaidPolicy::Raid10, 0, 12, 1), 64 * kib, 3),
        ("RAID 50, 8 KiB", plan(RaidPolicy::Raid50, 11, 12, 1), 8 * kib, 4),
        ("RAID 6, 8 KiB", plan(RaidPolicy::Raid6, 0, 12, 1), 8 * kib, 4),
        ("RAID 10 of flash, 8 KiB", flash(RaidPolicy::Raid10), 8 * kib, 5),
    ];
    for (name, plan, block_bytes, queue_depth) in cases {
        let model = ArrayModel::new(&plan).expect("the plan is possible");
        let mut session = session(model, plan.volumes.len(), block_bytes, queue_depth);
        run(&mut session, 3);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|ios| {
                let started = cpu();
                let mut ended = 0;
                while ended < ios {
                    ended += run(&mut session, 1).0;
                }
                (cpu() - started).mul_f64(ios as f64 / ended as f64)
            });
        });
    }
}

/// The largest queue depth per volume with which neither reads nor writes take more than 20 ms, and its I/Os per second: doubled
/// until it is too much, then halved in between. Each point is ten seconds after three.
fn search(model: &ArrayModel, volumes: usize, block_bytes: u32) -> (u32, u64) {
    let point = |queue_depth| {
        let mut session = session(model.clone(), volumes, block_bytes, queue_depth);
        run(&mut session, 3);
        let (ended, worst_ms) = run(&mut session, 10);
        (worst_ms <= 20.0).then_some(ended / 10)
    };
    let (mut most, mut best) = (1, (0, 0));
    while let Some(iops) = point(most) {
        best = (most, iops);
        most *= 2;
    }
    while most - best.0 > 1 {
        let middle = u32::midpoint(best.0, most);
        match point(middle) {
            Some(iops) => best = (middle, iops),
            None => most = middle,
        }
    }
    best
}

fn searches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search for the largest load within 20 ms");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(8));
    for (name, plan, block_bytes) in [
        ("RAID 10, 8 KiB 70/30, 12 volumes", plan(RaidPolicy::Raid10, 0, 12, 1), 8192),
        ("RAID 50, 8 KiB 70/30, 12 volumes", plan(RaidPolicy::Raid50, 11, 12, 1), 8192),
        ("RAID 10, 8 KiB 70/30, 36 volumes, 3 members", plan(RaidPolicy::Raid10, 0, 36, 3), 8192),
    ] {
        let model = ArrayModel::new(&plan).expect("the plan is possible");
        let volumes = plan.volumes.len();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let started = cpu();
                for _ in 0..times {
                    black_box(search(&model, volumes, block_bytes));
                }
                cpu() - started
            });
        });
    }
}

criterion_group!(benches, host_ios, searches);
criterion_main!(benches);
