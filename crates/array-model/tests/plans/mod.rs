//! Arrays and loads for tests: small ones, and what is needed to drive them.
#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod host_flash;

use assay_array_model::{
    ArrayModel, ArrayPlan, CachePlan, ControllerPlan, DiskPlan, FlashAge, FlashPlan, HeatPlan, HostPlan, LayoutPlan,
    LinkPlan, MechanicalPlan, MemberPlan, ModelSession, PartialWrite, PathPolicy, PoolPlan, RaidPlan, RaidPolicy,
    ReadPriority, ReadsPlan, SessionPlan, SlcPlan, SolidStatePlan, StatePlan, VolumePlan,
};
use assay_load::{Access, Activity, BlockShare, Completion, Load, Op, Region, Request, Simulated, Skew, Sync};

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

pub(crate) const POLICIES: [RaidPolicy; 8] = [
    RaidPolicy::Raid0,
    RaidPolicy::Raid1,
    RaidPolicy::Raid10,
    RaidPolicy::Raid5,
    RaidPolicy::Raid50,
    RaidPolicy::Raid6,
    RaidPolicy::Raid60,
    RaidPolicy::Dp,
];

/// A small disk of 15,000 revolutions per minute.
pub(crate) fn mechanical() -> MechanicalPlan {
    MechanicalPlan {
        capacity_bytes: GIB,
        revolution_ns: 4 * MS,
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
        read_ahead_bytes: 512 * KIB,
        interface_bytes_per_s: 300e6,
    }
}

pub(crate) fn solid_state() -> SolidStatePlan {
    SolidStatePlan {
        capacity_bytes: GIB,
        flash: FlashPlan {
            dies: 8,
            planes: 2,
            channels: 4,
            channel_bytes_per_s: 1.2e9,
            page_bytes: 16 * KIB,
            cell_bits: 3,
            pages_per_block: 768,
            read_ns: 60_000,
            program_ns: 1_200_000,
            erase_ns: 3 * MS,
            programming_dies: 0,
        },
        reads: ReadsPlan {
            priority: ReadPriority::Suspend,
            suspend_ns: 300_000,
            suspends: 8,
            late_ns: 100_000,
            resume_ns: 0,
        },
        unit_bytes: 4 * KIB,
        over_provisioning: 0.28,
        metadata_share: 0.0,
        trimmed_share: 0.0,
        age: FlashAge::Steady,
        command_overhead_ns: 10_000,
        command_ns: 1_000,
        interface_bytes_per_s: 2e9,
        queue_depth: 64,
        write_buffer_bytes: 4 * MIB,
        power_loss_protection: true,
        slc: SlcPlan { bytes: 0, empty_bytes: 0, program_ns: 200_000, fold_bytes_per_s: 0.0 },
        heat: HeatPlan { bytes: 0, cooling_bytes_per_s: 0.0, throttled_share: 1.0 },
    }
}

/// Disks of one set under a policy: six, or what a mirror has.
pub(crate) fn set_disks(policy: RaidPolicy) -> u32 {
    if policy == RaidPolicy::Raid1 { 2 } else { 6 }
}

/// One member with two volumes of 256 MiB, chunks of 64 KiB, everything aligned, an empty cache of 16 MiB.
pub(crate) fn plan(policy: RaidPolicy) -> ArrayPlan {
    let sets = if matches!(policy, RaidPolicy::Raid50 | RaidPolicy::Raid60) { 2 } else { 1 };
    ArrayPlan {
        seed: 1,
        page_bytes: 4 * MIB,
        pools: vec![PoolPlan {
            members: 1,
            member: MemberPlan {
                disks: sets * set_disks(policy),
                spares: 0,
                disk: DiskPlan::Mechanical(mechanical()),
                raid: RaidPlan {
                    policy,
                    set_disks: set_disks(policy),
                    chunk_bytes: 64 * KIB,
                    partial_write: PartialWrite::ReadModify,
                    misalign_bytes: 0,
                },
                controller: ControllerPlan {
                    count: 1,
                    ports: 2,
                    cpu_per_io_ns: 20_000,
                    cpu_bytes_per_s: 2e9,
                    cores: 1,
                },
                cache: CachePlan {
                    bytes: 16 * MIB,
                    write_back: true,
                    dirty_low: 0.5,
                    dirty_high: 0.52,
                    dirty_most: 0.9,
                    destage_depth: 16,
                    read_preference_ns: 0,
                    keep_reads: true,
                    sequential_after: 3,
                    prefetch_bytes: MIB,
                    starts_warm: true,
                },
                layout: LayoutPlan::InPlace,
                state: StatePlan::Healthy,
                others: None,
                software: None,
                rebuild_bytes_per_s: 0.0,
            },
            volumes: (0..2).map(|number| VolumePlan { name: format!("v{number}"), bytes: 256 * MIB }).collect(),
        }],
        links: LinkPlan {
            hosts: hosts(2, 117e6),
            policy: PathPolicy::LeastQueueDepth,
            port_bytes_per_s: 117e6,
            overhead_bytes: 128,
            latency_ns: 200_000,
            max_transfer_bytes: 0,
            fault: None,
        },
    }
}

