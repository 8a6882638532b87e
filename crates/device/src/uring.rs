use std::{io, os::fd::AsRawFd, ptr};

use assay_load::{Completion, Op, Queue, QueueError, Request};
use io_uring::{EnterFlags, IoUring, Probe, cqueue, opcode, squeue, types};

use crate::{BufferPool, DeviceError, SessionClock, VolumeFile, clock::thread_cpu_ns};

/// The completion of the timer that ends a long wait.
const TIMER: u64 = u64::MAX;
/// Waits longer than this share one timer per tick; arming one per wait would cost more than the I/O.
const SHORT_WAIT_NS: u64 = 2_000_000;
/// The kernel registers at most this much as one buffer.
const REGISTERED_MOST_BYTES: usize = 1 << 30;
// Of the kernel's uapi/linux/io_uring.h; the library keeps a registered ring only as long as it borrows the ring.
const ENTER_REGISTERED_RING: u32 = 1 << 4;
const ENTER_NO_IOWAIT: u32 = 1 << 7;
const REGISTER_RING_FDS: libc::c_uint = 20;

/// A queue on io_uring with every feature the kernel grants.
pub struct UringQueue {
    ring: IoUring,
    volume: VolumeFile,
    pool: BufferPool,
    clock: SessionClock,
    now_ns: u64,
    queued: u32,
    fixed_file: bool,
    fixed_buffers: bool,
    enter_fd: i32,
    enter_flags: u32,
    timer: types::Timespec,
    timer_due_ns: Option<u64>,
    features: Vec<&'static str>,
    degraded: Vec<String>,
}

/// A set-up flag, the kernel that brought it, and how to ask for it.
type SetupFlag = (&'static str, &'static str, fn(&mut io_uring::Builder));

/// Newest first: they are dropped in this order until the kernel accepts the rest.
const SETUP_FLAGS: [SetupFlag; 5] = [
    ("no_sqarray", "6.6", |builder| {
        builder.setup_no_sqarray();
    }),
    ("defer_taskrun", "6.1", |builder| {
        builder.setup_defer_taskrun();
    }),
    ("single_issuer", "6.0", |builder| {
        builder.setup_single_issuer();
    }),
    ("coop_taskrun", "5.19", |builder| {
        builder.setup_coop_taskrun();
    }),
    ("submit_all", "5.18", |builder| {
        builder.setup_submit_all();
    }),
];

impl UringQueue {
    /// Whether this kernel lets this process use io_uring, and what it says if not.
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

    /// A queue for up to `depth` outstanding requests. To be made on the thread that uses it.
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] when no ring can be had at all.
    pub fn new(volume: VolumeFile, pool: BufferPool, clock: SessionClock, depth: u32) -> Result<Self, DeviceError> {
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
        let fixed_file = note("registered_file", ring.submitter().register_files(&[volume.file.as_raw_fd()]));
        let region = pool.region();
        let fixed_buffers = if region.iov_len > REGISTERED_MOST_BYTES {
            note("registered_buffers", Err(io::Error::other("more than 1 GiB of buffers")))
        } else {
            // SAFETY: the region stays mapped as long as the ring lives.
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
            ring,
            volume,
            pool,
            clock,
            now_ns: 0,
            queued: 0,
            fixed_file,
            fixed_buffers,
            enter_fd,
            enter_flags,
            timer: types::Timespec::new(),
            timer_due_ns: None,
            features,
            degraded,
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
        let address = self.pool.address(request.buffer);
        let (length, offset) = (request.length_bytes, request.offset_bytes);
        macro_rules! on_file {
            ($make:expr) => {
                if self.fixed_file { $make(types::Fixed(0)) } else { $make(types::Fd(self.volume.file.as_raw_fd())) }
            };
        }
        let entry = match request.op {
            Op::Read if self.fixed_buffers => {
                on_file!(|file| opcode::ReadFixed::new(file, address, length, 0).offset(offset).build())
            }
            Op::Read => on_file!(|file| opcode::Read::new(file, address, length).offset(offset).build()),
            Op::Write if self.fixed_buffers => {
                on_file!(|file| opcode::WriteFixed::new(file, address, length, 0).offset(offset).build())
            }
            Op::Write => on_file!(|file| opcode::Write::new(file, address, length).offset(offset).build()),
            Op::Flush => {
                let flags =
                    if self.volume.full_sync { types::FsyncFlags::empty() } else { types::FsyncFlags::DATASYNC };
                on_file!(|file| opcode::Fsync::new(file).flags(flags).build())
            }
        };
        entry.user_data(u64::from(request.tag))
    }

    fn push(&mut self, entry: &squeue::Entry) -> Result<(), QueueError> {
        // SAFETY: buffers and timer outlive the request; each outstanding request has a buffer of its own.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.enter(0, None)?;
        }
        self.queued += 1;
        Ok(())
    }

    /// Submits what is queued and waits for `min` completions, `timeout_ns` at most.
    #[inline]
    fn enter(&mut self, min: u32, timeout_ns: Option<u64>) -> Result<(), QueueError> {
        let timeout = types::Timespec::new().nsec(timeout_ns.unwrap_or(0) as u32);
        let wait = WaitArguments { timeout: &raw const timeout, ..WaitArguments::NONE };
        let (flags, argument, argument_bytes) = match timeout_ns {
            None => (self.enter_flags, ptr::null(), 0),
            Some(_) => (self.enter_flags | EnterFlags::EXT_ARG.bits(), &raw const wait, size_of::<WaitArguments>()),
        };
        // SAFETY: the arguments are those of io_uring_enter(2) and live until it returns.
        let submitted = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, self.enter_fd, self.queued, min, flags, argument, argument_bytes)
        };
        let result = if submitted < 0 { Err(io::Error::last_os_error()) } else { Ok(submitted) };
        match result {
            Ok(submitted) => {
                self.queued -= (submitted as u32).min(self.queued);
                Ok(())
            }
            Err(error) => match error.raw_os_error() {
                // Requests that were queued are submitted before a wait times out or is interrupted.
                Some(libc::ETIME | libc::EINTR) => {
                    self.queued = self.ring.submission().len() as u32;
                    Ok(())
                }
                // The kernel wants completions to be taken first.
                Some(libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(QueueError { operation: "io_uring_enter", message: error.to_string() }),
            },
        }
    }

    /// One timer completion at `until_ns` serves all waits until then.
    fn arm_timer(&mut self, until_ns: u64) -> Result<(), QueueError> {
        if self.timer_due_ns.is_some_and(|due_ns| due_ns > self.now_ns && due_ns <= until_ns) {
            return Ok(());
        }
        let wait_ns = until_ns - self.now_ns;
        self.timer = types::Timespec::new().sec(wait_ns / 1_000_000_000).nsec((wait_ns % 1_000_000_000) as u32);
        self.timer_due_ns = Some(until_ns);
        let entry = opcode::Timeout::new(&raw const self.timer).build().user_data(TIMER);
        self.push(&entry)?;
        // The kernel reads the time when it takes the request, so that must happen before `timer` changes again.
        self.enter(0, None)
    }

    #[inline]
    fn reap(&mut self, completions: &mut Vec<Completion>) -> usize {
        let queue = self.ring.completion();
        if queue.is_empty() {
            return 0;
        }
        let at_ns = self.clock.now_ns();
        let before = completions.len();
        completions.extend(queue.filter(|entry: &cqueue::Entry| entry.user_data() != TIMER).map(|entry| Completion {
            tag: entry.user_data() as u32,
            result: entry.result(),
            at_ns,
        }));
        completions.len() - before
    }
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
struct WaitArguments {
    signal_mask: u64,
    signal_mask_bytes: u32,
    min_wait_us: u32,
    timeout: *const types::Timespec,
}

