//! Where on the disks pieces of containers may lie.

use super::change::Piece;

/// Free slots of each disk: slots given back, and all slots from one on that were never used.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    disks: Vec<Free>,
    /// Slots of each disk.
    most: u32,
    /// The disk that the next container begins on.
    turn: usize,
}

#[derive(Debug, Clone, Default)]
struct Free {
    back: Vec<u32>,
    unused: u32,
}

impl Slots {
    /// All slots free, except those of the given pieces.
    pub(super) fn new(disks: usize, most: u32, used: impl Iterator<Item = Piece>) -> Self {
        let mut taken = vec![Vec::new(); disks];
        used.for_each(|piece| taken[usize::from(piece.disk)].push(piece.slot));
        let free = |mut slots: Vec<u32>| {
            slots.sort_unstable();
            let unused = slots.last().map_or(0, |last| last + 1);
            let mut used = slots.iter().copied().peekable();
            let back = (0..unused).filter(|slot| used.next_if_eq(slot).is_none()).collect();
            Free { back, unused }
        };
        Self { disks: taken.into_iter().map(free).collect(), most, turn: 0 }
    }

    pub(super) fn take(&mut self, disk: usize) -> Option<Piece> {
        let free = &mut self.disks[disk];
        let slot = free.back.pop().or_else(|| {
            (free.unused < self.most).then(|| {
                free.unused += 1;
                free.unused - 1
            })
        })?;
        Some(Piece { disk: disk as u16, slot })
    }

    pub(super) fn give_back(&mut self, piece: Piece) {
        self.disks[usize::from(piece.disk)].back.push(piece.slot);
    }

    /// A disk is gone: an empty one comes in its place.
    pub(super) fn empty(&mut self, disk: usize) {
        self.disks[disk] = Free::default();
    }

    /// Slots for the pieces of a container, on a disk each from the next in turn on; a piece for which there is no disk gets none.
    pub(super) fn take_row(&mut self, present: &[bool], pieces: usize) -> Vec<Option<Piece>> {
        let (first, all) = (self.turn, self.disks.len());
        self.turn = (first + 1) % all;
        let disks = (0..all).map(|next| (first + next) % all);
        let mut row: Vec<Option<Piece>> =
            disks.filter(|disk| present[*disk]).filter_map(|disk| self.take(disk)).take(pieces).map(Some).collect();
        row.resize(pieces, None);
        row
    }
}
