use std::{io, marker::PhantomData, mem::ManuallyDrop, os::fd::AsRawFd, ptr};

use assay_load::{Completion, DataQueue, Op, Queue, QueueError, Request};
use io_uring::{EnterFlags, IoUring, Probe, opcode, squeue, types};

use crate::{
    BufferPool, DeviceError, SessionClock, VolumeFile,
    clock::thread_cpu_ns,
    ring::{WaitArguments, build_ring, register_ring, unregister_ring},
};

/// The completion of the timer that ends a long wait.
const TIMER: u64 = u64::MAX;
/// Completions taken at a time, so that the I/Os that follow them are on their way before the next are taken. Taking all
/// there are makes convoys: the device runs dry while a long batch is prepared (at queue depth 32 on a virtio disk it
/// cost 13 % of the IOPS), while one at a time costs a system call each.
const REAP_MAX: usize = 4;
/// Waits longer than this share one timer per tick; arming one per wait would cost more than the I/O.
const SHORT_WAIT_NS: u64 = 2_000_000;
/// No single wait is longer than this: the kernel adds the time to its own clock, which must not overflow.
const WAIT_MAX_NS: u64 = 3_600_000_000_000;
/// A full submission queue empties the first time the kernel is entered, unless it is out of memory.
const PUSH_ATTEMPTS: u32 = 1000;
/// The kernel registers at most this much as one buffer.
const REGISTERED_MAX_BYTES: usize = 1 << 30;
// Of the kernel's uapi/linux/io_uring.h.
const ENTER_REGISTERED_RING: u32 = 1 << 4;
const ENTER_NO_IOWAIT: u32 = 1 << 7;

/// A queue on io_uring with every feature the kernel grants.
///
/// It belongs to the thread that made it: the kernel knows the ring by an index of that thread. Dropped while requests
/// are outstanding, it leaves ring, files and buffers where they are, because the kernel still uses them and closing
/// them could wait for a device that does not answer.
pub struct UringQueue {
    ring: ManuallyDrop<IoUring>,
    volumes: ManuallyDrop<Vec<VolumeFile>>,
    pool: ManuallyDrop<BufferPool>,
    clock: SessionClock,
    /// Requests accepted and not yet reported as complete.
    outstanding: u32,
    /// Entries of the submission queue the kernel has not taken.
    queued: u32,
    fixed_files: bool,
    fixed_buffers: bool,
    enter_fd: i32,
    enter_flags: u32,
    /// The kernel reads it when it takes the timer's entry; it changes only when no timer is under way.
    timer: Box<types::Timespec>,
    /// When the timer that is under way ends. There is one at most, so that timers never fill the completion queue.
    timer_due_ns: Option<u64>,
    features: Vec<&'static str>,
    degraded: Vec<String>,
    of_this_thread: PhantomData<*mut ()>,
}

/// An entry for the file of a request's volume, as the ring knows it.
macro_rules! on_file {
    ($queue:expr, $request:expr, $make:expr) => {
        if $queue.fixed_files {
            $make(types::Fixed(u32::from($request.volume)))
        } else {
            $make(types::Fd($queue.volumes[usize::from($request.volume)].file.as_raw_fd()))
        }
    };
}

