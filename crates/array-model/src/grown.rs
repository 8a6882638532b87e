//! Members that joined a group that had volumes: which pages move onto them, and how far that has come.
//!
//! A page moves in pieces of a chunk, one after the other in an order that follows from the volumes alone: one number says
//! where every byte lies.

/// A page that has moved for good: the member that holds it, and its slot there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) member: u32,
    pub(crate) slot: u64,
}

/// The member that takes over pages.
#[derive(Debug, Clone)]
struct Filling {
    member: u32,
    /// Volumes and pages in the order in which they move; the place in it is the slot.
    moves: Vec<(u16, u64)>,
    /// By volume and page: the place in that order.
    order: Vec<Vec<Option<u32>>>,
    /// Pieces that lie on the new member.
    pieces: u64,
}

/// One piece that moves: where it lies in its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) volume: u16,
    pub(crate) offset_bytes: u64,
    pub(crate) bytes: u64,
    /// The slot of its page on the new member.
    pub(crate) slot: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Grown {
    page_bytes: u64,
    piece_bytes: u64,
    /// By volume and page; none where the page was dealt out at the start.
    homes: Vec<Vec<Option<Home>>>,
    /// The last member that joined, until its pages have moved.
    filling: Option<Filling>,
}

impl Grown {
    /// Volumes of `pages` pages each; no page has moved.
    pub(crate) fn new(pages: &[u64], page_bytes: u64, piece_bytes: u64) -> Self {
        let homes = pages.iter().map(|pages| vec![None; *pages as usize]).collect();
        Self { page_bytes, piece_bytes, homes, filling: None }
    }

    /// Adds a member to `member` members. Every member gives the new one its share of each volume, in pages that lie
    /// evenly over the volume. Returns the number of pages that the new one is to hold.
    pub(crate) fn join(&mut self, member: u32, member_of: impl Fn(u16, u64) -> u32) -> u64 {
        debug_assert!(self.filling.is_none(), "one member is filled at a time");
        let share = u64::from(member) + 1;
        let mut moves = Vec::new();
        for (volume, homes) in self.homes.iter().enumerate() {
            // Members and volumes begin at different pages.
            let mut turns: Vec<u64> = (0..u64::from(member)).map(|other| (other + volume as u64) % share).collect();
            for page in 0..homes.len() as u64 {
                let turn = &mut turns[member_of(volume as u16, page) as usize];
                if turn.is_multiple_of(share) {
                    moves.push((volume as u16, page));
                }
                *turn += 1;
            }
        }
        moves.sort_unstable_by_key(|(volume, page)| (*page, *volume));
        let mut order: Vec<Vec<Option<u32>>> = self.homes.iter().map(|pages| vec![None; pages.len()]).collect();
        for (place, (volume, page)) in moves.iter().enumerate() {
            order[usize::from(*volume)][*page as usize] = Some(place as u32);
        }
        let pages = moves.len() as u64;
        self.filling = Some(Filling { member, moves, order, pieces: 0 });
        pages
    }

    /// A volume has `pages` pages from now on; the new ones are dealt out.
    pub(crate) fn set_pages(&mut self, volume: u16, pages: u64) {
        debug_assert!(self.filling.is_none(), "volumes grow while nothing moves");
        self.homes[usize::from(volume)].resize(pages as usize, None);
    }

    fn pieces_of_page(&self) -> u64 {
        self.page_bytes.div_ceil(self.piece_bytes)
    }

    /// The member that is being filled, the pieces it holds, and the pieces it will hold.
    pub(crate) fn filling(&self) -> Option<(u32, u64, u64)> {
        let Filling { member, moves, pieces, .. } = self.filling.as_ref()?;
        Some((*member, *pieces, moves.len() as u64 * self.pieces_of_page()))
    }

    /// Places the first `pieces` on the new member from now on. The last piece ends the move.
    pub(crate) fn set_moved(&mut self, pieces: u64) {
        let Some((member, before, all)) = self.filling() else { return };
        debug_assert!(pieces >= before, "what has moved stays there");
        if pieces < all {
            self.filling.as_mut().expect("there is one").pieces = pieces;
            return;
        }
        let Filling { moves, .. } = self.filling.take().expect("there is one");
        for ((volume, page), slot) in moves.into_iter().zip(0..) {
            self.homes[usize::from(volume)][page as usize] = Some(Home { member, slot });
        }
    }

    /// A piece in the order in which they move.
    pub(crate) fn piece(&self, number: u64) -> Piece {
        let filling = self.filling.as_ref().expect("pages are moving");
        let (slot, within) = (number / self.pieces_of_page(), number % self.pieces_of_page() * self.piece_bytes);
        let (volume, page) = filling.moves[slot as usize];
        let bytes = self.piece_bytes.min(self.page_bytes - within);
        Piece { volume, offset_bytes: page * self.page_bytes + within, bytes, slot }
    }

    /// Where a page lies unless its pieces have begun to move; none: where it was dealt out.
    #[inline]
    pub(crate) fn home(&self, volume: u16, page: u64) -> Option<Home> {
        self.homes[usize::from(volume)][page as usize]
    }

    /// Of a page that moves: where to, and how many of its bytes from the first are there.
    #[inline]
    pub(crate) fn moving(&self, volume: u16, page: u64) -> Option<(Home, u64)> {
        let filling = self.filling.as_ref()?;
        let slot = u64::from(filling.order[usize::from(volume)][page as usize]?);
        let there = filling.pieces.saturating_sub(slot * self.pieces_of_page());
        Some((Home { member: filling.member, slot }, (there * self.piece_bytes).min(self.page_bytes)))
    }
}
