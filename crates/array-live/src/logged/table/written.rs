//! A table as a checkpoint holds it, and what of a checkpoint or a journal cannot be.

use std::collections::HashSet;

use super::{Container, Content, Snapshot, Table, half};
use crate::{
    logged::{
        block::BLOCK_BYTES,
        change::{Change, Piece, Source, read_pieces, write_pieces},
        map::NONE,
        wire::{Reading, Writing},
    },
    store::refuse_name,
};

impl Table {
    /// Whether a change can be one of this table.
    pub(in crate::logged) fn takes(&self, change: &Change) -> bool {
        let has_disk = |disk: u16| usize::from(disk) < self.disks.len();
        match change {
            Change::Write(blocks) => self.takes_write(blocks),
            Change::Move(contents) => {
                let is_live = |(content, bytes): &(u32, Vec<u8>)| {
                    let held = self.contents.get(*content as usize);
                    held.is_some_and(|held| held.users > 0 && usize::from(held.stored_bytes) == bytes.len())
                };
                contents.iter().all(is_live) && self.end_after(contents.iter().map(|(_, bytes)| bytes.len())).is_some()
            }
            Change::Seal(pieces) => self.open.number < u32::MAX && self.has_places(pieces),
            Change::Restore { container, number, piece } => {
                let pieces = self.containers.get(container).map(|container| &container.pieces);
                self.has_place(piece) && pieces.is_none_or(|pieces| usize::from(*number) < pieces.len())
            }
            Change::Pull { disk, .. } | Change::Insert { disk } => has_disk(*disk),
            Change::Snapshot { name } => refuse_name(name).is_ok(),
            Change::Revert { .. } => true,
            Change::Attribute { volume, .. } => usize::from(*volume) < self.attributes.len(),
        }
    }

    fn takes_write(&self, blocks: &[(u64, Source)]) -> bool {
        let (mut created, mut end) = (HashSet::new(), Some(self.open.end));
        blocks.iter().all(|(block, source)| {
            let is_known = match source {
                Source::Zeroes => true,
                Source::Known(content) => {
                    let held = self.contents.get(*content as usize);
                    created.contains(content) || held.is_some_and(|held| held.users > 0)
                }
                Source::New(stored) => {
                    let is_next = stored.content == self.next_content(created.len());
                    created.insert(stored.content);
                    let bytes = stored.bytes.len();
                    end = end.map(|end| self.shape.next(end, bytes as u32).saturating_add(bytes as u32));
                    is_next
                        && (1..=BLOCK_BYTES).contains(&bytes)
                        && end.is_some_and(|end| end <= self.shape.container_bytes())
                }
            };
            is_known && self.map.has(*block)
        })
    }

    fn has_place(&self, piece: &Piece) -> bool {
        usize::from(piece.disk) < self.disks.len() && piece.slot < self.slots
    }

    fn has_places(&self, pieces: &[Option<Piece>]) -> bool {
        pieces.len() == self.shape.pieces() && pieces.iter().flatten().all(|piece| self.has_place(piece))
    }

    pub(in crate::logged) fn write_down(&self, out: &mut Writing) {
        self.map.write(out);
        out.word(self.contents.len() as u32);
        for Content { print, container, at, stored_bytes, users } in &self.contents {
            out.print(*print);
            out.word(*container);
            out.word(*at);
            out.short(*stored_bytes);
            out.word(*users);
        }
        out.word(self.free.len() as u32);
        self.free.iter().for_each(|content| out.word(*content));
        out.word(self.by_print.len() as u32);
        self.by_print.values().for_each(|content| out.word(*content));
        out.word(self.containers.len() as u32);
        for (number, container) in &self.containers {
            out.word(*number);
            out.long(container.filled_bytes);
            write_pieces(&container.pieces, out);
        }
        out.word(self.open.number);
        out.word(self.open.end);
        out.long(self.open.filled_bytes);
        out.bytes(&self.open.bytes[..self.open.end as usize]);
        out.word(self.snapshots.len() as u32);
        for Snapshot { name, before } in &self.snapshots {
            out.bytes(name.as_bytes());
            out.long(before.len() as u64);
            for (block, content) in before {
                out.long(*block);
                out.word(*content);
            }
        }
        self.disks.iter().for_each(|disk| out.byte((*disk).into()));
        out.byte(self.restores.into());
        for attributes in &self.attributes {
            out.word(attributes.len() as u32);
            for (name, value) in attributes {
                out.bytes(name.as_bytes());
                out.bytes(value);
            }
        }
    }

