//! Files of a store, and what ends in the middle of a change.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
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
pub(super) struct Supply(Arc<Left>);

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
    pub(super) fn end_after(&self, changes: u64, comes_back: bool) {
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
pub(super) struct Kept {
    file: File,
    supply: Supply,
}

impl Kept {
    pub(super) fn open(path: &Path, supply: &Supply) -> Result<Self, ServeError> {
        Ok(Self { file: open_file(path)?, supply: supply.clone() })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn read_exact_at(&self, bytes: &mut [u8], at_bytes: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at_bytes)
    }

    pub(super) fn write_all_at(&self, bytes: &[u8], at_bytes: u64) -> io::Result<()> {
        let Some(part) = self.supply.cuts(bytes.len()) else { return self.file.write_all_at(bytes, at_bytes) };
        self.file.write_all_at(&bytes[..part], at_bytes)?;
        Err(cut_short())
    }

    pub(super) fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.supply.allows()?;
        self.file.set_len(bytes)
    }
}

/// Replaces a file as a whole.
pub(super) fn replace(path: &Path, bytes: &[u8], supply: &Supply) -> io::Result<()> {
    let beside = path.with_extension("new");
    if let Some(part) = supply.cuts(bytes.len()) {
        fs::write(&beside, &bytes[..part])?;
        return Err(cut_short());
    }
    fs::write(&beside, bytes)?;
    supply.allows()?;
    fs::rename(&beside, path)
}

pub(super) fn open_file(path: &Path) -> Result<File, ServeError> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| ServeError::at(path, error))
}
