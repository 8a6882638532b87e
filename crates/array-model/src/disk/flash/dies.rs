//! The dies of a drive: programs that follow each other on each die, and reads that may come before them.

use crate::{ReadPriority, SolidStatePlan};

/// A die: its planned programs and erases, and the reads that held them up.
#[derive(Debug, Clone, Copy, Default)]
struct Die {
    /// When the last program or erase that was planned ends, begins, and when the one before it ended.
    free_ns: u64,
    begun_ns: u64,
    before_ns: u64,
    /// The last erase.
    erase_from_ns: u64,
    erase_until_ns: u64,
    /// How long a program of the kind planned last takes.
    program_ns: u64,
    /// When the last suspension for reads begins, and when the last read that held programs up ends.
    opens_ns: u64,
    read_until_ns: u64,
    /// Programs until the next erase.
    programs_left: u32,
    /// Times that the program under way was suspended, and when it ends.
    suspended: u32,
    suspended_until_ns: u64,
}

/// Times and rules that all dies have.
#[derive(Debug, Clone)]
pub(super) struct DieKind {
    dies: u32,
    planes: u32,
    read_ns: u64,
    erase_ns: u64,
    programs_per_block: u32,
    priority: ReadPriority,
    suspend_ns: u64,
    /// By 1/256 of a chance: how much longer than `suspend_ns` a suspension takes.
    late_ns: Box<[u64; 256]>,
    suspends: u32,
    resume_ns: u64,
    /// Dies that may program at a time.
    programming: u32,
}

/// Times by which suspensions are late: none for half of them, `mean_ns` in the mean and exponentially distributed for the others.
fn lateness(mean_ns: u64) -> Box<[u64; 256]> {
    let late_ns = |place: usize| {
        let share = (place as f64 + 0.5) / 256.0;
        (-libm::log((2.0 * share).min(1.0)) * mean_ns as f64) as u64
    };
    Box::new(std::array::from_fn(late_ns))
}

impl DieKind {
    pub(super) fn new(plan: &SolidStatePlan) -> Self {
        let (flash, reads) = (&plan.flash, &plan.reads);
        let programming = if flash.programming_dies == 0 { flash.dies } else { flash.programming_dies };
        Self {
            dies: flash.dies,
            planes: flash.planes,
            read_ns: flash.read_ns,
            erase_ns: flash.erase_ns,
            programs_per_block: (flash.pages_per_block / flash.cell_bits).max(1),
            priority: reads.priority,
            suspend_ns: reads.suspend_ns,
            late_ns: lateness(reads.late_ns),
            suspends: reads.suspends,
            resume_ns: reads.resume_ns,
            programming: programming.min(flash.dies),
        }
    }

