//! How soon the thread is woken that owes answers.

use std::{fs::File, io::Write};

use serde::Serialize;

/// Scheduling that the system granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scheduling {
    /// SCHED_FIFO, or the real-time class under which the array was started.
    Realtime,
    /// The ordinary class with short slices.
    ShortSlices,
    Ordinary,
}

const PRIORITY: i32 = 10;
const SLICE_NS: u64 = 100_000;
const ATTRIBUTES_BYTES: u32 = 48;

/// `struct sched_attr` of Linux, up to the fields used here.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Asks for early wake-ups of this thread, and returns what the system granted.
pub(crate) fn hasten(realtime: bool) -> Scheduling {
    // SAFETY: takes two numbers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    if realtime {
        let parameters = libc::sched_param { sched_priority: PRIORITY };
        // SAFETY: the parameters live until the call is over.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } == 0 {
            return Scheduling::Realtime;
        }
    }
    // Whoever started the array under a real-time class has asked for more than short slices already.
    // SAFETY: takes a number.
    if matches!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_FIFO | libc::SCHED_RR) {
        return Scheduling::Realtime;
    }
    let attributes = Attributes { size: ATTRIBUTES_BYTES, runtime_ns: SLICE_NS, ..Attributes::default() };
    // SAFETY: the attributes live until the call is over, and have the size they say.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if set == 0 { Scheduling::ShortSlices } else { Scheduling::Ordinary }
}

/// Keeps processors out of sleep states that take long to leave, as long as the file is open: `Documentation/power/pm_qos_interface.rst`
/// of Linux. Nothing where the system has no such states or does not let us.
pub(crate) fn stay_awake() -> Option<File> {
    let mut file = File::options().write(true).open("/dev/cpu_dma_latency").ok()?;
    // Microseconds.
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_time_class_under_which_the_array_was_started_is_kept() {
        let parameters = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameters live until the call is over; the class is this thread's alone.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } == 0 {
            assert_eq!(hasten(false), Scheduling::Realtime);
        }
    }
}
