//! Drives of flash in arrays: RAID in software with its bitmap, logs and stripes; data reduction; drives that differ.

mod plans;

use assay_array_model::{
    ArrayModel, ArrayPlan, DiskPlan, FlashAge, LayoutPlan, MemberPlan, OthersPlan, PartialWrite, RaidLog, RaidPolicy,
    SoftwarePlan, SolidStatePlan, SpacePlan, StatePlan,
};
use assay_load::{Completion, Load, Op, Simulated};
use plans::{GIB, KIB, MIB, SECOND, activity, drain, perform, plan, request, solid_state};

const SOFTWARE: SoftwarePlan = SoftwarePlan { bitmap_bytes: 0, bitmap_clear_ns: 0, log: RaidLog::None, stripes: 0 };

/// Four drives of flash whose RAID the host does.
fn software(policy: RaidPolicy, software: SoftwarePlan) -> ArrayPlan {
    let mut plan = plan(policy);
    let member = &mut plan.pools[0].member;
    (member.disks, member.raid.set_disks) = (4, 0);
    member.raid.partial_write = PartialWrite::Cheapest;
    member.raid.chunk_bytes = 256 * KIB;
    member.disk = DiskPlan::SolidState(solid_state());
    member.cache.write_back = software.log == RaidLog::JournalWriteBack;
    (member.cache.keep_reads, member.cache.sequential_after) = (false, 1 << 20);
    (member.controller.cpu_per_io_ns, member.controller.cpu_bytes_per_s) = (500, 1e11);
    member.software = Some(software);
    plan.links.hosts = plans::hosts(2, 1e11);
    plan.links.port_bytes_per_s = 1e11;
    plan
}

fn model(plan: &ArrayPlan) -> (ArrayModel, u64) {
    (ArrayModel::new(plan).unwrap(), 0)
}

/// Reads and writes of each disk.
fn commands(model: &ArrayModel) -> Vec<(u64, u64)> {
    model.readings()[0].disks.iter().map(|disk| (disk.reads, disk.writes)).collect()
}

fn write_bytes(model: &ArrayModel) -> Vec<u64> {
    model.readings()[0].disks.iter().map(|disk| disk.write_bytes).collect()
}

/// Time of one write of 4 KiB that nothing stands beside.
fn write_ns(model: &mut ArrayModel, now_ns: &mut u64, offset_bytes: u64) -> u64 {
    let before_ns = *now_ns;
    perform(model, now_ns, request(Op::Write, 0, offset_bytes, 4096, 1)).at_ns - before_ns
}

/// All of these writes at once, until the last is over.
fn write_all(model: &mut ArrayModel, now_ns: &mut u64, writes: &[(u64, u32)]) -> Vec<Completion> {
    for (tag, (offset_bytes, bytes)) in writes.iter().enumerate() {
        model.submit(*now_ns, &request(Op::Write, 0, *offset_bytes, *bytes, tag as u32));
    }
    let mut completions = Vec::new();
    while completions.len() < writes.len() {
        *now_ns = model.advance(*now_ns + SECOND, &mut completions);
    }
    completions
}

#[test]
fn the_first_write_to_a_region_waits_for_the_bitmap_and_later_ones_do_not() {
    let bitmap = SoftwarePlan { bitmap_bytes: 64 * MIB, bitmap_clear_ns: 10 * SECOND, ..SOFTWARE };
    let (mut model, mut now_ns) = model(&software(RaidPolicy::Raid10, bitmap));

    let first_ns = write_ns(&mut model, &mut now_ns, 0);
    assert_eq!(
        commands(&model).iter().map(|(_, writes)| writes).sum::<u64>(),
        4 + 2,
        "a page to each disk, two copies"
    );
    let second_ns = write_ns(&mut model, &mut now_ns, 4096);
    assert_eq!(commands(&model).iter().map(|(_, writes)| writes).sum::<u64>(), 6 + 2);
    assert!(first_ns > second_ns + 10_000, "a write of the drive, one after the other: {first_ns} {second_ns}");

    now_ns += 11 * SECOND;
    assert!(write_ns(&mut model, &mut now_ns, 8192) > second_ns + 10_000, "the bit was clear again");
    // Writes to other regions meanwhile share the next page.
    let before = commands(&model).iter().map(|(_, writes)| writes).sum::<u64>();
    write_all(&mut model, &mut now_ns, &[(64 * MIB, 4096), (128 * MIB, 4096), (192 * MIB, 4096)]);
    let after = commands(&model).iter().map(|(_, writes)| writes).sum::<u64>();
    assert_eq!(after - before, 2 * 4 + 3 * 2);
}

