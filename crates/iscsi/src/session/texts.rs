//! Texts of a session: which disks there are, and where.

use std::sync::Arc;

use super::Session;
use crate::pdu::{FINAL, Header, NO_TAG, reject, tell};

impl Session {
    /// Answers SendTargets (RFC 7143, appendix C).
    pub(super) fn text(&mut self, header: &Header, data: &[u8]) {
        let tag = header.task_tag();
        if header.u32(20) == NO_TAG {
            let Some(keys) = crate::text::pairs(data) else { return self.refuse(header, reject::PROTOCOL_ERROR) };
            self.texts.clear();
            for (key, value) in keys {
                match key {
                    "SendTargets" => self.targets(value),
                    key => crate::text::put(&mut self.texts, key, "NotUnderstood"),
                }
            }
        }
        let rest = self.texts.split_off(self.texts.len().min(self.parameters.sent_most_bytes));
        let bytes = std::mem::replace(&mut self.texts, rest);
        let is_last = self.texts.is_empty();
        let flags = if is_last { FINAL } else { crate::pdu::CONTINUE };
        let answer = Header::new(tell::TEXT, flags).with(16, tag).with(20, if is_last { NO_TAG } else { 1 });
        let answer = self.numbered(answer, true);
        self.send_bytes(answer, bytes);
    }

    fn targets(&mut self, value: &str) {
        let shared = Arc::clone(&self.shared);
        for (number, disk) in shared.config.disks.iter().enumerate() {
            let is_asked = match (self.disk, value) {
                (None, "All") => true,
                (None, name) => disk.target == name,
                (Some(own), "") => own == number,
                (Some(own), name) => own == number && disk.target == name,
            };
            if !is_asked {
                continue;
            }
            crate::text::put(&mut self.texts, "TargetName", &disk.target);
            for address in shared.told(&self.told_at) {
                crate::text::put(&mut self.texts, "TargetAddress", &format!("{address},1"));
            }
        }
    }
}
