//! The controller's memory: chunks with the parts of them that are held, dirty, or under way.

/// Position of an entry; `NONE` ends lists.
pub(crate) type Index = u32;
pub(crate) const NONE: Index = u32::MAX;
/// Parts of a chunk that are told apart, a bit each.
pub(crate) const PARTS: u32 = 64;

/// Cached parts of one chunk. A dirty entry is in the list of its bucket, a clean entry in the list of droppable
/// entries; no entry is in both. It takes one line of the processor's cache.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Entry {
    pub(crate) chunk: u64,
    pub(crate) valid: u64,
    /// Written and not on disk.
    pub(crate) dirty: u64,
    /// Being written to disk.
    pub(crate) flushing: u64,
    /// Being read ahead.
    pub(crate) loading: u64,
    previous: Index,
    next: Index,
    bucket: u32,
}

/// Entries by chunk, the dirty ones by position on disk, the clean ones by age.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    entries: Vec<Entry>,
    unused: Vec<Index>,
    table: Vec<Slot>,
    mask: usize,
    part_bytes: u64,
    most_parts: u64,
    held_parts: u64,
    dirty_parts: u64,
    oldest: Index,
    newest: Index,
    lanes: Vec<Lane>,
}

/// A place of the table. The hash is kept beside the entry's position, so that entries are looked at only when they are the ones.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    index: Index,
}

const EMPTY: Slot = Slot { hash: 0, index: NONE };

