//! What goes in comes out: bytes and disk commands of every way to write and to read, counted by hand.

mod plans;

use assay_array_model::{
    ArrayModel, ArrayPlan, DiskPlan, DiskReading, MemberReading, PartialWrite, RaidPolicy, StatePlan,
};
use assay_load::{Op, Simulated};
use plans::{Draws, KIB, MIB, POLICIES, SECOND, drain, perform, request};

const CHUNK: u64 = 64 * KIB;

/// An array with one volume, whose chunks follow each other as those of its member.
fn plan(policy: RaidPolicy) -> ArrayPlan {
    let mut plan = plans::plan(policy);
    plan.pools[0].volumes.truncate(1);
    plan.pools[0].volumes[0].bytes = 512 * MIB;
    plan
}

fn policies_with_parity() -> impl Iterator<Item = RaidPolicy> {
    POLICIES.into_iter().filter(|policy| policy.parity_disks() > 0)
}

/// Data chunks of a row of one set.
fn columns(policy: RaidPolicy) -> u64 {
    u64::from((plans::set_disks(policy) - policy.parity_disks()) / policy.copies())
}

/// What all disks of the first member did.
fn disks(model: &ArrayModel) -> DiskReading {
    model.readings()[0].disks.iter().fold(DiskReading::default(), |all, disk| DiskReading {
        reads: all.reads + disk.reads,
        writes: all.writes + disk.writes,
        read_bytes: all.read_bytes + disk.read_bytes,
        write_bytes: all.write_bytes + disk.write_bytes,
        busy_ns: all.busy_ns + disk.busy_ns,
        queue_ns: all.queue_ns + disk.queue_ns,
        programmed_bytes: all.programmed_bytes + disk.programmed_bytes,
        erases: all.erases + disk.erases,
        throttled_ns: None,
    })
}

/// Disk reads and writes of one write of `bytes` at the start of the first volume, written through.
fn commands_of_write(mut plan: ArrayPlan, bytes: u64) -> (u64, u64) {
    plan.pools[0].member.cache.write_back = false;
    let mut model = ArrayModel::new(&plan).unwrap();
    let mut now_ns = 0;
    perform(&mut model, &mut now_ns, request(Op::Write, 0, 0, bytes as u32, 0));
    let disks = disks(&model);
    (disks.reads, disks.writes)
}

#[test]
fn a_small_write_costs_what_the_policy_says() {
    for policy in POLICIES {
        let expected = match policy {
            RaidPolicy::Raid0 => (0, 1),
            RaidPolicy::Raid1 | RaidPolicy::Raid10 => (0, 2),
            RaidPolicy::Raid5 | RaidPolicy::Raid50 => (2, 2),
            RaidPolicy::Raid6 | RaidPolicy::Raid60 | RaidPolicy::Dp => (3, 3),
        };
        for bytes in [8 * KIB, CHUNK] {
            assert_eq!(commands_of_write(plan(policy), bytes), expected, "RAID {} {bytes}", policy.name());
        }
    }
}

#[test]
fn volumes_of_two_pools_are_written_each_as_its_policy_says() {
    let mut plan = plan(RaidPolicy::Raid6);
    let mut mirrors = self::plan(RaidPolicy::Raid10).pools[0].clone();
    mirrors.members = 2;
    mirrors.member.disks = 4;
    mirrors.member.raid.set_disks = 4;
    plan.pools.push(mirrors);
    plan.pools.iter_mut().for_each(|pool| pool.member.cache.write_back = false);
    let mut model = ArrayModel::new(&plan).unwrap();
    let mut now_ns = 0;
    let commands = |model: &ArrayModel| -> Vec<(u64, u64)> {
        let sum = |reading: &MemberReading| reading.disks.iter().fold((0, 0), |a, d| (a.0 + d.reads, a.1 + d.writes));
        model.readings().iter().map(sum).collect()
    };
    assert_eq!(model.readings().iter().map(|member| member.disks.len()).collect::<Vec<_>>(), [6, 4, 4]);
    perform(&mut model, &mut now_ns, request(Op::Write, 0, 0, 8 << 10, 0));
    assert_eq!(commands(&model), [(3, 3), (0, 0), (0, 0)]);
    // Pages of the second volume take turns on the two members of its pool.
    for page in 0..4 {
        perform(&mut model, &mut now_ns, request(Op::Write, 1, page * plan.page_bytes, 8 << 10, 0));
    }
    assert_eq!(commands(&model), [(3, 3), (0, 4), (0, 4)]);
    // A flush asks the members that hold the volume.
    perform(&mut model, &mut now_ns, request(Op::Flush, 1, 0, 0, 0));
    assert_eq!(commands(&model), [(3, 3), (0, 4), (0, 4)]);
}

