//! A page as the engine works with it: records, or separators of the pages below.

/// A record: its text follows from key and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub key: u64,
    pub version: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// The header, or a free page.
    Empty,
    /// Records in the order of their keys.
    Leaf(Vec<Slot>),
    /// First key and page of each child, in order.
    Inner(Vec<(u64, u64)>),
}

/// A page. It is for the keys from `low` on and below `high`; keys from there on are in the page to the `right`, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Of the last change; 0 for none.
    pub lsn: u64,
    pub low: u64,
    pub high: u64,
    /// 0 for none.
    pub right: u64,
    pub content: Content,
}

impl Node {
    pub(crate) fn is_leaf(&self) -> bool {
        matches!(self.content, Content::Leaf(_))
    }

    /// The page that a search for a key goes on with: the one to the right, or a child. None where it has arrived.
    pub(crate) fn child(&self, key: u64) -> Option<u64> {
        if key >= self.high && self.right != 0 {
            return Some(self.right);
        }
        let Content::Inner(children) = &self.content else { return None };
        let place = children.partition_point(|(first, _)| *first <= key).max(1) - 1;
        children.get(place).map(|(_, page)| *page)
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        match &self.content {
            Content::Leaf(slots) => slots,
            _ => &[],
        }
    }

    /// Whether keys rise and belong to the page.
    pub(crate) fn is_in_order(&self) -> bool {
        match &self.content {
            Content::Empty => true,
            Content::Leaf(slots) => self.are_own(slots.iter().map(|slot| slot.key)),
            Content::Inner(children) => self.are_own(children.iter().map(|(key, _)| *key)),
        }
    }

    fn are_own(&self, keys: impl Iterator<Item = u64>) -> bool {
        let mut last = None;
        let mut keys = keys;
        keys.all(|key| {
            let rises = last.is_none_or(|last| last < key);
            last = Some(key);
            rises && (self.low..self.high).contains(&key)
        })
    }

    /// Makes a change of the log; one that is in the page already is passed over, so that a log may be replayed twice.
    pub(crate) fn apply(&mut self, lsn: u64, change: &Change) {
        if self.lsn >= lsn {
            return;
        }
        self.lsn = lsn;
        match change {
            Change::Put { key, version } => {
                let Content::Leaf(slots) = &mut self.content else { return };
                let slot = Slot { key: *key, version: *version };
                match slots.binary_search_by_key(key, |slot| slot.key) {
                    Ok(place) => slots[place] = slot,
                    Err(place) => slots.insert(place, slot),
                }
            }
            Change::Remove { key } => {
                let Content::Leaf(slots) = &mut self.content else { return };
                slots.retain(|slot| slot.key != *key);
            }
            Change::Cut { high, right } => {
                if let Content::Leaf(slots) = &mut self.content {
                    slots.retain(|slot| slot.key < *high);
                }
                (self.high, self.right) = (*high, *right);
            }
            Change::Become { low, high, right, slots } => {
                (self.low, self.high, self.right) = (*low, *high, *right);
                self.content = Content::Leaf(slots.clone());
            }
            Change::Link { key, child } => {
                let Content::Inner(children) = &mut self.content else { return };
                let place = children.partition_point(|(first, _)| first < key);
                children.insert(place, (*key, *child));
            }
        }
    }
}

/// Change that a record of the log makes to one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Put {
        key: u64,
        version: u32,
    },
    Remove {
        key: u64,
    },
    /// A leaf that splits keeps the keys below `high`.
    Cut {
        high: u64,
        right: u64,
    },
    /// A free page becomes a leaf.
    Become {
        low: u64,
        high: u64,
        right: u64,
        slots: Vec<Slot>,
    },
    /// An inner page gets a child more.
    Link {
        key: u64,
        child: u64,
    },
}