impl UringQueue {
    /// Checks that the kernel lets this process use io_uring.
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] with the kernel's reason.
    pub fn available() -> Result<(), DeviceError> {
        let unsupported = |why: String| DeviceError::NotSupported { what: "io_uring".into(), why };
        let ring = IoUring::new(4).map_err(|error| unsupported(error.to_string()))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(|error| unsupported(error.to_string()))?;
        let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE, opcode::Timeout::CODE];
        if !ring.params().is_feature_ext_arg() || needed.iter().any(|code| !probe.is_supported(*code)) {
            return Err(unsupported("the kernel is older than 5.11".into()));
        }
        Ok(())
    }

    /// A queue for up to `depth` outstanding requests to these volumes. To be made on the thread that uses it.
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] when no ring can be had at all.
    pub fn new(
        volumes: Vec<VolumeFile>,
        pool: BufferPool,
        clock: SessionClock,
        depth: u32,
    ) -> Result<Self, DeviceError> {
        let mut degraded = Vec::new();
        let (ring, mut features) = build_ring(depth, &mut degraded)?;
        let mut note = |name: &'static str, result: io::Result<()>| match result {
            Ok(()) => {
                features.push(name);
                true
            }
            Err(error) => {
                degraded.push(format!("{name}: {error}"));
                false
            }
        };
        let files: Vec<_> = volumes.iter().map(|volume| volume.file.as_raw_fd()).collect();
        let fixed_files = note("registered_file", ring.submitter().register_files(&files));
        let region = pool.region();
        let fixed_buffers = if region.iov_len > REGISTERED_MAX_BYTES {
            note("registered_buffers", Err(io::Error::other("more than 1 GiB of buffers")))
        } else {
            // SAFETY: the region stays mapped as long as the ring lives: see `drop`.
            note("registered_buffers", unsafe { ring.submitter().register_buffers(&[region]) })
        };
        let mut enter_flags = EnterFlags::GETEVENTS.bits();
        let mut enter_fd = ring.as_raw_fd();
        note(
            "registered_ring",
            register_ring(enter_fd).map(|index| {
                enter_fd = index;
                enter_flags |= ENTER_REGISTERED_RING;
            }),
        );
        if ring.params().is_feature_no_iowait() {
            enter_flags |= ENTER_NO_IOWAIT;
            features.push("no_iowait");
        } else {
            degraded.push("no_iowait: needs Linux 6.15".into());
        }
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            volumes: ManuallyDrop::new(volumes),
            pool: ManuallyDrop::new(pool),
            clock,
            outstanding: 0,
            queued: 0,
            fixed_files,
            fixed_buffers,
            enter_fd,
            enter_flags,
            timer: Box::new(types::Timespec::new()),
            timer_due_ns: None,
            features,
            degraded,
            of_this_thread: PhantomData,
        })
    }

    /// Features in force.
    pub fn features(&self) -> &[&'static str] {
        &self.features
    }

    /// Features this kernel or its limits refused, each with the reason.
    pub fn degraded(&self) -> &[String] {
        &self.degraded
    }

    #[inline]
    fn entry(&self, request: &Request) -> squeue::Entry {
        let address = self.pool.address(request.buffer, request.length_bytes);
        let (length, offset) = (request.length_bytes, request.offset_bytes);
        let entry = match request.op {
            Op::Read if self.fixed_buffers => {
                on_file!(self, request, |file| opcode::ReadFixed::new(file, address, length, 0).offset(offset).build())
            }
            Op::Read => on_file!(self, request, |file| opcode::Read::new(file, address, length).offset(offset).build()),
            Op::Write if self.fixed_buffers => {
                on_file!(self, request, |file| opcode::WriteFixed::new(file, address, length, 0).offset(offset).build())
            }
            Op::Write => {
                on_file!(self, request, |file| opcode::Write::new(file, address, length).offset(offset).build())
            }
            Op::Flush => {
                let full_sync = self.volumes[usize::from(request.volume)].full_sync;
                let flags = if full_sync { types::FsyncFlags::empty() } else { types::FsyncFlags::DATASYNC };
                on_file!(self, request, |file| opcode::Fsync::new(file).flags(flags).build())
            }
        };
        entry.user_data(u64::from(request.tag))
    }

    /// The entry of an I/O whose bytes are the caller's; out of line, for the load has no use for it.
    #[inline(never)]
    fn data_entry(&mut self, request: &Request) -> squeue::Entry {
        let scattered = self.volumes[usize::from(request.volume)].scatters(request, self.pool.frame_bytes());
        self.pool.lend(request);
        if !scattered {
            return self.entry(request);
        }
        let pieces = self.pool.pieces(request.buffer, request.length_bytes);
        let (pieces, count, offset) = (pieces.as_ptr(), pieces.len() as u32, request.offset_bytes);
        let entry = if request.op == Op::Read {
            on_file!(self, request, |file| opcode::Readv::new(file, pieces, count).offset(offset).build())
        } else {
            on_file!(self, request, |file| opcode::Writev::new(file, pieces, count).offset(offset).build())
        };
        entry.user_data(u64::from(request.tag))
    }

    fn push(&mut self, entry: &squeue::Entry) -> Result<(), QueueError> {
        let mut attempts = 0;
        // SAFETY: buffers, files and timer outlive the request; each outstanding request has a buffer of its own.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            if attempts == PUSH_ATTEMPTS {
                let message = "the submission queue stays full".to_owned();
                return Err(QueueError { operation: "io_uring_enter", message });
            }
            attempts += 1;
            self.enter(0, None)?;
        }
        self.queued += 1;
        Ok(())
    }

    /// Submits queued requests and waits for `min` completions, `timeout_ns` at most.
    #[inline]
    fn enter(&mut self, min: u32, timeout_ns: Option<u64>) -> Result<(), QueueError> {
        let timeout = timespec(timeout_ns.unwrap_or(0));
        let wait = WaitArguments::new(&timeout);
        let (flags, argument, argument_bytes) = match timeout_ns {
            None => (self.enter_flags, ptr::null(), 0),
            Some(_) => (self.enter_flags | EnterFlags::EXT_ARG.bits(), &raw const wait, size_of::<WaitArguments>()),
        };
        // SAFETY: the arguments are those of io_uring_enter(2) and live until it returns.
        let submitted = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, self.enter_fd, self.queued, min, flags, argument, argument_bytes)
        };
        // The kernel may take fewer than all and then does not wait: the caller comes again.
        if submitted >= 0 {
            self.queued -= (submitted as u32).min(self.queued);
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // The wait was over or interrupted. When anything was submitted the kernel says how much instead, so what
            // was queued before is queued still. With EAGAIN and EBUSY it wants completions to be taken first.
            Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
            _ => Err(QueueError { operation: "io_uring_enter", message: error.to_string() }),
        }
    }

    /// Whether the timer ends a wait by `until_ns`. One that is under way serves all waits until then; a new one is
    /// queued for a long wait.
    #[inline]
    fn timer_ends_by(&mut self, until_ns: u64) -> Result<bool, QueueError> {
        if let Some(due_ns) = self.timer_due_ns {
            return Ok(due_ns <= until_ns);
        }
        let wait_ns = until_ns.saturating_sub(self.clock.now_ns()).min(WAIT_MAX_NS);
        if wait_ns < SHORT_WAIT_NS {
            return Ok(false);
        }
        *self.timer = timespec(wait_ns);
        let entry = opcode::Timeout::new(&raw const *self.timer).build().user_data(TIMER);
        self.push(&entry)?;
        self.timer_due_ns = Some(until_ns);
        Ok(true)
    }

    #[inline]
    fn reap(&mut self, completions: &mut Vec<Completion>, most: usize) -> usize {
        let queue = self.ring.completion();
        if queue.is_empty() {
            return 0;
        }
        let at_ns = self.clock.now_ns();
        let before = completions.len();
        for entry in queue.take(most) {
            if entry.user_data() == TIMER {
                self.timer_due_ns = None;
            } else {
                completions.push(Completion { tag: entry.user_data() as u32, result: entry.result(), at_ns });
            }
        }
        if self.pool.lends() {
            completions[before..].iter().for_each(|completion| self.pool.take_back(completion.tag));
        }
        let found = completions.len() - before;
        self.outstanding -= found as u32;
        found
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        if self.outstanding > 0 {
            return;
        }
        // A closed ring lets go of what it holds some time later; a device would stay open until then.
        let _ = self.ring.submitter().unregister_files();
        let _ = self.ring.submitter().unregister_buffers();
        if self.enter_flags & ENTER_REGISTERED_RING != 0 {
            unregister_ring(self.ring.as_raw_fd(), self.enter_fd);
        }
        // SAFETY: each is dropped once, here, the ring before what it refers to, and none is used after.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            ManuallyDrop::drop(&mut self.volumes);
            ManuallyDrop::drop(&mut self.pool);
        }
    }
}

