use std::{
    fs::File,
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd},
};

/// `FS_IOC_GETVERSION` of the kernel's `linux/fs.h`: `_IOR('v', 1, long)`.
const GET_VERSION: libc::Ioctl =
    (2 << 30 | (size_of::<libc::c_long>() << 16) | (b'v' as usize) << 8 | 1) as libc::Ioctl;
/// `BLKGETDISKSEQ` of the kernel's `linux/fs.h`: `_IOR(0x12, 128, __u64)`.
const GET_DISK_SEQUENCE: libc::Ioctl = (2 << 30 | (size_of::<u64>() << 16) | 0x12 << 8 | 128) as libc::Ioctl;

/// Identity of a file or device: it tells it from a later file of the same name and inode number. `None` where the file
/// system or kernel does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// When the file was made (`stx_btime` of statx(2)), in nanoseconds since 1970.
    pub birth_ns: Option<i64>,
    /// Of a file: changes when an inode number is given again (`FS_IOC_GETVERSION`).
    pub generation: Option<u32>,
    /// Of a device: the kernel gives each medium that it attaches another (`BLKGETDISKSEQ`, Linux 5.15).
    pub disk_sequence: Option<u64>,
}

impl Identity {
    /// Asks the kernel about an open file or device.
    ///
    /// # Errors
    /// Error of statx(2).
    pub fn of(file: BorrowedFd<'_>) -> io::Result<Self> {
        let mut status = MaybeUninit::<libc::statx>::zeroed();
        // SAFETY: the descriptor is open, the path is a C string, and the structure is as large as the kernel expects.
        let asked = unsafe {
            let mask = libc::STATX_BTIME | libc::STATX_MODE;
            libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, mask, status.as_mut_ptr())
        };
        if asked != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel filled it, and zeros are valid besides.
        let status = unsafe { status.assume_init() };
        let birth = status.stx_btime;
        let is_device = u32::from(status.stx_mode) & libc::S_IFMT == libc::S_IFBLK;
        Ok(Self {
            birth_ns: (status.stx_mask & libc::STATX_BTIME != 0 && birth.tv_sec != 0)
                .then(|| birth.tv_sec * 1_000_000_000 + i64::from(birth.tv_nsec)),
            generation: if is_device { None } else { ask(file, GET_VERSION).map(|value: libc::c_long| value as u32) },
            disk_sequence: if is_device { ask(file, GET_DISK_SEQUENCE) } else { None },
        })
    }
}

/// A number that an ioctl gives; file systems that do not know it refuse.
fn ask<T: Default>(file: BorrowedFd<'_>, request: libc::Ioctl) -> Option<T> {
    let mut value = T::default();
    // SAFETY: the descriptor is open, and the request writes one `T`, as its number says.
    (unsafe { libc::ioctl(file.as_raw_fd(), request, &raw mut value) } == 0).then_some(value)
}

/// A descriptor of the caller's as a file of our own.
///
/// # Errors
/// Error of dup(2), for a number that is no open descriptor.
pub fn duplicate(descriptor: i32) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the number is not -1; one that is not open makes the call fail and does nothing else.
    Ok(File::from(unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()?))
}
