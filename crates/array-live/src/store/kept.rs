//! A file of a store, which says in its first bytes what it is: of which store, under which name, and how old.
//!
//! A store raises the generation of all its files when it is opened and when it is closed, and its record says which
//! generations they may have. A file that is missing, too short, another one, or an older copy is told by that before a byte of
//! it is used. The two newest heads of a file are kept, in turn, so that one that is cut short costs nothing.

use std::{
    fmt,
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
};

use super::files::{Supply, cut_short};
use crate::{ServeError, folder::Folder};

/// Bytes of a file's head: a block, so that the store's bytes stay aligned.
pub(crate) const HEAD_BYTES: u64 = 4096;
/// Each of the two heads, in a sector of its own.
const SLOT_BYTES: u64 = 512;
const MARK: [u8; 8] = *b"assay/3\n";
const NAME_BYTES: usize = 96;
/// Mark, sum, store, generation, room, base, turn, name.
const USED_BYTES: usize = 8 + 4 + 16 + 8 + 8 + 8 + 8 + NAME_BYTES;

/// By which a store is told from all others.
pub(crate) type StoreId = [u8; 16];

/// Which generations the files of a store may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Era {
    pub(crate) store: StoreId,
    /// All files have this one at least.
    pub(crate) settled: u64,
    /// No file has a later one.
    pub(crate) issued: u64,
}

impl Era {
    /// A store that is being made: nothing was ever kept in it.
    pub(crate) fn is_new(&self) -> bool {
        self.settled == 0
    }
}

/// Why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unfit {
    Missing,
    Short {
        bytes: u64,
        of: u64,
    },
    Overwritten,
    OtherStore,
    Other(String),
    Older,
    /// Than the record of the store knows.
    Newer,
    Damaged(&'static str),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is missing"),
            Self::Short { bytes, of } => write!(f, "has {bytes} bytes of {of}"),
            Self::Overwritten => f.write_str("is overwritten where it says what it is"),
            Self::OtherStore => f.write_str("is of another store"),
            Self::Other(name) => write!(f, "holds {name}"),
            Self::Older => f.write_str("is an older copy"),
            Self::Newer => f.write_str("is newer than what the store knows of it"),
            Self::Damaged(what) => write!(f, "is damaged: {what}"),
        }
    }
}

/// Head of a file: its store, and its generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    store: StoreId,
    generation: u64,
    /// Bytes after the head that the file has at least.
    room_bytes: u64,
    /// Number of the first entry in the file, where entries are numbered.
    base: u64,
    /// Which head of the file this is.
    turn: u64,
    name: [u8; NAME_BYTES],
}

impl Head {
    fn new(store: StoreId, generation: u64, room_bytes: u64, name: &str) -> Self {
        let mut padded = [0; NAME_BYTES];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        Self { store, generation, room_bytes, base: 0, turn: 0, name: padded }
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).trim_end_matches('\0').escape_debug().to_string()
    }

    fn to_bytes(self) -> [u8; USED_BYTES] {
        let mut bytes = [0; USED_BYTES];
        bytes[..8].copy_from_slice(&MARK);
        bytes[12..28].copy_from_slice(&self.store);
        for (number, value) in [self.generation, self.room_bytes, self.base, self.turn].into_iter().enumerate() {
            bytes[28 + number * 8..36 + number * 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes[60..].copy_from_slice(&self.name);
        let sum = crc32c::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let number = |number: usize| u64::from_le_bytes(bytes[28 + number * 8..36 + number * 8].try_into().unwrap());
        let sum = crc32c::crc32c(&bytes[12..USED_BYTES]).to_le_bytes();
        (bytes[..8] == MARK && bytes[8..12] == sum).then(|| Self {
            store: bytes[12..28].try_into().expect("sixteen bytes"),
            generation: number(0),
            room_bytes: number(1),
            base: number(2),
            turn: number(3),
            name: bytes[60..USED_BYTES].try_into().expect("the rest"),
        })
    }

    /// The newest of the heads of a file.
    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; 2 * SLOT_BYTES as usize];
        match file.read_exact_at(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        Ok(bytes.chunks_exact(SLOT_BYTES as usize).filter_map(Self::from_bytes).max_by_key(|head| head.turn))
    }
}