fn timespec(duration_ns: u64) -> types::Timespec {
    types::Timespec::new().sec(duration_ns / 1_000_000_000).nsec((duration_ns % 1_000_000_000) as u32)
}

impl Queue for UringQueue {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    #[inline]
    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        for request in requests {
            let entry = if self.pool.lends() {
                self.data_entry(request)
            } else {
                if request.op == Op::Write {
                    self.pool.prepare_write(request.buffer, request.length_bytes);
                }
                self.entry(request)
            };
            self.push(&entry)?;
            self.outstanding += 1;
        }
        Ok(())
    }

    #[inline]
    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        let most = min.max(REAP_MAX);
        let found = self.reap(completions, most);
        let missing = min.saturating_sub(found) as u32;
        if missing == 0 {
            if self.queued > 0 || min == 0 {
                self.enter(0, None)?;
            }
            if found == 0 {
                self.reap(completions, most);
            }
            return Ok(());
        }
        // A timer's completion ends the wait for however many.
        if self.timer_ends_by(until_ns)? {
            self.enter(missing, None)?;
        } else {
            let wait_ns = until_ns.saturating_sub(self.clock.now_ns()).min(WAIT_MAX_NS);
            self.enter(missing, Some(wait_ns))?;
        }
        self.reap(completions, most);
        Ok(())
    }

    fn cpu_ns(&self) -> Option<u64> {
        Some(thread_cpu_ns())
    }
}

