use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    path::Path,
};

use assay_load::{Op, Request, Sync};

use crate::{DeviceError, identity::duplicate};

/// Bytes of a block of `st_blocks`.
const STAT_BLOCK_BYTES: u64 = 512;

/// A file or block device opened for load.
pub struct VolumeFile {
    pub file: File,
    /// Flushes are fsync rather than fdatasync.
    pub full_sync: bool,
    /// I/Os of several frames go to memory in as many pieces, the last frame first. The kernel takes 1024 pieces at
    /// most; I/Os of more complete with `-EINVAL`.
    pub scattered: bool,
}

impl VolumeFile {
    /// Opens `path`: past the page cache when `direct`, with write-through when `sync` says so.
    ///
    /// `held` is a descriptor of the file or device that the caller holds: that one is opened, whatever the path leads
    /// to by now.
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] when the file system has no direct I/O, [`DeviceError::Open`] otherwise.
    pub fn open(path: &Path, held: Option<RawFd>, writes: bool, direct: bool, sync: Sync) -> Result<Self, DeviceError> {
        let mut flags = libc::O_CLOEXEC;
        if direct {
            flags |= libc::O_DIRECT;
        }
        if sync == Sync::Dsync {
            flags |= libc::O_DSYNC;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(writes);
        let opened = match held {
            None => options.custom_flags(flags).open(path),
            Some(held) => open_held(path, held, &mut options, flags),
        };
        let file = opened.map_err(|source| match source.raw_os_error() {
            Some(libc::EINVAL) if direct => DeviceError::NotSupported {
                what: format!("direct I/O on {}", path.display()),
                why: "the file system refuses O_DIRECT; use --buffered".into(),
            },
            _ => DeviceError::Open { path: path.display().to_string(), source },
        })?;
        Ok(Self { file, full_sync: sync == Sync::Fsync, scattered: false })
    }

    /// Writes back and drops the page cache of the file.
    pub(crate) fn forget_cached(&self) {
        // What cannot be dropped stays: reads of it are answered from memory, as in any buffered run.
        // SAFETY: the descriptor is open for the calls.
        unsafe {
            libc::fdatasync(self.file.as_raw_fd());
            libc::posix_fadvise(self.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
        }
    }

    /// Whether a request goes to memory in several pieces.
    pub(crate) fn scatters(&self, request: &Request, frame_bytes: u32) -> bool {
        self.scattered && request.length_bytes > frame_bytes && request.op != Op::Flush
    }

    /// See [`assay_load::DataQueue::frame_of_piece`].
    pub(crate) fn frame_of_piece(&self, first: u32, piece: u32, pieces: u32) -> u32 {
        assert!(piece < pieces, "piece {piece} of {pieces}");
        if self.scattered { first + (pieces - 1 - piece) } else { first + piece }
    }

    /// See [`assay_load::DataQueue::resize`]. A failed call leaves the size as it was.
    pub(crate) fn resize(&self, size_bytes: u64) -> Result<(), i32> {
        let errno = |error: io::Error| -error.raw_os_error().unwrap_or(libc::EINVAL);
        let metadata = self.file.metadata().map_err(errno)?;
        if !metadata.is_file() {
            return Err(-libc::EINVAL);
        }
        let before_bytes = metadata.len();
        if size_bytes <= before_bytes {
            return self.file.set_len(size_bytes).map_err(errno);
        }
        reserve(&self.file, before_bytes, size_bytes).map_err(|error| {
            // Some of it may have been there.
            let _ = self.file.set_len(before_bytes);
            errno(error)
        })
    }
}

/// Opens the file of a descriptor again, with other flags.
///
/// The link in `/proc` leads to the open file itself. Without `/proc` the path is followed, and must lead to the same.
fn open_held(path: &Path, held: RawFd, options: &mut OpenOptions, flags: i32) -> io::Result<File> {
    let file = match options.custom_flags(flags).open(format!("/proc/self/fd/{held}")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            options.custom_flags(flags | libc::O_NOFOLLOW).open(path)?
        }
        opened => opened?,
    };
    let (opened, meant) = (file.metadata()?, duplicate(held)?.metadata()?);
    if (opened.dev(), opened.ino(), opened.rdev()) != (meant.dev(), meant.ino(), meant.rdev()) {
        return Err(io::Error::other("another file has taken its place"));
    }
    Ok(file)
}

/// Claims a block device for as long as the returned file is open, so that nothing mounts it meanwhile; `None` for
/// what is no block device. The claim is a descriptor of its own: workers that open the device beside it may be several.
///
/// # Errors
/// [`DeviceError::Open`] when the device is mounted or claimed by another, or cannot be opened.
pub fn claim(path: &Path) -> Result<Option<File>, DeviceError> {
    let open_error = |source| DeviceError::Open { path: path.display().to_string(), source };
    if !std::fs::metadata(path).map_err(open_error)?.file_type().is_block_device() {
        return Ok(None);
    }
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_CLOEXEC).open(path);
    opened.map(Some).map_err(open_error)
}

/// Gives an open file its size and reserves the space, so that a full file system shows before anything is written.
/// `path` is what errors name.
///
/// # Errors
/// [`DeviceError::NoSpace`] when there is no room, [`DeviceError::Io`] otherwise.
pub fn allocate(file: &File, path: &Path, size_bytes: u64) -> Result<(), DeviceError> {
    let what = || path.display().to_string();
    let sized = file.metadata().and_then(|held| {
        // Some file systems refuse to set a length, also the one that the file has.
        let has_length = held.len() == size_bytes;
        if has_length && held.blocks() * STAT_BLOCK_BYTES >= size_bytes {
            return Ok(());
        }
        reserve(file, 0, size_bytes)?;
        if has_length { Ok(()) } else { file.set_len(size_bytes) }
    });
    sized.map_err(|source| match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EFBIG) => DeviceError::NoSpace { path: what(), needed_bytes: size_bytes },
        _ => DeviceError::Io { what: what(), source },
    })
}

/// Makes a file at least `end_bytes` long and reserves its space from `start_bytes` on, where the file system can.
fn reserve(file: &File, start_bytes: u64, end_bytes: u64) -> io::Result<()> {
    let (start, length) = (start_bytes as libc::off_t, end_bytes.saturating_sub(start_bytes) as libc::off_t);
    loop {
        // SAFETY: the descriptor is open for the call.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, start, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // A signal (Ctrl-C, a window that changes its size) is for others to deal with.
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => {
                let is_long = file.metadata()?.len() >= end_bytes;
                return if is_long { Ok(()) } else { file.set_len(end_bytes) };
            }
            _ => return Err(error),
        }
    }
}