    /// Takes over a written table of the same shape; `None` if it is damaged.
    pub(in crate::logged) fn read_back(&mut self, from: &mut Reading<'_>) -> Option<()> {
        self.map.read(from)?;
        for _ in 0..from.word()? {
            let (print, container, at) = (from.print()?, from.word()?, from.word()?);
            self.contents.push(Content { print, container, at, stored_bytes: from.short()?, users: from.word()? });
        }
        for _ in 0..from.word()? {
            self.free.push(from.word()?);
        }
        for _ in 0..from.word()? {
            let content = from.word()?;
            self.by_print.insert(half(self.contents.get(content as usize)?.print), content);
        }
        for _ in 0..from.word()? {
            let (number, filled_bytes, pieces) = (from.word()?, from.long()?, read_pieces(from)?);
            self.containers.insert(number, Container { pieces, live_bytes: 0, filled_bytes, contents: Vec::new() });
        }
        self.open = Self::empty(self.shape, from.word()?);
        (self.open.end, self.open.filled_bytes) = (from.word()?, from.long()?);
        let bytes = from.bytes().filter(|bytes| bytes.len() == self.open.end as usize)?;
        self.open.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        for _ in 0..from.word()? {
            let (name, count) = (from.text()?, from.long()?);
            let before = (0..count).map(|_| Some((from.long()?, from.word()?))).collect::<Option<_>>()?;
            self.snapshots.push(Snapshot { name, before });
        }
        for disk in &mut self.disks {
            *disk = from.byte()? != 0;
        }
        self.restores = from.byte()? != 0;
        for attributes in &mut self.attributes {
            for _ in 0..from.word()? {
                attributes.insert(from.text()?, from.bytes()?.to_vec());
            }
        }
        (from.is_over() && self.agrees()).then_some(())?;
        self.count_again();
        let is_filled = |live_bytes, filled_bytes| live_bytes <= filled_bytes;
        let containers = self.containers.values();
        let are_filled = containers.map(|each| (each.live_bytes, each.filled_bytes));
        let open = std::iter::once((self.open.live_bytes, self.open.filled_bytes));
        are_filled.chain(open).all(|(live, filled)| is_filled(live, filled)).then_some(())
    }

    /// Whether the table names only contents that exist, and each content has as many users as blocks name it.
    fn agrees(&self) -> bool {
        let mut users = vec![0_u32; self.contents.len()];
        let before = self.snapshots.iter().flat_map(|snapshot| snapshot.before.values().copied());
        for content in self.map.contents().chain(before).filter(|content| *content != NONE) {
            let Some(count) = users.get_mut(content as usize) else { return false };
            *count += 1;
        }
        let free: HashSet<u32> = self.free.iter().copied().collect();
        let is_right = |(number, content): (u32, &Content)| {
            let named = users[number as usize];
            named == content.users
                && free.contains(&number) == (named == 0)
                && (named == 0 || self.lies_inside(content))
        };
        let blocks = self.snapshots.iter().flat_map(|snapshot| snapshot.before.keys());
        free.len() == self.free.len()
            && self.free.iter().all(|content| (*content as usize) < self.contents.len())
            && (0..).zip(&self.contents).all(is_right)
            && blocks.into_iter().all(|block| self.map.has(*block))
            && self.snapshots.iter().all(|snapshot| refuse_name(&snapshot.name).is_ok())
            && self.containers.range(self.open.number..).next().is_none()
            && self.containers.values().all(|container| self.has_places(&container.pieces))
            && self.by_print.values().all(|content| self.contents[*content as usize].users > 0)
    }

    fn lies_inside(&self, content: &Content) -> bool {
        let stored_bytes = u32::from(content.stored_bytes);
        let end = content.at.checked_add(stored_bytes);
        let most = if content.container == self.open.number { self.open.end } else { self.shape.container_bytes() };
        (content.container == self.open.number || self.containers.contains_key(&content.container))
            && (1..=BLOCK_BYTES as u32).contains(&stored_bytes)
            && content.at % self.shape.unit_bytes + stored_bytes <= self.shape.unit_bytes
            && end.is_some_and(|end| end <= most)
    }

    /// Counts what follows from contents and where they lie.
    fn count_again(&mut self) {
        for (number, content) in self.contents.iter().enumerate().filter(|(_, content)| content.users > 0) {
            let named = (content.at, number as u32);
            self.users += u64::from(content.users);
            self.stored_bytes += u64::from(content.stored_bytes);
            let (live_bytes, contents) = match self.containers.get_mut(&content.container) {
                Some(container) => (&mut container.live_bytes, &mut container.contents),
                None => (&mut self.open.live_bytes, &mut self.open.contents),
            };
            *live_bytes += u64::from(content.stored_bytes);
            contents.push(named);
        }
        self.containers.values_mut().for_each(|container| container.contents.sort_unstable());
        self.open.contents.sort_unstable();
    }
}
