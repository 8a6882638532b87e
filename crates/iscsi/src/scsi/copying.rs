//! Lists of EXTENDED COPY with identifiers of one byte, and what RECEIVE COPY RESULTS says of them (SPC-4, 6.4.3 and 6.18).

use std::collections::VecDeque;

use crate::scsi::{
    BLOCK_BYTES, be32, be64,
    reservations::Nexus,
    sense::{
        INVALID_PARAMETER, LIST_LENGTH, Sense, TOO_MANY_SEGMENTS, TOO_MANY_TARGETS, UNKNOWN_SEGMENT, UNKNOWN_TARGET,
        UNREACHABLE_TARGET,
    },
};

const TARGETS_MOST: usize = 4;
const SEGMENTS_MOST: usize = 8;
const DESCRIPTORS_MOST_BYTES: usize = 1024;
const HEAD_BYTES: usize = 16;
/// Bytes of a list that an initiator may send: one that is a little too long is told why.
pub(crate) const LIST_MOST_BYTES: usize = HEAD_BYTES + 2 * DESCRIPTORS_MOST_BYTES;
/// Descriptor of a disk by one of its names, and of blocks that are copied to blocks.
const NAMED: u8 = 0xe4;
const TARGET_BYTES: usize = 32;
const BLOCKS_TO_BLOCKS: u8 = 0x02;
const SEGMENT_BYTES: usize = 28;
/// Bytes of a piece, which a copy holds in memory.
pub(crate) const PIECE_BYTES: u64 = 1 << 20;
/// Blocks that one segment copies.
const SEGMENT_MOST_BLOCKS: u32 = u16::MAX as u32;
/// Copies of all initiators whose ends a disk remembers.
const KEPT_MOST: usize = 64;

/// Blocks that are copied from one disk to another, or within one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) from_disk: usize,
    pub(crate) to_disk: usize,
    pub(crate) from_block: u64,
    pub(crate) to_block: u64,
    pub(crate) blocks: u32,
}

/// A copy that an initiator asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyList {
    /// By which it asks for the state afterwards.
    pub(crate) identifier: Option<u8>,
    pub(crate) segments: Vec<Segment>,
}

/// Reads a list. `find` gives the disk that has a name, as descriptors of page 83h write names.
///
/// # Errors
/// The list is too long or cut off, has descriptors that are not known, or names a disk that there is not.
pub(crate) fn read(list: &[u8], find: impl Fn(&[u8]) -> Option<usize>) -> Result<CopyList, Sense> {
    if list.is_empty() {
        return Ok(CopyList { identifier: None, segments: Vec::new() });
    }
    if list.len() < HEAD_BYTES {
        return Err(LIST_LENGTH);
    }
    let targets_bytes = usize::from(u16::from_be_bytes([list[2], list[3]]));
    let (segments_bytes, inline_bytes) = (be32(list, 8) as usize, be32(list, 12));
    let described_bytes = targets_bytes.saturating_add(segments_bytes);
    if described_bytes > DESCRIPTORS_MOST_BYTES || HEAD_BYTES + described_bytes > list.len() {
        return Err(LIST_LENGTH);
    }
    if inline_bytes > 0 {
        return Err(INVALID_PARAMETER);
    }
    let (targets, segments) = list[HEAD_BYTES..HEAD_BYTES + described_bytes].split_at(targets_bytes);
    let disks = disks(targets, find)?;
    let segments = segments_of(segments, &disks)?;
    // LIST ID USAGE 11b: there is no identifier.
    let identifier = (list[1] >> 3 & 3 != 3).then_some(list[0]);
    Ok(CopyList { identifier, segments })
}

fn disks(targets: &[u8], find: impl Fn(&[u8]) -> Option<usize>) -> Result<Vec<Option<usize>>, Sense> {
    let found = targets.chunks(TARGET_BYTES).enumerate().map(|(number, target)| {
        if target[0] != NAMED {
            return Err(UNKNOWN_TARGET);
        }
        if target.len() < TARGET_BYTES {
            return Err(LIST_LENGTH);
        }
        if number >= TARGETS_MOST {
            return Err(TOO_MANY_TARGETS);
        }
        let block_bytes = be32(target, 28) & 0x00ff_ffff;
        let is_disk = target[1] & 0x1f == 0 && matches!(u64::from(block_bytes), 0 | BLOCK_BYTES);
        let name_bytes = usize::from(target[7]).min(20);
        Ok(if is_disk { find(&target[4..8 + name_bytes]) } else { None })
    });
    found.collect()
}