/// One host with so many ports.
pub(crate) fn hosts(ports: u32, port_bytes_per_s: f64) -> HostPlan {
    HostPlan {
        count: 1,
        ports,
        port_bytes_per_s,
        first_port_share: 1.0,
        first_port_loss: 0.0,
        commands_most: 0,
        path_timeout_ns: 2 * SECOND,
    }
}

/// So many ports at both ends.
pub(crate) fn set_paths(plan: &mut ArrayPlan, paths: u32) {
    plan.pools[0].member.controller.ports = paths;
    plan.links.hosts.ports = paths;
}

/// An array of 24 disks of 146 GB with a cache of 2 GiB, and volumes of 100 GB.
pub(crate) fn large(policy: RaidPolicy, volumes: usize, members: u32) -> ArrayPlan {
    let mut plan = plan(policy);
    plan.pools[0].members = members;
    plan.page_bytes = 15 * MIB;
    plan.pools[0].volumes =
        (0..volumes).map(|n| VolumePlan { name: format!("v{n}"), bytes: 100_000_000_000 }).collect();
    let member = &mut plan.pools[0].member;
    (member.disks, member.spares) = (24, 2);
    member.disk = DiskPlan::Mechanical(MechanicalPlan { capacity_bytes: 146_815_733_760, ..mechanical() });
    member.raid.set_disks = if policy.parity_disks() > 0 { 11 } else { 0 };
    member.raid.misalign_bytes = 4096;
    member.cache.bytes = 2 * GIB;
    set_paths(&mut plan, 4);
    plan
}

pub(crate) fn request(op: Op, volume: u16, offset_bytes: u64, length_bytes: u32, tag: u32) -> Request {
    Request { op, volume, offset_bytes, length_bytes, buffer: 0, tag }
}

/// One I/O at the model's time, and what it completed with.
pub(crate) fn perform(model: &mut ArrayModel, now_ns: &mut u64, request: Request) -> Completion {
    model.submit(*now_ns, &request);
    let mut completions = Vec::new();
    while completions.is_empty() {
        *now_ns = model.advance(*now_ns + 100 * SECOND, &mut completions);
    }
    assert_eq!(completions.len(), 1);
    completions[0]
}

/// Lets everything happen that will; returns the time of the last event, or the time now.
pub(crate) fn drain(model: &mut ArrayModel, now_ns: &mut u64) {
    let mut completions = Vec::new();
    while let Some(next_ns) = model.next_event_ns() {
        *now_ns = model.advance(next_ns, &mut completions);
    }
    assert!(completions.is_empty(), "nothing was asked for");
}

/// Random 8 KiB I/Os over the first volumes, one worker on each.
pub(crate) fn activity(volumes: usize, bytes: u32, read_share: f64, load: Load) -> Activity {
    Activity {
        name: "io".into(),
        role: "data".into(),
        volumes: (0..volumes).collect(),
        workers: 1,
        access: Access {
            blocks: vec![BlockShare { bytes, weight: 1.0 }],
            read_share,
            random_share: 1.0,
            skew: Skew::Uniform,
            region: Region { start_bytes: 0, end_bytes: 256 * MIB },
            align_bytes: u64::from(bytes),
            streams: 1,
            stride_bytes: None,
            duplicate_share: 0.0,
        },
        load,
        direct: true,
        sync: Sync::None,
        sync_every: 1,
        compressible_share: 0.0,
        limit_bytes: None,
    }
}

/// A session over whole volumes that has run `warm` seconds, then `measured` seconds: I/Os per second and mean latency in ns.
pub(crate) fn measure(plan: &ArrayPlan, mut activity: Activity, warm: u64, measured: u64) -> (f64, f64) {
    activity.access.region.end_bytes = plan.pools[0].volumes[0].bytes;
    let session = SessionPlan {
        activities: vec![activity],
        seed: 7,
        interval_ns: SECOND,
        warm: plan.pools[0].member.cache.starts_warm,
    };
    let mut session = ModelSession::start(ArrayModel::new(plan).unwrap(), &session).unwrap();
    session.run_ticks(warm + measured);
    let (mut count, mut sum_ns) = (0, 0);
    for interval in session.collector().totals(warm, warm + measured).values() {
        assert_eq!(interval.errors.count(), 0);
        count += interval.read.latency.count() + interval.write.latency.count();
        sum_ns += interval.read.latency.sum_ns() + interval.write.latency.sum_ns();
    }
    (count as f64 / measured as f64, sum_ns as f64 / count as f64)
}

/// Random numbers for tests that must not depend on a library's generator.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}
