//! What the way from a program to the array and back takes by itself, measured while the array serves.
//!
//! The way is longer under load, when threads wait for processors. So a thread reads a file of the array's own, whose reads are
//! answered as soon as they come, [`EACH`] as long as the volumes are shown.

use std::{
    fs::File,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::ServeError;

const EACH: Duration = Duration::from_millis(20);
/// Reads of which the floor is the median: those of the last second or so.
const KEPT: usize = 64;
/// Reads at the start.
const FIRST: usize = 400;
const READ_BYTES: usize = 8192;
/// Where reads are answered at once by who takes them in, and where by the thread that owns the model.
pub(crate) const AT_ONCE: u64 = 0;
pub(crate) const THROUGH: u64 = READ_BYTES as u64;

/// The probe file and aligned memory to read it into.
struct Probe {
    file: File,
    memory: Vec<u8>,
}

impl Probe {
    fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::options().read(true).custom_flags(libc::O_DIRECT).open(path)?;
        Ok(Self { file, memory: vec![0; READ_BYTES + 4096] })
    }

    /// How long a read at `offset` takes.
    fn read_ns(&mut self, offset: u64) -> std::io::Result<u64> {
        let aligned = self.memory.as_ptr().align_offset(4096);
        let sent = Instant::now();
        self.file.read_exact_at(&mut self.memory[aligned..aligned + READ_BYTES], offset)?;
        Ok(sent.elapsed().as_nanos() as u64)
    }

    /// Sets the floor at the start. Returns the reads per second that go through the array's thread.
    fn first(&mut self, floor_ns: &AtomicU64) -> std::io::Result<f64> {
        let mut read = |offset| (0..FIRST).map(|_| self.read_ns(offset)).collect::<Result<Vec<_>, _>>();
        let through_ns: u64 = read(THROUGH)?.iter().sum();
        floor_ns.store(median(&read(AT_ONCE)?), Ordering::Relaxed);
        Ok(FIRST as f64 * 1e9 / through_ns as f64)
    }
}

fn median(times: &[u64]) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// The present floor, in ns.
pub(crate) type FloorNs = Arc<AtomicU64>;

/// Measures the floor until it is dropped.
pub(crate) struct Gauge {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Gauge {
    /// Measures the floor in a thread: once now, then again and again. Gives how many reads go through the array's thread in a
    /// second, one at a time, too.
    ///
    /// # Errors
    /// The mount does not answer, or there is no thread to be had.
    pub(crate) fn start(path: &Path, floor_ns: &FloorNs) -> Result<(Self, f64), ServeError> {
        let (stop, stopped) = mpsc::channel();
        let (tell, told) = mpsc::sync_channel(1);
        let (probed, floor_ns) = (path.to_owned(), Arc::clone(floor_ns));
        let run = move || {
            let has_own_files = has_files_of_its_own();
            let measured = Probe::open(&probed).and_then(|mut probe| {
                if has_own_files {
                    close_all_but(probe.file.as_raw_fd());
                }
                Ok((probe.first(&floor_ns)?, probe))
            });
            match measured {
                Ok((per_s, probe)) => {
                    let _ = tell.send(Ok(per_s));
                    if has_own_files {
                        go_on(probe, &floor_ns, &stopped);
                    }
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            }
        };
        let thread = std::thread::Builder::new().name("assay-floor".into()).spawn(run);
        let thread = thread.map_err(|error| ServeError::host("a thread", error))?;
        let gauge = Self { stop: Some(stop), thread: Some(thread) };
        let per_s = told.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::BrokenPipe.into()));
        per_s.map(|per_s| (gauge, per_s)).map_err(|error| ServeError::at(path, error))
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn go_on(mut probe: Probe, floor_ns: &AtomicU64, stopped: &mpsc::Receiver<()>) {
    let mut times = vec![floor_ns.load(Ordering::Relaxed); KEPT];
    for turn in 0.. {
        if stopped.recv_timeout(EACH) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let Ok(time_ns) = probe.read_ns(AT_ONCE) else { return };
        times[turn % KEPT] = time_ns;
        floor_ns.store(median(&times), Ordering::Relaxed);
    }
}

/// Gives this thread a table of descriptors of its own. Where a killed process waits for an answer from its own mount, the kernel
/// ends that wait when the last descriptor of the mount's device is closed; in a common table none is closed before all threads have
/// ended, this one with them, and nothing would ever end.
fn has_files_of_its_own() -> bool {
    // SAFETY: takes a number; what is shared with other threads is copied, not changed.
    unsafe { libc::unshare(libc::CLONE_FILES) == 0 }
}

/// Closes all descriptors of this thread but one. Descriptors of other threads stay open.
fn close_all_but(kept: i32) {
    let kept = kept as u32;
    for (first, last) in [(0, kept.checked_sub(1)), (kept + 1, Some(u32::MAX))] {
        if let Some(last) = last.filter(|last| first <= *last) {
            // SAFETY: the table is this thread's alone, and nothing in it but `kept` is used.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}
