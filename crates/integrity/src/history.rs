//! The last operations, in a ring of fixed size, so that a finding can show operations near its page.

use assay_load::Op;

use crate::{stamp::PageId, user::User};

const ENTRIES: usize = 131_072;

#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub at_ns: u64,
    pub ended_ns: Option<u64>,
    pub op: Op,
    pub user: User,
    pub id: PageId,
    pub pages: u32,
    /// Generation of the first page after the operation.
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

    /// The last operations on a page and the last on its neighbours, `most` of each, the oldest first.
    pub(crate) fn near(&self, id: PageId, distance: u32, most: usize) -> Vec<Entry> {
        let touches = |entry: &Entry, from: u32, to: u32| {
            entry.id.file == id.file && entry.id.page <= to && entry.id.page + entry.pages > from
        };
        let (from, to) = (id.page.saturating_sub(distance), id.page.saturating_add(distance));
        let of_page = self.last(most, |entry| touches(entry, id.page, id.page));
        let near = self.last(most, |entry| touches(entry, from, to) && !touches(entry, id.page, id.page));
        let mut found: Vec<Entry> = of_page.chain(near).copied().collect();
        found.sort_by_key(|entry| entry.at_ns);
        found
    }

    fn last(&self, most: usize, wanted: impl Fn(&Entry) -> bool) -> impl Iterator<Item = &Entry> {
        let kept = self.entries.len() as u64;
        let newest_first = (0..kept).map(move |back| &self.entries[(self.next - 1 - back) as usize % ENTRIES]);
        newest_first.filter(move |entry| wanted(entry)).take(most)
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        let is_kept = self.next - number <= ENTRIES as u64;
        if is_kept { self.entries.get_mut(number as usize % ENTRIES) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::UserKind;

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
        let page = ENTRIES as u32 + 1000;
        let near = history.near(PageId { file: 0, page }, 2, 10);
        assert!(near.iter().map(|entry| entry.id.page).eq(page - 3..=page + 2));
        assert!(near.iter().all(|entry| entry.result == 8192));
        assert_eq!(history.near(PageId { file: 0, page }, 2, 1).len(), 2, "one of the page, one nearby");
        assert!(history.near(PageId { file: 1, page }, 2, 2).is_empty());
    }
}
