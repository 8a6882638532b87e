use std::ops::Range;

use assay_load::{Op, Request};

/// Which frames outstanding requests have.
///
/// Safe code is given the bytes of a frame only while the kernel has no use for it, so nothing here trusts the caller: a
/// tag or a frame in use twice would give back what another request still has.
pub(crate) struct Loans {
    frame_bytes: u32,
    lent: Box<[bool]>,
    by_tag: Box<[Option<Range<usize>>]>,
}

impl Loans {
    pub(crate) fn new(frames: u32, frame_bytes: u32, tags: u32) -> Self {
        let lent = vec![false; frames as usize].into_boxed_slice();
        Self { frame_bytes, lent, by_tag: vec![None; tags as usize].into_boxed_slice() }
    }

    /// Notes which frames an I/O has.
    ///
    /// # Panics
    /// Another outstanding I/O has one of them or has its tag, or there are no such frames or no such tag.
    pub(crate) fn lend(&mut self, request: &Request) {
        let tag = request.tag;
        let of_tag = &mut self.by_tag[tag as usize];
        assert!(of_tag.is_none(), "tag {tag} belongs to an outstanding request");
        let first = request.buffer as usize;
        let frames = match request.op {
            Op::Flush => 0..0,
            Op::Read | Op::Write => first..first + request.length_bytes.div_ceil(self.frame_bytes) as usize,
        };
        let lent = &mut self.lent[frames.clone()];
        assert!(!lent.contains(&true), "a frame of {frames:?} belongs to an outstanding request");
        lent.fill(true);
        *of_tag = Some(frames);
    }

    /// The I/O with this tag has completed.
    pub(crate) fn take_back(&mut self, tag: u32) {
        let frames = self.by_tag[tag as usize].take().expect("a request completes once");
        self.lent[frames].fill(false);
    }

    /// Whether an outstanding request has this frame.
    ///
    /// # Panics
    /// There is no such frame.
    pub(crate) fn is_lent(&self, frame: u32) -> bool {
        self.lent[frame as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffer: u32, length_bytes: u32, tag: u32) -> Request {
        Request { op: Op::Read, volume: 0, offset_bytes: 0, length_bytes, buffer, tag }
    }

    fn lent(loans: &Loans) -> Vec<u32> {
        (0..8).filter(|frame| loans.is_lent(*frame)).collect()
    }

    #[test]
    fn an_io_has_as_many_frames_as_its_length_needs() {
        let mut loans = Loans::new(8, 8192, 4);
        loans.lend(&read(0, 512, 0));
        loans.lend(&read(2, 8193, 1));
        loans.lend(&read(5, 3 * 8192, 3));
        assert_eq!(lent(&loans), [0, 2, 3, 5, 6, 7]);
        loans.take_back(1);
        assert_eq!(lent(&loans), [0, 5, 6, 7]);
        loans.lend(&Request { op: Op::Flush, ..read(0, 8192, 1) });
        assert_eq!(lent(&loans), [0, 5, 6, 7], "a flush has none");
        [0, 1, 3].into_iter().for_each(|tag| loans.take_back(tag));
        assert_eq!(lent(&loans), [0; 0]);
    }

    #[test]
    #[should_panic(expected = "tag 1 belongs to an outstanding request")]
    fn a_tag_is_in_use_once() {
        let mut loans = Loans::new(8, 8192, 4);
        loans.lend(&Request { op: Op::Flush, ..read(0, 0, 1) });
        loans.lend(&read(0, 8192, 1));
    }

    #[test]
    #[should_panic(expected = "a frame of 1..3 belongs to an outstanding request")]
    fn a_frame_is_in_use_once() {
        let mut loans = Loans::new(8, 8192, 4);
        loans.lend(&read(2, 8192, 0));
        loans.lend(&read(1, 2 * 8192, 1));
    }

    #[test]
    #[should_panic(expected = "range end index 9 out of range")]
    fn frames_beyond_the_last_cannot_be_lent() {
        Loans::new(8, 8192, 4).lend(&read(7, 2 * 8192, 0));
    }
}
