//! Files of a store, and what ends in the middle of a change.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use crate::{ServeError, folder::Folder};

/// Lock file: a server holds it as long as it has the store.
pub(crate) const LOCK: &str = "lock";
/// The socket for commands.
pub(crate) const SOCKET: &str = "control.sock";

/// Changes that go through without end, and after the end.
const FOR_EVER: u64 = u64::MAX;
const ENDED: u64 = u64::MAX - 1;

/// How many more changes of files go through. All of a store's files share one; proofs let it end.
#[derive(Debug, Clone)]
pub(crate) struct Supply(Arc<Left>);

#[derive(Debug)]
struct Left {
    changes: AtomicU64,
    /// Whether changes go through again once one has failed.
    comes_back: AtomicBool,
}

impl Default for Supply {
    fn default() -> Self {
        Self(Arc::new(Left { changes: AtomicU64::new(FOR_EVER), comes_back: AtomicBool::new(false) }))
    }
}

impl Supply {
    /// After `changes` changes, one is made by half and fails; later changes are not made, or are made again.
    pub(crate) fn end_after(&self, changes: u64, comes_back: bool) {
        self.0.comes_back.store(comes_back, Relaxed);
        self.0.changes.store(changes, Relaxed);
    }

    /// How many of the bytes of a change are written before it fails, if it does.
    pub(super) fn cuts(&self, bytes: usize) -> Option<usize> {
        match self.0.changes.load(Relaxed) {
            FOR_EVER => None,
            ENDED => Some(0),
            0 => {
                let then = if self.0.comes_back.load(Relaxed) { FOR_EVER } else { ENDED };
                self.0.changes.store(then, Relaxed);
                Some(bytes / 2)
            }
            left => {
                self.0.changes.store(left - 1, Relaxed);
                None
            }
        }
    }

    pub(super) fn allows(&self) -> io::Result<()> {
        if self.cuts(0).is_some() { Err(cut_short()) } else { Ok(()) }
    }
}

pub(super) fn cut_short() -> io::Error {
    io::Error::other("cut short for a proof")
}

/// Replaces a file as a whole. What an earlier attempt left behind is removed, never written through.
pub(crate) fn replace(
    folder: &Folder,
    name: &str,
    beside: &str,
    bytes: &[u8],
    supply: &Supply,
) -> Result<(), ServeError> {
    let failed = |error| folder.failed(beside, error);
    folder.remove(beside)?;
    let cut = supply.cuts(bytes.len());
    let mut file = folder.create(beside)?;
    file.write_all(&bytes[..cut.unwrap_or(bytes.len())]).map_err(failed)?;
    if cut.is_some() {
        return Err(failed(cut_short()));
    }
    supply.allows().map_err(failed)?;
    folder.rename(beside, name)
}

/// Two servers on one store would each believe in a cache of its own.
pub(crate) fn lock(folder: &Folder) -> Result<File, ServeError> {
    let file = folder.open_or_create(LOCK)?;
    // SAFETY: flock takes no memory.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let message = format!("{}: another server has this store; stop it first", folder.shown().display());
        return Err(ServeError::refused(message));
    }
    Ok(file)
}

/// Bytes that are free where a file lies, where that can be told.
pub(crate) fn free_bytes(file: &File) -> Option<u64> {
    // SAFETY: statvfs is plain numbers, for which zeroes are values.
    let mut about: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the memory is that of a statvfs.
    let asked = unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut about) };
    (asked == 0).then(|| about.f_bavail * about.f_frsize)
}