#[test]
fn partial_parity_goes_to_the_disk_of_the_parity_and_a_whole_stripe_has_none() {
    let written = |log, bytes: u32| {
        let (mut model, mut now_ns) = model(&software(RaidPolicy::Raid5, SoftwarePlan { log, ..SOFTWARE }));
        perform(&mut model, &mut now_ns, request(Op::Write, 0, 0, bytes, 1));
        write_bytes(&model)
    };
    let stripe = 3 * 256 * KIB;
    assert_eq!(written(RaidLog::None, 4096), [4096, 0, 0, 4096]);
    assert_eq!(written(RaidLog::Ppl, 4096), [4096, 0, 0, 4096 + 8192], "a page, and the partial parity");
    assert_eq!(written(RaidLog::Ppl, stripe as u32), [256 * KIB, 256 * KIB, 256 * KIB, 256 * KIB + 4096]);
}

#[test]
fn partial_parity_costs_about_what_the_kernel_says() {
    let iops = |log| {
        let plan = software(RaidPolicy::Raid5, SoftwarePlan { log, ..SOFTWARE });
        plans::measure(&plan, activity(2, 4096, 0.0, Load::Closed { queue_depth: 64 }), 1, 2).0
    };
    // docs.kernel.org, raid5-ppl: 30 to 40 % of write performance.
    let left = iops(RaidLog::Ppl) / iops(RaidLog::None);
    assert!((0.6..0.75).contains(&left), "{left}");
}

#[test]
fn a_journal_takes_data_and_parity_first_and_answers_at_once_where_it_writes_back() {
    let of = |log| {
        let (mut model, mut now_ns) = model(&software(RaidPolicy::Raid5, SoftwarePlan { log, ..SOFTWARE }));
        let ns = write_ns(&mut model, &mut now_ns, 0);
        (ns, model, now_ns)
    };
    let (plain_ns, plain, _) = of(RaidLog::None);
    assert_eq!(commands(&plain).len(), 4);
    let (through_ns, through, _) = of(RaidLog::Journal);
    assert_eq!(write_bytes(&through), [4096, 0, 0, 4096, 3 * 4096], "a page, data and parity on the fifth drive");
    assert!(through_ns > plain_ns + 10_000);
    let (back_ns, mut back, mut now_ns) = of(RaidLog::JournalWriteBack);
    assert_eq!(write_bytes(&back), [0, 0, 0, 0, 2 * 4096]);
    assert!(back_ns < plain_ns, "no reads of old data: {back_ns} {plain_ns}");
    // What fills memory goes to its place.
    let writes: Vec<(u64, u32)> = (0..200).map(|n| (n * MIB, 128 << 10)).collect();
    write_all(&mut back, &mut now_ns, &writes);
    drain(&mut back, &mut now_ns);
    assert!(write_bytes(&back)[0] > 0);
}

#[test]
fn writes_that_wait_for_a_stripe_go_on_together() {
    let reads = |stripes| {
        let (mut model, mut now_ns) = model(&software(RaidPolicy::Raid5, SoftwarePlan { stripes, ..SOFTWARE }));
        let chunk = 256 * KIB;
        write_all(&mut model, &mut now_ns, &[(0, chunk as u32), (chunk, chunk as u32), (2 * chunk, chunk as u32)]);
        commands(&model).iter().map(|(reads, _)| reads).sum::<u64>()
    };
    assert_eq!(reads(0), 3 * 2, "each reads its own chunk and the parity, or the two others");
    assert_eq!(reads(1024), 2 + 1, "the first like that, the two behind it together the chunk that they do not write");
}

