//! Volumes of a cloud: providers' formulas hold to the I/O, I/Os are counted as providers count them, and nothing is lost.

mod plans;

use assay_array_model::{
    AccountingPlan, CloudModel, CloudPlan, CloudVolumePlan, GateReading, LatencyPlan, LimitPlan, MachinePlan,
    SnapshotPlan,
};
use assay_load::{Completion, Op, Simulated};
use plans::{Draws, GIB, KIB, MIB, MS, SECOND, request};
use proptest::prelude::*;

fn limit(per_s: u64, burst_per_s: u64, credits: u64) -> LimitPlan {
    LimitPlan { per_s: per_s as f64, burst_per_s: burst_per_s as f64, credits, start_share: 1.0, window_ns: 0 }
}

fn volume(name: &str) -> CloudVolumePlan {
    CloudVolumePlan {
        name: name.to_owned(),
        bytes: 100 * GIB,
        operations: limit(3000, 3000, 0),
        transfer: limit(125 * MIB, 125 * MIB, 0),
        accounting: AccountingPlan { unit_bytes: 256 * KIB, merges: true, whole_units: false },
        latency: LatencyPlan { read_ns: MS, write_ns: MS, flush_ns: 0, varying_share: 0.0 },
        snapshot: None,
    }
}

fn plan(volumes: Vec<CloudVolumePlan>) -> CloudPlan {
    CloudPlan { seed: 1, volumes, machine: None }
}

/// A closed loop of equal I/Os on each volume.
struct Loop {
    model: CloudModel,
    draws: Draws,
    volumes: u16,
    block: u64,
    /// None: I/Os follow each other.
    random: bool,
    next: u64,
    done: Vec<u64>,
}

impl Loop {
    fn new(plan: &CloudPlan, block: u64, random: bool) -> Self {
        Self {
            model: CloudModel::new(plan).unwrap(),
            draws: Draws(7),
            volumes: plan.volumes.len() as u16,
            block,
            random,
            next: 0,
            done: vec![0; plan.volumes.len()],
        }
    }

    fn send(&mut self, at_ns: u64, tag: u32) {
        let volume = (tag % u32::from(self.volumes)) as u16;
        let blocks = 10 * GIB / self.block;
        let block = if self.random { self.draws.below(blocks) } else { self.next % blocks };
        self.next += 1;
        self.model.submit(at_ns, &request(Op::Read, volume, block * self.block, self.block as u32, tag));
    }

    /// Completions of each volume until then.
    fn run(&mut self, outstanding: u32, until_ns: u64) -> &[u64] {
        (0..outstanding).for_each(|tag| self.send(0, tag));
        let mut completions: Vec<Completion> = Vec::new();
        loop {
            let now_ns = self.model.advance(until_ns, &mut completions);
            if completions.is_empty() {
                return &self.done;
            }
            for completion in std::mem::take(&mut completions) {
                self.done[(completion.tag % u32::from(self.volumes)) as usize] += 1;
                self.send(now_ns, completion.tag);
            }
        }
    }

    fn gate(&self, number: usize) -> GateReading {
        self.model.readings()[number].gate.clone().unwrap()
    }
}

fn near(found: u64, expected: u64, share: f64) {
    assert!((found as f64 - expected as f64).abs() <= share * expected as f64, "{found} instead of {expected}");
}

#[test]
fn a_volume_has_its_iops_and_is_held_back_above_them_and_not_below() {
    let mut deep = Loop::new(&plan(vec![volume("v01")]), 8 * KIB, true);
    near(deep.run(16, 10 * SECOND)[0], 30_000, 0.001);
    near(deep.gate(0).operations.exceeded_ns, 10 * SECOND, 0.01);
    assert_eq!(deep.gate(0).transfer.exceeded_ns, 0);
    // One I/O at a time takes the latency of the volume, and no limit.
    let mut shallow = Loop::new(&plan(vec![volume("v01")]), 8 * KIB, true);
    near(shallow.run(1, 10 * SECOND)[0], 10_000, 0.001);
    assert_eq!(shallow.gate(0).operations.exceeded_ns, 0);
}

#[test]
fn throughput_ends_large_ios_and_what_is_larger_than_a_unit_counts_more_than_once() {
    let mut large = Loop::new(&plan(vec![volume("v01")]), MIB, true);
    near(large.run(16, 10 * SECOND)[0], 1250, 0.02);
    assert!(large.gate(0).transfer.exceeded_ns > 9 * SECOND);
    near(large.gate(0).operations.passed, 4 * 1250, 0.02);
}

#[test]
fn ios_that_follow_each_other_count_together_while_both_are_outstanding() {
    let mut merged = Loop::new(&plan(vec![volume("v01")]), 32 * KIB, false);
    let done = merged.run(16, 2 * SECOND)[0];
    near(done, 250 * MIB / (32 * KIB), 0.02);
    near(merged.gate(0).operations.passed, done / 8, 0.05);
    // One after the other they do not.
    let mut alone = Loop::new(&plan(vec![volume("v01")]), 32 * KIB, false);
    assert!(alone.run(1, 2 * SECOND)[0] <= alone.gate(0).operations.passed);
}

