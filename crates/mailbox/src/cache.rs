//! The pages of a database that are in memory, and which of them are newer than the storage.

use std::collections::{BTreeSet, HashMap};

use assay_load::tasks::TaskId;

use crate::node::Node;

/// How often the clock passes an inner page that was used, before it goes. Without this a scan of leaves would drive them out.
const INNER_PASSES: u8 = 8;

pub(crate) struct Entry {
    page: u64,
    /// None while the page is being read.
    pub node: Option<Node>,
    /// LSN of the oldest change that is not on the storage.
    pub dirty: Option<u64>,
    /// Chosen to be written, or being written.
    pub writing: bool,
    passes: u8,
    /// Tasks that wait for the page.
    pub waiting: Vec<TaskId>,
}

pub(crate) struct Cache {
    capacity: usize,
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    places: HashMap<u64, usize>,
    hand: usize,
    /// Changed pages that no write has been chosen for, by the LSN of their oldest change.
    dirty: BTreeSet<(u64, u64)>,
}

/// How a page stands.
pub(crate) enum Standing {
    Here,
    Coming,
    Absent,
}

impl Cache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: Vec::new(),
            free: Vec::new(),
            places: HashMap::new(),
            hand: 0,
            dirty: BTreeSet::new(),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn standing(&self, page: u64) -> Standing {
        match self.entry(page) {
            None => Standing::Absent,
            Some(entry) if entry.node.is_none() => Standing::Coming,
            Some(_) => Standing::Here,
        }
    }

    fn entry(&self, page: u64) -> Option<&Entry> {
        self.places.get(&page).and_then(|place| self.entries[*place].as_ref())
    }

    pub(crate) fn entry_mut(&mut self, page: u64) -> Option<&mut Entry> {
        self.places.get(&page).and_then(|place| self.entries[*place].as_mut())
    }

    /// A page that is here.
    pub(crate) fn node(&self, page: u64) -> Option<&Node> {
        self.entry(page).and_then(|entry| entry.node.as_ref())
    }

    /// The same, and notes that it was used.
    pub(crate) fn used(&mut self, page: u64) -> Option<&mut Node> {
        let entry = self.entry_mut(page)?;
        let node = entry.node.as_mut()?;
        entry.passes = if node.is_leaf() { 1 } else { INNER_PASSES };
        Some(node)
    }

    /// Makes room for a page that is to come; tells whether there is any.
    pub(crate) fn make_room(&mut self) -> bool {
        if self.places.len() < self.capacity {
            return true;
        }
        for _ in 0..self.entries.len() * (usize::from(INNER_PASSES) + 1) {
            self.hand = (self.hand + 1) % self.entries.len();
            let Some(entry) = &mut self.entries[self.hand] else { continue };
            if entry.node.is_none() || entry.dirty.is_some() || entry.writing {
                continue;
            }
            if entry.passes > 0 {
                entry.passes -= 1;
                continue;
            }
            let page = entry.page;
            self.remove(page);
            return true;
        }
        false
    }

    /// Adds a page, which may be still to come. A page that was not there before may be one above the capacity.
    pub(crate) fn add(&mut self, page: u64, node: Option<Node>) {
        let entry = Entry { page, node, dirty: None, writing: false, passes: 1, waiting: Vec::new() };
        let place = self.free.pop().unwrap_or(self.entries.len());
        if place == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[place] = Some(entry);
        let before = self.places.insert(page, place);
        assert!(before.is_none(), "page {page} is in the cache twice");
    }

    /// Takes a page out; gives the tasks that wait for it.
    pub(crate) fn remove(&mut self, page: u64) -> Vec<TaskId> {
        let Some(place) = self.places.remove(&page) else { return Vec::new() };
        self.free.push(place);
        let Some(entry) = self.entries[place].take() else { return Vec::new() };
        if let Some(lsn) = entry.dirty {
            self.dirty.remove(&(lsn, page));
        }
        entry.waiting
    }

    /// Notes a change; tells whether the page was clean until now, so that it has to be written once more.
    pub(crate) fn changed(&mut self, page: u64, lsn: u64) -> bool {
        let Some(entry) = self.entry_mut(page) else { return false };
        if entry.dirty.is_some() {
            return false;
        }
        entry.dirty = Some(lsn);
        if !entry.writing {
            self.dirty.insert((lsn, page));
        }
        true
    }

    /// Changed pages that wait to be written.
    pub(crate) fn dirty_count(&self) -> usize {
        self.dirty.len()
    }

    /// Oldest change of the pages that wait to be written.
    pub(crate) fn oldest_waiting(&self) -> Option<u64> {
        self.dirty.first().map(|(lsn, _)| *lsn)
    }

    /// Chooses the page with the oldest change among those that may be written now; gives that and the page.
    pub(crate) fn choose(&mut self, may: impl Fn(u64) -> bool) -> Option<(u64, u64)> {
        let (lsn, page) = *self.dirty.iter().find(|(_, page)| may(*page))?;
        self.dirty.remove(&(lsn, page));
        self.entry_mut(page)?.writing = true;
        Some((lsn, page))
    }

    /// The page is on its way to the storage as it is now: changes from here on are new ones.
    pub(crate) fn begins_writing(&mut self, page: u64) {
        if let Some(entry) = self.entry_mut(page) {
            entry.dirty = None;
        }
    }

    /// The page is on the storage.
    pub(crate) fn written(&mut self, page: u64) {
        let Some(entry) = self.entry_mut(page) else { return };
        entry.writing = false;
        if let Some(lsn) = entry.dirty {
            self.dirty.insert((lsn, page));
        }
    }

    /// Forgets everything, as a server does that breaks off.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    fn filled(capacity: usize) -> (Cache, Shape) {
        let shape = Shape::new(64 << 20, 32768);
        let mut cache = Cache::new(capacity);
        for page in 0..capacity as u64 {
            assert!(cache.make_room());
            cache.add(100 + page, Some(shape.initial(100 + page)));
        }
        (cache, shape)
    }

    #[test]
    fn pages_that_are_not_on_the_storage_stay() {
        let (mut cache, _) = filled(3);
        assert!(cache.changed(100, 7) && !cache.changed(100, 9));
        assert!(cache.changed(101, 8));
        assert_eq!(cache.oldest_waiting(), Some(7));
        assert!(cache.make_room());
        assert!(cache.node(102).is_none(), "the only clean page went");
        cache.add(103, None);
        assert!(!cache.make_room(), "two are newer than the storage, one is being read");
        assert_eq!(cache.choose(|page| page != 100), Some((8, 101)));
        cache.begins_writing(101);
        assert!(cache.changed(101, 20));
        assert_eq!(cache.dirty_count(), 1, "a page is written once at a time");
        cache.written(101);
        assert_eq!((cache.dirty_count(), cache.oldest_waiting()), (2, Some(7)));
    }

    #[test]
    fn inner_pages_outlive_leaves() {
        let (mut cache, shape) = filled(8);
        assert!(cache.make_room());
        cache.add(1, Some(shape.initial(1)));
        cache.used(1);
        for page in 200..208 {
            assert!(cache.make_room());
            cache.add(page, Some(shape.initial(page)));
            cache.used(page);
        }
        assert!(cache.node(1).is_some());
    }
}
