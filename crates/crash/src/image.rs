//! Contents of a volume: the request that each sector comes from, and a number that equal contents share.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt};

use twox_hash::XxHash3_128;

use crate::{
    Kind, Log,
    log::{Entry, SECTOR_BYTES},
};

/// The volume at the beginning of the log.
#[derive(Debug)]
pub enum Base {
    /// Zeroes.
    Zeroes,
    /// The bytes of a file; zeroes beyond its end.
    File(File),
}

impl Base {
    /// Reads bytes of the volume.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        let Self::File(file) = self else {
            into.fill(0);
            return Ok(());
        };
        let mut filled = 0;
        while filled < into.len() {
            match file.read_at(&mut into[filled..], offset_bytes + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        into[filled..].fill(0);
        Ok(())
    }
}

/// For each sector of a volume the request that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// 0: the base; otherwise the number of the request, counted from 1.
    sources: Vec<u32>,
}

impl Image {
    /// The volume as it was when the log began.
    ///
    /// # Panics
    /// The volume has more sectors than memory can address.
    pub fn of_base(log: &Log) -> Self {
        Self { sources: vec![0; usize::try_from(log.volume_bytes() / SECTOR_BYTES).expect("sectors are addressed")] }
    }

    /// Number of the request that a sector comes from; none: the base.
    pub fn source(&self, sector: u64) -> Option<usize> {
        (self.sources[sector as usize] as usize).checked_sub(1)
    }

    /// Lets sectors come from a request, unless they come from a later one, and says of each that changed what it was.
    pub(crate) fn put(&mut self, request: usize, sectors: Range<u64>, mut changed: impl FnMut(u64, Option<usize>)) {
        let source = u32::try_from(request + 1).expect("a log has less than four billion requests");
        for sector in sectors {
            let place = &mut self.sources[sector as usize];
            if *place < source {
                changed(sector, (*place as usize).checked_sub(1));
                *place = source;
            }
        }
    }

    pub(crate) fn restore(&mut self, sector: u64, request: Option<usize>) {
        self.sources[sector as usize] = request.map_or(0, |request| request as u32 + 1);
    }

    /// Reads bytes of the volume.
    ///
    /// # Errors
    /// The log or the base cannot be read.
    pub fn read(&self, log: &Log, base: &Base, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        let (mut at, end) = (offset_bytes, offset_bytes + into.len() as u64);
        while at < end {
            let first = at / SECTOR_BYTES;
            let source = self.sources[first as usize];
            // Neighbours of one source are read at once.
            let mut after = first + 1;
            while after * SECTOR_BYTES < end && self.sources[after as usize] == source {
                after += 1;
            }
            let until = (after * SECTOR_BYTES).min(end);
            let part = &mut into[(at - offset_bytes) as usize..(until - offset_bytes) as usize];
            match (source as usize).checked_sub(1).map(|request| &log.entries()[request]) {
                None => base.read(at, part)?,
                Some(entry) if entry.kind == Kind::Discard => part.fill(0),
                Some(entry) => log.read(entry, at - entry.offset_bytes, part)?,
            }
            at = until;
        }
        Ok(())
    }
}

/// Numbers of images: the sum over sectors, so that images of equal contents have the same number.
///
/// The number is the sum over all sectors of a hash of the sector's place and bytes, relative to the base. Sectors that
/// a request leaves as the base has them add nothing.
#[derive(Debug)]
pub struct Contents {
    added: Vec<Vec<u128>>,
}

impl Contents {
    /// Reads the whole log once.
    ///
    /// # Errors
    /// The log or the base cannot be read.
    pub fn new(log: &Log, base: &Base) -> io::Result<Self> {
        let added = log.entries().iter().map(|entry| Self::of_entry(log, base, entry)).collect::<io::Result<_>>()?;
        Ok(Self { added })
    }

    fn of_entry(log: &Log, base: &Base, entry: &Entry) -> io::Result<Vec<u128>> {
        if matches!(entry.kind, Kind::Flush | Kind::Mark) {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; entry.length_bytes as usize];
        if entry.kind != Kind::Discard {
            log.read(entry, 0, &mut bytes)?;
        }
        let mut below = vec![0; bytes.len()];
        base.read(entry.offset_bytes, &mut below)?;
        let sector_bytes = SECTOR_BYTES as usize;
        let pairs = bytes.chunks_exact(sector_bytes).zip(below.chunks_exact(sector_bytes));
        let hash = |sector, bytes| XxHash3_128::oneshot_with_seed(sector, bytes);
        let added = entry.sectors().zip(pairs);
        Ok(added.map(|(sector, (new, old))| hash(sector, new).wrapping_sub(hash(sector, old))).collect())
    }

    /// The summand of a sector that comes from this request, or from the base.
    pub(crate) fn added(&self, log: &Log, request: Option<usize>, sector: u64) -> u128 {
        request.map_or(0, |request| {
            self.added[request][(sector - log.entries()[request].offset_bytes / SECTOR_BYTES) as usize]
        })
    }
}
