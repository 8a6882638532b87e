//! A client that is served: requests come, I/Os begin, replies leave. No socket is touched here.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
};

use assay_disk_server::{Budget, Done, MOVED_MOST_BYTES, Op, Part, Taken, begin_all, begin_write};
use tokio::sync::mpsc::UnboundedSender;

use crate::{
    shared::{Exported, Shared},
    wire::{PAYLOAD_MOST_BYTES, Request, command, error, flag},
};

/// Requests of one connection under way; more wait in the socket.
const REQUESTS_MOST: usize = 256;
/// Memory that requests of one connection hold; more wait in the socket.
const SESSION_MOST_BYTES: u64 = 64 << 20;
/// Bytes that a request makes zero with the I/Os that are under way together.
const DISCARDED_MOST_BYTES: u32 = 32 << 20;
const ZEROED_MOST_BYTES: u32 = 4 << 20;

/// A reply that leaves: its header and the bytes of a read, with the memory that they hold until they have left.
pub(crate) struct Reply {
    pub(crate) header: Vec<u8>,
    pub(crate) data: Vec<u8>,
    _taken: Option<Taken>,
}

/// A request under way.
struct Active {
    request: Request,
    taken: Option<Taken>,
    /// Bytes that have not been made zero.
    left_bytes: u32,
    /// A flush ends it.
    flushes: bool,
}

/// A client that is served.
pub(crate) struct Session {
    shared: Arc<Shared>,
    export: usize,
    is_structured: bool,
    /// By a number of their own: a client may give the same cookie twice.
    active: HashMap<u64, Active>,
    next: u64,
    pub(crate) budget: Arc<Budget>,
    pub(crate) out: VecDeque<Reply>,
    /// The client goes once all that is under way has ended.
    pub(crate) is_over: bool,
    ends: UnboundedSender<(u64, Done)>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.exported().users.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    pub(crate) fn new(
        shared: Arc<Shared>,
        export: usize,
        is_structured: bool,
        ends: UnboundedSender<(u64, Done)>,
    ) -> Self {
        shared.exports[export].users.fetch_add(1, Ordering::Relaxed);
        Self {
            export,
            is_structured,
            active: HashMap::new(),
            next: 0,
            budget: Budget::part(&shared.budget, SESSION_MOST_BYTES),
            shared,
            out: VecDeque::new(),
            is_over: false,
            ends,
        }
    }

    fn exported(&self) -> &Exported {
        &self.shared.exports[self.export]
    }

