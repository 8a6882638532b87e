//! Arrays with flash in their hosts: nothing is lost or invented, ceilings hold, and reads look where they should, in order.

mod plans;

use assay_array_model::{DiskPlan, HostFlashModel, HostFlashPlan, MechanicalPlan, ModelSession, SessionPlan};
use assay_load::{Completion, Load, Op, Simulated};
use plans::{Draws, GIB, KIB, MIB, MS, SECOND, activity, host_flash::plan, mechanical, request};
use proptest::prelude::*;

/// Hash of the completions of 60,000 I/Os over the plans of [`golden_plans`], as in `determinism.rs`.
const GOLDEN: u64 = 0x5cf2_cb0a_5ebd_3dfe;

fn golden_plans() -> Vec<HostFlashPlan> {
    let mut cleaned = plan();
    (cleaned.log.reclaims, cleaned.log.snapshots, cleaned.node.count) = (true, 8, 3);
    let mut small = plan();
    (small.host.flash_bytes, small.host.memory_bytes, small.log.deduplication) = (32 * MIB, 0, 2.0);
    vec![plan(), cleaned, small]
}

/// A closed loop of mixed I/Os at a model.
struct Loop {
    model: HostFlashModel,
    draws: Draws,
    volumes: u64,
    now_ns: u64,
    sent: u64,
    written_bytes: u64,
}

impl Loop {
    fn new(plan: &HostFlashPlan, seed: u64, outstanding: u32) -> Self {
        let model = HostFlashModel::new(plan).unwrap();
        let volumes = plan.volumes.len() as u64;
        let mut made = Self { model, draws: Draws(seed), volumes, now_ns: 0, sent: 0, written_bytes: 0 };
        (0..outstanding).for_each(|tag| made.send(tag));
        made
    }

    fn send(&mut self, tag: u32) {
        let bytes = 4096 << self.draws.below(5);
        let op = if self.draws.below(10) < 6 { Op::Read } else { Op::Write };
        let volume = self.draws.below(self.volumes) as u16;
        let offset = self.draws.below((256 * MIB - 64 * KIB) / 4096) * 4096;
        self.model.submit(self.now_ns, &request(op, volume, offset, bytes, tag));
        self.sent += 1;
        self.written_bytes += if op == Op::Write { u64::from(bytes) } else { 0 };
    }

    fn run(&mut self, count: u64, goes_on: bool, mut each: impl FnMut(&Completion)) -> u64 {
        let (mut completions, mut seen) = (Vec::new(), 0);
        while seen < count && self.model.next_event_ns().is_some() {
            self.now_ns = self.model.advance(u64::MAX / 2, &mut completions);
            for completion in completions.drain(..) {
                seen += 1;
                each(&completion);
                if goes_on {
                    self.send(completion.tag);
                }
            }
        }
        seen
    }

    fn drain(&mut self) -> u64 {
        let mut completions = Vec::new();
        while let Some(next_ns) = self.model.next_event_ns() {
            self.now_ns = self.model.advance(next_ns, &mut completions);
        }
        completions.len() as u64
    }
}

