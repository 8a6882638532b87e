//! Files of a store, and what ends in the middle of a change.

use std::{
    fs::{self, File},
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use crate::ServeError;

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
    /// After so many changes one is made by half and fails, and those after it are not made, or are again.
    pub(crate) fn end_after(&self, changes: u64, comes_back: bool) {
        self.0.comes_back.store(comes_back, Relaxed);
        self.0.changes.store(changes, Relaxed);
    }

    /// How many of the bytes of a change are written before it fails, if it does.
    fn cuts(&self, bytes: usize) -> Option<usize> {
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

    fn allows(&self) -> io::Result<()> {
        if self.cuts(0).is_some() { Err(cut_short()) } else { Ok(()) }
    }
}

fn cut_short() -> io::Error {
    io::Error::other("cut short for a proof")
}

/// A file of the store.
#[derive(Debug)]
pub(crate) struct Kept {
    file: File,
    supply: Supply,
}

impl Kept {
    pub(crate) fn open(path: &Path, supply: &Supply) -> Result<Self, ServeError> {
        Ok(Self { file: open_file(path)?, supply: supply.clone() })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], at_bytes: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at_bytes)
    }

    pub(crate) fn write_all_at(&self, bytes: &[u8], at_bytes: u64) -> io::Result<()> {
        let Some(part) = self.supply.cuts(bytes.len()) else { return self.file.write_all_at(bytes, at_bytes) };
        self.file.write_all_at(&bytes[..part], at_bytes)?;
        Err(cut_short())
    }

    pub(crate) fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.supply.allows()?;
        self.file.set_len(bytes)
    }
}

/// Replaces a file as a whole.
pub(crate) fn replace(path: &Path, bytes: &[u8], supply: &Supply) -> io::Result<()> {
    let beside = path.with_extension("new");
    if let Some(part) = supply.cuts(bytes.len()) {
        fs::write(&beside, &bytes[..part])?;
        return Err(cut_short());
    }
    fs::write(&beside, bytes)?;
    supply.allows()?;
    fs::rename(&beside, path)
}

pub(crate) fn open_file(path: &Path) -> Result<File, ServeError> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| ServeError::at(path, error))
}

/// Whether a folder holds nothing, or what a server left that was killed while it made a store.
pub(crate) fn is_unused(folder: &Path, unfinished: &str) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if name != "lock" && name != unfinished {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Two servers on one store would each believe in a cache of its own.
pub(crate) fn lock(folder: &Path) -> Result<File, ServeError> {
    let file = open_file(&folder.join("lock"))?;
    // SAFETY: flock takes no memory.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
        let message = format!("{}: another server has this store; stop it first", folder.display());
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
