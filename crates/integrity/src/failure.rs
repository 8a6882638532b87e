use std::{
    fs::File,
    io::{Seek, SeekFrom},
    os::unix::fs::FileTypeExt,
};

use thiserror::Error;

/// Why a run cannot go on.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum Failure {
    #[error("{path}: no space is left: the file system, or a thin pool beneath, is full")]
    NoSpace { path: String },
    #[error("{path}: the storage is gone (errno {errno})")]
    Gone { path: String, errno: i32 },
    #[error("{path}: {what} (errno {errno})")]
    Failed { path: String, what: &'static str, errno: i32 },
    #[error("{0}")]
    Queue(String),
    #[error("{outstanding} I/Os outstanding, the oldest for {oldest_s} s")]
    NotAnswering { outstanding: u32, oldest_s: u64 },
    #[error("the expected state of all pages needs {needed_bytes} bytes of memory")]
    Memory { needed_bytes: u64 },
    #[error("the journal cannot be written: {0}")]
    Journal(String),
}

const EDQUOT: i32 = 122;
const ENOSPC: i32 = 28;
const EFBIG: i32 = 27;
/// ENOENT, ENXIO, EBADF, ENODEV, EROFS, ESHUTDOWN, ESTALE: there is nothing left to talk to, or to write to.
const GONE: [i32; 7] = [2, 6, 9, 19, 30, 108, 116];
/// I/Os that fail one after the other, none between them well, before the storage counts as gone.
pub(crate) const FAILURES_MAX: u32 = 2000;

impl Failure {
    /// Whether this error says something about the environment rather than about the integrity of data.
    pub fn is_failure(errno: i32) -> bool {
        matches!(errno, ENOSPC | EDQUOT | EFBIG) || GONE.contains(&errno)
    }

    /// A failed operation, `what`, in words that say why the run cannot go on.
    pub fn of_errno(path: &str, errno: i32, what: &'static str) -> Self {
        let path = path.to_owned();
        match errno {
            // A disk that is taken out has no room either: the kernel makes its size nothing first.
            ENOSPC if has_gone(&path) => Self::Gone { path, errno },
            ENOSPC | EDQUOT | EFBIG => Self::NoSpace { path },
            _ if GONE.contains(&errno) => Self::Gone { path, errno },
            _ => Self::Failed { path, what, errno },
        }
    }
}

/// Whether nothing is there any more, or a device without a size.
fn has_gone(path: &str) -> bool {
    match File::open(path) {
        Err(error) => error.raw_os_error().is_some_and(|errno| GONE.contains(&errno)),
        Ok(mut file) => {
            file.metadata().is_ok_and(|there| there.file_type().is_block_device())
                && file.seek(SeekFrom::End(0)).is_ok_and(|size_bytes| size_bytes == 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_that_is_there_and_fails_is_not_called_gone() {
        let of = |errno| Failure::of_errno("/dev/sdb", errno, "every flush of the log failed").to_string();
        assert_eq!(of(5), "/dev/sdb: every flush of the log failed (errno 5)");
        assert_eq!(of(19), "/dev/sdb: the storage is gone (errno 19)");
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let full = format!("{file}: no space is left: the file system, or a thin pool beneath, is full");
        assert_eq!(Failure::of_errno(file, 28, "").to_string(), full);
        assert_eq!(
            Failure::of_errno("/dev/none/there", 28, "").to_string(),
            "/dev/none/there: the storage is gone (errno 28)"
        );
    }
}
