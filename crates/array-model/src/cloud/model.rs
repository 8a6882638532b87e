//! A machine's volumes as a passive state machine in virtual time.

use assay_load::{Completion, Op, Request, Simulated, SplitMix};

use super::{
    gate::Gate,
    plan::{AccountingPlan, CloudPlan, CloudVolumePlan, LatencyPlan},
    snapshot::Snapshot,
};
use crate::{
    ArrayError, GateReading, MemberReading,
    events::Event,
    slab::Slab,
    timeline::{Timed, Timeline},
};

const EINVAL: i32 = 22;
/// Name of the machine among its volumes.
const MACHINE: &str = "machine";

#[derive(Debug, Clone, Copy)]
struct Io {
    tag: u32,
    op: Op,
    result: i32,
    volume: u16,
    offset: u64,
    bytes: u64,
}

/// The last I/O of a direction: one that begins at its end may count with it.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    end: u64,
    /// Bytes of the run in its last unit.
    in_unit: u64,
    until_ns: u64,
}

#[derive(Debug, Clone)]
struct Volume {
    name: String,
    bytes: u64,
    gate: Gate,
    accounting: AccountingPlan,
    latency: LatencyPlan,
    snapshot: Option<Snapshot>,
    /// Of reads and of writes.
    runs: [Run; 2],
    reads: u64,
    written_bytes: u64,
}

impl Volume {
    fn new(plan: &CloudVolumePlan) -> Self {
        Self {
            name: plan.name.clone(),
            bytes: plan.bytes,
            gate: Gate::new(&plan.operations, &plan.transfer),
            accounting: plan.accounting.clone(),
            latency: plan.latency.clone(),
            snapshot: plan.snapshot.as_ref().map(|snapshot| Snapshot::new(snapshot, plan.bytes)),
            runs: [Run::default(); 2],
            reads: 0,
            written_bytes: 0,
        }
    }

    /// I/Os and bytes that an I/O counts as; one that continues another counts what it adds to their units.
    #[inline]
    fn counts(&mut self, now_ns: u64, io: &Io) -> (u64, u64) {
        let AccountingPlan { unit_bytes: unit, merges, whole_units } = self.accounting;
        if unit == 0 {
            return (1, io.bytes);
        }
        let run = &mut self.runs[usize::from(io.op == Op::Write)];
        let before = if merges && run.end == io.offset && run.until_ns > now_ns { run.in_unit } else { 0 };
        let units = (before + io.bytes).div_ceil(unit) - u64::from(before > 0);
        run.in_unit = (before + io.bytes) % unit;
        run.end = io.offset + io.bytes;
        (units, if whole_units { units * unit } else { io.bytes })
    }

    fn reading(&self, now_ns: u64) -> MemberReading {
        MemberReading {
            reads: self.reads,
            written_bytes: self.written_bytes,
            gate: Some(self.gate.reading(&self.name, now_ns)),
            loaded_bytes: self.snapshot.as_ref().map_or(0, Snapshot::loaded_bytes),
            ..MemberReading::default()
        }
    }
}

/// Modelled volumes of a cloud. Nothing in them runs by itself: time passes in [`Simulated::advance`].
#[derive(Debug, Clone)]
pub struct CloudModel {
    pub(crate) time: Timeline,
    volumes: Vec<Volume>,
    machine: Option<Gate>,
    /// Largest I/O that the machine counts as one.
    unit_bytes: u64,
    ios: Slab<Io>,
    random: SplitMix,
}

impl CloudModel {
    /// Idle volumes at time 0.
    ///
    /// # Errors
    /// A parameter is impossible.
    pub fn new(plan: &CloudPlan) -> Result<Self, ArrayError> {
        plan.validate()?;
        Ok(Self {
            time: Timeline::default(),
            volumes: plan.volumes.iter().map(Volume::new).collect(),
            machine: plan.machine.as_ref().map(|machine| Gate::new(&machine.operations, &machine.transfer)),
            unit_bytes: plan.volumes[0].accounting.unit_bytes,
            ios: Slab::new(),
            random: SplitMix::new(plan.seed),
        })
    }

    pub fn volume_bytes(&self, volume: usize) -> Option<u64> {
        self.volumes.get(volume).map(|volume| volume.bytes)
    }

