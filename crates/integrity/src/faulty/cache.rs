use std::collections::{BTreeMap, VecDeque, btree_map::Entry};

use rand::{Rng, RngExt};

use super::{medium::Medium, options::FaultyOptions, volume::FaultyFile};

/// More versions of a page than this are not kept apart: the oldest become durable.
const VERSIONS_MAX: usize = 8;
/// How often an I/O is followed by the destaging of one page.
const DESTAGE_SHARE: f64 = 0.125;

/// A medium behind a write cache. Reads see the medium, which holds the newest bytes; the cache keeps the older bytes
/// that a power failure may bring back.
pub(super) struct Store<M> {
    pub(super) medium: M,
    files: Vec<FileCache>,
    pages: BTreeMap<(usize, u64), CachedPage>,
    ignores_flush: bool,
    atomic_unit_bytes: usize,
    /// Pages written to the cache so far.
    writes: u64,
}

struct FileCache {
    page_bytes: usize,
    /// Writes are not durable when they complete.
    volatile: bool,
}

/// A page whose newest bytes are not durable.
struct CachedPage {
    durable: Box<[u8]>,
    /// Later writes, oldest first, each with its number among all writes.
    versions: VecDeque<(u64, Box<[u8]>)>,
}

impl<M: Medium> Store<M> {
    pub(super) fn new(options: &FaultyOptions, files: &[FaultyFile], medium: M) -> Self {
        let file_cache = |file: &FaultyFile| FileCache {
            page_bytes: file.page_bytes as usize,
            volatile: options.volatile_cache && (options.ignores_flush || !file.write_through),
        };
        Self {
            medium,
            files: files.iter().map(file_cache).collect(),
            pages: BTreeMap::new(),
            ignores_flush: options.ignores_flush,
            atomic_unit_bytes: options.atomic_unit_bytes as usize,
            writes: 0,
        }
    }

    pub(super) fn read(&mut self, volume: usize, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), i32> {
        self.medium.read(volume, offset_bytes, bytes)
    }

    /// Writes whole pages.
    pub(super) fn write(&mut self, volume: usize, offset_bytes: u64, bytes: &[u8]) -> Result<(), i32> {
        if self.files[volume].volatile {
            self.remember(volume, offset_bytes, bytes)?;
        }
        self.medium.write(volume, offset_bytes, bytes)
    }

    /// Adds to the versions of pages. The medium still holds the ones before.
    fn remember(&mut self, volume: usize, offset_bytes: u64, bytes: &[u8]) -> Result<(), i32> {
        let page_bytes = self.files[volume].page_bytes;
        let first = offset_bytes / page_bytes as u64;
        for (page, bytes) in (first..).zip(bytes.chunks_exact(page_bytes)) {
            let cached = match self.pages.entry((volume, page)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let mut durable = vec![0; page_bytes].into_boxed_slice();
                    self.medium.read(volume, page * page_bytes as u64, &mut durable)?;
                    entry.insert(CachedPage { durable, versions: VecDeque::new() })
                }
            };
            self.writes += 1;
            cached.versions.push_back((self.writes, bytes.into()));
            if cached.versions.len() > VERSIONS_MAX {
                cached.settle_oldest();
            }
        }
        Ok(())
    }

    /// Where a flush submitted now draws the line: what completed before it is durable when it completes.
    pub(super) fn flush_line(&self) -> u64 {
        self.writes
    }

    pub(super) fn flush(&mut self, volume: usize, line: u64) -> Result<(), i32> {
        if self.ignores_flush {
            return Ok(());
        }
        self.medium.flush(volume)?;
        self.pages.retain(|(of_volume, _), page| *of_volume != volume || page.settle(line));
        Ok(())
    }

    /// Perhaps makes one cached page durable, the next from `from` on.
    pub(super) fn destage(&mut self, from: (usize, u64), rng: &mut impl Rng) {
        if !self.pages.is_empty() && rng.random_bool(DESTAGE_SHARE) {
            let next = self.pages.range(from..).chain(&self.pages).next().map(|(key, _)| *key);
            next.and_then(|key| self.pages.remove(&key));
        }
    }

    pub(super) fn resize(&mut self, volume: usize, size_bytes: u64) -> Result<(), i32> {
        self.medium.resize(volume, size_bytes)?;
        let pages = size_bytes / self.files[volume].page_bytes as u64;
        self.pages.retain(|(of_volume, page), _| *of_volume != volume || *page < pages);
        Ok(())
    }

    /// Cuts power while these writes are outstanding: volume, offset and bytes of each, in their order. Of every page a
    /// prefix of its unsettled writes survives, and of the next write perhaps some atomic units.
    pub(super) fn cut_power<'a>(
        &mut self,
        outstanding: impl Iterator<Item = (usize, u64, &'a [u8])>,
        rng: &mut impl Rng,
    ) -> Result<(), i32> {
        for (volume, offset_bytes, bytes) in outstanding {
            self.remember(volume, offset_bytes, bytes)?;
        }
        for ((volume, page), cached) in std::mem::take(&mut self.pages) {
            let unit_bytes = self.atomic_unit_bytes.min(cached.durable.len());
            let survivor = cached.after_power_cut(unit_bytes, rng);
            self.medium.write(volume, page * survivor.len() as u64, &survivor)?;
        }
        Ok(())
    }
}

impl CachedPage {
    fn settle_oldest(&mut self) {
        if let Some((_, bytes)) = self.versions.pop_front() {
            self.durable = bytes;
        }
    }

    /// Makes the writes up to number `line` durable; false when no others are left.
    fn settle(&mut self, line: u64) -> bool {
        while self.versions.front().is_some_and(|(number, _)| *number <= line) {
            self.settle_oldest();
        }
        !self.versions.is_empty()
    }

    fn after_power_cut(mut self, unit_bytes: usize, rng: &mut impl Rng) -> Box<[u8]> {
        for _ in 0..rng.random_range(0..=self.versions.len()) {
            self.settle_oldest();
        }
        if let Some((_, next)) =
            self.versions.front().filter(|_| unit_bytes < self.durable.len() && rng.random_bool(0.5))
        {
            for (durable, next) in self.durable.chunks_mut(unit_bytes).zip(next.chunks(unit_bytes)) {
                if rng.random_bool(0.5) {
                    durable.copy_from_slice(next);
                }
            }
        }
        self.durable
    }
}