#[test]
fn pools_that_cannot_be_are_refused() {
    let usual = plan(RaidPolicy::Raid10);
    let refused = |change: &dyn Fn(&mut ArrayPlan)| {
        let mut plan = usual.clone();
        plan.pools.push(usual.pools[0].clone());
        change(&mut plan);
        ArrayModel::new(&plan).unwrap_err().to_string()
    };
    assert!(refused(&|plan| plan.pools[1].members = 0).contains("members"));
    assert!(refused(&|plan| plan.pools.clear()).contains("members"));
    assert!(refused(&|plan| plan.pools[1].member.controller.ports += 1).contains("controller"));
    assert!(refused(&|plan| plan.pools[1].volumes[0].bytes = 64 << 30).contains("volumes take"));
}

#[test]
fn a_full_stripe_is_written_without_reads() {
    for policy in POLICIES {
        let bytes = columns(policy) * CHUNK;
        for partial_write in [PartialWrite::ReadModify, PartialWrite::Reconstruct, PartialWrite::Cheapest] {
            let mut plan = plan(policy);
            plan.pools[0].member.raid.partial_write = partial_write;
            let all = u64::from(plans::set_disks(policy));
            assert_eq!(commands_of_write(plan.clone(), bytes), (0, all), "RAID {}", policy.name());
            assert_eq!(commands_of_write(plan, 3 * bytes), (0, 3 * all), "RAID {}", policy.name());
        }
    }
}

#[test]
fn a_part_of_a_stripe_is_reconstructed_or_modified_whichever_is_asked_or_cheaper() {
    for policy in policies_with_parity() {
        let (columns, parity) = (columns(policy), u64::from(policy.parity_disks()));
        for written in 1..columns {
            let way = |partial_write| {
                let mut plan = plan(policy);
                plan.pools[0].member.raid.partial_write = partial_write;
                commands_of_write(plan, written * CHUNK)
            };
            let (modify, rest) = (written + parity, columns - written);
            let writes = written + parity;
            assert_eq!(way(PartialWrite::ReadModify), (modify, writes), "RAID {} {written}", policy.name());
            assert_eq!(way(PartialWrite::Reconstruct), (rest, writes), "RAID {} {written}", policy.name());
            assert_eq!(way(PartialWrite::Cheapest), (modify.min(rest), writes), "RAID {} {written}", policy.name());
        }
    }
}

#[test]
fn a_write_over_many_stripes_reaches_the_disks_whole() {
    for policy in POLICIES {
        let mut plan = plan(policy);
        plan.pools[0].member.cache.write_back = false;
        plan.pools[0].member.raid.chunk_bytes = 4096;
        let mut model = ArrayModel::new(&plan).unwrap();
        let mut now_ns = 0;
        let stripe_bytes = columns(policy) * 4096;
        let bytes = 300 * stripe_bytes;
        // From the middle of a stripe to the middle of another.
        perform(&mut model, &mut now_ns, request(Op::Write, 0, stripe_bytes / 2, bytes as u32, 0));
        let written = disks(&model).write_bytes;
        let data = bytes * u64::from(policy.copies());
        let parity = u64::from(policy.parity_disks()) * 300 * 4096;
        assert!((data + parity..=data + parity + 4 * 4096).contains(&written), "RAID {}: {written}", policy.name());
    }
}

/// Writes `count` blocks of 8 KiB that share no stripe, and waits until everything is on disk.
fn scattered_writes(plan: &ArrayPlan, count: u64) -> (MemberReading, DiskReading) {
    let mut model = ArrayModel::new(plan).unwrap();
    let mut now_ns = 0;
    let stripe_bytes = columns(plan.pools[0].member.raid.policy) * CHUNK;
    for number in 0..count {
        let write = request(Op::Write, 0, number * stripe_bytes + CHUNK / 2, 8 * KIB as u32, number as u32);
        perform(&mut model, &mut now_ns, write);
        let reading = &model.readings()[0];
        let under_way = reading.written_bytes - reading.destaged_bytes - reading.dirty_bytes;
        assert_eq!(under_way, 0, "what was written is dirty until it is on disk");
    }
    drain(&mut model, &mut now_ns);
    (model.readings().remove(0), disks(&model))
}

