//! Volumes as stores of blocks, for servers of disks over a network.

use std::{sync::Arc, time::Instant};

use assay_disk_server::{Blocks, Op};

use crate::{
    inbox::{Inbox, Message},
    io::{Answer, Io, IoKind},
};

/// The array's thread, as servers of disks see it.
pub(crate) struct Volumes(pub(crate) Arc<Inbox>);

/// Takes the end of an I/O to the connection that waits for it.
struct Reply(assay_disk_server::Answer);

impl Answer for Reply {
    fn answer(self: Box<Self>, result: Result<&[u8], i32>) {
        (self.0)(result);
    }
}

impl Blocks for Volumes {
    fn begin(&self, volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: assay_disk_server::Answer) {
        let kind = match op {
            Op::Read => IoKind::Read,
            Op::Write { bytes, durable } => IoKind::Write { bytes, durable },
            Op::Modify(change) => IoKind::Modify(change),
            Op::Flush => IoKind::Flush,
            Op::Discard => IoKind::Discard,
        };
        let answer = Box::new(Reply(answer));
        let io = Io { kind, volume, offset_bytes: at_bytes, length_bytes: bytes, came: Instant::now(), answer };
        self.0.put(Message::Io(io));
    }

    fn note(&self, line: String) {
        self.0.put(Message::Note(line));
    }
}
