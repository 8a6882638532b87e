use std::{iter, ops::Range};

/// The memory of a queue, and which frames of it outstanding I/Os own.
pub(super) struct Frames {
    bytes: Vec<u8>,
    frame_bytes: usize,
    busy: Vec<bool>,
}

/// Where the bytes of one I/O are in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) first: u32,
    pub(super) length: usize,
    pub(super) scattered: bool,
}

/// Frame of piece `piece` out of `pieces`.
pub(super) fn frame_of_piece(scattered: bool, first: u32, piece: u32, pieces: u32) -> u32 {
    assert!(piece < pieces, "piece {piece} of {pieces}");
    if scattered { first + pieces - 1 - piece } else { first + piece }
}

impl Frames {
    pub(super) fn new(count: u32, frame_bytes: u32) -> Self {
        let frame_bytes = frame_bytes as usize;
        Self { bytes: vec![0; count as usize * frame_bytes], frame_bytes, busy: vec![false; count as usize] }
    }

    pub(super) fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// # Panics
    /// There is no such frame, or an outstanding I/O owns it.
    pub(super) fn frame(&mut self, frame: u32) -> &mut [u8] {
        assert!(!self.busy[frame as usize], "frame {frame} belongs to an outstanding I/O");
        let start = frame as usize * self.frame_bytes;
        &mut self.bytes[start..start + self.frame_bytes]
    }

    /// Gives the frames of an I/O to it.
    ///
    /// # Panics
    /// There are no such frames, or an outstanding I/O owns one.
    pub(super) fn acquire(&mut self, span: Span) {
        for frame in self.owned(span) {
            assert!(!self.busy[frame], "frame {frame} belongs to an outstanding I/O");
            self.busy[frame] = true;
        }
    }

    pub(super) fn release(&mut self, span: Span) {
        for frame in self.owned(span) {
            assert!(self.busy[frame]);
            self.busy[frame] = false;
        }
    }

    fn owned(&self, span: Span) -> Range<usize> {
        let first = span.first as usize;
        first..first + span.length.div_ceil(self.frame_bytes)
    }

    /// Index in memory of byte `position` of an I/O.
    fn index(&self, span: Span, position: usize) -> usize {
        let pieces = span.length.div_ceil(self.frame_bytes) as u32;
        let piece = (position / self.frame_bytes) as u32;
        let frame = frame_of_piece(span.scattered, span.first, piece, pieces);
        frame as usize * self.frame_bytes + position % self.frame_bytes
    }

    /// Part of an I/O that lies in one frame.
    pub(super) fn part(&self, span: Span, part: Range<usize>) -> &[u8] {
        let start = self.index(span, part.start);
        &self.bytes[start..start + part.len()]
    }

    pub(super) fn part_mut(&mut self, span: Span, part: Range<usize>) -> &mut [u8] {
        let start = self.index(span, part.start);
        &mut self.bytes[start..start + part.len()]
    }

    /// Cuts part of an I/O where its memory is in pieces.
    pub(super) fn pieces(&self, span: Span, part: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let frame_bytes = self.frame_bytes;
        let mut start = part.start;
        iter::from_fn(move || {
            let frame_end = if span.scattered { (start / frame_bytes + 1) * frame_bytes } else { part.end };
            let piece = start..frame_end.min(part.end);
            start = piece.end;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { first: 1, length: 2500, scattered: true };

    #[test]
    fn scattered_pieces_descend() {
        let mut frames = Frames::new(4, 1024);
        for frame in 0..4 {
            frames.frame(frame).fill(frame as u8);
        }
        let pieces: Vec<_> = frames.pieces(SPAN, 512..2500).collect();
        assert_eq!(pieces, [512..1024, 1024..2048, 2048..2500]);
        let owners: Vec<u8> = pieces.into_iter().map(|piece| frames.part(SPAN, piece)[0]).collect();
        assert_eq!(owners, [3, 2, 1]);
        let whole = Span { scattered: false, ..SPAN };
        assert!(frames.pieces(whole, 512..2500).eq(std::iter::once(512..2500)));
        assert_eq!(frames.part(whole, 0..2500)[2047], 2);
    }

    #[test]
    #[should_panic(expected = "frame 3 belongs to an outstanding I/O")]
    fn a_frame_belongs_to_one() {
        let mut frames = Frames::new(8, 1024);
        frames.acquire(SPAN);
        frames.acquire(Span { first: 3, ..SPAN });
    }

    #[test]
    fn a_released_frame_is_free() {
        let mut frames = Frames::new(4, 1024);
        frames.acquire(SPAN);
        frames.release(SPAN);
        frames.frame(1).fill(1);
        frames.acquire(SPAN);
    }
}