#[test]
fn small_random_ios_of_a_volume_of_hard_disks_cost_a_mebibyte_each() {
    let mut st1 = volume("v01");
    st1.accounting = AccountingPlan { unit_bytes: MIB, merges: true, whole_units: true };
    (st1.operations, st1.transfer) = (limit(500, 500, 0), limit(40 * MIB, 250 * MIB, 500 * MIB));
    let plan = plan(vec![st1]);
    // 500 MiB of credits at 250 - 40 MiB/s last 2.38 s, and then 40 I/Os a second remain.
    near(Loop::new(&plan, 8 * KIB, true).run(32, 10 * SECOND)[0], 500 + 400, 0.02);
    // In a row, 128 of them are one.
    let mut scan = Loop::new(&plan, 128 * KIB, false);
    near(scan.run(32, 10 * SECOND)[0] * 128 * KIB, (500 + 400) * MIB, 0.03);
}

#[test]
fn a_machine_ends_its_volumes_together_and_reverts_to_its_baseline() {
    let mut both = plan(vec![volume("v01"), volume("v02")]);
    both.machine = Some(MachinePlan { operations: limit(1000, 4000, 9000), transfer: limit(GIB, GIB, 0) });
    let mut run = Loop::new(&both, 8 * KIB, true);
    let done = run.run(64, 10 * SECOND).to_vec();
    // 9000 credits at 4000 - 1000 last 3 s.
    near(done[0] + done[1], 3 * 4000 + 7 * 1000, 0.01);
    near(done[0], done[1], 0.05);
    let machine = run.gate(2);
    assert_eq!(machine.name, "machine");
    assert!(machine.operations.exceeded_ns > 9 * SECOND && machine.operations.balance_share.unwrap() < 0.001);
}

#[test]
fn the_first_touch_of_a_volume_from_a_snapshot_is_slow() {
    let mut restored = volume("v01");
    restored.snapshot = Some(SnapshotPlan {
        block_bytes: 512 * KIB,
        latency_ns: 30 * MS,
        bytes_per_s: (100 * MIB) as f64,
        background_bytes_per_s: 0.0,
    });
    let plan = plan(vec![restored]);
    let mut run = Loop::new(&plan, 8 * KIB, true);
    // Each touch loads 512 KiB at 100 MiB/s.
    near(run.run(16, 5 * SECOND)[0], 1000, 0.03);
    near(run.model.readings()[0].loaded_bytes, 500 * MIB, 0.02);
}

#[test]
fn flushes_and_ios_outside_the_volume_pass_no_limit() {
    let mut model = CloudModel::new(&plan(vec![volume("v01")])).unwrap();
    model.submit(0, &request(Op::Flush, 0, 0, 0, 1));
    model.submit(0, &request(Op::Write, 0, 100 * GIB, 4096, 2));
    model.submit(0, &request(Op::Read, 9, 0, 4096, 3));
    let mut completions = Vec::new();
    while model.next_event_ns().is_some() {
        model.advance(SECOND, &mut completions);
    }
    let mut results: Vec<_> = completions.iter().map(|one| (one.tag, one.result < 0)).collect();
    results.sort_unstable();
    assert_eq!(results, [(1, false), (2, true), (3, true)]);
    assert_eq!(model.readings()[0].gate.as_ref().unwrap().operations.passed, 0);
}

/// Latencies vary as the plan says, and the same on every machine.
#[test]
fn latencies_have_their_mean_and_every_machine_gets_the_golden_result() {
    let mut varying = volume("v01");
    varying.latency.varying_share = 0.3;
    let mut run = Loop::new(&plan(vec![varying]), 8 * KIB, true);
    near(run.run(1, 20 * SECOND)[0], 20_000, 0.01);
    assert_eq!(run.done[0], GOLDEN);
}

const GOLDEN: u64 = 19_906;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Every I/O ends once, whatever the limits; no more passes than they allow.
    #[test]
    fn every_io_ends_and_no_limit_is_passed(
        iops in 1_u64..20_000, burst in 0_u64..40_000, credits in 0_u64..100_000, start in 0.0..=1.0, rate in 100_000_u64..1_000_000_000,
        window_ns in 0_u64..50 * MS, outstanding in 1_u32..64, block_bits in 9_u32..21, unit_bits in 0_u32..21, snapshot: bool,
    ) {
        let mut wild = volume("v01");
        wild.operations = LimitPlan { start_share: start, window_ns, ..limit(iops, burst, credits) };
        wild.transfer = LimitPlan { window_ns, ..limit(rate, rate, 0) };
        wild.accounting.unit_bytes = if unit_bits < 12 { 0 } else { 1 << unit_bits };
        wild.accounting.merges = unit_bits >= 12 && unit_bits % 2 == 0;
        wild.snapshot = snapshot.then_some(SnapshotPlan {
            block_bytes: 512 * KIB, latency_ns: MS, bytes_per_s: (200 * MIB) as f64, background_bytes_per_s: MIB as f64,
        });
        let mut run = Loop::new(&plan(vec![wild]), 1 << block_bits, true);
        let done = run.run(outstanding, 2 * SECOND)[0];
        let gate = run.gate(0);
        let (seconds, most) = (2 + window_ns.div_ceil(SECOND), iops.max(burst));
        prop_assert!(done <= (most * seconds + u64::from(outstanding) + most * window_ns / SECOND + 1));
        prop_assert!(gate.operations.passed >= done.min(1));
        let mut completions = Vec::new();
        while run.model.next_event_ns().is_some() {
            run.model.advance(u64::MAX / 4, &mut completions);
        }
        prop_assert_eq!(completions.len(), outstanding as usize);
    }
}