/// Chunks that follow each other are neighbours in the table, as many as share a line of the processor's cache: a stripe is
/// looked up in a few lines.
#[inline]
fn hash(chunk: u64) -> u32 {
    let group = ((chunk / NEIGHBOURS).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
    group & !(NEIGHBOURS as u32 - 1) | (chunk % NEIGHBOURS) as u32
}

const NEIGHBOURS: u64 = 8;

/// Dirty chunks of the disks that are swept together, in buckets by position.
#[derive(Debug, Clone)]
struct Lane {
    heads: Box<[Index]>,
    occupied: Box<[u64]>,
    dirty_entries: u32,
    sweep: u32,
}

const BUCKETS: u32 = 1024;

impl Cache {
    /// An empty cache that sweeps dirty chunks in `lanes` lanes.
    pub(crate) fn new(bytes: u64, chunk_bytes: u64, lanes: u32) -> Self {
        let lane = Lane {
            heads: vec![NONE; BUCKETS as usize].into(),
            occupied: vec![0; (BUCKETS / 64) as usize].into(),
            dirty_entries: 0,
            sweep: 0,
        };
        let part_bytes = chunk_bytes / u64::from(PARTS);
        Self {
            entries: Vec::new(),
            unused: Vec::new(),
            table: vec![EMPTY; 1024],
            mask: 1023,
            part_bytes,
            most_parts: bytes / part_bytes,
            held_parts: 0,
            dirty_parts: 0,
            oldest: NONE,
            newest: NONE,
            lanes: vec![lane; lanes as usize],
        }
    }

    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_parts * self.part_bytes
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_parts * self.part_bytes
    }

    /// Whether keeping more drops something.
    pub(crate) fn is_full(&self) -> bool {
        self.held_parts + 2 * u64::from(PARTS) >= self.most_parts
    }

    pub(crate) fn entry(&self, index: Index) -> &Entry {
        &self.entries[index as usize]
    }

    #[inline]
    pub(crate) fn find(&self, chunk: u64) -> Option<Index> {
        let hash = hash(chunk);
        let mut at = hash as usize & self.mask;
        loop {
            let slot = self.table[at];
            if slot.index == NONE {
                return None;
            }
            if slot.hash == hash && self.entries[slot.index as usize].chunk == chunk {
                return Some(slot.index);
            }
            at = (at + 1) & self.mask;
        }
    }

    fn find_or_add(&mut self, chunk: u64) -> Index {
        if let Some(index) = self.find(chunk) {
            return index;
        }
        if (self.entries.len() - self.unused.len() + 1) * 8 > self.table.len() * 5 {
            self.grow();
        }
        let entry = Entry { chunk, valid: 0, dirty: 0, flushing: 0, loading: 0, previous: NONE, next: NONE, bucket: 0 };
        let index = match self.unused.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as Index - 1
            }
        };
        self.place(Slot { hash: hash(chunk), index });
        self.push_newest(index);
        index
    }

    fn place(&mut self, slot: Slot) {
        let mut at = slot.hash as usize & self.mask;
        while self.table[at].index != NONE {
            at = (at + 1) & self.mask;
        }
        self.table[at] = slot;
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.table);
        self.table = vec![EMPTY; old.len() * 2];
        self.mask = self.table.len() - 1;
        old.into_iter().filter(|slot| slot.index != NONE).for_each(|slot| self.place(slot));
    }

    /// Takes an entry out of the table; those behind it move up (Knuth, TAOCP 3, 6.4, algorithm R).
    fn remove(&mut self, index: Index) {
        let mut hole = hash(self.entries[index as usize].chunk) as usize & self.mask;
        while self.table[hole].index != index {
            hole = (hole + 1) & self.mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            let other = self.table[at];
            if other.index == NONE {
                break;
            }
            let home = other.hash as usize & self.mask;
            if (at.wrapping_sub(home) & self.mask) >= (at.wrapping_sub(hole) & self.mask) {
                self.table[hole] = other;
                hole = at;
            }
        }
        self.table[hole] = EMPTY;
        self.unused.push(index);
    }

    /// Marks parts as held and dirty. `lane` and `position` (0..1 of 2^32) say where the chunk lies.
    pub(crate) fn write(&mut self, chunk: u64, parts: u64, lane: u32, position: u32) {
        let index = self.find_or_add(chunk);
        let entry = &mut self.entries[index as usize];
        let dirtied = parts & !entry.dirty;
        // What is rewritten while it is being destaged counts twice until that ends: both copies are in memory.
        self.dirty_parts += u64::from(dirtied.count_ones());
        self.held_parts += u64::from((parts & !entry.valid).count_ones());
        let was_clean = entry.dirty == 0;
        let is_listed_clean = was_clean && entry.flushing == 0 && entry.loading == 0;
        entry.valid |= parts;
        entry.dirty |= parts;
        if is_listed_clean {
            self.unlink_clean(index);
        }
        if was_clean && self.entries[index as usize].flushing == 0 {
            self.link_dirty(index, lane, position);
        }
        self.drop_oldest();
    }

    /// Marks parts as held, as the newest that may be dropped.
    pub(crate) fn keep(&mut self, chunk: u64, parts: u64) {
        let index = self.find_or_add(chunk);
        let entry = &mut self.entries[index as usize];
        self.held_parts += u64::from((parts & !entry.valid).count_ones());
        entry.valid |= parts;
        self.touch(index);
        self.drop_oldest();
    }

    /// A clean entry was used: it is dropped last.
    #[inline]
    pub(crate) fn touch(&mut self, index: Index) {
        let entry = &self.entries[index as usize];
        if entry.dirty | entry.flushing | entry.loading == 0 && self.newest != index {
            self.unlink_clean(index);
            self.push_newest(index);
        }
    }

    /// Marks parts as being read ahead.
    pub(crate) fn begin_loading(&mut self, chunk: u64, parts: u64) {
        let index = self.find_or_add(chunk);
        let entry = &mut self.entries[index as usize];
        let is_listed_clean = entry.dirty | entry.flushing | entry.loading == 0;
        entry.loading |= parts;
        if is_listed_clean {
            self.unlink_clean(index);
        }
    }

    pub(crate) fn end_loading(&mut self, chunk: u64, parts: u64) {
        let Some(index) = self.find(chunk) else { return };
        let entry = &mut self.entries[index as usize];
        self.held_parts += u64::from((parts & !entry.valid).count_ones());
        entry.valid |= parts;
        entry.loading &= !parts;
        if entry.dirty | entry.flushing | entry.loading == 0 {
            self.push_newest(index);
        }
        self.drop_oldest();
    }

    /// The entry of a chunk with parts that wait to be written to disk, if none of it is being written.
    #[inline]
    pub(crate) fn find_waiting(&self, chunk: u64) -> Option<Index> {
        self.find(chunk).filter(|index| {
            let entry = self.entry(*index);
            entry.dirty != 0 && entry.flushing == 0
        })
    }

    /// Takes the dirty parts of an entry to be written to disk.
    pub(crate) fn begin_flush(&mut self, index: Index, lane: u32) -> u64 {
        let parts = self.entries[index as usize].dirty;
        self.begin_flush_of(index, lane, parts);
        parts
    }

    /// Takes some of the dirty parts of an entry to be written to disk; the others wait until that has ended.
    pub(crate) fn begin_flush_of(&mut self, index: Index, lane: u32, parts: u64) {
        let entry = &mut self.entries[index as usize];
        debug_assert!(entry.flushing == 0 && parts != 0 && parts & !entry.dirty == 0);
        entry.flushing = parts;
        entry.dirty &= !parts;
        self.unlink_dirty(index, lane);
    }

    /// Ends the write of a chunk to disk; the chunk stays held if `keep`.
    pub(crate) fn end_flush(&mut self, chunk: u64, lane: u32, position: u32, keep: bool) {
        let Some(index) = self.find(chunk) else { return };
        let entry = &mut self.entries[index as usize];
        self.dirty_parts -= u64::from(entry.flushing.count_ones());
        let dropped = if keep { 0 } else { entry.flushing & !entry.dirty };
        self.held_parts -= u64::from((dropped & entry.valid).count_ones());
        entry.valid &= !dropped;
        entry.flushing = 0;
        if entry.dirty != 0 {
            self.link_dirty(index, lane, position);
        } else if entry.loading == 0 {
            if entry.valid == 0 {
                self.remove(index);
            } else {
                self.push_newest(index);
            }
        }
        self.drop_oldest();
    }

    /// Drops the oldest clean entries until the others fit.
    fn drop_oldest(&mut self) {
        while self.held_parts > self.most_parts && self.oldest != NONE {
            let index = self.oldest;
            self.unlink_clean(index);
            self.held_parts -= u64::from(self.entries[index as usize].valid.count_ones());
            self.remove(index);
        }
    }

    fn push_newest(&mut self, index: Index) {
        let newest = self.newest;
        let entry = &mut self.entries[index as usize];
        entry.previous = newest;
        entry.next = NONE;
        if newest == NONE {
            self.oldest = index;
        } else {
            self.entries[newest as usize].next = index;
        }
        self.newest = index;
    }

    fn unlink_clean(&mut self, index: Index) {
        let Entry { previous, next, .. } = self.entries[index as usize];
        if previous == NONE {
            self.oldest = next;
        } else {
            self.entries[previous as usize].next = next;
        }
        if next == NONE {
            self.newest = previous;
        } else {
            self.entries[next as usize].previous = previous;
        }
    }

    fn link_dirty(&mut self, index: Index, lane: u32, position: u32) {
        let bucket = position >> (32 - BUCKETS.ilog2());
        let lane = &mut self.lanes[lane as usize];
        let head = lane.heads[bucket as usize];
        lane.heads[bucket as usize] = index;
        lane.occupied[(bucket / 64) as usize] |= 1 << (bucket % 64);
        lane.dirty_entries += 1;
        let entry = &mut self.entries[index as usize];
        (entry.previous, entry.next, entry.bucket) = (NONE, head, bucket);
        if head != NONE {
            self.entries[head as usize].previous = index;
        }
    }

    fn unlink_dirty(&mut self, index: Index, lane: u32) {
        let Entry { previous, next, bucket, .. } = self.entries[index as usize];
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        let lane = &mut self.lanes[lane as usize];
        lane.dirty_entries -= 1;
        if previous != NONE {
            self.entries[previous as usize].next = next;
        } else {
            lane.heads[bucket as usize] = next;
            if next == NONE {
                lane.occupied[(bucket / 64) as usize] &= !(1 << (bucket % 64));
            }
        }
    }

    /// The next dirty entry of a lane in one direction over the disk, and again from the outside (C-SCAN).
    pub(crate) fn next_dirty(&mut self, lane: u32) -> Option<Index> {
        let lane = &mut self.lanes[lane as usize];
        if lane.dirty_entries == 0 {
            return None;
        }
        let words = lane.occupied.len();
        let (first, bit) = ((lane.sweep / 64) as usize, lane.sweep % 64);
        for step in 0..=words {
            let word = (first + step) % words;
            let mut bits = lane.occupied[word];
            if step == 0 {
                bits &= u64::MAX << bit;
            }
            if bits != 0 {
                lane.sweep = word as u32 * 64 + bits.trailing_zeros();
                return Some(lane.heads[lane.sweep as usize]);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
