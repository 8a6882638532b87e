//! A member joins a group that runs: pieces of the volumes are read from the others and written onto it in the background.
//!
//! Time is the model's, bytes are those of who keeps them: a piece is served from its new place once [`ArrayModel::set_moved`]
//! says so, and is over for the model when [`RebalanceReading::pieces_over`] has come past it.

use assay_load::SplitMix;

use crate::{
    ArrayError, ArrayModel, ArrayPlan, LayoutPlan, MemberPlan, Part, StatePlan,
    disk::DiskKinds,
    events::Event,
    grown::{Home, Piece},
    member::Member,
    model::MOVES,
    rebalance::Rebalance,
    spread::Address,
    task::Access,
};

/// How far the move onto a member that has joined has come. Pieces are counted in the order in which they move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebalanceReading {
    pub member: u32,
    /// Served from the new member.
    pub pieces_moved: u64,
    /// Over by the model's time.
    pub pieces_over: u64,
    pub pieces: u64,
}

impl ArrayModel {
    /// A member like the others joins the group. Pages that it takes over stay where they are, but for so many pieces that
    /// have moved before.
    ///
    /// # Errors
    /// The group cannot have another member, or is being rebalanced.
    pub fn add_member(&mut self, plan: &ArrayPlan, moved: u64) -> Result<(), ArrayError> {
        let [pool] = &plan.pools[..] else {
            return Err(refused("roles have members of their own here, and a new one has no role"));
        };
        if pool.member.layout != LayoutPlan::InPlace {
            return Err(refused("what writes anywhere has its space on its own disks, and no group that could grow"));
        }
        if self.spread.grown().is_some_and(|grown| grown.filling().is_some()) {
            return Err(refused("the last member that joined is being filled; add another once it has its share"));
        }
        let member = self.members.len() as u32;
        let mut larger = plan.clone();
        larger.pools[0].members = member + 1;
        larger.validate()?;
        let mut spread = self.spread.clone();
        let used_bytes = spread.join(plan);
        if used_bytes == 0 {
            return Err(refused("the volumes have too few pages to be spread over another one"));
        }
        self.spread = spread;
        let geometry = self.members[0].geometry.clone();
        let kinds = DiskKinds::new(&pool.member, member + 1);
        let healthy = MemberPlan { state: StatePlan::Healthy, ..pool.member.clone() };
        let first = self.disks.len() as u16;
        let mut random = SplitMix::new(plan.seed ^ u64::from(member).rotate_right(16));
        let phase = || random.next() as u32;
        self.members.push(Member::new(&healthy, &geometry, &kinds, first, used_bytes, phase));
        self.disks.resize(self.disks.len() + healthy.serving_disks() as usize, member as u16);
        self.links.join();
        self.spread.set_moved(moved);
        Ok(())
    }

    /// Begins to move the remaining pieces of the last member that joined, `depth` at once.
    pub fn rebalance(&mut self, depth: u32) {
        let Some((_, moved, pieces)) = self.spread.grown().and_then(|grown| grown.filling()) else { return };
        self.rebalance = Some(Rebalance::new(depth, moved, pieces));
        self.rebalance_next();
    }

    /// How far the move onto a new member is; none where nothing moves.
    pub fn rebalance_reading(&self) -> Option<RebalanceReading> {
        let (member, pieces_moved, pieces) = self.spread.grown()?.filling()?;
        let pieces_over = self.rebalance.as_ref().map_or(pieces_moved, Rebalance::done);
        Some(RebalanceReading { member, pieces_moved, pieces_over, pieces })
    }

    /// Where a piece lies before its move and after it.
    pub fn move_of(&self, piece: u64) -> (Part, Part) {
        let (Piece { bytes, .. }, from, to) = self.ends_of(piece);
        let part = |address: Address| Part { member: address.member, at_bytes: address.at_bytes, bytes };
        (part(from), part(to))
    }

    /// Serves the first `pieces` from the new member from now on; after the last piece nothing moves any more.
    pub fn set_moved(&mut self, pieces: u64) {
        self.spread.set_moved(pieces);
        if self.rebalance_reading().is_none() {
            self.rebalance = None;
        }
    }

    fn ends_of(&self, piece: u64) -> (Piece, Address, Address) {
        let grown = self.spread.grown().expect("pieces move");
        let (member, ..) = grown.filling().expect("pieces move");
        let piece = grown.piece(piece);
        let from = self.spread.settled(piece.volume, piece.offset_bytes);
        // Pages and pieces begin at the same places on all members.
        let page_bytes = self.spread.page_bytes();
        let home = Home { member, slot: piece.slot };
        let to = self.spread.at_home(home, piece.volume, piece.offset_bytes % page_bytes, piece.bytes);
        (piece, from, to)
    }

    fn rebalance_next(&mut self) {
        while let Some(rebalance) = &mut self.rebalance {
            let free = rebalance.slots.iter().position(Option::is_none);
            let Some(slot) = free.filter(|_| rebalance.next < rebalance.pieces) else { return };
            let number = rebalance.next;
            rebalance.next += 1;
            rebalance.slots[slot] = Some(number);
            let (Piece { bytes, .. }, from, _) = self.ends_of(number);
            let member = &mut self.members[from.member as usize];
            member.read_to_move(self.time.now_ns, slot as u16, from.at_bytes, bytes, &mut self.time.events);
            self.carry_moves(from.member);
        }
    }

    /// Sends pieces that a member has read to the member that joined.
    pub(crate) fn carry_moves(&mut self, member: u32) {
        for slot in std::mem::take(&mut self.members[member as usize].read_out) {
            let Some((Piece { bytes, .. }, _, to)) = self.in_slot(slot) else { continue };
            let sent_ns = self.members[member as usize].compute(0, self.time.now_ns, bytes);
            let there_ns = self.links.between(sent_ns, member, to.member, u32::from(slot), bytes);
            self.time.events.set(there_ns, Event::Moves { slot, admitted: false });
        }
    }

    fn in_slot(&self, slot: u16) -> Option<(Piece, Address, Address)> {
        let piece = self.rebalance.as_ref()?.slots[usize::from(slot)]?;
        Some(self.ends_of(piece))
    }

    /// A piece has come to the new member, or is admitted there. Says which member may have ended something.
    pub(crate) fn move_comes(&mut self, slot: u16, admitted: bool) -> Option<u32> {
        let (Piece { bytes, .. }, _, to) = self.in_slot(slot)?;
        let at = &mut self.members[to.member as usize];
        if !admitted {
            let ready_ns = at.compute(0, self.time.now_ns, bytes);
            self.time.events.set(ready_ns, Event::Moves { slot, admitted: true });
            return None;
        }
        let command = MOVES | u32::from(slot);
        let access = Access { command, at_bytes: to.at_bytes, bytes, page_end_bytes: to.at_bytes + bytes };
        at.take(self.time.now_ns, access, &mut self.time.events);
        Some(to.member)
    }

    /// The new member has a piece.
    pub(crate) fn move_ends(&mut self, slot: u32) {
        if let Some(rebalance) = &mut self.rebalance {
            rebalance.slots[slot as usize] = None;
        }
        self.rebalance_next();
    }
}

fn refused(message: &str) -> ArrayError {
    ArrayError::invalid("members", message)
}
