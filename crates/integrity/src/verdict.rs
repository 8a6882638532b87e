//! The verdict on pages: suspects, findings, and pages of unknown content.

use std::collections::VecDeque;

use assay_load::Op;

use crate::{finding::Findings, stamp::PageId, user::User};

/// Something to be looked into; its pages stay latched until then.
#[derive(Debug, Clone)]
pub(crate) enum Suspect {
    /// A page that was wrong, or (without image) was not delivered by an I/O whose fault is named at another page.
    Page { id: PageId, image: Option<Box<[u8]>>, user: User },
    /// An I/O that the system failed; 0 is a write of fewer bytes than asked.
    Io { op: Op, id: PageId, pages: u32, errno: i32, user: User },
}

/// Suspects that wait for the investigator, findings, and pages that keep an audit from saying that all is well.
#[derive(Default)]
pub(crate) struct Verdict {
    pub suspects: VecDeque<Suspect>,
    /// Suspects that the investigator is looking into.
    pub investigating: u32,
    pub findings: Findings,
    /// Failed writes that are being repeated.
    pub writes_in_doubt: u32,
    /// Pages of unknown content: a write to them failed.
    pub uncertain: u32,
    /// This phase read a page that was found wrong before, and did not judge it again.
    pub skipped: bool,
    /// The last audit read every page, and all were right.
    pub audited: bool,
}

impl Verdict {
    /// Whether a suspect still waits for the investigator or is being looked into.
    pub(crate) fn is_pending(&self) -> bool {
        !self.suspects.is_empty() || self.investigating > 0
    }
}
