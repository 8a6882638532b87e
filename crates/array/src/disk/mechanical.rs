use std::sync::Arc;

use super::{
    Begun, DiskCommand, DiskCounters,
    seek::SeekCurve,
    zones::{Spot, Zones},
};
use crate::MechanicalPlan;

/// Bits below the point of angles per nanosecond.
const ANGLE_BITS: u32 = 20;

/// What all disks of one kind share.
#[derive(Debug)]
pub(crate) struct MechanicalKind {
    seek: SeekCurve,
    zones: Zones,
    revolution_ns: u64,
    /// Angle of 2^32 a turn, per nanosecond.
    angle_per_ns: u64,
    write_settle_ns: u64,
    overhead_ns: u64,
    queue_depth: usize,
    /// In shares of 1,024.
    reorder_weight: u64,
    age_credit: u64,
    read_preference_ns: u64,
    read_ahead_bytes: u64,
    interface_ps_per_byte: u64,
}

impl MechanicalKind {
    pub(crate) fn new(plan: &MechanicalPlan, read_preference_ns: u64) -> Self {
        let (outer, inner) = (plan.rate_outer_bytes_per_s, plan.rate_inner_bytes_per_s);
        Self {
            seek: SeekCurve::new(plan.seek_track_ns, plan.seek_average_ns, plan.seek_full_ns),
            zones: Zones::new(plan.capacity_bytes, plan.revolution_ns, outer, inner),
            revolution_ns: plan.revolution_ns,
            angle_per_ns: (1_u64 << (32 + ANGLE_BITS)) / plan.revolution_ns,
            write_settle_ns: plan.write_settle_ns,
            overhead_ns: plan.command_overhead_ns,
            queue_depth: plan.queue_depth.max(1) as usize,
            reorder_weight: (plan.reorder_weight * 1024.0) as u64,
            age_credit: (plan.age_credit * 1024.0) as u64,
            read_preference_ns,
            read_ahead_bytes: plan.read_ahead_bytes,
            interface_ps_per_byte: (1e12 / plan.interface_bytes_per_s) as u64,
        }
    }

    #[inline]
    fn transfer_ns(&self, bytes: u64, track_bytes: u32) -> u64 {
        bytes * self.revolution_ns / u64::from(track_bytes)
    }
}

/// A disk with arms and platters: head position, absolute spindle phase, and a queue from which it takes the command it
/// reaches first.
///
/// The choice is by shortest access time (Jacobson and Wilkes, "Disk scheduling algorithms based on rotational position", 1991): the
/// drive knows the seek exactly and the rotational wait in part, and prefers commands that wait long.
#[derive(Debug, Clone)]
pub(crate) struct Mechanical {
    kind: Arc<MechanicalKind>,
    phase: u32,
    cylinder: u32,
    served: Option<DiskCommand>,
    waiting: Vec<Waiting>,
    stream: Option<Stream>,
    counters: DiskCounters,
    counted_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    command: DiskCommand,
    spot: Spot,
    /// When the drive itself was given the command; before that it waited in the controller.
    given_ns: u64,
}

/// Where the last command ended, and when. A drive goes on reading from there into its buffer, and a command that
/// continues and was there in time loses no turn.
#[derive(Debug, Clone, Copy)]
struct Stream {
    write: bool,
    end_bytes: u64,
    end_ns: u64,
    track_bytes: u32,
}

impl Mechanical {
    /// An idle disk, its heads at the outermost cylinder and its spindle at `phase` of 2^32 at time 0.
    pub(crate) fn new(kind: Arc<MechanicalKind>, phase: u32) -> Self {
        Self {
            kind,
            phase,
            cylinder: 0,
            served: None,
            waiting: Vec::with_capacity(64),
            stream: None,
            counters: DiskCounters::default(),
            counted_ns: 0,
        }
    }

    pub(crate) fn push(&mut self, now_ns: u64, command: DiskCommand) -> Option<Begun> {
        self.account(now_ns);
        let spot = self.kind.zones.spot(command.at_bytes);
        if self.served.is_some() {
            self.waiting.push(Waiting { command, spot, given_ns: now_ns });
            return None;
        }
        Some(self.serve(now_ns, Waiting { command, spot, given_ns: now_ns }))
    }

    pub(crate) fn end(&mut self, now_ns: u64) -> (DiskCommand, Option<Begun>) {
        self.account(now_ns);
        let ended = self.served.take().expect("a disk ends what it serves");
        self.counters.count(&ended);
        let next = self.nearest(now_ns).map(|index| {
            let next = self.waiting.remove(index);
            if let Some(given) = self.waiting.get_mut(self.kind.queue_depth - 1) {
                given.given_ns = now_ns;
            }
            self.serve(now_ns, next)
        });
        (ended, next)
    }

    pub(crate) fn present(&self) -> u32 {
        self.waiting.len() as u32 + u32::from(self.served.is_some())
    }

    pub(crate) fn counters(&self, now_ns: u64) -> DiskCounters {
        let mut counters = self.counters;
        let passed_ns = now_ns - self.counted_ns;
        counters.queue_ns += passed_ns * u64::from(self.present());
        counters.busy_ns += if self.served.is_some() { passed_ns } else { 0 };
        counters
    }