/// A file of the store.
#[derive(Debug)]
pub(crate) struct Kept {
    file: File,
    head: Head,
    supply: Supply,
}

impl Kept {
    /// Makes a file of `bytes` zeroes, in place of an earlier one.
    ///
    /// # Errors
    /// What is there is no file of a store, or cannot be changed.
    pub(crate) fn make(
        folder: &Folder,
        name: &str,
        era: &Era,
        bytes: u64,
        supply: &Supply,
    ) -> Result<Self, ServeError> {
        let mut kept = Self::blank(folder, name, era, bytes, supply)?;
        kept.wipe(bytes).map_err(|error| folder.failed(name, error))?;
        Ok(kept)
    }

    /// Opens a file of which nothing is used until it is wiped.
    ///
    /// # Errors
    /// What is there is no file of a store.
    pub(crate) fn blank(
        folder: &Folder,
        name: &str,
        era: &Era,
        bytes: u64,
        supply: &Supply,
    ) -> Result<Self, ServeError> {
        let file = folder.open_or_create(name)?;
        Ok(Self { file, head: Head::new(era.store, era.issued, bytes, name), supply: supply.clone() })
    }

    /// Opens a file that must be there, or says why it cannot be used.
    ///
    /// # Errors
    /// What is there is no file of a store.
    pub(crate) fn find(
        folder: &Folder,
        name: &str,
        era: &Era,
        supply: &Supply,
    ) -> Result<Result<Self, Unfit>, ServeError> {
        let Some(file) = folder.open(name)? else { return Ok(Err(Unfit::Missing)) };
        let failed = |error| folder.failed(name, error);
        let bytes = file.metadata().map_err(failed)?.len();
        let Some(head) = Head::read(&file).map_err(failed)? else { return Ok(Err(Unfit::Overwritten)) };
        let unfit = if head.store != era.store {
            Unfit::OtherStore
        } else if head.name != Head::new(era.store, 0, 0, name).name {
            Unfit::Other(head.name())
        } else if head.generation > era.issued {
            Unfit::Newer
        } else if head.generation < era.settled {
            Unfit::Older
        } else if bytes < head.room_bytes.saturating_add(HEAD_BYTES) {
            Unfit::Short { bytes, of: head.room_bytes.saturating_add(HEAD_BYTES) }
        } else {
            return Ok(Ok(Self { file, head, supply: supply.clone() }));
        };
        Ok(Err(unfit))
    }

