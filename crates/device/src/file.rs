use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::Path,
};

use assay_load::Sync;

use crate::DeviceError;

/// A file or block device opened for load.
pub struct VolumeFile {
    pub file: File,
    /// Flushes are fsync rather than fdatasync.
    pub full_sync: bool,
}

impl VolumeFile {
    /// Opens `path`: past the page cache when `direct`, with write-through when `sync` says so.
    ///
    /// # Errors
    /// [`DeviceError::NotSupported`] when the file system has no direct I/O, [`DeviceError::Open`] otherwise.
    pub fn open(path: &Path, writes: bool, direct: bool, sync: Sync) -> Result<Self, DeviceError> {
        let mut flags = libc::O_CLOEXEC;
        if direct {
            flags |= libc::O_DIRECT;
        }
        if sync == Sync::Dsync {
            flags |= libc::O_DSYNC;
        }
        let opened = OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path);
        let file = opened.map_err(|source| match source.raw_os_error() {
            Some(libc::EINVAL) if direct => DeviceError::NotSupported {
                what: format!("direct I/O on {}", path.display()),
                why: "the file system refuses O_DIRECT; use --buffered".into(),
            },
            _ => DeviceError::Open { path: path.display().to_string(), source },
        })?;
        Ok(Self { file, full_sync: sync == Sync::Fsync })
    }
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

/// Gives a file its size and reserves the space, so that a full file system shows before anything is written.
///
/// # Errors
/// [`DeviceError::NoSpace`] when there is no room, [`DeviceError::Io`] otherwise.
pub fn allocate(path: &Path, size_bytes: u64) -> Result<(), DeviceError> {
    let what = || path.display().to_string();
    // The bytes that are there stay: the caller decides whether the file may be written to.
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|source| DeviceError::Open { path: what(), source })?;
    let source = loop {
        // SAFETY: the descriptor is open for the call.
        let result = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size_bytes as libc::off_t) };
        if result == 0 {
            return file.set_len(size_bytes).map_err(|source| DeviceError::Io { what: what(), source });
        }
        let source = io::Error::last_os_error();
        // A signal (Ctrl-C, a window that changes its size) is for others to deal with.
        if source.kind() != io::ErrorKind::Interrupted {
            break source;
        }
    };
    match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EFBIG) => Err(DeviceError::NoSpace { path: what(), needed_bytes: size_bytes }),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => {
            file.set_len(size_bytes).map_err(|source| DeviceError::Io { what: what(), source })
        }
        _ => Err(DeviceError::Io { what: what(), source }),
    }
}