    /// Planes of all dies, each of which reads on its own.
    pub(super) fn planes(&self) -> u64 {
        u64::from(self.dies) * u64::from(self.planes)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Dies {
    dies: Box<[Die]>,
    /// By plane of all dies: when its last read ends.
    planes: Box<[u64]>,
    next: usize,
    /// When the last programs end, as many as dies may program at a time; empty where all dies may.
    programs: Box<[u64]>,
    next_program: usize,
    pub(super) erases: u64,
}

impl Dies {
    pub(super) fn new(kind: &DieKind, phase: u64) -> Self {
        let per_block = u64::from(kind.programs_per_block);
        // Dies come to the end of their blocks one after the other.
        let die = |number: u32| Die {
            programs_left: (per_block * u64::from(number) / u64::from(kind.dies)) as u32 + 1,
            ..Die::default()
        };
        Self {
            dies: (0..kind.dies).map(die).collect(),
            planes: vec![0; kind.planes() as usize].into(),
            next: (phase % u64::from(kind.dies)) as usize,
            programs: vec![0; if kind.programming < kind.dies { kind.programming as usize } else { 0 }].into(),
            next_program: 0,
            erases: 0,
        }
    }

    /// Programs data on the next die, from `ready_ns` on and in `takes_ns`; returns the end of the program.
    #[inline]
    pub(super) fn program(&mut self, kind: &DieKind, ready_ns: u64, takes_ns: u64) -> u64 {
        let number = self.turn(ready_ns, takes_ns);
        let die = &mut self.dies[number];
        let powered_ns = self.programs.get(self.next_program).map_or(0, |end_ns| *end_ns);
        let from_ns = ready_ns.max(die.free_ns).max(die.read_until_ns).max(powered_ns);
        (die.before_ns, die.begun_ns, die.program_ns) = (die.free_ns, from_ns, takes_ns);
        die.free_ns = from_ns + takes_ns;
        let end_ns = die.free_ns;
        if let Some(powered) = self.programs.get_mut(self.next_program) {
            *powered = end_ns;
            self.next_program = (self.next_program + 1) % kind.programming as usize;
        }
        die.programs_left -= 1;
        if die.programs_left == 0 {
            die.programs_left = kind.programs_per_block;
            die.erase_from_ns = die.free_ns;
            die.free_ns += kind.erase_ns;
            die.erase_until_ns = die.free_ns;
            self.erases += 1;
        }
        end_ns
    }

    /// The die whose turn it is. A die that is behind the next one by more than a program, which is what erases do, loses its
    /// turn, so that the others do not wait for it.
    #[inline]
    fn turn(&mut self, ready_ns: u64, takes_ns: u64) -> usize {
        let dies = self.dies.len();
        let after = |number: usize| if number + 1 == dies { 0 } else { number + 1 };
        let mut number = self.next;
        for _ in 1..dies {
            if self.dies[number].free_ns <= self.dies[after(number)].free_ns.max(ready_ns) + takes_ns {
                break;
            }
            number = after(number);
        }
        self.next = after(number);
        number
    }

    /// Reads a page of a plane from `from_ns` on; returns when it is there.
    #[inline]
    pub(super) fn read(&mut self, kind: &DieKind, plane: usize, from_ns: u64) -> u64 {
        let die = &mut self.dies[plane / kind.planes as usize];
        let due_ns = from_ns.max(self.planes[plane]);
        let at_work = due_ns < die.before_ns || (due_ns >= die.begun_ns && due_ns < die.free_ns);
        // Reads that come until the last read of a suspension has ended are part of it.
        let stops = at_work && due_ns >= die.read_until_ns;
        if stops {
            die.opens_ns = due_ns + die.wait(kind, due_ns);
        }
        let start_ns = if at_work { due_ns.max(die.opens_ns) } else { due_ns };
        let end_ns = start_ns + kind.read_ns;
        self.planes[plane] = end_ns;
        let held_ns = end_ns.saturating_sub(die.read_until_ns.max(start_ns));
        die.read_until_ns = die.read_until_ns.max(end_ns);
        if at_work && start_ns < die.free_ns {
            let resume_ns = if stops && kind.priority == ReadPriority::Suspend { kind.resume_ns } else { 0 };
            die.hold(held_ns + resume_ns, due_ns);
        }
        end_ns
    }
}

impl Die {
    /// How long a read that comes at `at_ns` waits for what the die does.
    fn wait(&mut self, kind: &DieKind, at_ns: u64) -> u64 {
        let queued_ns = self.free_ns - at_ns;
        let erases = (self.erase_from_ns..self.erase_until_ns).contains(&at_ns);
        let under_way_ns =
            if erases { self.erase_until_ns - at_ns } else { (queued_ns - 1) % self.program_ns.max(1) + 1 };
        match kind.priority {
            ReadPriority::InTurn => queued_ns,
            ReadPriority::Next => under_way_ns,
            ReadPriority::Suspend => {
                if at_ns >= self.suspended_until_ns {
                    (self.suspended, self.suspended_until_ns) = (0, at_ns + under_way_ns);
                }
                if self.suspended == kind.suspends {
                    return under_way_ns;
                }
                self.suspended += 1;
                let chance = (at_ns ^ self.free_ns).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
                (kind.suspend_ns + kind.late_ns[chance as usize]).min(under_way_ns)
            }
        }
    }

    /// Work that was planned is later by so much.
    fn hold(&mut self, by_ns: u64, at_ns: u64) {
        self.free_ns += by_ns;
        self.suspended_until_ns += by_ns;
        if self.begun_ns > at_ns {
            self.begun_ns += by_ns;
            self.before_ns += by_ns;
        }
        if self.erase_until_ns > at_ns {
            self.erase_from_ns += if self.erase_from_ns > at_ns { by_ns } else { 0 };
            self.erase_until_ns += by_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(priority: ReadPriority) -> DieKind {
        DieKind {
            dies: 2,
            planes: 2,
            read_ns: 50,
            erase_ns: 5000,
            programs_per_block: 100,
            priority,
            suspend_ns: 300,
            late_ns: lateness(0),
            suspends: 2,
            resume_ns: 0,
            programming: 2,
        }
    }

    #[test]
    fn a_read_behind_programs_waits_as_the_drive_has_it() {
        for (priority, waits_ns) in
            [(ReadPriority::InTurn, 1900), (ReadPriority::Next, 900), (ReadPriority::Suspend, 300)]
        {
            let kind = kind(priority);
            let mut dies = Dies::new(&kind, 1);
            dies.dies.iter_mut().for_each(|die| die.programs_left = 50);
            // Two programs on each die: the read comes 100 ns after the first began.
            let ends: Vec<u64> = (0..4).map(|_| dies.program(&kind, 0, 1000)).collect();
            assert_eq!(ends, [1000, 1000, 2000, 2000]);
            assert_eq!(dies.read(&kind, 2, 100), 100 + waits_ns + 50, "{priority:?}");
            // The next program of that die is later by the time of the read.
            assert_eq!((dies.program(&kind, 0, 1000), dies.program(&kind, 0, 1000)), (3050, 3000), "{priority:?}");
        }
    }

    #[test]
    fn an_idle_die_reads_at_once_and_its_planes_side_by_side() {
        let kind = kind(ReadPriority::Next);
        let mut dies = Dies::new(&kind, 0);
        dies.program(&kind, 10_000, 1000);
        assert_eq!((dies.read(&kind, 0, 0), dies.read(&kind, 1, 0), dies.read(&kind, 0, 0)), (50, 50, 100));
        assert_eq!(dies.read(&kind, 0, 10_000), 11_050);
    }

    #[test]
    fn no_program_gives_way_for_ever() {
        let kind = kind(ReadPriority::Suspend);
        let mut dies = Dies::new(&kind, 1);
        dies.program(&kind, 0, 1000);
        let mut now_ns = 10;
        let mut waits = Vec::new();
        for _ in 0..3 {
            let end_ns = dies.read(&kind, 2, now_ns);
            waits.push(end_ns - now_ns - 50);
            now_ns = end_ns + 1;
        }
        assert!(waits[0] == 300 && waits[1] == 300 && waits[2] == 388, "{waits:?}");
        assert!(dies.read(&kind, 2, now_ns) == now_ns + 50, "the program is over");
    }

    #[test]
    fn a_program_that_gave_way_takes_longer() {
        let kind = DieKind { resume_ns: 70, ..kind(ReadPriority::Suspend) };
        let mut dies = Dies::new(&kind, 1);
        (0..2).for_each(|_| _ = dies.program(&kind, 0, 1000));
        // Two planes read in one suspension.
        let reads = [2, 3].map(|plane| dies.read(&kind, plane, 100));
        assert_eq!(reads, [100 + 300 + 50; 2]);
        assert_eq!(dies.program(&kind, 0, 1000), 2000 + 50 + 70);
    }

    #[test]
    fn a_cap_on_power_lets_fewer_dies_program_and_blocks_are_erased_in_their_time() {
        let mut kind = kind(ReadPriority::Next);
        kind.programming = 1;
        let mut dies = Dies::new(&kind, 0);
        let ends: Vec<u64> = (0..4).map(|_| dies.program(&kind, 0, 1000)).collect();
        // The first die came to the end of a block at once, and is erased while the other one programs.
        assert_eq!((ends, dies.erases), (vec![1000, 2000, 3000, 4000], 1));
        (0..200).for_each(|_| _ = dies.program(&kind, 4000, 1000));
        assert_eq!(dies.erases, 1 + 2);
    }

    #[test]
    fn half_of_the_suspensions_are_late_and_the_mean_of_those_is_as_given() {
        let late = lateness(80_000);
        assert_eq!(late.iter().filter(|ns| **ns == 0).count(), 128);
        let mean = late.iter().sum::<u64>() / 128;
        assert!((78_000..82_000).contains(&mean), "{mean}");
        assert!(lateness(0).iter().all(|ns| *ns == 0));
    }
}