    /// The same of a file whose length follows from the array.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn find_of(
        folder: &Folder,
        name: &str,
        era: &Era,
        bytes: u64,
        supply: &Supply,
    ) -> Result<Result<Self, Unfit>, ServeError> {
        Self::fitting(folder, (name, era, supply), bytes, |room_bytes| room_bytes == bytes)
    }

    /// The same of a file that may have been made longer for a growth that was cut short.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn find_with(
        folder: &Folder,
        name: &str,
        era: &Era,
        bytes: u64,
        supply: &Supply,
    ) -> Result<Result<Self, Unfit>, ServeError> {
        Self::fitting(folder, (name, era, supply), bytes, |room_bytes| room_bytes >= bytes)
    }

    /// The file, if its room is of this size.
    fn fitting(
        folder: &Folder,
        (name, era, supply): (&str, &Era, &Supply),
        bytes: u64,
        fits: impl FnOnce(u64) -> bool,
    ) -> Result<Result<Self, Unfit>, ServeError> {
        Ok(Self::find(folder, name, era, supply)?.and_then(|kept| {
            let room_bytes = kept.room_bytes();
            if fits(room_bytes) { Ok(kept) } else { Err(Unfit::Short { bytes: room_bytes, of: bytes }) }
        }))
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Bytes that are there.
    pub(crate) fn room_bytes(&self) -> u64 {
        self.head.room_bytes
    }

    /// What the file begins with, where that is counted.
    pub(crate) fn base(&self) -> u64 {
        self.head.base
    }

    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], at_bytes: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at_bytes + HEAD_BYTES)
    }

    pub(crate) fn write_all_at(&self, bytes: &[u8], at_bytes: u64) -> io::Result<()> {
        self.write_raw(bytes, at_bytes + HEAD_BYTES)
    }

    fn write_raw(&self, bytes: &[u8], at_bytes: u64) -> io::Result<()> {
        let Some(part) = self.supply.cuts(bytes.len()) else { return self.file.write_all_at(bytes, at_bytes) };
        self.file.write_all_at(&bytes[..part], at_bytes)?;
        Err(cut_short())
    }

    fn set_raw_len(&self, bytes: u64) -> io::Result<()> {
        self.supply.allows()?;
        self.file.set_len(bytes)
    }

    fn put_head(&mut self, head: Head) -> io::Result<()> {
        let head = Head { turn: self.head.turn + 1, ..head };
        self.write_raw(&head.to_bytes(), head.turn % 2 * SLOT_BYTES)?;
        self.head = head;
        Ok(())
    }

    /// The file is of a generation from now on.
    pub(crate) fn raise(&mut self, generation: u64) -> io::Result<()> {
        self.put_head(Head { generation, ..self.head })
    }

    /// A generation for when the file is wiped.
    pub(crate) fn set_generation(&mut self, generation: u64) {
        self.head.generation = generation;
    }

    /// Grows the file to at least `room_bytes`, with zeroes.
    pub(crate) fn grow(&mut self, room_bytes: u64) -> io::Result<()> {
        if room_bytes > self.head.room_bytes {
            // What may lie beyond is of an attempt that was cut short.
            if self.has_more()? {
                self.set_raw_len(HEAD_BYTES + self.head.room_bytes)?;
            }
            self.set_raw_len(HEAD_BYTES + room_bytes)?;
            self.put_head(Head { room_bytes, ..self.head })?;
        }
        Ok(())
    }

    /// Whether something lies beyond the bytes that are there.
    pub(crate) fn has_more(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() > HEAD_BYTES + self.head.room_bytes)
    }

    /// Sets the length of the file.
    pub(crate) fn cut_to(&mut self, room_bytes: u64, base: u64) -> io::Result<()> {
        self.put_head(Head { room_bytes, base, ..self.head })?;
        self.set_raw_len(HEAD_BYTES + room_bytes)
    }

    /// Makes the file `room_bytes` zeroes.
    pub(crate) fn wipe(&mut self, room_bytes: u64) -> io::Result<()> {
        self.set_raw_len(0)?;
        self.set_raw_len(HEAD_BYTES + room_bytes)?;
        self.put_head(Head { room_bytes, ..self.head })
    }

    /// Wipes the file with its head.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        self.set_raw_len(0)
    }

    /// Where the first bytes that were ever written lie, at or after a place.
    pub(crate) fn first_data(&self, from_bytes: u64) -> Option<u64> {
        let from_bytes = i64::try_from(from_bytes.checked_add(HEAD_BYTES)?).ok()?;
        // SAFETY: lseek takes no memory, and all other access to the file says where.
        let at = unsafe { libc::lseek(self.file.as_raw_fd(), from_bytes, libc::SEEK_DATA) };
        u64::try_from(at).ok()?.checked_sub(HEAD_BYTES)
    }

    /// Bytes that the file takes where it lies, beside its head.
    pub(crate) fn used_bytes(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().map_or(0, |about| (about.blocks() * 512).saturating_sub(HEAD_BYTES))
    }

    /// Gives room back where zeroes lie, as far as the file system does that.
    pub(crate) fn punch(&self, at_bytes: u64, bytes: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: fallocate takes no memory.
        unsafe { libc::fallocate(self.file.as_raw_fd(), mode, (at_bytes + HEAD_BYTES) as i64, bytes as i64) };
    }

    /// Reserves space for `bytes`, as far as there is some now.
    pub(crate) fn reserve(&self, bytes: u64) {
        // SAFETY: the descriptor is open; no memory is involved.
        let _ = unsafe { libc::posix_fallocate(self.file.as_raw_fd(), 0, (bytes + HEAD_BYTES) as i64) };
    }
}
