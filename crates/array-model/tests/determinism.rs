//! The same plan and the same I/Os give the same result to the nanosecond, on every machine.

mod plans;

use assay_array_model::{
    ArrayModel, ArrayPlan, DiskPlan, ModelSession, RaidPolicy, SessionPlan, SolidStatePlan, StatePlan,
};
use assay_load::{Completion, Load, Op, Simulated};
use plans::{Draws, KIB, SECOND, activity, large, plan, request};

/// Hash of the completions of 100,000 I/Os over the plans of [`golden_plans`]: FNV-1a over tag, result and time of each.
/// A change of the model changes it, and says so by changing this.
const GOLDEN: u64 = 0xfc5f_bfe0_8d0f_cf9f;

/// Hash of what workers measured on the same plans; theirs is the generator of `crates/load`.
#[cfg(target_pointer_width = "64")]
const GOLDEN_OF_WORKERS: u64 = 0x210e_dae2_da16_b449;

/// Fowler, Noll and Vo's hash, 64 bits.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Arrays of every kind whose arithmetic differs.
fn golden_plans() -> Vec<ArrayPlan> {
    let mut plans = Vec::new();
    for policy in [RaidPolicy::Raid10, RaidPolicy::Raid50, RaidPolicy::Dp] {
        plans.push(large(policy, 6, 2));
        let mut flash = large(policy, 6, 1);
        flash.pools[0].member.disk =
            DiskPlan::SolidState(SolidStatePlan { capacity_bytes: 146_815_733_760, ..plans::solid_state() });
        flash.links.max_transfer_bytes = 64 * KIB;
        plans.push(flash);
    }
    let mut through = large(RaidPolicy::Raid6, 3, 1);
    through.pools[0].member.raid.set_disks = 0;
    through.pools[0].member.cache.write_back = false;
    plans.push(through);
    let mut rebuilding = plan(RaidPolicy::Raid5);
    rebuilding.pools[0].member.state = StatePlan::Rebuilding { depth: 4 };
    plans.push(rebuilding);
    plans
}

/// A closed loop of mixed I/Os, some of them in sequence.
struct Loop {
    model: ArrayModel,
    draws: Draws,
    volumes: u64,
    volume_bytes: u64,
    sequential: u64,
    now_ns: u64,
}

impl Loop {
    fn new(plan: &ArrayPlan, seed: u64) -> Self {
        let mut made = Self {
            model: ArrayModel::new(plan).unwrap(),
            draws: Draws(seed),
            volumes: plan.pools[0].volumes.len() as u64,
            volume_bytes: plan.pools[0].volumes[0].bytes,
            sequential: 0,
            now_ns: 0,
        };
        (0..48).for_each(|tag| made.send(tag));
        made
    }

    fn send(&mut self, tag: u32) {
        let bytes = 4096 << self.draws.below(6);
        let op = if self.draws.below(10) < 6 { Op::Read } else { Op::Write };
        let (volume, offset) = if self.draws.below(4) == 0 {
            self.sequential = (self.sequential + 64 * KIB) % (self.volume_bytes - 256 * KIB);
            (0, self.sequential)
        } else {
            (self.draws.below(self.volumes), self.draws.below((self.volume_bytes - 256 * KIB) / 4096) * 4096)
        };
        self.model.submit(self.now_ns, &request(op, volume as u16, offset, bytes, tag));
    }

    /// Runs until so many more have completed, and hashes them.
    fn run(&mut self, count: usize, hash: &mut Fnv) {
        let mut completions: Vec<Completion> = Vec::new();
        let mut seen = 0;
        while seen < count {
            self.now_ns = self.model.advance(u64::MAX / 2, &mut completions);
            seen += completions.len();
            for completion in completions.drain(..) {
                hash.add(u64::from(completion.tag));
                hash.add(completion.result as u64);
                hash.add(completion.at_ns);
                self.send(completion.tag);
            }
        }
    }
}

#[test]
fn every_machine_gets_the_golden_result() {
    let mut hash = Fnv::new();
    let plans = golden_plans();
    for (number, plan) in plans.iter().enumerate() {
        Loop::new(plan, number as u64).run(100_000 / plans.len(), &mut hash);
    }
    assert_eq!(hash.0, GOLDEN, "{:#018x}", hash.0);
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_seed_another() {
    for plan in golden_plans() {
        let result = |plan: &ArrayPlan| {
            let mut hash = Fnv::new();
            Loop::new(plan, 1).run(2000, &mut hash);
            hash.0
        };
        assert_eq!(result(&plan), result(&plan));
        let other = ArrayPlan { seed: plan.seed + 1, ..plan.clone() };
        let has_spindles = matches!(plan.pools[0].member.disk, DiskPlan::Mechanical(_));
        assert!(!has_spindles || result(&plan) != result(&other), "spindles and volumes begin elsewhere");
    }
}

#[test]
fn a_copy_goes_on_as_the_original_does() {
    for plan in golden_plans() {
        let mut original = Loop::new(&plan, 2);
        original.run(3000, &mut Fnv::new());
        let mut copy = Loop { model: original.model.clone(), draws: Draws(original.draws.0), ..original };
        let (mut left, mut right) = (Fnv::new(), Fnv::new());
        copy.run(2000, &mut right);
        let mut original = Loop::new(&plan, 2);
        original.run(3000, &mut Fnv::new());
        original.run(2000, &mut left);
        assert_eq!(left.0, right.0);
        assert_eq!(original.model.readings(), copy.model.readings());
    }
}

/// Hash of every tick that workers measured.
fn ticks_of(plan: &ArrayPlan) -> u64 {
    let volumes = plan.pools[0].volumes.len();
    let mut activities = vec![
        activity(volumes, 8192, 0.7, Load::Closed { queue_depth: 4 }),
        activity(1, 65536, 1.0, Load::Closed { queue_depth: 2 }),
        activity(1, 16384, 0.0, Load::Open { rate: 50.0, poisson: false, queue_depth: 8 }),
    ];
    activities[1].access.random_share = 0.0;
    activities.iter_mut().for_each(|activity| activity.access.region.end_bytes = plan.pools[0].volumes[0].bytes);
    let session = SessionPlan { activities, seed: 9, interval_ns: SECOND / 2, warm: true };
    let mut session = ModelSession::start(ArrayModel::new(plan).unwrap(), &session).unwrap();
    session.run_ticks(6);
    let mut hash = Fnv::new();
    for tick in session.collector().fresh_ticks() {
        for side in [tick.counted.read, tick.counted.write] {
            let mean = side.mean_ns.unwrap_or(0.0).to_bits();
            for value in [side.count, side.bytes, mean, side.p99_ns.unwrap_or(0), side.max_ns.unwrap_or(0)] {
                hash.add(value);
            }
        }
    }
    for reading in session.take_readings() {
        hash.add(reading.after[0].dirty_bytes);
        hash.add(reading.after[0].disks[1].busy_ns);
    }
    hash.0
}

#[test]
fn workers_measure_the_same_every_time() {
    let mut plans = golden_plans();
    // Warming fills the cache; a smaller one is as good.
    plans.iter_mut().for_each(|plan| plan.pools[0].member.cache.bytes = plan.pools[0].member.cache.bytes.min(64 << 20));
    let mut hash = Fnv::new();
    for plan in &plans {
        let first = ticks_of(plan);
        assert_eq!(first, ticks_of(plan));
        hash.add(first);
    }
    #[cfg(target_pointer_width = "64")]
    assert_eq!(hash.0, GOLDEN_OF_WORKERS, "{:#018x}", hash.0);
}
