//! All that a store knows of its blocks, as changes make it: the same changes give the same table.

mod written;

use std::collections::{BTreeMap, HashMap};

use super::{
    change::{Change, Piece, Source, Stored},
    map::{Map, NONE},
    shape::Shape,
};

/// Bytes of a block as they are stored once, whichever blocks have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) print: u128,
    pub(super) container: u32,
    /// Within the container.
    pub(super) at: u32,
    pub(super) stored_bytes: u16,
    /// Blocks of volumes and snapshots that have it; none: the number is free.
    pub(super) users: u32,
}

/// A container on disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Container {
    /// Data pieces, then parity pieces; `None` for a missing piece.
    pub(super) pieces: Vec<Option<Piece>>,
    pub(super) live_bytes: u64,
    /// Of all contents that were ever put into it.
    pub(super) filled_bytes: u64,
    /// Where contents were put, and which, in order. One that was moved or freed is still named.
    pub(super) contents: Vec<(u32, u32)>,
}

impl Container {
    pub(super) fn missing(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.is_none()).count()
    }
}

/// The container that is being filled, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) number: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) end: u32,
    live_bytes: u64,
    filled_bytes: u64,
    contents: Vec<(u32, u32)>,
}

/// A snapshot: which contents blocks had that have others since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) name: String,
    pub(super) before: BTreeMap<u64, u32>,
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    shape: Shape,
    /// Slots of each disk.
    slots: u32,
    pub(super) map: Map,
    pub(super) contents: Vec<Content>,
    free: Vec<u32>,
    /// By half of the fingerprint.
    by_print: HashMap<u64, u32>,
    pub(super) containers: BTreeMap<u32, Container>,
    pub(super) open: Open,
    /// Oldest first.
    pub(super) snapshots: Vec<Snapshot>,
    /// Which slots have a disk.
    pub(super) disks: Vec<bool>,
    /// Whether missing pieces are to be restored on the disks that there are.
    pub(super) restores: bool,
    pub(super) attributes: Vec<BTreeMap<String, Vec<u8>>>,
    /// Containers that hold nothing any more, until they are taken from here.
    pub(super) emptied: Vec<Container>,
    pub(super) stored_bytes: u64,
    pub(super) users: u64,
}

fn half(print: u128) -> u64 {
    print as u64
}

impl Table {
    pub(super) fn new(shape: Shape, blocks: u64, volumes: usize, disks: usize, slots: u32) -> Self {
        Self {
            shape,
            slots,
            map: Map::new(blocks),
            contents: Vec::new(),
            free: Vec::new(),
            by_print: HashMap::new(),
            containers: BTreeMap::new(),
            open: Self::empty(shape, 0),
            snapshots: Vec::new(),
            disks: vec![true; disks],
            restores: true,
            attributes: vec![BTreeMap::new(); volumes],
            emptied: Vec::new(),
            stored_bytes: 0,
            users: 0,
        }
    }

    fn empty(shape: Shape, number: u32) -> Open {
        let bytes = vec![0; shape.container_bytes() as usize];
        Open { number, bytes, end: 0, live_bytes: 0, filled_bytes: 0, contents: Vec::new() }
    }

    /// Number of the next new content after `after` new ones.
    pub(super) fn next_content(&self, after: usize) -> u32 {
        match self.free.len().checked_sub(after + 1) {
            Some(place) => self.free[place],
            None => (self.contents.len() + after - self.free.len()) as u32,
        }
    }

    /// A content that may be that of a fingerprint: it is where the whole of it agrees.
    pub(super) fn by_print(&self, print: u128) -> Option<u32> {
        let content = *self.by_print.get(&half(print))?;
        (self.contents[content as usize].print == print).then_some(content)
    }

    pub(super) fn live_contents(&self) -> u64 {
        (self.contents.len() - self.free.len()) as u64
    }

    /// Contents that still lie in a container, in order, and where.
    pub(super) fn contents_of(&self, container: u32) -> impl Iterator<Item = (u32, u32)> {
        let named = self.containers.get(&container).map_or(&[][..], |container| &container.contents);
        named.iter().copied().filter(move |(at, content)| self.lies(*content, container, *at))
    }

    /// The same of a part of the container.
    pub(super) fn contents_within(&self, container: u32, part: std::ops::Range<u32>) -> Vec<(u32, u32)> {
        let named = self.containers.get(&container).map_or(&[][..], |container| &container.contents);
        let first = named.partition_point(|(at, _)| *at < part.start);
        let within = named[first..].iter().take_while(|(at, _)| *at < part.end);
        within.copied().filter(|(at, content)| self.lies(*content, container, *at)).collect()
    }

    fn lies(&self, content: u32, container: u32, at: u32) -> bool {
        let found = &self.contents[content as usize];
        found.users > 0 && (found.container, found.at) == (container, at)
    }

    /// Where the open container ends once these contents are in it, should they fit.
    pub(super) fn end_after(&self, stored: impl Iterator<Item = usize>) -> Option<u32> {
        let end = stored.fold(self.open.end, |end, bytes| self.shape.next(end, bytes as u32) + bytes as u32);
        (end <= self.shape.container_bytes()).then_some(end)
    }