#[test]
fn every_byte_written_is_destaged_or_dirty() {
    for policy in POLICIES {
        for (low, keep_reads) in [(0.0, true), (0.0, false), (0.25, true)] {
            let mut plan = plan(policy);
            let cache = &mut plan.pools[0].member.cache;
            (cache.bytes, cache.dirty_low, cache.dirty_high, cache.dirty_most) = (4 * MIB, low, low + 0.01, 0.9);
            cache.keep_reads = keep_reads;
            let (member, disks) = scattered_writes(&plan, 500);
            assert_eq!(member.written_bytes, 500 * 8 * KIB);
            assert_eq!(member.destaged_bytes + member.dirty_bytes, member.written_bytes);
            assert!(member.dirty_bytes <= (low * 4.0 * MIB as f64) as u64, "RAID {}", policy.name());
            let destaged = member.destaged_bytes / (8 * KIB);
            let (reads, writes) = match policy.parity_disks() {
                0 => (0, u64::from(policy.copies())),
                parity => (1 + u64::from(parity), 1 + u64::from(parity)),
            };
            assert_eq!((disks.reads, disks.writes), (destaged * reads, destaged * writes), "RAID {}", policy.name());
            // Diagonals cross the rows, so that more of the diagonal parity changes than of the data.
            let bytes = destaged * writes * 8 * KIB;
            assert!(disks.write_bytes == bytes || policy == RaidPolicy::Dp && disks.write_bytes > bytes);
        }
    }
}

#[test]
fn what_is_written_again_before_it_is_destaged_goes_to_disk_once() {
    let mut plan = plan(RaidPolicy::Raid10);
    plan.pools[0].member.cache.dirty_low = 0.1;
    let mut model = ArrayModel::new(&plan).unwrap();
    let mut now_ns = 0;
    for tag in 0..100 {
        perform(&mut model, &mut now_ns, request(Op::Write, 0, 0, 8192, tag));
    }
    drain(&mut model, &mut now_ns);
    let reading = &model.readings()[0];
    assert_eq!((reading.dirty_bytes, reading.destaged_bytes), (8192, 0));
    assert_eq!(disks(&model).writes, 0);
}

#[test]
fn chunks_of_one_stripe_are_destaged_together() {
    for policy in policies_with_parity() {
        let mut plan = plan(policy);
        // Nothing leaves until the whole stripe is there.
        let stripe_bytes = columns(policy) * CHUNK;
        plan.pools[0].member.cache.dirty_low = (stripe_bytes - 1) as f64 / plan.pools[0].member.cache.bytes as f64;
        plan.pools[0].member.cache.dirty_high = plan.pools[0].member.cache.dirty_low;
        let mut model = ArrayModel::new(&plan).unwrap();
        let mut now_ns = 0;
        for block in 0..stripe_bytes / (8 * KIB) {
            perform(&mut model, &mut now_ns, request(Op::Write, 0, block * 8 * KIB, 8192, 0));
        }
        drain(&mut model, &mut now_ns);
        let disks = disks(&model);
        assert_eq!((disks.reads, disks.writes), (0, u64::from(plans::set_disks(policy))), "RAID {}", policy.name());
    }
}

#[test]
fn degraded_reads_come_from_the_survivors() {
    for policy in POLICIES.into_iter().filter(|policy| *policy != RaidPolicy::Raid0) {
        let mut plan = plan(policy);
        plan.pools[0].member.state = StatePlan::Degraded;
        plan.pools[0].member.cache.sequential_after = u32::MAX;
        let mut model = ArrayModel::new(&plan).unwrap();
        let mut now_ns = 0;
        let columns = columns(policy);
        let sets = u64::from(plan.pools[0].member.disks / plans::set_disks(policy));
        let rows = 24;
        let mut costs = std::collections::BTreeMap::new();
        for chunk in 0..rows * sets * columns {
            let before = disks(&model).reads;
            perform(&mut model, &mut now_ns, request(Op::Read, 0, chunk * CHUNK + 4096, 8192, 0));
            *costs.entry(disks(&model).reads - before).or_insert(0) += 1;
        }
        let lost = model.readings()[0].disks[0];
        assert_eq!((lost.reads, lost.writes, lost.busy_ns), (0, 0, 0));
        let chunks = rows * sets * columns;
        let expected: Vec<(u64, u64)> = match policy {
            RaidPolicy::Raid1 | RaidPolicy::Raid10 => vec![(1, chunks)],
            // The chunks on the lost disk cost a read of all other data chunks of the row, and of P.
            RaidPolicy::Dp => vec![(1, chunks - rows), (columns, rows)],
            _ => {
                let lost = rows * columns / u64::from(plans::set_disks(policy));
                vec![(1, chunks - lost), (columns, lost)]
            }
        };
        assert_eq!(costs.into_iter().collect::<Vec<_>>(), expected, "RAID {}", policy.name());
    }
}