impl WaitArguments {
    const NONE: Self = Self { signal_mask: 0, signal_mask_bytes: 0, min_wait_us: 0, timeout: ptr::null() };
}

/// Registers the ring with the thread, so that entering it need not look its descriptor up; returns its index.
fn register_ring(ring_fd: i32) -> io::Result<i32> {
    /// `struct io_uring_rsrc_update`.
    #[repr(C)]
    struct Update {
        offset: u32,
        reserved: u32,
        data: u64,
    }
    let mut update = Update { offset: u32::MAX, reserved: 0, data: ring_fd as u64 };
    // SAFETY: `update` is what IORING_REGISTER_RING_FDS reads and writes.
    let registered =
        unsafe { libc::syscall(libc::SYS_io_uring_register, ring_fd, REGISTER_RING_FDS, &raw mut update, 1) };
    if registered == 1 { Ok(update.offset as i32) } else { Err(io::Error::last_os_error()) }
}

fn build_ring(depth: u32, degraded: &mut Vec<String>) -> Result<(IoUring, Vec<&'static str>), DeviceError> {
    // Room for the timer beside the requests.
    let entries = (depth + 2).next_power_of_two();
    let mut flags = &SETUP_FLAGS[..];
    loop {
        let mut builder = IoUring::builder();
        builder.dontfork();
        flags.iter().for_each(|(_, _, set)| set(&mut builder));
        match builder.build(entries) {
            Ok(ring) => return Ok((ring, flags.iter().map(|(name, ..)| *name).collect())),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && !flags.is_empty() => {
                let (name, since, _) = flags[0];
                degraded.push(format!("{name}: needs Linux {since}"));
                flags = &flags[1..];
            }
            Err(error) => {
                return Err(DeviceError::NotSupported { what: "io_uring".into(), why: error.to_string() });
            }
        }
    }
}

impl Queue for UringQueue {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.now_ns = self.clock.now_ns();
        self.now_ns
    }

    #[inline]
    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        for request in requests {
            if request.op == Op::Write {
                self.pool.prepare_write(request.buffer, request.length_bytes);
            }
            let entry = self.entry(request);
            self.push(&entry)?;
        }
        Ok(())
    }

    #[inline]
    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        let found = self.reap(completions);
        let missing = min.saturating_sub(found) as u32;
        if missing == 0 {
            if self.queued > 0 || min == 0 {
                self.enter(0, None)?;
                self.reap(completions);
            }
            return Ok(());
        }
        let wait_ns = until_ns.saturating_sub(self.now_ns);
        if wait_ns >= SHORT_WAIT_NS {
            self.arm_timer(until_ns)?;
            self.enter(missing, None)?;
        } else {
            self.enter(missing, Some(wait_ns))?;
        }
        self.reap(completions);
        Ok(())
    }

    fn cpu_ns(&self) -> Option<u64> {
        Some(thread_cpu_ns())
    }
}