    /// Limits whose last credit went since this was asked last: of which volume or of the machine, which limit, and its
    /// baseline a second.
    pub fn take_used_up(&mut self) -> Vec<(String, &'static str, u64)> {
        let now_ns = self.time.now_ns;
        let volumes = self.volumes.iter_mut().map(|volume| (&volume.name[..], &mut volume.gate));
        let machine = self.machine.iter_mut().map(|gate| (MACHINE, gate));
        volumes
            .chain(machine)
            .flat_map(|(name, gate)| {
                gate.take_used_up(now_ns).map(move |(limit, per_s)| (name.to_owned(), limit, per_s))
            })
            .collect()
    }

    /// Limits of the volumes, and of the machine after them, as they stand at a time at which no I/O may have come for long.
    pub fn gates(&self, at_ns: u64) -> Vec<GateReading> {
        let at_ns = at_ns.max(self.time.now_ns);
        let volumes = self.volumes.iter().map(|volume| volume.gate.reading(&volume.name, at_ns));
        volumes.chain(self.machine.iter().map(|gate| gate.reading(MACHINE, at_ns))).collect()
    }

    /// Readings of the volumes, and of the machine after them.
    pub fn readings(&self) -> Vec<MemberReading> {
        let now_ns = self.time.now_ns;
        let machine = self
            .machine
            .as_ref()
            .map(|gate| MemberReading { gate: Some(gate.reading(MACHINE, now_ns)), ..MemberReading::default() });
        self.volumes.iter().map(|volume| volume.reading(now_ns)).chain(machine).collect()
    }

    /// An I/O has come to its volume.
    fn arrive(&mut self, number: u32) {
        let now_ns = self.time.now_ns;
        let io = self.ios[number];
        let volume = &mut self.volumes[usize::from(io.volume)];
        let (operations, bytes) = volume.counts(now_ns, &io);
        let passed_ns = volume.gate.pass(now_ns, operations, bytes);
        let writes = io.op == Op::Write;
        let there_ns = match &mut volume.snapshot {
            Some(snapshot) => snapshot.there_ns(passed_ns, io.offset, io.bytes, writes),
            None => passed_ns,
        };
        if writes {
            volume.written_bytes += io.bytes;
        } else {
            volume.reads += 1;
        }
        let LatencyPlan { read_ns, write_ns, varying_share, .. } = volume.latency;
        let mean_ns = if writes { write_ns } else { read_ns };
        let varying_ns = mean_ns as f64 * varying_share;
        // A uniform number above 0, of 53 bits.
        let drawn = ((self.random.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let latency_ns = mean_ns - varying_ns as u64 + (varying_ns * -libm::log(drawn)) as u64;
        let end_ns = there_ns + latency_ns;
        volume.runs[usize::from(writes)].until_ns = end_ns;
        self.time.events.set(end_ns, Event::Answered(number));
    }
}

impl Timed for CloudModel {
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.time
    }

    fn happen(&mut self, event: Event, completions: &mut Vec<Completion>) {
        match event {
            Event::Arrived(number) => self.arrive(number),
            Event::Answered(number) => {
                let Io { tag, result, .. } = self.ios[number];
                completions.push(Completion { tag, result, at_ns: self.time.user_ns() });
                self.ios.free(number);
            }
            _ => unreachable!("volumes of a cloud have no disks, controllers or paths"),
        }
    }

    fn is_idle(&self) -> bool {
        self.ios.is_empty()
    }
}

impl Simulated for CloudModel {
    fn submit(&mut self, at_ns: u64, request: &Request) {
        let at_ns = self.time.of_model_ns(at_ns);
        let bytes = u64::from(request.length_bytes);
        let (tag, op, offset) = (request.tag, request.op, request.offset_bytes);
        let volume = self.volumes.get(usize::from(request.volume));
        let fits = volume.is_some_and(|volume| offset.checked_add(bytes).is_some_and(|end| end <= volume.bytes));
        let result = if fits { request.length_bytes as i32 } else { -EINVAL };
        let flush_ns = volume.map_or(0, |volume| volume.latency.flush_ns);
        let number = self.ios.insert(Io { tag, op, result, volume: request.volume, offset, bytes });
        if op == Op::Flush || !fits || bytes == 0 {
            self.time.events.set(at_ns + flush_ns, Event::Answered(number));
            return;
        }
        let units = if self.unit_bytes == 0 { 1 } else { bytes.div_ceil(self.unit_bytes) };
        let passed_ns = self.machine.as_mut().map_or(at_ns, |machine| machine.pass(at_ns, units, bytes));
        self.time.events.set(passed_ns, Event::Arrived(number));
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.time.next_ns()
    }

    fn advance(&mut self, to_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        self.pass_time(to_ns, completions)
    }
}
