//! The last operations, in a ring of fixed size, so that a finding can say what happened near its page.

use assay_load::Op;

use crate::{core::User, stamp::PageId};

const ENTRIES: usize = 8192;

#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub at_ns: u64,
    pub ended_ns: Option<u64>,
    pub op: Op,
    pub user: User,
    pub id: PageId,
    pub pages: u32,
    /// Of the first page, as it is after the operation.
    pub generation: u32,
    pub result: i32,
}

pub(crate) struct History {
    entries: Vec<Entry>,
    next: u64,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), next: 0 }
    }

    pub(crate) fn add(&mut self, entry: Entry) -> u64 {
        let number = self.next;
        self.next += 1;
        if self.entries.len() < ENTRIES {
            self.entries.push(entry);
        } else {
            self.entries[number as usize % ENTRIES] = entry;
        }
        number
    }

    pub(crate) fn submitted(&mut self, number: u64, at_ns: u64) {
        if let Some(entry) = self.entry(number) {
            entry.at_ns = at_ns;
        }
    }

    pub(crate) fn ended(&mut self, number: u64, ended_ns: u64, result: i32) {
        if let Some(entry) = self.entry(number) {
            (entry.ended_ns, entry.result) = (Some(ended_ns), result);
        }
    }

    /// The last `most` operations within `distance` pages of a page, the oldest first.
    pub(crate) fn near(&self, id: PageId, distance: u32, most: usize) -> Vec<Entry> {
        let (from, to) = (id.page.saturating_sub(distance), id.page.saturating_add(distance));
        let mut found: Vec<Entry> = self
            .entries
            .iter()
            .filter(|entry| entry.id.file == id.file && entry.id.page <= to && entry.id.page + entry.pages > from)
            .copied()
            .collect();
        found.sort_by_key(|entry| entry.at_ns);
        found.split_off(found.len().saturating_sub(most))
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        let is_kept = self.next - number <= ENTRIES as u64;
        if is_kept { self.entries.get_mut(number as usize % ENTRIES) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::UserKind;

    #[test]
    fn the_ring_keeps_the_last_and_finds_what_was_near() {
        let mut history = History::new();
        let user = User { kind: UserKind::Audit, number: 0 };
        for page in 0..2 * ENTRIES as u32 {
            let id = PageId { file: 0, page };
            let at_ns = u64::from(page);
            let entry = Entry { at_ns, ended_ns: None, op: Op::Read, user, id, pages: 2, generation: 1, result: 0 };
            let number = history.add(entry);
            history.ended(number, u64::from(page) + 1, 8192);
        }
        history.ended(0, 0, 0);
        assert!(history.near(PageId { file: 0, page: 5 }, 2, 10).is_empty(), "forgotten");
        let near = history.near(PageId { file: 0, page: 10_000 }, 2, 10);
        assert_eq!(
            near.iter().map(|entry| entry.id.page).collect::<Vec<_>>(),
            [9997, 9998, 9999, 10_000, 10_001, 10_002]
        );
        assert!(near.iter().all(|entry| entry.result == 8192));
        assert_eq!(history.near(PageId { file: 0, page: 10_000 }, 2, 2).len(), 2);
        assert!(history.near(PageId { file: 1, page: 10_000 }, 2, 2).is_empty());
    }
}
