use std::sync::Arc;

use super::{
    command::{Begun, DiskCommand, DiskCounters},
    seek::SeekCurve,
    zones::{Spot, Zones},
};
use crate::MechanicalPlan;

/// Bits below the point of angles per nanosecond.
const ANGLE_BITS: u32 = 20;

/// Data that all disks of one kind share.
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

    /// Position of the waiting command that the head reaches first, among the commands in the drive's queue.
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
                (seek_ns + ((turn_ns * kind.reorder_weight) >> 10)) as i64
            };
            let age_ns = now_ns - waiting.given_ns;
            let preferred_ns = if command.background { 0 } else { kind.read_preference_ns };
            let cost_ns = cost_ns - ((age_ns * kind.age_credit) >> 10) as i64 - preferred_ns as i64;
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

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;
    const MS: u64 = 1_000_000;

    fn plan() -> MechanicalPlan {
        MechanicalPlan {
            capacity_bytes: 64 << 30,
            revolution_ns: 4 * MS,
            seek_track_ns: 600_000,
            seek_average_ns: 2_900_000,
            seek_full_ns: 5_800_000,
            write_settle_ns: 400_000,
            rate_outer_bytes_per_s: 160e6,
            rate_inner_bytes_per_s: 160e6,
            command_overhead_ns: 700_000,
            queue_depth: 32,
            reorder_weight: 0.9,
            age_credit: 0.05,
            read_ahead_bytes: 512 * KIB,
            interface_bytes_per_s: 300e6,
        }
    }

    fn disk(plan: &MechanicalPlan) -> Mechanical {
        Mechanical::new(Arc::new(MechanicalKind::new(plan, 0)), 0)
    }

    fn command(at_bytes: u64, bytes: u64, write: bool, queued_ns: u64) -> DiskCommand {
        DiskCommand { at_bytes, bytes: bytes as u32, write, background: false, task: 0, queued_ns }
    }

    /// Performs a command on an idle disk; returns when it ends.
    fn perform(disk: &mut Mechanical, now_ns: u64, at_bytes: u64, bytes: u64, write: bool) -> u64 {
        let begun = disk.push(now_ns, command(at_bytes, bytes, write, now_ns)).expect("the disk is idle");
        disk.end(begun.end_ns);
        begun.end_ns
    }

    #[test]
    fn a_read_takes_what_the_platters_take() {
        let mut disk = disk(&plan());
        // At the first byte at time 0; after the overhead it comes round again.
        let transfer_ns = 8 * KIB * 4 * MS / 640_000;
        let end_ns = perform(&mut disk, 0, 0, 8 * KIB, false);
        assert!(end_ns.abs_diff(4 * MS + transfer_ns) <= 2, "{end_ns}");
        // A track on, a turn less than the time that passes meanwhile.
        let cylinder_bytes = (64 << 30) / u64::from(super::super::seek::CYLINDERS);
        let at_bytes = cylinder_bytes * 40 / 640_000 * 640_000;
        let end_ns = perform(&mut disk, 8 * MS, at_bytes, 8 * KIB, false);
        assert!(end_ns > 8 * MS + 700_000 + 600_000 && end_ns <= 8 * MS + 700_000 + 900_000 + 4 * MS + transfer_ns);
        // A write settles first.
        let mut disk = super::tests::disk(&MechanicalPlan { write_settle_ns: 2 * MS, ..plan() });
        let end_ns = perform(&mut disk, 1_500_000, 0, 8 * KIB, true);
        assert!(end_ns.abs_diff(8 * MS + transfer_ns) <= 2, "{end_ns}");
    }

    #[test]
    fn a_stream_runs_at_the_rate_of_the_tracks() {
        for (bytes, write) in [(8 * KIB, false), (64 * KIB, false), (256 * KIB, false), (256 * KIB, true)] {
            let mut disk = disk(&MechanicalPlan { command_overhead_ns: 0, ..plan() });
            let (mut ends, mut at_bytes, mut now_ns) = (Vec::new(), 0, 0);
            let next = |at_bytes: &mut u64, now_ns| {
                *at_bytes += bytes;
                command(*at_bytes - bytes, bytes, write, now_ns)
            };
            ends.extend(disk.push(0, next(&mut at_bytes, 0)));
            while at_bytes < 64 << 20 {
                assert_eq!(disk.push(now_ns, next(&mut at_bytes, now_ns)), None);
                now_ns = ends.pop().unwrap().end_ns;
                ends.extend(disk.end(now_ns).1);
            }
            let rate = (64 << 20) as f64 / (now_ns as f64 / 1e9);
            assert!((rate / 160e6 - 1.0).abs() < 0.02, "{bytes} {write}: {rate}");
        }
    }

    #[test]
    fn the_drive_reads_on_as_far_as_its_buffer_goes() {
        let later = 1000 * MS;
        let mut first = disk(&plan());
        perform(&mut first, 0, 0, 64 * KIB, false);
        let mut second = first.clone();
        // From the buffer: the overhead and the interface.
        let end_ns = perform(&mut first, later, 64 * KIB, 512 * KIB, false);
        assert_eq!(end_ns, later + 700_000 + 512 * KIB * (1e12_f64 / 300e6) as u64 / 1000);
        // Longer than that, the rest is still on the platters.
        let end_ns = perform(&mut second, later, 64 * KIB, 1024 * KIB, false);
        assert!(end_ns >= later + 700_000 + 1024 * KIB * 4 * MS / 640_000);
    }

    #[test]
    fn the_nearest_command_comes_first_and_none_waits_for_ever() {
        for age_credit in [0.05, 0.5] {
            let mut disk = disk(&MechanicalPlan { age_credit, read_ahead_bytes: 0, ..plan() });
            let mut now_ns = 0;
            let mut ends = Vec::from_iter(disk.push(0, command(0, 8 * KIB, false, 0)));
            // One far away among many near ones, that are replaced as they end.
            disk.push(0, command(60 << 30, 8 * KIB, false, 0));
            let mut served = 0;
            for near in 1..20_u64 {
                disk.push(0, command(near * 777 * 8 * KIB, 8 * KIB, false, 0));
            }
            loop {
                now_ns = ends.pop().map_or(now_ns, |begun: Begun| begun.end_ns);
                let (ended, next) = disk.end(now_ns);
                ends.extend(next);
                if ended.at_bytes == 60 << 30 {
                    break;
                }
                served += 1;
                assert!(served < 1000, "it is never served");
                disk.push(now_ns, command(served * 991 % 8000 * 8 * KIB, 8 * KIB, false, now_ns));
            }
            assert!(served > 5, "near ones come first");
        }
    }

    #[test]
    fn a_queue_is_served_faster_than_one_command_after_the_other() {
        let time = |queue_depth| {
            let mut disk = disk(&MechanicalPlan { queue_depth, read_ahead_bytes: 0, ..plan() });
            let place = |number: u64| number.wrapping_mul(6_364_136_223_846_793_005) % (64 << 30) / 8192 * 8192;
            let mut end = disk.push(0, command(place(0), 8192, false, 0));
            (1..400).for_each(|number| assert_eq!(disk.push(0, command(place(number), 8192, false, 0)), None));
            let mut now_ns = 0;
            while let Some(begun) = end {
                now_ns = begun.end_ns;
                end = disk.end(now_ns).1;
            }
            assert_eq!((disk.counters(now_ns).reads, disk.counters(now_ns).busy_ns), (400, now_ns));
            now_ns
        };
        let times = [1, 4, 32].map(time);
        assert!(times[1] < times[0] * 95 / 100 && times[2] < times[1] * 95 / 100, "{times:?}");
    }
}