    #[inline]
    fn account(&mut self, now_ns: u64) {
        let passed_ns = now_ns - self.counted_ns;
        self.counters.queue_ns += passed_ns * u64::from(self.present());
        self.counters.busy_ns += if self.served.is_some() { passed_ns } else { 0 };
        self.counted_ns = now_ns;
    }

    /// Position of the waiting command that is reached first, among those the drive has been given.
    #[inline]
    fn nearest(&self, now_ns: u64) -> Option<usize> {
        let kind = &*self.kind;
        let given = self.waiting.len().min(kind.queue_depth);
        if given <= 1 {
            return (given == 1).then_some(0);
        }
        let angle = self.angle_at(now_ns + kind.overhead_ns);
        let mut best = (i64::MAX, 0);
        for (index, waiting) in self.waiting[..given].iter().enumerate() {
            let command = &waiting.command;
            let cost_ns = if self.continues(command).is_some() {
                0
            } else {
                let seek_ns = self.seek_ns(waiting);
                let turn_ns = self.turn_ns(angle, seek_ns, waiting.spot.angle);
                (seek_ns + (turn_ns * kind.reorder_weight >> 10)) as i64
            };
            let age_ns = now_ns - waiting.given_ns;
            let preferred_ns = if command.background { 0 } else { kind.read_preference_ns };
            let cost_ns = cost_ns - (age_ns * kind.age_credit >> 10) as i64 - preferred_ns as i64;
            if cost_ns < best.0 {
                best = (cost_ns, index);
            }
        }
        Some(best.1)
    }

    #[inline]
    fn serve(&mut self, now_ns: u64, next: Waiting) -> Begun {
        let kind = &*self.kind;
        let Waiting { command, spot, .. } = next;
        let bytes = u64::from(command.bytes);
        let ready_ns = now_ns + kind.overhead_ns;
        let end_ns = if let Some(stream) = self.continues(&command) {
            // The platters turn while the command is prepared; what they passed is in the buffer already. A command that
            // was there in time has been prepared by now.
            let passed_ns = kind.transfer_ns(command.at_bytes + bytes - stream.end_bytes, stream.track_bytes);
            let prepared_ns = if command.queued_ns <= stream.end_ns { now_ns } else { ready_ns };
            (stream.end_ns + passed_ns).max(prepared_ns + (bytes * kind.interface_ps_per_byte) / 1000)
        } else {
            let seek_ns = self.seek_ns(&next);
            let turn_ns = self.turn_ns(self.angle_at(ready_ns), seek_ns, spot.angle);
            ready_ns + seek_ns + turn_ns + kind.transfer_ns(bytes, spot.track_bytes)
        };
        self.cylinder = spot.cylinder;
        self.stream = Some(Stream {
            write: command.write,
            end_bytes: command.at_bytes + bytes,
            end_ns,
            track_bytes: spot.track_bytes,
        });
        self.served = Some(command);
        Begun { end_ns, slot: 0 }
    }

    /// The stream a command goes on with: a read within what the drive reads ahead, or a write that was there before the
    /// last one ended.
    #[inline]
    fn continues(&self, command: &DiskCommand) -> Option<Stream> {
        let stream = self.stream?;
        let within = if command.write {
            command.at_bytes == stream.end_bytes && command.queued_ns <= stream.end_ns
        } else {
            // The drive reads on as far as its buffer goes, and farther if it was asked before it got there.
            let ahead_bytes = self.kind.read_ahead_bytes;
            let until_bytes = stream.end_bytes + ahead_bytes;
            (stream.end_bytes..=until_bytes).contains(&command.at_bytes)
                && (command.at_bytes + u64::from(command.bytes) <= until_bytes
                    || command.queued_ns <= stream.end_ns + self.kind.transfer_ns(ahead_bytes, stream.track_bytes))
        };
        (within && command.write == stream.write).then_some(stream)
    }

    #[inline]
    fn seek_ns(&self, waiting: &Waiting) -> u64 {
        let settle_ns = if waiting.command.write { self.kind.write_settle_ns } else { 0 };
        self.kind.seek.time_ns(self.cylinder, waiting.spot.cylinder) + settle_ns
    }

    /// Spindle angle, of 2^32.
    #[inline]
    fn angle_at(&self, at_ns: u64) -> u32 {
        let within_ns = at_ns % self.kind.revolution_ns;
        (((within_ns * self.kind.angle_per_ns) >> ANGLE_BITS) as u32).wrapping_add(self.phase)
    }

    /// Wait for `target` to come round, `after_ns` after the spindle stood at `angle`.
    #[inline]
    fn turn_ns(&self, angle: u32, after_ns: u64, target: u32) -> u64 {
        let turned = (after_ns * self.kind.angle_per_ns) >> ANGLE_BITS;
        let left = target.wrapping_sub(angle.wrapping_add(turned as u32));
        (u64::from(left) * self.kind.revolution_ns) >> 32
    }
}