    /// Whether another request may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.active.len() + self.out.len() < REQUESTS_MOST
    }

    /// Whether all requests have ended and their replies have left.
    pub(crate) fn is_done(&self) -> bool {
        self.active.is_empty() && self.out.is_empty()
    }

    /// Memory that a request needs.
    pub(crate) fn needed_bytes(&self, request: &Request) -> u64 {
        let needed = match request.command {
            command::READ if self.refused(request).is_none() => request.bytes,
            command::WRITE => request.bytes,
            command::WRITE_ZEROES if request.flags & flag::NO_HOLE != 0 => request.bytes.min(ZEROED_MOST_BYTES),
            _ => 0,
        };
        u64::from(needed)
    }

    /// Error of a request that is not allowed.
    fn refused(&self, request: &Request) -> Option<u32> {
        let known = match request.command {
            command::READ if self.is_structured => flag::DURABLE | flag::WHOLE,
            command::READ | command::WRITE | command::FLUSH | command::TRIM => flag::DURABLE,
            command::WRITE_ZEROES => flag::DURABLE | flag::NO_HOLE,
            _ => return Some(error::INVALID),
        };
        if request.flags & !known != 0 {
            return Some(error::INVALID);
        }
        if request.command == command::FLUSH {
            return (request.at_bytes != 0 || request.bytes != 0).then_some(error::INVALID);
        }
        let bytes = self.exported().bytes.load(Ordering::Relaxed);
        let fits = request.at_bytes.checked_add(u64::from(request.bytes)).is_some_and(|end| end <= bytes);
        match request.command {
            command::WRITE | command::WRITE_ZEROES if !fits => Some(error::NO_SPACE),
            _ if !fits => Some(error::INVALID),
            command::READ if request.bytes > PAYLOAD_MOST_BYTES => Some(error::INVALID),
            _ => None,
        }
    }

    /// Begins a request, whose data have come.
    pub(crate) fn begin(&mut self, request: Request, data: Vec<u8>, taken: Taken) {
        let refused = self.refused(&request);
        if refused.is_some() || (request.bytes == 0 && request.command != command::FLUSH) {
            return self.reply(&request, refused.map_or(Ok(Vec::new()), Err), None);
        }
        let number = self.next;
        self.next += 1;
        let is_durable = request.flags & flag::DURABLE != 0;
        let discards = request.command == command::TRIM
            || (request.command == command::WRITE_ZEROES && request.flags & flag::NO_HOLE == 0);
        let zeroes = discards || request.command == command::WRITE_ZEROES;
        let left_bytes = if zeroes { request.bytes } else { 0 };
        let active = Active { request, taken: Some(taken), left_bytes, flushes: discards && is_durable };
        self.active.insert(number, active);
        let part = Part { at_bytes: request.at_bytes, bytes: u64::from(request.bytes) };
        let end = self.end(number);
        let (blocks, volume) = (self.shared.blocks.as_ref(), self.exported().volume);
        match request.command {
            command::READ => {
                begin_all(blocks, volume, &[part], MOVED_MOST_BYTES, part.bytes as usize, |_| Op::Read, end);
            }
            command::WRITE => begin_write(blocks, volume, part, data, is_durable, end),
            command::FLUSH => begin_flush(&self.shared, volume, end),
            _ => self.zero(number),
        }
    }

    /// Takes the end of an I/O to this session.
    fn end(&self, number: u64) -> impl FnOnce(Done) + Send + 'static {
        let ends = self.ends.clone();
        move |done| {
            let _ = ends.send((number, done));
        }
    }

    /// Makes the next bytes of a request zero: unmapped, or written where the client wants no holes.
    fn zero(&mut self, number: u64) {
        let end = self.end(number);
        let volume = self.exported().volume;
        let Some(active) = self.active.get_mut(&number) else { return };
        let Request { at_bytes, bytes, flags, .. } = active.request;
        let writes = active.request.command == command::WRITE_ZEROES && flags & flag::NO_HOLE != 0;
        let count = active.left_bytes.min(if writes { ZEROED_MOST_BYTES } else { DISCARDED_MOST_BYTES });
        let part = Part { at_bytes: at_bytes + u64::from(bytes - active.left_bytes), bytes: u64::from(count) };
        active.left_bytes -= count;
        let durable = flags & flag::DURABLE != 0;
        let op = |range: std::ops::Range<usize>| {
            if writes { Op::Write { bytes: vec![0; range.len()], durable } } else { Op::Discard }
        };
        begin_all(self.shared.blocks.as_ref(), volume, &[part], MOVED_MOST_BYTES, 0, op, end);
    }

    /// The I/Os of a request have ended.
    pub(crate) fn ended(&mut self, number: u64, done: Done) {
        let Some(active) = self.active.get_mut(&number) else { return };
        if done.is_ok() && active.left_bytes > 0 {
            return self.zero(number);
        }
        if done.is_ok() && std::mem::take(&mut active.flushes) {
            return begin_flush(&self.shared, self.exported().volume, self.end(number));
        }
        let Some(active) = self.active.remove(&number) else { return };
        self.reply(&active.request, done.map_err(error::of_store), active.taken);
    }

    fn reply(&mut self, request: &Request, done: Result<Vec<u8>, u32>, taken: Option<Taken>) {
        let data = if request.command == command::READ { done.as_ref().map_or(0, Vec::len) } else { 0 };
        let header = request.replied(done.as_ref().err().copied(), data, self.is_structured);
        let mut data = done.unwrap_or_default();
        if request.command != command::READ {
            data.clear();
        }
        self.out.push_back(Reply { header, data, _taken: taken });
    }
}

fn begin_flush(shared: &Shared, volume: u16, end: impl FnOnce(Done) + Send + 'static) {
    let answer = Box::new(move |result: Result<&[u8], i32>| end(result.map(<[u8]>::to_vec)));
    shared.blocks.begin(volume, Op::Flush, 0, 0, answer);
}
