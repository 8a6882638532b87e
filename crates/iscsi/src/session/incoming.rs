//! Data of writes: where they go as they come, and those that are no part of a command.

use super::{Lent, Session};
use crate::{
    pdu::Header,
    scsi::{sense, status},
};

impl Session {
    /// Finds the place of a unit's data; data out of order are dropped.
    pub(crate) fn lend(&mut self, header: &Header) -> Lent {
        // Data of a command that has failed, or was ended, may still come.
        let Some(active) = self.active.get_mut(&header.task_tag()).filter(|active| !active.is_aborted) else {
            return Lent::Nothing;
        };
        let (at, bytes) = (header.u32(40) as usize, header.data_bytes());
        let due = match active.asked.front() {
            Some(end) => *end,
            None => active.come_bytes + active.unsolicited_bytes,
        };
        if active.is_with_store || at != active.come_bytes || header.u32(36) != active.data_number || at + bytes > due {
            active.is_aborted = true;
            return Lent::Nothing;
        }
        if at + bytes <= active.data.len() {
            Lent::Whole(std::mem::take(&mut active.data), at)
        } else {
            Lent::Part(active.data.len().saturating_sub(at))
        }
    }

    pub(crate) fn give_back(&mut self, header: &Header, data: Vec<u8>) {
        if let Some(active) = self.active.get_mut(&header.task_tag()) {
            active.data = data;
        }
    }

    pub(crate) fn copy(&mut self, header: &Header, bytes: &[u8]) {
        let at = header.u32(40) as usize;
        if let Some(place) = self.active.get_mut(&header.task_tag()).and_then(|active| active.data.get_mut(at..)) {
            place[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Data of a write have come.
    pub(crate) fn placed(&mut self, header: &Header) {
        let tag = header.task_tag();
        let Some(active) = self.active.get_mut(&tag) else { return };
        if active.is_aborted {
            if header.is_final() && !active.is_with_store {
                self.respond(tag, status::CHECK_CONDITION, Some(sense::DATA_LOST), 0);
            }
            return;
        }
        let bytes = header.data_bytes();
        active.come_bytes += bytes;
        active.data_number += 1;
        active.unsolicited_bytes = active.unsolicited_bytes.saturating_sub(bytes);
        if header.is_final() {
            active.data_number = 0;
            if active.asked.pop_front().is_none() {
                active.unsolicited_bytes = 0;
                active.asked_bytes = active.come_bytes;
            }
        }
        self.go_on(tag);
    }
}
