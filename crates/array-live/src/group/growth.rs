//! A member joins the array that runs: pieces are copied in the background as the model moves them.

use serde_json::{Value, json};

use super::Group;
use crate::{ServeError, StoreFault, array::Array};

fn refused<T>(message: impl Into<String>) -> Result<T, ServeError> {
    Err(ServeError::Refused(format!("add-member: {}", message.into())))
}

impl Group {
    pub(super) fn add_member(&mut self, has_power: bool) -> Result<String, ServeError> {
        let (most, members) = (self.growing.members_most, self.model.members());
        if most == 1 {
            return refused("this array has one member, and no group that another one could join");
        }
        if members >= most {
            return refused(format!("the group has {members} members; it can have {most}"));
        }
        if !has_power {
            return refused("the power is cut; restore it first");
        }
        // Model and store grow both or neither.
        let mut model = self.model.clone();
        if let Err(error) = model.add_member(&self.growing.array, 0) {
            let text = error.to_string();
            return refused(text.strip_prefix("members: ").unwrap_or(&text));
        }
        let spares = self.growing.array.pools[0].member.spares;
        if let Err(error) = self.store.add_member(&model, spares) {
            return refused(error.to_string());
        }
        self.model = model;
        self.model.rebalance(self.growing.depth);
        let what = format!("member{members}: joins the group; chunks move onto it");
        self.happens(&what[..]);
        Ok(what)
    }

    /// Model and store give a volume more bytes, both or neither.
    pub(super) fn grow_volume(&mut self, volume: u16, bytes: u64) -> Result<(), ServeError> {
        let mut model = self.model.clone();
        if let Err(error) = model.grow_volume(&self.growing.array, volume, bytes) {
            let text = error.to_string();
            return Err(ServeError::Refused(text.strip_prefix("grow: ").unwrap_or(&text).to_owned()));
        }
        self.store.grow_volume(&model, volume, bytes)?;
        self.model = model;
        Ok(())
    }

    /// Continues moves that an earlier service began.
    pub(super) fn resume_moves(&mut self) {
        self.model.rebalance(self.growing.depth);
    }

    /// Copies pieces that the model has moved since the last call, at most `most`.
    pub(super) fn go_on_moving(&mut self, most: u64, now_ns: u64, has_power: bool) {
        self.growing.is_behind = false;
        let Some(reading) = self.model.rebalance_reading() else { return };
        if !has_power || self.growing.stall.waits(now_ns) {
            return;
        }
        let last = reading.pieces_over.min(reading.pieces_moved + most);
        for piece in reading.pieces_moved..last {
            match self.move_piece(piece, reading.pieces) {
                Ok(()) => {
                    if self.growing.stall.goes_on() {
                        self.happens(format!("member{}: moving goes on", reading.member));
                    }
                }
                Err(fault) => {
                    let why = format!("member{}: moving waits: {fault}", reading.member);
                    let told = self.growing.stall.fails(why, now_ns);
                    told.into_iter().for_each(|what| self.happens(what));
                    return;
                }
            }
        }
        self.growing.is_behind = last < reading.pieces_over;
        if self.model.rebalance_reading().is_none() {
            self.happens(format!("member{}: has its share; the group is balanced", reading.member));
        }
    }

    fn move_piece(&mut self, piece: u64, all: u64) -> Result<(), StoreFault> {
        let (from, to) = self.model.move_of(piece);
        self.store.copy_piece(from, to)?;
        self.store.set_moved(piece + 1, all, from, to)?;
        self.model.set_moved(piece + 1);
        Ok(())
    }

    /// How far the new member is filled; nothing where nothing moves.
    pub(super) fn rebalance_picture(&self) -> Value {
        let Some(reading) = self.model.rebalance_reading() else { return Value::Null };
        json!({
            "member": format!("member{}", reading.member),
            "moved_share": reading.pieces_moved as f64 / reading.pieces.max(1) as f64,
            "pieces": reading.pieces,
            "waits": self.growing.stall.why(),
        })
    }
}