fn segments_of(segments: &[u8], disks: &[Option<usize>]) -> Result<Vec<Segment>, Sense> {
    let read = |(number, segment): (usize, &[u8])| {
        if segment[0] != BLOCKS_TO_BLOCKS {
            return Err(UNKNOWN_SEGMENT);
        }
        if segment.len() < SEGMENT_BYTES {
            return Err(LIST_LENGTH);
        }
        if number >= SEGMENTS_MOST {
            return Err(TOO_MANY_SEGMENTS);
        }
        let be16 = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
        if usize::from(be16(2)) != SEGMENT_BYTES - 4 {
            return Err(INVALID_PARAMETER);
        }
        let disk = |at: usize| disks.get(usize::from(be16(at))).copied().flatten().ok_or(UNREACHABLE_TARGET);
        Ok(Segment {
            from_disk: disk(4)?,
            to_disk: disk(6)?,
            from_block: be64(segment, 12),
            to_block: be64(segment, 20),
            blocks: u32::from(be16(10)),
        })
    };
    segments.chunks(SEGMENT_BYTES).enumerate().map(read).collect()
}

/// State of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyState {
    UnderWay,
    Done,
    Failed,
}

/// A copy, as the initiator that had it made may ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    nexus: Nexus,
    identifier: u8,
    state: CopyState,
    segments: u16,
    bytes: u32,
}

/// Copies that a disk was asked for; the oldest are dropped.
#[derive(Debug, Default)]
pub(crate) struct Copies(VecDeque<Kept>);

impl Copies {
    /// Notes how far a copy is.
    pub(crate) fn note(&mut self, nexus: &Nexus, identifier: u8, state: CopyState, segments: u16, bytes: u32) {
        self.0.retain(|kept| (&kept.nexus, kept.identifier) != (nexus, identifier));
        if self.0.len() >= KEPT_MOST {
            self.0.pop_front();
        }
        self.0.push_back(Kept { nexus: nexus.clone(), identifier, state, segments, bytes });
    }

    pub(crate) fn forget(&mut self, nexus: &Nexus) {
        self.0.retain(|kept| &kept.nexus != nexus);
    }

    /// COPY STATUS; None if the initiator had no such copy made.
    pub(crate) fn status(&self, nexus: &Nexus, identifier: u8) -> Option<Vec<u8>> {
        let kept = self.0.iter().find(|kept| (&kept.nexus, kept.identifier) == (nexus, identifier))?;
        let state = match kept.state {
            CopyState::UnderWay => 0,
            CopyState::Done => 1,
            CopyState::Failed => 2,
        };
        let mut bytes = vec![0, 0, 0, 8, state];
        bytes.extend(kept.segments.to_be_bytes());
        // The count is in bytes.
        bytes.push(0);
        bytes.extend(kept.bytes.to_be_bytes());
        Some(bytes)
    }
}

/// OPERATING PARAMETERS.
pub(crate) fn parameters() -> Vec<u8> {
    let mut bytes = vec![0; 46];
    bytes[..4].copy_from_slice(&42_u32.to_be_bytes());
    // An initiator may leave identifiers out.
    bytes[4] = 1;
    bytes[8..10].copy_from_slice(&(TARGETS_MOST as u16).to_be_bytes());
    bytes[10..12].copy_from_slice(&(SEGMENTS_MOST as u16).to_be_bytes());
    bytes[12..16].copy_from_slice(&(DESCRIPTORS_MOST_BYTES as u32).to_be_bytes());
    bytes[16..20].copy_from_slice(&(SEGMENT_MOST_BLOCKS * BLOCK_BYTES as u32).to_be_bytes());
    bytes[34..36].copy_from_slice(&(KEPT_MOST as u16).to_be_bytes());
    bytes[36] = KEPT_MOST as u8;
    bytes[37] = BLOCK_BYTES.trailing_zeros() as u8;
    (bytes[43], bytes[44], bytes[45]) = (2, BLOCKS_TO_BLOCKS, NAMED);
    bytes
}