#[test]
fn one_member_of_a_group_loses_a_disk_and_the_others_none() {
    for state in [StatePlan::Degraded, StatePlan::Rebuilding { depth: 1 }] {
        let mut plan = plan(RaidPolicy::Raid5);
        (plan.pools[0].members, plan.pools[0].member.state) = (3, state);
        let mut model = ArrayModel::new(&plan).unwrap();
        let mut now_ns = 0;
        let mut draws = Draws(23);
        for tag in 0..300 {
            perform(&mut model, &mut now_ns, request(Op::Read, 0, draws.below(8192) * CHUNK, 8192, tag));
        }
        let readings = model.readings();
        let first: Vec<_> = readings.iter().map(|member| member.disks[0]).collect();
        // Nothing is read from a lost disk, but from its spare as far as that has been written.
        assert!(state != StatePlan::Degraded || first[0].reads == 0);
        assert!(first[1].reads > 0 && first[2].reads > 0);
        let rebuilds = state != StatePlan::Degraded;
        assert_eq!([first[0].writes > 0, first[1].writes > 0, first[2].writes > 0], [rebuilds, false, false]);
    }
}

#[test]
fn degraded_writes_do_without_the_lost_disk() {
    for policy in POLICIES.into_iter().filter(|policy| *policy != RaidPolicy::Raid0) {
        for write_back in [true, false] {
            let mut plan = plan(policy);
            plan.pools[0].member.state = StatePlan::Degraded;
            plan.pools[0].member.cache.write_back = write_back;
            plan.pools[0].member.cache.dirty_low = 0.0;
            let mut model = ArrayModel::new(&plan).unwrap();
            let mut now_ns = 0;
            let mut draws = Draws(3);
            for tag in 0..500 {
                let bytes = 4096 << draws.below(8);
                let at_bytes = draws.below(256 * MIB / bytes) * bytes;
                perform(&mut model, &mut now_ns, request(Op::Write, 0, at_bytes, bytes as u32, tag));
            }
            drain(&mut model, &mut now_ns);
            let member = &model.readings()[0];
            assert_eq!((member.disks[0].reads, member.disks[0].writes), (0, 0));
            assert_eq!(member.dirty_bytes, 0);
            assert!(member.disks[1..].iter().all(|disk| disk.writes > 0));
        }
    }
}

#[test]
fn a_rebuild_writes_the_whole_disk_and_leaves_a_healthy_array() {
    for policy in POLICIES.into_iter().filter(|policy| *policy != RaidPolicy::Raid0) {
        for (solid, depth) in [(false, 1), (false, 8), (true, 16)] {
            let mut plan = plan(policy);
            if solid {
                plan.pools[0].member.disk = DiskPlan::SolidState(plans::solid_state());
            }
            plan.pools[0].member.state = StatePlan::Rebuilding { depth };
            plan.pools[0].member.cache.write_back = false;
            plan.pools[0].member.cache.keep_reads = false;
            plan.pools[0].member.cache.sequential_after = u32::MAX;
            plan.pools[0].members = 2;
            let mut model = ArrayModel::new(&plan).unwrap();
            let mut now_ns = 0;
            // With I/O going on meanwhile.
            let mut draws = Draws(11);
            for tag in 0..200 {
                let op = if tag % 2 == 0 { Op::Read } else { Op::Write };
                perform(&mut model, &mut now_ns, request(op, 0, 256 * MIB + draws.below(4096) * CHUNK, 8192, tag));
            }
            drain(&mut model, &mut now_ns);
            let rows = plan.pools[0].member.disk.capacity_bytes() / CHUNK;
            let readings = model.readings();
            assert_eq!(readings[0].rebuilt_bytes, rows * CHUNK, "RAID {}", policy.name());
            assert_eq!(readings[1].rebuilt_bytes, 0, "one disk of the group is lost");
            let spare = readings[0].disks[0];
            assert!(spare.write_bytes >= rows * CHUNK && spare.write_bytes < (rows + 200) * CHUNK);
            // Every chunk is read from the one disk that has it again, and every write costs what it costs in health.
            let mut healthy = plan.clone();
            healthy.pools[0].member.state = StatePlan::Healthy;
            let mut other = ArrayModel::new(&healthy).unwrap();
            let mut other_ns = 0;
            for chunk in 0..60 {
                for (op, offset) in [(Op::Read, 0), (Op::Write, 8192)] {
                    let (before, other_before) = (disks(&model), disks(&other));
                    perform(&mut model, &mut now_ns, request(op, 0, chunk * CHUNK + offset, 8192, 0));
                    perform(&mut other, &mut other_ns, request(op, 0, chunk * CHUNK + offset, 8192, 0));
                    let (after, other_after) = (disks(&model), disks(&other));
                    assert_eq!(after.reads - before.reads, other_after.reads - other_before.reads);
                    assert_eq!(after.writes - before.writes, other_after.writes - other_before.writes);
                }
            }
            let uses = |model: &ArrayModel| model.readings()[0].disks[0].reads;
            if !matches!(policy, RaidPolicy::Raid1 | RaidPolicy::Raid10) {
                assert_eq!(uses(&model) - spare.reads, uses(&other), "the spare takes its part");
            }
        }
    }
}

