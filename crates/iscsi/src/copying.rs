//! Copies that the array makes by itself: piece by piece, each read and then written.

use std::collections::VecDeque;

use assay_disk_server::{Done, End, MOVED_MOST_BYTES, Op, Part, begin_all};

use crate::{
    scsi::{
        Access, BLOCK_BYTES,
        copying::{self, CopyState, PIECE_BYTES, Segment},
        reservations::Nexus,
        sense::{COPY_ABORTED, Sense, UNREACHABLE_TARGET},
    },
    shared::Shared,
};

/// A copy under way.
pub(crate) struct Copying {
    /// Where the copy is remembered: the disk that was asked for it.
    disk: usize,
    identifier: Option<u8>,
    left: VecDeque<Piece>,
    /// The piece that has been read and is being written.
    written: Option<Piece>,
    segments: u16,
    bytes: u32,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    from: (usize, u64),
    to: (usize, u64),
    bytes: u64,
    ends_segment: bool,
}

/// Begins a copy from its list; an empty one is over at once.
///
/// # Errors
/// The list is wrong, blocks are beyond a disk, or another initiator has a disk reserved.
pub(crate) fn begin(
    shared: &Shared,
    disk: usize,
    nexus: &Nexus,
    list: &[u8],
    end: End,
) -> Result<Option<Copying>, Sense> {
    let find = |name: &[u8]| shared.units.iter().position(|unit| unit.is_named(name));
    let list = copying::read(list, find)?;
    for segment in &list.segments {
        check(shared, nexus, segment)?;
    }
    let left = list.segments.iter().flat_map(pieces).collect();
    let mut copying = Copying { disk, identifier: list.identifier, left, written: None, segments: 0, bytes: 0 };
    copying.note(shared, nexus, CopyState::UnderWay);
    if copying.left.is_empty() {
        copying.note(shared, nexus, CopyState::Done);
        end(Ok(Vec::new()));
        return Ok(None);
    }
    copying.read_next(shared, end);
    Ok(Some(copying))
}

fn check(shared: &Shared, nexus: &Nexus, segment: &Segment) -> Result<(), Sense> {
    let has = |disk: usize, first: u64| {
        first.checked_add(u64::from(segment.blocks)).is_some_and(|end| end <= shared.units[disk].blocks())
    };
    if !has(segment.from_disk, segment.from_block) || !has(segment.to_disk, segment.to_block) {
        return Err(COPY_ABORTED);
    }
    let may = |disk: usize, access: Access| shared.units[disk].is_open_to(nexus, access);
    if may(segment.from_disk, Access::Read) && may(segment.to_disk, Access::Write) {
        Ok(())
    } else {
        Err(UNREACHABLE_TARGET)
    }
}

fn pieces(segment: &Segment) -> impl Iterator<Item = Piece> + use<> {
    let (segment, bytes) = (*segment, u64::from(segment.blocks) * BLOCK_BYTES);
    (0..bytes).step_by(PIECE_BYTES as usize).map(move |at| {
        let piece = PIECE_BYTES.min(bytes - at);
        Piece {
            from: (segment.from_disk, segment.from_block * BLOCK_BYTES + at),
            to: (segment.to_disk, segment.to_block * BLOCK_BYTES + at),
            bytes: piece,
            ends_segment: at + piece == bytes,
        }
    })
}

impl Copying {
    fn read_next(&mut self, shared: &Shared, end: End) {
        let piece = self.left[0];
        let part = Part { at_bytes: piece.from.1, bytes: piece.bytes };
        let volume = shared.units[piece.from.0].disk.volume;
        begin_all(shared.blocks.as_ref(), volume, &[part], MOVED_MOST_BYTES, piece.bytes as usize, |_| Op::Read, end);
    }

    fn write(&mut self, shared: &Shared, piece: Piece, bytes: Vec<u8>, end: End) {
        let part = Part { at_bytes: piece.to.1, bytes: piece.bytes };
        let volume = shared.units[piece.to.0].disk.volume;
        let op = |range: std::ops::Range<usize>| Op::Write { bytes: bytes[range].to_vec(), durable: false };
        begin_all(shared.blocks.as_ref(), volume, &[part], MOVED_MOST_BYTES, 0, op, end);
    }

    fn note(&self, shared: &Shared, nexus: &Nexus, state: CopyState) {
        if let Some(identifier) = self.identifier {
            shared.units[self.disk].note_copy(nexus, identifier, state, self.segments, self.bytes);
        }
    }

    /// The copy ends before all is copied.
    pub(crate) fn give_up(&self, shared: &Shared, nexus: &Nexus) {
        self.note(shared, nexus, CopyState::Failed);
    }
}

/// Goes on with a copy after an I/O of it; gives the end of the command where there is no more to do.
pub(crate) fn go_on(
    shared: &Shared,
    nexus: &Nexus,
    copying: &mut Option<Copying>,
    done: Done,
    end: impl FnOnce() -> End,
) -> Option<Done> {
    let Some(copying) = copying else { return Some(done) };
    let bytes = match done {
        Ok(bytes) => bytes,
        Err(number) => {
            copying.give_up(shared, nexus);
            return Some(Err(number));
        }
    };
    match copying.written.take() {
        // It has been read.
        None => {
            let piece = copying.left.pop_front().expect("a piece was read");
            copying.written = Some(piece);
            copying.write(shared, piece, bytes, end());
            None
        }
        Some(piece) => {
            copying.bytes = copying.bytes.saturating_add(piece.bytes as u32);
            copying.segments += u16::from(piece.ends_segment);
            if copying.left.is_empty() {
                copying.note(shared, nexus, CopyState::Done);
                return Some(Ok(Vec::new()));
            }
            copying.note(shared, nexus, CopyState::UnderWay);
            copying.read_next(shared, end());
            None
        }
    }
}