/// The body of page 8Fh: the commands and their service actions (SPC-4, 7.8.17.4).
pub(crate) fn page() -> Vec<u8> {
    vec![0, 1, 0, 8, 7, 0x83, 1, 0, 0x84, 2, 0, 3]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(targets: usize, segments: usize) -> Vec<u8> {
        let mut bytes = vec![7, 0, 0, (targets * TARGET_BYTES) as u8, 0, 0, 0, 0, 0, 0];
        bytes.extend(((segments * SEGMENT_BYTES) as u16).to_be_bytes());
        bytes.extend([0; 4]);
        for _ in 0..targets {
            let mut target = [0; TARGET_BYTES];
            (target[0], target[4], target[5], target[7]) = (NAMED, 1, 3, 8);
            target[30] = 2;
            bytes.extend(target);
        }
        for _ in 0..segments {
            let mut segment = [0; SEGMENT_BYTES];
            (segment[0], segment[3], segment[11], segment[19], segment[27]) = (BLOCKS_TO_BLOCKS, 24, 8, 1, 100);
            bytes.extend(segment);
        }
        bytes
    }

    fn read_of(bytes: &[u8]) -> Result<CopyList, Sense> {
        read(bytes, |name| (name == [1, 3, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]).then_some(3))
    }

    #[test]
    fn a_list_names_blocks_of_disks() {
        let segment = Segment { from_disk: 3, to_disk: 3, from_block: 1, to_block: 100, blocks: 8 };
        assert_eq!(read_of(&list(1, 2)), Ok(CopyList { identifier: Some(7), segments: vec![segment; 2] }));
        let mut nameless = list(1, 1);
        nameless[1] = 3 << 3;
        assert_eq!(read_of(&nameless).unwrap().identifier, None);
        assert_eq!(read_of(&[]), Ok(CopyList { identifier: None, segments: Vec::new() }));
    }

    #[test]
    fn what_a_list_may_not_have_is_refused() {
        let refused = |bytes: Vec<u8>| read_of(&bytes).unwrap_err();
        assert_eq!(refused(list(TARGETS_MOST + 1, 1)), TOO_MANY_TARGETS);
        assert_eq!(refused(list(1, SEGMENTS_MOST + 1)), TOO_MANY_SEGMENTS);
        assert_eq!(refused(list(1, 40)), LIST_LENGTH);
        assert_eq!(refused(list(1, 1)[..60].to_vec()), LIST_LENGTH);
        let changed = |at: usize, byte: u8| {
            let mut bytes = list(1, 1);
            bytes[at] = byte;
            bytes
        };
        assert_eq!(refused(changed(HEAD_BYTES, 0xe0)), UNKNOWN_TARGET);
        assert_eq!(refused(changed(HEAD_BYTES + TARGET_BYTES, 3)), UNKNOWN_SEGMENT);
        // Another name, another block size, another index.
        for at in [HEAD_BYTES + 9, HEAD_BYTES + 29, HEAD_BYTES + TARGET_BYTES + 7] {
            assert_eq!(refused(changed(at, 1)), UNREACHABLE_TARGET);
        }
    }

    #[test]
    fn a_copy_is_remembered_for_the_initiator_that_asked_for_it() {
        let nexus = |name: &str| Nexus { initiator: name.into(), session: [0; 6] };
        let mut copies = Copies::default();
        (0..100).for_each(|number| copies.note(&nexus("one"), number, CopyState::Done, 1, 512));
        assert_eq!(copies.0.len(), KEPT_MOST);
        assert_eq!(copies.status(&nexus("one"), 99), Some(vec![0, 0, 0, 8, 1, 0, 1, 0, 0, 0, 2, 0]));
        assert_eq!((copies.status(&nexus("one"), 1), copies.status(&nexus("other"), 99)), (None, None));
        copies.forget(&nexus("one"));
        assert_eq!(copies.status(&nexus("one"), 99), None);
    }

    proptest! {
        #[test]
        fn no_list_of_any_bytes_ends_the_array(bytes in prop::collection::vec(any::<u8>(), 0..200), first: u8) {
            let _ = read_of(&bytes);
            let mut similar = list(2, 2);
            similar.iter_mut().zip(&bytes).for_each(|(one, other)| if *other < first { *one = *other });
            let _ = read_of(&similar);
        }
    }
}