#[test]
fn fewer_stripes_than_writes_hold_them_up() {
    let iops = |stripes| {
        let plan = software(RaidPolicy::Raid5, SoftwarePlan { stripes, ..SOFTWARE });
        plans::measure(&plan, activity(2, 4096, 0.0, Load::Closed { queue_depth: 16 }), 1, 1).0
    };
    let (few, usual, any) = (iops(2), iops(256), iops(0));
    assert!(few < 0.5 * any, "{few} {any}");
    assert!((usual / any - 1.0).abs() < 0.02, "{usual} {any}");
}

#[test]
fn impossible_software_is_refused() {
    let refused = |policy, plan| ArrayModel::new(&software(policy, plan)).unwrap_err().to_string();
    let bitmap = SoftwarePlan { bitmap_bytes: 64 * MIB, ..SOFTWARE };
    assert!(refused(RaidPolicy::Raid0, bitmap.clone()).contains("raid.bitmap"));
    assert!(refused(RaidPolicy::Raid10, SoftwarePlan { log: RaidLog::Ppl, ..SOFTWARE }).contains("raid.journal"));
    assert!(refused(RaidPolicy::Raid6, SoftwarePlan { log: RaidLog::Ppl, ..SOFTWARE }).contains("raid.journal"));
    assert!(refused(RaidPolicy::Raid5, SoftwarePlan { log: RaidLog::Ppl, ..bitmap }).contains("raid.bitmap=0B"));
}

/// Drives of flash behind a controller that writes anywhere, and reduces what it writes.
fn reducing(reduction: f64) -> ArrayPlan {
    let mut plan = plan(RaidPolicy::Raid6);
    let member = &mut plan.pools[0].member;
    member.disk = DiskPlan::SolidState(SolidStatePlan { age: FlashAge::Written, ..solid_state() });
    member.layout = LayoutPlan::WriteAnywhere {
        block_bytes: 4 * KIB,
        run_blocks: 64,
        read_realloc: false,
        reduction,
        space: SpacePlan::default(),
    };
    plan
}

#[test]
fn reduced_data_take_less_of_the_drives_and_more_fits_on_them() {
    let written = |reduction| {
        let (mut model, mut now_ns) = model(&reducing(reduction));
        let mut draws = plans::Draws(3);
        for _ in 0..4000 {
            perform(&mut model, &mut now_ns, request(Op::Write, 0, draws.below(16384) * 8192, 8192, 1));
        }
        drain(&mut model, &mut now_ns);
        let reading = &model.readings()[0];
        (write_bytes(&model).iter().sum::<u64>() as f64) / reading.destaged_bytes as f64
    };
    let (whole, reduced) = (written(1.0), written(4.0));
    assert!((whole / reduced / 4.0 - 1.0).abs() < 0.05, "{whole} {reduced}");

    let mut plan = reducing(4.0);
    plan.pools[0].volumes.iter_mut().for_each(|volume| volume.bytes = 7 * GIB);
    assert!(ArrayModel::new(&plan).is_ok(), "four disks of data of 1 GiB hold 14 GiB of 16");
    plan.pools[0].volumes[0].bytes = 10 * GIB;
    assert!(ArrayModel::new(&plan).is_err());
    if let LayoutPlan::WriteAnywhere { reduction, .. } = &mut plan.pools[0].member.layout {
        *reduction = 0.5;
    }
    assert!(ArrayModel::new(&plan).unwrap_err().to_string().contains("layout.reduction"));
}