#[test]
fn every_machine_gets_the_golden_result() {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (number, plan) in golden_plans().iter().enumerate() {
        Loop::new(plan, number as u64, 48).run(20_000, true, |completion| {
            for value in [u64::from(completion.tag), completion.result as u64, completion.at_ns] {
                for byte in value.to_le_bytes() {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
            }
        });
    }
    assert_eq!(hash, GOLDEN, "{hash:#018x}");
}

#[test]
fn a_copy_goes_on_as_the_original_does() {
    for plan in golden_plans() {
        let mut original = Loop::new(&plan, 2, 48);
        original.run(5000, true, |_| {});
        let mut copy = Loop { model: original.model.clone(), draws: Draws(original.draws.0), ..original };
        let mut original = Loop::new(&plan, 2, 48);
        original.run(5000, true, |_| {});
        let (mut left, mut right) = (Vec::new(), Vec::new());
        original.run(3000, true, |completion| left.push(*completion));
        copy.run(3000, true, |completion| right.push(*completion));
        assert_eq!(left, right);
        assert_eq!(original.model.readings(), copy.model.readings());
        assert_eq!(original.model.host_readings(), copy.model.host_readings());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_io_ends_once_and_every_byte_that_is_stored_was_written(
        hosts in 1_u32..6, nodes in 1_u32..4, outstanding in 1_u32..96, flash_mib in 8_u64..600, memory_mib in 0_u64..64,
        nvram_mib in 8_u64..128, seed in 0_u64..1000, reclaims in any::<bool>(), snapshots in 0_u32..6,
        deduplication in 1.0_f64..3.0,
    ) {
        let mut plan = plan();
        (plan.host.count, plan.node.count, plan.seed) = (hosts, nodes, seed);
        (plan.host.flash_bytes, plan.host.memory_bytes) = (flash_mib * MIB, memory_mib * MIB);
        (plan.node.nvram_bytes, plan.log.reclaims, plan.log.snapshots) = (nvram_mib * MIB, reclaims, snapshots);
        plan.log.deduplication = deduplication;
        let mut driven = Loop::new(&plan, seed, outstanding);
        let ended = driven.run(6000, true, |completion| assert!(completion.result > 0));
        let ended = ended + driven.drain();
        prop_assert_eq!(ended, driven.sent);
        let hosts = driven.model.host_readings();
        for host in &hosts {
            prop_assert!(host.memory_hits + host.flash_hits + host.remote_hits <= host.reads);
        }
        let nodes = driven.model.readings();
        prop_assert_eq!(nodes.iter().map(|node| node.written_bytes).sum::<u64>(), driven.written_bytes);
        // What is on disk went there in whole containers, with parity; what is not, is in memory.
        let on_disk: u64 = nodes.iter().map(|node| node.destaged_bytes + node.moved_bytes).sum();
        let disks = nodes.iter().flat_map(|node| &node.disks);
        prop_assert_eq!(disks.clone().map(|disk| disk.write_bytes).sum::<u64>(), on_disk / 8 * 10);
        prop_assert_eq!(nodes.iter().map(|node| node.dirty_bytes).sum::<u64>(), 0, "no container waits");
        let stored: u64 = nodes.iter().map(|node| node.destaged_bytes + node.held_bytes).sum();
        let entries = if snapshots > 0 { driven.written_bytes / 4096 * 64 } else { 0 };
        let expected = driven.written_bytes as f64 / (plan.log.deduplication * plan.log.compression) + entries as f64;
        prop_assert!((stored as f64 / expected - 1.0).abs() < 0.001, "{} stored, {} expected", stored, expected);
        prop_assert!(reclaims || nodes.iter().all(|node| node.moved_bytes == 0 && node.cleaned_bytes == 0));
    }
}

/// A session of one activity: IOPS, bytes per second, mean read and write latency, and what hosts and log did.
fn measure(
    plan: &HostFlashPlan,
    bytes: u32,
    read_share: f64,
    queue_depth: u32,
    ticks: u64,
) -> (f64, f64, ModelSession) {
    let mut activity = activity(plan.volumes.len(), bytes, read_share, Load::Closed { queue_depth });
    activity.access.region.end_bytes = plan.volumes[0].bytes;
    let session = SessionPlan { activities: vec![activity], seed: 7, interval_ns: SECOND / 10, warm: true };
    let mut session = ModelSession::start(HostFlashModel::new(plan).unwrap(), &session).unwrap();
    session.run_ticks(ticks);
    let (mut count, mut moved) = (0, 0);
    for interval in session.collector().totals(ticks / 2, ticks).values() {
        count += interval.read.latency.count() + interval.write.latency.count();
        moved += interval.read.bytes + interval.write.bytes;
    }
    let seconds = (ticks - ticks / 2) as f64 / 10.0;
    (count as f64 / seconds, moved as f64 / seconds, session)
}

#[test]
fn no_host_reads_more_than_its_processors_and_its_rate_allow() {
    let mut plan = plan();
    plan.volumes.truncate(2);
    let (iops, ..) = measure(&plan, 4096, 1.0, 64, 10);
    let ceiling = 2.0 * 140_625.0;
    assert!(iops <= ceiling * 1.001 && iops > 0.95 * ceiling, "{iops}");
    let (_, bytes_per_s, _) = measure(&plan, 256 * KIB as u32, 1.0, 32, 10);
    assert!(bytes_per_s <= 2.0 * 1.56e9 * 1.001 && bytes_per_s > 0.95 * 2.0 * 1.56e9, "{bytes_per_s}");
    // Half of the processors: half of the I/Os.
    plan.host.cores = 4;
    let (half, ..) = measure(&plan, 4096, 1.0, 64, 10);
    assert!((half / iops - 0.5).abs() < 0.01, "{half} of {iops}");
}

#[test]
fn no_node_takes_more_writes_than_it_may_and_disks_bound_what_lasts() {
    let mut plan = plan();
    plan.node.nvram_bytes = 64 * GIB;
    let (_, bytes_per_s, _) = measure(&plan, 64 * KIB as u32, 0.0, 64, 10);
    assert!(bytes_per_s <= 1.001e9 && bytes_per_s > 0.95e9, "{bytes_per_s}");
    plan.node.count = 2;
    let (_, twice, _) = measure(&plan, 64 * KIB as u32, 0.0, 64, 10);
    assert!(twice <= 2.002e9 && twice > 1.5 * bytes_per_s, "{twice}");
    // With little memory slow disks are what lasts: ten pieces for eight of data.
    (plan.node.count, plan.node.nvram_bytes, plan.log.compression, plan.log.deduplication) = (1, 256 * MIB, 1.0, 1.0);
    plan.log.room_bytes = 2 * GIB;
    let slow = MechanicalPlan { rate_outer_bytes_per_s: 80e6, rate_inner_bytes_per_s: 60e6, ..mechanical() };
    plan.node.disk = DiskPlan::Mechanical(MechanicalPlan { capacity_bytes: 16 * GIB, ..slow });
    let (_, bound, mut session) = measure(&plan, 64 * KIB as u32, 0.0, 64, 60);
    let readings = session.take_readings();
    let last = readings.last().unwrap();
    let on_disks = |all: &[assay_array_model::MemberReading]| -> u64 {
        all.iter().flat_map(|node| &node.disks).map(|disk| disk.write_bytes).sum()
    };
    let disks = (on_disks(&last.after) - on_disks(&last.before)) as f64;
    assert!((bound * 1.25 / disks - 1.0).abs() < 0.05, "{bound} of hosts, {disks} on disks");
    assert!(bound < 0.9e9, "{bound}");
    assert!(last.after[0].writes_waited > 0);
}

/// One read on its own: where it was found, as counts of a host, and how long it took.
fn one_read(model: &mut HostFlashModel, now_ns: &mut u64, volume: u16, offset_bytes: u64) -> ([u64; 3], u64) {
    let before = model.host_readings();
    model.submit(*now_ns, &request(Op::Read, volume, offset_bytes, 4096, 0));
    let mut completions = Vec::new();
    let started_ns = *now_ns;
    while completions.is_empty() {
        *now_ns = model.advance(*now_ns + SECOND, &mut completions);
    }
    let after = model.host_readings();
    let sum = |of: fn(&assay_array_model::HostReading) -> u64| {
        after.iter().map(of).sum::<u64>() - before.iter().map(of).sum::<u64>()
    };
    ([sum(|host| host.memory_hits), sum(|host| host.flash_hits), sum(|host| host.remote_hits)], *now_ns - started_ns)
}

#[test]
fn reads_look_in_memory_then_flash_then_other_hosts_then_data_nodes() {
    let mut plan = plan();
    plan.host.memory_bytes = MIB;
    plan.log.deduplication = 100.0;
    let (mut model, mut now_ns) = (HostFlashModel::new(&plan).unwrap(), 0);
    let (found, node_ns) = one_read(&mut model, &mut now_ns, 0, 8192);
    assert_eq!(found, [0, 0, 0], "nothing is held yet");
    let (found, memory_ns) = one_read(&mut model, &mut now_ns, 0, 8192);
    assert_eq!(found, [1, 0, 0]);
    // Its memory holds 256 blocks, its flash many more.
    for block in 10..1000 {
        one_read(&mut model, &mut now_ns, 0, block * 4096);
    }
    let (found, flash_ns) = one_read(&mut model, &mut now_ns, 0, 8192);
    assert_eq!(found, [0, 1, 0]);
    // Volume 1 is another host's and holds the same content.
    let (found, remote_ns) = one_read(&mut model, &mut now_ns, 1, 8192);
    assert_eq!(found, [0, 0, 1]);
    assert_eq!(one_read(&mut model, &mut now_ns, 1, 8192).0, [1, 0, 0], "what was fetched is held");
    assert!(memory_ns < flash_ns && flash_ns < remote_ns && remote_ns < node_ns);
    assert!(node_ns > 4 * MS, "a disk turns: {node_ns} ns");
}

#[test]
fn flash_smaller_than_the_working_set_holds_its_share_of_it() {
    let mut plan = plan();
    plan.host.memory_bytes = 0;
    plan.log.deduplication = 1.0;
    // 512 MiB of each host, 64 MiB of flash times 1.6.
    plan.host.flash_bytes = 64 * MIB;
    let (_, _, mut session) = measure(&plan, 4096, 1.0, 4, 60);
    let readings = session.take_readings();
    let last = readings.last().unwrap();
    for (before, after) in last.hosts_before.iter().zip(&last.hosts_after) {
        let share = (after.flash_hits - before.flash_hits) as f64 / (after.reads - before.reads) as f64;
        assert!((share - 0.2).abs() < 0.05, "{share}");
    }
    plan.host.flash_bytes = GIB;
    let (_, _, mut session) = measure(&plan, 4096, 1.0, 4, 20);
    let readings = session.take_readings();
    for host in &readings.last().unwrap().hosts_after {
        assert_eq!(host.reads, host.flash_hits, "what fits is held");
    }
}

#[test]
fn reclamation_and_snapshots_cost_writes() {
    let mut plan = plan();
    // 512 MiB stored of 734 MiB: r = 0.7, for which the formula says 1.88.
    (plan.log.room_bytes, plan.log.compression, plan.log.deduplication) = (734 * MIB, 2.0, 1.0);
    plan.node.nvram_bytes = 64 * MIB;
    let (peak, ..) = measure(&plan, 8192, 0.3, 16, 60);
    plan.log.reclaims = true;
    let (cleaned, _, mut session) = measure(&plan, 8192, 0.3, 16, 60);
    let log = session.take_readings().last().unwrap().log.unwrap();
    let amplified = 1.0 + (log[1].moves - log[0].moves) as f64 / (log[1].appends - log[0].appends) as f64;
    assert!((amplified / 1.88 - 1.0).abs() < 0.08, "{amplified}");
    plan.log.snapshots = 12;
    let (both, _, mut session) = measure(&plan, 8192, 0.3, 16, 60);
    let log = session.take_readings().last().unwrap().log.unwrap()[1];
    assert_eq!(log.snapshots, 12);
    assert!(log.live_share > 0.8 && log.held_share > 0.1, "{log:?}");
    assert!(cleaned < 0.8 * peak && both < 0.95 * cleaned, "{peak}, {cleaned}, {both}");
}

#[test]
fn a_full_memory_goes_on_letting_writes_in_while_space_is_reclaimed() {
    let mut plan = plan();
    (plan.log.room_bytes, plan.log.compression, plan.log.deduplication) = (734 * MIB, 2.0, 1.0);
    (plan.log.reclaims, plan.log.snapshots, plan.node.nvram_bytes) = (true, 12, 512 * MIB);
    let (.., mut session) = measure(&plan, 8192, 0.3, 16, 100);
    let ticks = session.collector().fresh_ticks();
    for second in 5..10 {
        let ended: u64 = ticks.iter().filter(|one| one.tick / 10 == second).map(|one| one.counted.write.count).sum();
        assert!(ended > 0, "no write ended in second {second}");
    }
}

#[test]
fn what_a_revert_changes_is_read_from_the_data_nodes() {
    let mut plan = plan();
    plan.log.deduplication = 1.0;
    plan.log.snapshots = 2;
    let (mut model, mut now_ns) = (HostFlashModel::new(&plan).unwrap(), 0);
    one_read(&mut model, &mut now_ns, 0, 0);
    let snapshot = model.snapshot();
    model.submit(now_ns, &request(Op::Write, 0, 0, 4096, 0));
    let mut completions = Vec::new();
    while completions.is_empty() {
        now_ns = model.advance(now_ns + SECOND, &mut completions);
    }
    assert_eq!(one_read(&mut model, &mut now_ns, 0, 0).0, [1, 0, 0], "what was written is held");
    assert!(model.revert(snapshot));
    assert_eq!(one_read(&mut model, &mut now_ns, 0, 0).0, [0, 0, 0]);
    assert!(!model.revert(99), "there is no such snapshot");
}

/// Random reads that no cache holds: how long all of them took, and how many commands disks carried out for them.
fn reads_of_disks(model: &mut HostFlashModel, now_ns: &mut u64) -> (u64, u64) {
    let carried_out = |model: &HostFlashModel| model.readings()[0].disks.iter().map(|disk| disk.reads).sum::<u64>();
    let (before, began_ns) = (carried_out(model), *now_ns);
    for block in 0..400 {
        model.forget(0, block * 8192, 4096);
        one_read(model, now_ns, 0, block * 8192);
    }
    (*now_ns - began_ns, carried_out(model) - before)
}

#[test]
fn what_lay_on_a_lost_disk_is_read_from_eight_others_and_restoring_takes_the_disks_time() {
    let mut plan = plan();
    plan.log.deduplication = 1.0;
    let (mut model, mut now_ns) = (HostFlashModel::new(&plan).unwrap(), 0);
    let (whole_ns, commands) = reads_of_disks(&mut model, &mut now_ns);
    assert_eq!(commands, 400);
    let before = model.readings()[0].disks[3];
    model.set_disk(3, false);
    let (degraded_ns, commands) = reads_of_disks(&mut model, &mut now_ns);
    // One read in twelve takes eight commands.
    assert!((600..=1000).contains(&commands) && (commands - 400) % 7 == 0, "{commands}");
    assert!(degraded_ns > whole_ns, "{degraded_ns} of {whole_ns}");
    assert_eq!(model.readings()[0].disks[3].reads, before.reads, "nothing is asked of a disk that is not there");

    model.restore(200, 4);
    assert_eq!((model.restoring(), model.take_restored()), (200, 0));
    let (busy_ns, commands) = reads_of_disks(&mut model, &mut now_ns);
    assert!(commands > 600 && busy_ns > degraded_ns, "{busy_ns} of {degraded_ns}");
    let mut restored = model.take_restored();
    while let Some(next_ns) = model.next_event_ns() {
        now_ns = model.advance(next_ns, &mut Vec::new());
    }
    restored += model.take_restored();
    let node = &model.readings()[0];
    assert_eq!((restored, model.restoring(), node.rebuilt_bytes), (200, 0, 200 * MIB));
    assert_eq!(node.disks.iter().map(|disk| disk.writes).sum::<u64>(), 200);
    assert_eq!(node.disks[3].writes, 0);

    model.set_disk(3, true);
    assert_eq!(reads_of_disks(&mut model, &mut now_ns).1, 400);
}

#[test]
fn a_slow_disk_takes_so_many_times_as_long_and_a_pool_without_disks_hangs_nothing() {
    let (mut model, mut now_ns) = (HostFlashModel::new(&plan()).unwrap(), 0);
    let (whole_ns, _) = reads_of_disks(&mut model, &mut now_ns);
    (0..12).for_each(|disk| model.slow_disk(disk, 10));
    let (slow_ns, _) = reads_of_disks(&mut model, &mut now_ns);
    assert!(slow_ns > 8 * whole_ns, "{slow_ns} of {whole_ns}");
    (0..12).for_each(|disk| model.slow_disk(disk, 1));
    (0..12).for_each(|disk| model.set_disk(disk, false));
    // Their bytes are lost, which the store says; the model answers.
    assert!(reads_of_disks(&mut model, &mut now_ns).0 > 0);
}

#[test]
fn what_is_outside_a_volume_is_refused_and_a_flush_has_nothing_to_do() {
    let (mut model, mut completions) = (HostFlashModel::new(&plan()).unwrap(), Vec::new());
    model.submit(0, &request(Op::Read, 0, 256 * MIB - 512, 4096, 1));
    model.submit(0, &request(Op::Write, 9, 0, 4096, 2));
    model.submit(0, &request(Op::Flush, 1, 0, 0, 3));
    while model.next_event_ns().is_some() {
        model.advance(SECOND, &mut completions);
    }
    let results: Vec<(u32, i32)> = completions.iter().map(|completion| (completion.tag, completion.result)).collect();
    assert_eq!(results, [(1, -22), (2, -22), (3, 0)]);
}

#[test]
fn what_no_array_can_be_is_refused() {
    let refused = |change: fn(&mut HostFlashPlan)| {
        let mut plan = plan();
        change(&mut plan);
        HostFlashModel::new(&plan).unwrap_err().to_string()
    };
    assert!(refused(|plan| plan.host.count = 0).starts_with("hosts: 0 is outside 1 to 128"));
    assert!(refused(|plan| plan.host.count = 129).starts_with("hosts: 129"));
    assert!(refused(|plan| plan.node.count = 11).starts_with("nodes: 11 is outside 1 to 10"));
    assert!(refused(|plan| plan.host.flash_bytes = 0).starts_with("host.flash: "));
    assert!(refused(|plan| plan.log.compression = 0.9).starts_with("log.compression: 0.9 is outside 1 to 100"));
    assert!(refused(|plan| plan.log.deduplication = 0.0).starts_with("log.deduplication: "));
    assert!(refused(|plan| plan.node.disks = 9).starts_with("disks.count: 9 disks"));
    assert!(
        refused(|plan| plan.log.room_bytes = 520 * MIB).starts_with("reclamation is impossible: volumes take 98 %")
    );
    assert!(refused(|plan| plan.log.snapshots = 60).contains("volumes and snapshots take 110 %"));
}