impl DataQueue for UringQueue {
    fn frame_bytes(&self) -> u32 {
        self.pool.frame_bytes()
    }

    fn frame(&mut self, frame: u32) -> &mut [u8] {
        self.pool.frame(frame)
    }

    fn frame_of_piece(&self, volume: u16, first: u32, piece: u32, pieces: u32) -> u32 {
        self.volumes[usize::from(volume)].frame_of_piece(first, piece, pieces)
    }

    fn forget_cached(&mut self, volume: u16) {
        self.volumes[usize::from(volume)].forget_cached();
    }

    fn resize(&mut self, volume: u16, size_bytes: u64) -> Result<(), i32> {
        self.volumes[usize::from(volume)].resize(size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::CString,
        fs::{self, File, OpenOptions},
        os::unix::ffi::OsStrExt,
        path::PathBuf,
    };

    use assay_load::Sync;

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("assay-uring-{}-{name}", std::process::id()))
    }

    fn queue(path: &std::path::Path) -> UringQueue {
        let volume = VolumeFile::open(path, None, true, false, Sync::None).unwrap();
        let pool = BufferPool::new(3, 4096, 1, 0.0, 1).unwrap();
        UringQueue::new(vec![volume], pool, SessionClock::start(), 1).unwrap()
    }

    fn read() -> Request {
        Request { op: Op::Read, volume: 0, offset_bytes: 0, length_bytes: 4096, buffer: 0, tag: 0 }
    }

    fn available() -> bool {
        UringQueue::available().inspect_err(|error| eprintln!("skipped: {error}")).is_ok()
    }

    #[test]
    fn a_thread_can_make_many_queues_one_after_the_other() {
        if !available() {
            return;
        }
        let path = path("many");
        File::create(&path).unwrap().set_len(4096).unwrap();
        let features = queue(&path).features().to_vec();
        for _ in 0..40 {
            let mut queue = queue(&path);
            assert_eq!(queue.features(), features, "a queue that is gone leaves nothing behind");
            queue.submit(&[read()]).unwrap();
            let mut completions = Vec::new();
            while completions.is_empty() {
                queue.wait(1, u64::MAX, &mut completions).unwrap();
            }
        }
        // The kernel grants a lease for reading only when no process has the file open for writing.
        let reader = File::open(&path).unwrap();
        // SAFETY: the descriptor is open for the call.
        let leased = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
        let refused = io::Error::last_os_error();
        fs::remove_file(&path).unwrap();
        assert_eq!(leased, 0, "the file is still open somewhere: {refused}");
    }

    #[test]
    fn dropped_while_a_request_is_outstanding_its_buffers_stay() {
        if !available() {
            return;
        }
        // Reading from a pipe without writes is what a device that does not answer looks like.
        let path = path("pipe");
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a valid string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let keeps_open = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut queue = queue(&path);
        queue.submit(&[read()]).unwrap();
        let until_ns = queue.now_ns() + 10_000_000;
        let mut completions = Vec::new();
        queue.wait(1, until_ns, &mut completions).unwrap();
        assert!(completions.is_empty());
        let buffer = queue.pool.address(0, 4096);
        drop(queue);
        // SAFETY: the memory is still there: that is what is tested, by not being killed here.
        unsafe { buffer.write_volatile(1) };
        drop(keeps_open);
        fs::remove_file(&path).unwrap();
    }
}