    /// Makes a change.
    pub(super) fn make(&mut self, change: &Change) {
        match change {
            Change::Write(blocks) => self.write(blocks),
            Change::Move(contents) => {
                for (content, bytes) in contents {
                    let Content { container, stored_bytes, .. } = self.contents[*content as usize];
                    self.append(*content, bytes);
                    self.lessen(container, stored_bytes);
                }
            }
            Change::Seal(pieces) => {
                let next = Self::empty(self.shape, self.open.number + 1);
                let Open { number, live_bytes, filled_bytes, contents, .. } = std::mem::replace(&mut self.open, next);
                let container = Container { pieces: pieces.clone(), live_bytes, filled_bytes, contents };
                if live_bytes == 0 {
                    self.emptied.push(container);
                } else {
                    self.containers.insert(number, container);
                }
            }
            Change::Restore { container, number, piece } => {
                if let Some(container) = self.containers.get_mut(container) {
                    container.pieces[usize::from(*number)] = Some(*piece);
                }
            }
            Change::Pull { disk, restores } => {
                (self.disks[usize::from(*disk)], self.restores) = (false, *restores);
                for piece in self.containers.values_mut().flat_map(|container| &mut container.pieces) {
                    piece.take_if(|piece| piece.disk == *disk);
                }
            }
            Change::Insert { disk } => (self.disks[usize::from(*disk)], self.restores) = (true, true),
            Change::Snapshot { name } => {
                self.snapshots.push(Snapshot { name: name.clone(), before: BTreeMap::new() });
            }
            Change::Revert { name } => self.revert(name),
            Change::Attribute { volume, name, value } => {
                let held = &mut self.attributes[usize::from(*volume)];
                match value {
                    Some(value) => held.insert(name.clone(), value.clone()),
                    None => held.remove(name),
                };
            }
        }
    }

    fn write(&mut self, blocks: &[(u64, Source)]) {
        // Users first: what one block gives up another may take.
        let mut becomes = Vec::with_capacity(blocks.len());
        for (_, source) in blocks {
            let content = match source {
                Source::Zeroes => NONE,
                Source::Known(content) => *content,
                Source::New(Stored { content, print, bytes }) => {
                    self.create(*content, *print);
                    self.append(*content, bytes);
                    *content
                }
            };
            if content != NONE {
                self.contents[content as usize].users += 1;
                self.users += 1;
            }
            becomes.push(content);
        }
        for ((block, _), content) in blocks.iter().zip(becomes) {
            let before = self.map.set(*block, content);
            match self.snapshots.last_mut() {
                Some(snapshot) if !snapshot.before.contains_key(block) => {
                    snapshot.before.insert(*block, before);
                }
                _ => self.give_up(before),
            }
        }
    }

    fn create(&mut self, content: u32, print: u128) {
        let new = Content { print, container: self.open.number, at: 0, stored_bytes: 0, users: 0 };
        match self.free.pop() {
            Some(free) => {
                assert_eq!(free, content, "changes are made in the order in which they were planned");
                self.contents[content as usize] = new;
            }
            None => {
                assert_eq!(self.contents.len(), content as usize, "changes are made in their order");
                self.contents.push(new);
            }
        }
        // Where another has the fingerprint its bytes differ or are lost.
        self.by_print.insert(half(print), content);
    }

    /// Puts a content into the open container.
    fn append(&mut self, content: u32, bytes: &[u8]) {
        let at = self.shape.next(self.open.end, bytes.len() as u32);
        let open = &mut self.open;
        open.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        open.end = at + bytes.len() as u32;
        open.live_bytes += bytes.len() as u64;
        open.filled_bytes += bytes.len() as u64;
        open.contents.push((at, content));
        let held = &mut self.contents[content as usize];
        self.stored_bytes += bytes.len() as u64;
        (held.container, held.at, held.stored_bytes) = (open.number, at, bytes.len() as u16);
    }

    /// A block no longer has a content.
    fn give_up(&mut self, content: u32) {
        if content == NONE {
            return;
        }
        let held = &mut self.contents[content as usize];
        held.users -= 1;
        self.users -= 1;
        if held.users > 0 {
            return;
        }
        let Content { print, container, stored_bytes, .. } = *held;
        if self.by_print.get(&half(print)) == Some(&content) {
            self.by_print.remove(&half(print));
        }
        self.free.push(content);
        self.lessen(container, stored_bytes);
    }

    /// So much of a container is dead.
    fn lessen(&mut self, number: u32, bytes: u16) {
        self.stored_bytes -= u64::from(bytes);
        if number == self.open.number {
            self.open.live_bytes -= u64::from(bytes);
        } else if let Some(container) = self.containers.get_mut(&number) {
            container.live_bytes -= u64::from(bytes);
            if container.live_bytes == 0 {
                self.emptied.extend(self.containers.remove(&number));
            }
        }
    }

    fn revert(&mut self, name: &str) {
        let Some(position) = self.snapshots.iter().position(|snapshot| snapshot.name == name) else { return };
        while self.snapshots.len() > position {
            let snapshot = self.snapshots.pop().expect("it is there");
            for (block, before) in snapshot.before {
                let after = self.map.set(block, before);
                self.give_up(after);
            }
        }
        self.snapshots.push(Snapshot { name: name.to_owned(), before: BTreeMap::new() });
    }
}
