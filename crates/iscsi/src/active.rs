//! A command from its arrival to its answer.

use std::collections::VecDeque;

use assay_disk_server::Taken;

use crate::{copying::Copying, scsi::Task};

/// A command under way.
pub(crate) struct Active {
    pub(crate) task: Task,
    pub(crate) cdb: [u8; 16],
    pub(crate) lun: [u8; 8],
    /// Bytes that the initiator says it will take, or give.
    pub(crate) expected_bytes: u32,
    pub(crate) is_read: bool,
    /// Data that have come, and how many of them; those behind its end are dropped.
    pub(crate) data: Vec<u8>,
    pub(crate) come_bytes: usize,
    /// Data that are due without being asked for, or not yet all.
    pub(crate) unsolicited_bytes: usize,
    pub(crate) asked_bytes: usize,
    /// Ends of the sequences that were asked for, in order.
    pub(crate) asked: VecDeque<usize>,
    pub(crate) ready_number: u32,
    pub(crate) data_number: u32,
    pub(crate) is_with_store: bool,
    pub(crate) is_aborted: bool,
    pub(crate) taken: Option<Taken>,
    /// A copy that the command asks for.
    pub(crate) copying: Option<Copying>,
}