#[test]
fn every_chunk_of_a_sequential_stream_is_read_once() {
    for policy in POLICIES {
        for (bytes, misalign_bytes) in
            [(8 * KIB, 0), (64 * KIB, 0), (8 * KIB, 4096), (64 * KIB, 4096), (256 * KIB, 4096)]
        {
            let mut plan = plan(policy);
            plan.pools[0].member.raid.misalign_bytes = misalign_bytes;
            let mut model = ArrayModel::new(&plan).unwrap();
            let mut now_ns = 0;
            let total = 32 * MIB;
            for block in 0..total / bytes {
                perform(&mut model, &mut now_ns, request(Op::Read, 0, block * bytes, bytes as u32, 0));
            }
            drain(&mut model, &mut now_ns);
            let (member, disks) = (&model.readings()[0], disks(&model));
            let share = member.read_hits as f64 / member.reads as f64;
            // Reads that find their chunk under way wait for it and are no hits, but cost the disks nothing more. Between pages lies
            // the chunk by which volumes begin off; beyond the end what is read ahead.
            let most = total + 2 * MIB + (total / plan.page_bytes + 1) * 2 * CHUNK;
            assert!((total..=most).contains(&disks.read_bytes), "RAID {} {bytes}: {disks:?}", policy.name());
            assert!(disks.reads <= most / CHUNK + 64, "RAID {} {bytes}: {} reads", policy.name(), disks.reads);
            assert!(bytes > 64 * KIB || share > 0.5, "RAID {} {bytes}: {share} hits", policy.name());
        }
    }
}

#[test]
fn nothing_is_used_more_than_all_the_time() {
    for policy in POLICIES {
        for solid in [false, true] {
            let mut plan = plan(policy);
            if solid {
                plan.pools[0].member.disk = DiskPlan::SolidState(plans::solid_state());
            }
            plan.pools[0].members = 2;
            let mut model = ArrayModel::new(&plan).unwrap();
            let mut draws = Draws(17);
            let mut completions = Vec::new();
            let mut now_ns = 0;
            let mut send = |model: &mut ArrayModel, now_ns, tag| {
                let op = if draws.below(2) == 0 { Op::Read } else { Op::Write };
                model.submit(now_ns, &request(op, 0, draws.below(32768) * 16 * KIB, 16384, tag));
            };
            (0..64).for_each(|tag| send(&mut model, 0, tag));
            let mut before = model.readings();
            for second in 1..=5 {
                let from_ns = now_ns;
                while now_ns < second * SECOND {
                    now_ns = model.advance(second * SECOND, &mut completions);
                    completions.drain(..).for_each(|completion| send(&mut model, now_ns, completion.tag));
                }
                let after = model.readings();
                for (before, after) in before.iter().zip(&after) {
                    for (before, after) in before.disks.iter().zip(&after.disks) {
                        let busy_ns = after.busy_ns - before.busy_ns;
                        assert!(busy_ns <= now_ns - from_ns);
                        assert!(after.queue_ns - before.queue_ns >= busy_ns, "who is served is present");
                    }
                    assert!(after.read_hits <= after.reads);
                    assert!(after.dirty_bytes <= plan.pools[0].member.cache.bytes);
                }
                before = after;
            }
            for member in &before {
                // Ports and cores are booked when a command comes, so they may be ahead of the clock by what has come.
                let ahead_ns = SECOND;
                assert!(member.cpu_busy_ns <= u64::from(member.cores) * (now_ns + ahead_ns));
                for port in &member.ports {
                    assert!(port.in_busy_ns.max(port.out_busy_ns) <= now_ns + ahead_ns);
                    assert!(port.in_busy_ns > 0 && port.out_busy_ns > 0);
                }
            }
        }
    }
}