#[test]
fn the_slowest_drive_sets_the_pace_of_writes() {
    let slower = |disk: SolidStatePlan| SolidStatePlan {
        flash: assay_array_model::FlashPlan { program_ns: 4 * disk.flash.program_ns, ..disk.flash.clone() },
        ..disk
    };
    let iops = |usual: SolidStatePlan, others: Option<SolidStatePlan>| {
        let mut plan = software(RaidPolicy::Raid5, SOFTWARE);
        let member = &mut plan.pools[0].member;
        member.disk = DiskPlan::SolidState(usual);
        member.others = others.map(|disk| OthersPlan { count: 1, disk: DiskPlan::SolidState(disk) });
        plans::measure(&plan, activity(2, 4096, 0.0, Load::Closed { queue_depth: 32 }), 1, 2).0
    };
    let (fast, mixed) = (iops(solid_state(), None), iops(solid_state(), Some(slower(solid_state()))));
    let slow = iops(slower(solid_state()), None);
    assert!(mixed < 1.25 * slow && mixed < 0.5 * fast, "{fast} {mixed} {slow}");

    let mut plan = software(RaidPolicy::Raid5, SOFTWARE);
    plan.pools[0].member.others = Some(OthersPlan { count: 4, disk: DiskPlan::SolidState(solid_state()) });
    assert!(ArrayModel::new(&plan).unwrap_err().to_string().contains("mixed"));
}

#[test]
fn a_rebuild_goes_no_faster_than_its_rate() {
    let rebuilt = |bytes_per_s| {
        let mut plan = software(RaidPolicy::Raid5, SOFTWARE);
        let member = &mut plan.pools[0].member;
        (member.state, member.rebuild_bytes_per_s) = (StatePlan::Rebuilding { depth: 4 }, bytes_per_s);
        let (mut model, mut completions) = (ArrayModel::new(&plan).unwrap(), Vec::new());
        model.advance(SECOND, &mut completions);
        model.readings()[0].rebuilt_bytes as f64
    };
    let free = rebuilt(0.0);
    assert!(free > 200e6, "{free}");
    assert!((rebuilt(50e6) / 50e6 - 1.0).abs() < 0.02, "{}", rebuilt(50e6));
    assert!((rebuilt(1e12) / free - 1.0).abs() < 0.02);
    // The spare is new: it takes what a fresh drive takes, whatever state the others are in.
    let program = 3.0 * 2.0 * 16.0 * KIB as f64 * 8.0 / 1.2e-3;
    assert!(free > 0.7 * program, "{free} of {program}");
}

/// Bytes that drives take for each byte written to a full cache that writes back, where writes fall on so many places.
fn taken(policy: RaidPolicy, places: u64) -> f64 {
    let mut plan = software(policy, SOFTWARE);
    let member: &mut MemberPlan = &mut plan.pools[0].member;
    (member.software, member.cache.write_back) = (None, true);
    let (mut model, mut now_ns) = model(&plan);
    let mut draws = plans::Draws(5);
    let spacing = 256 * MIB / places / 4096 * 4096;
    let mut figures = [(0, 0); 2];
    for figure in &mut figures {
        for _ in 0..40 {
            let writes: Vec<(u64, u32)> = (0..200).map(|_| (draws.below(places) * spacing, 4096)).collect();
            write_all(&mut model, &mut now_ns, &writes);
        }
        drain(&mut model, &mut now_ns);
        *figure = (model.readings()[0].destaged_bytes, write_bytes(&model).iter().sum::<u64>());
    }
    let [before, after] = figures;
    (after.1 - before.1) as f64 / (after.0 - before.0) as f64
}

#[test]
fn parity_that_neighbours_in_a_cache_share_takes_less_of_the_drives_than_mirrors() {
    // A mirror takes each byte twice, whatever lies beside it; parity is written once for all that lie at one place of a stripe.
    assert_eq!(taken(RaidPolicy::Raid10, 1 << 15), 2.0);
    let dense = taken(RaidPolicy::Raid5, 1 << 15);
    assert!((1.33..1.98).contains(&dense), "{dense}");
}
