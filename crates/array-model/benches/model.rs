//! Host I/Os that one core simulates in a second, workers and histograms included, and what a search takes.

use std::{fs, hint::black_box, time::Duration};

use assay_array_model::{
    ArrayPlan, DiskPlan, HostFlashPlan, Model, ModelPlan, ModelSession, Modelled, RaidPolicy, SessionPlan,
    SolidStatePlan, warm,
};
use assay_load::Load;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plans::{GIB, SECOND, activity, host_flash, large, solid_state};

#[path = "../tests/plans/mod.rs"]
mod plans;

/// The array of 24 disks with disks of flash in their place, and ports that keep up with them.
fn flash(policy: RaidPolicy) -> ArrayPlan {
    let mut plan = large(policy, 12, 1);
    let mut disk = SolidStatePlan { capacity_bytes: 400_000_000_000, ..solid_state() };
    (disk.flash.dies, disk.flash.channels) = (32, 8);
    plan.pools[0].member.disk = DiskPlan::SolidState(disk);
    plan.links.port_bytes_per_s = 3e9;
    plan.links.hosts.port_bytes_per_s = 3e9;
    plan.pools[0].member.controller.cores = 16;
    plan
}

/// Four hosts with twelve volumes of 100 GB and so much flash each, two nodes, and reclamation under way.
fn hosts_with_flash(flash_bytes: u64) -> HostFlashPlan {
    let mut plan = host_flash::plan();
    plan.volumes = large(RaidPolicy::Raid10, 12, 1).pools.remove(0).volumes;
    (plan.host.count, plan.node.count, plan.host.flash_bytes) = (4, 2, flash_bytes);
    plan.host.memory_bytes = 8 * GIB;
    (plan.log.room_bytes, plan.log.reclaims) = (900_000_000_000, true);
    plan
}

fn volumes(model: &Model) -> usize {
    (0..).take_while(|volume| model.volume_bytes(*volume).is_some()).count()
}

/// Workers on all volumes of a model, 70 % reads over the whole of each.
fn load(model: &Model, block_bytes: u32, queue_depth: u32) -> SessionPlan {
    let mut activity = activity(volumes(model), block_bytes, 0.7, Load::Closed { queue_depth });
    activity.access.region.end_bytes = model.volume_bytes(0).expect("there is a volume");
    SessionPlan { activities: vec![activity], seed: 7, interval_ns: SECOND, warm: false }
}

/// The model of a plan with warm caches.
fn warmed(plan: &ModelPlan, block_bytes: u32) -> Model {
    let mut model = Model::new(plan).expect("the plan is possible");
    let load = load(&model, block_bytes, 1);
    warm(&mut model, &load);
    model
}

fn session(model: Model, block_bytes: u32, queue_depth: u32) -> ModelSession {
    let load = load(&model, block_bytes, queue_depth);
    ModelSession::start(model, &load).expect("the load is possible")
}

/// Lets `seconds` pass: I/Os ended, and the larger of the mean read and write latencies in ms.
fn run(session: &mut ModelSession, seconds: u64) -> (u64, f64) {
    session.run_ticks(seconds);
    let (mut read, mut write) = ((0, 0.0), (0, 0.0));
    for tick in session.collector().fresh_ticks() {
        for (sum, side) in [(&mut read, tick.counted.read), (&mut write, tick.counted.write)] {
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
        ("RAID 10, 8 KiB 70/30, 12 volumes, queue depth 5", large(RaidPolicy::Raid10, 12, 1), 8 * kib, 5),
        ("RAID 10, 8 KiB, 3 members, 36 volumes", large(RaidPolicy::Raid10, 36, 3), 8 * kib, 5),
        ("RAID 10, 64 KiB", large(RaidPolicy::Raid10, 12, 1), 64 * kib, 3),
        ("RAID 50, 8 KiB", large(RaidPolicy::Raid50, 12, 1), 8 * kib, 4),
        ("RAID 6, 8 KiB", large(RaidPolicy::Raid6, 12, 1), 8 * kib, 4),
        ("RAID 10 of flash, 8 KiB", flash(RaidPolicy::Raid10), 8 * kib, 5),
    ];
    let groups = cases.into_iter().map(|(name, plan, bytes, depth)| (name, ModelPlan::Group(plan), bytes, depth));
    let with_flash = [
        ("hosts with flash that holds all, 8 KiB 70/30", hosts_with_flash(200 * GIB), 8 * kib, 8),
        ("hosts with flash that holds half, 8 KiB 70/30", hosts_with_flash(70 * GIB), 8 * kib, 8),
    ];
    let with_flash = with_flash
        .into_iter()
        .map(|(name, plan, bytes, depth)| (name, ModelPlan::HostFlash(Box::new(plan)), bytes, depth));
    for (name, plan, block_bytes, queue_depth) in groups.chain(with_flash) {
        let mut session = session(warmed(&plan, block_bytes), block_bytes, queue_depth);
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
/// until it is too much, then halved in between. Each point is ten seconds after three; caches are warmed once.
fn search(plan: &ModelPlan, block_bytes: u32) -> (u32, u64) {
    let model = warmed(plan, block_bytes);
    let point = |queue_depth| {
        let mut session = session(model.clone(), block_bytes, queue_depth);
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
        ("RAID 10, 8 KiB 70/30, 12 volumes", large(RaidPolicy::Raid10, 12, 1), 8192),
        ("RAID 50, 8 KiB 70/30, 12 volumes", large(RaidPolicy::Raid50, 12, 1), 8192),
        ("RAID 10, 8 KiB 70/30, 36 volumes, 3 members", large(RaidPolicy::Raid10, 36, 3), 8192),
    ] {
        let plan = ModelPlan::Group(plan);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let started = cpu();
                for _ in 0..times {
                    black_box(search(&plan, block_bytes));
                }
                cpu() - started
            });
        });
    }
}

criterion_group!(benches, host_ios, searches);
criterion_main!(benches);
