//! Setup of rings: features that the kernel grants, registration with their thread, and the arguments of a wait.

use std::io;

use io_uring::{IoUring, types};

use crate::DeviceError;

// Of the kernel's uapi/linux/io_uring.h; the library keeps a registered ring only as long as it borrows the ring.
const REGISTER_RING_FDS: libc::c_uint = 20;
const UNREGISTER_RING_FDS: libc::c_uint = 21;

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

/// `struct io_uring_getevents_arg`.
#[repr(C)]
pub(crate) struct WaitArguments {
    signal_mask: u64,
    signal_mask_bytes: u32,
    min_wait_us: u32,
    timeout: *const types::Timespec,
}

impl WaitArguments {
    #[inline]
    pub(crate) fn new(timeout: &types::Timespec) -> Self {
        Self { signal_mask: 0, signal_mask_bytes: 0, min_wait_us: 0, timeout }
    }
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
struct RingUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// Registers the ring with the thread, so that entering it need not look its descriptor up; returns its index.
pub(crate) fn register_ring(ring_fd: i32) -> io::Result<i32> {
    let mut update = RingUpdate { offset: u32::MAX, reserved: 0, data: ring_fd as u64 };
    // SAFETY: `update` is what IORING_REGISTER_RING_FDS reads and writes.
    let registered =
        unsafe { libc::syscall(libc::SYS_io_uring_register, ring_fd, REGISTER_RING_FDS, &raw mut update, 1) };
    if registered == 1 { Ok(update.offset as i32) } else { Err(io::Error::last_os_error()) }
}

/// Gives the index back: a thread has sixteen, and each keeps its ring alive.
pub(crate) fn unregister_ring(ring_fd: i32, index: i32) {
    let mut update = RingUpdate { offset: index as u32, reserved: 0, data: 0 };
    // SAFETY: `update` is what IORING_UNREGISTER_RING_FDS reads.
    unsafe { libc::syscall(libc::SYS_io_uring_register, ring_fd, UNREGISTER_RING_FDS, &raw mut update, 1) };
}

/// A ring for this many requests and the timer beside them, with the names of the flags it was granted.
pub(crate) fn build_ring(depth: u32, degraded: &mut Vec<String>) -> Result<(IoUring, Vec<&'static str>), DeviceError> {
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
