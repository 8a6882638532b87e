//! The SCSI commands of a disk (SPC-4, SBC-3), decoded into tasks before any block is moved.

pub(crate) mod copying;
mod inquiry;
pub(crate) mod reservations;
pub(crate) mod sense;
mod table;
pub(crate) mod unit;

use assay_disk_server::Part;

pub(crate) use crate::scsi::reservations::Access;
use crate::scsi::sense::{INVALID_FIELD, INVALID_PARAMETER, LIST_LENGTH, OUT_OF_RANGE, Sense};

pub(crate) const BLOCK_BYTES: u64 = 512;
/// Blocks that one command reads or writes: 8 MiB.
pub(crate) const MOVED_MOST_BLOCKS: u32 = 16 << 10;
pub(crate) const COMPARED_MOST_BLOCKS: u32 = 128;
/// Blocks that one ORWRITE changes: 1 MiB, which is one I/O.
const CHANGED_MOST_BLOCKS: u32 = 2 << 10;
/// Blocks that one WRITE SAME writes: 8 MiB.
pub(crate) const SAME_MOST_BLOCKS: u32 = 16 << 10;
/// Blocks that one UNMAP gives back: 512 MiB.
pub(crate) const UNMAPPED_MOST_BLOCKS: u32 = 1 << 20;
pub(crate) const UNMAPPED_MOST_PARTS: u32 = 256;
const LIST_MOST_BYTES: usize = 8 + 16 * UNMAPPED_MOST_PARTS as usize;

/// Statuses of commands (SAM-5, 5.3).
pub(crate) mod status {
    pub(crate) const GOOD: u8 = 0x00;
    pub(crate) const CHECK_CONDITION: u8 = 0x02;
    pub(crate) const CONFLICT: u8 = 0x18;
    pub(crate) const TASK_SET_FULL: u8 = 0x28;
}

/// Task of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    Done,
    Answer(Vec<u8>),
    Failed(Sense),
    Conflict,
    Read(Part),
    Write {
        part: Part,
        durable: bool,
    },
    /// Compares data with blocks; all blocks with the same if it is repeated.
    Compare {
        part: Part,
        is_repeated: bool,
    },
    /// Writes the second half of the data where blocks are as the first.
    CompareWrite {
        part: Part,
    },
    /// Sets the bits of blocks that are set in the data.
    Or {
        part: Part,
    },
    /// Writes one block over and over, or unmaps.
    Same {
        part: Part,
        unmaps: bool,
        has_data: bool,
    },
    Unmap {
        list_bytes: usize,
    },
    Reserve {
        list_bytes: usize,
    },
    /// Mode pages that come with the command; none can be changed.
    Select {
        list_bytes: usize,
    },
    /// Copies blocks as a list says.
    Copy {
        list_bytes: usize,
    },
    /// Brings acknowledged bytes to stable storage; an initiator may not wait for it.
    Flush {
        waits: bool,
    },
}

impl Task {
    /// Bytes that the initiator must send.
    pub(crate) fn out_bytes(&self) -> usize {
        match self {
            Self::Write { part, .. } | Self::Compare { part, is_repeated: false } => part.bytes as usize,
            Self::Or { part } => part.bytes as usize,
            Self::CompareWrite { part } => 2 * part.bytes as usize,
            Self::Compare { is_repeated: true, .. } | Self::Same { has_data: true, .. } => BLOCK_BYTES as usize,
            Self::Unmap { list_bytes } | Self::Reserve { list_bytes } => *list_bytes,
            Self::Select { list_bytes } | Self::Copy { list_bytes } => *list_bytes,
            _ => 0,
        }
    }
}

fn be16(cdb: &[u8; 16], at: usize) -> usize {
    usize::from(u16::from_be_bytes([cdb[at], cdb[at + 1]]))
}

fn be32(cdb: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(cdb[at..at + 4].try_into().expect("four bytes"))
}

fn be64(cdb: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(cdb[at..at + 8].try_into().expect("eight bytes"))
}

/// First block and count of a command that names blocks.
fn blocks_of(cdb: &[u8; 16]) -> (u64, u32) {
    match cdb[0] >> 5 {
        0 => {
            let first = u64::from(cdb[1] & 0x1f) << 16 | u64::from(cdb[2]) << 8 | u64::from(cdb[3]);
            (first, if cdb[4] == 0 { 256 } else { u32::from(cdb[4]) })
        }
        4 if cdb[0] == 0x89 => (be64(cdb, 2), u32::from(cdb[13])),
        4 => (be64(cdb, 2), be32(cdb, 10)),
        5 => (u64::from(be32(cdb, 2)), be32(cdb, 6)),
        _ => (u64::from(be32(cdb, 2)), be16(cdb, 7) as u32),
    }
}

/// The part that a command names, if the disk has it and one command may ask for so much.
fn part_of(cdb: &[u8; 16], blocks: u64, most: u32) -> Result<Part, Sense> {
    let (first, count) = blocks_of(cdb);
    if first.checked_add(u64::from(count)).is_none_or(|end| end > blocks) {
        return Err(OUT_OF_RANGE);
    }
    if count > most {
        return Err(INVALID_FIELD);
    }
    Ok(Part { at_bytes: first * BLOCK_BYTES, bytes: u64::from(count) * BLOCK_BYTES })
}

/// Task of a command that moves, compares or gives back blocks; None if it is no such command.
fn block_task(cdb: &[u8; 16], blocks: u64) -> Option<Result<Task, Sense>> {
    let is_protected = cdb[0] >> 5 != 0 && cdb[1] & 0xe0 != 0;
    let task = match cdb[0] {
        0x08 | 0x28 | 0x88 | 0xa8 => part_of(cdb, blocks, MOVED_MOST_BLOCKS).map(Task::Read),
        0x0a | 0x2a | 0x8a | 0xaa => {
            let durable = cdb[0] != 0x0a && cdb[1] & 0x08 != 0;
            part_of(cdb, blocks, MOVED_MOST_BLOCKS).map(|part| Task::Write { part, durable })
        }
        // WRITE AND VERIFY: a durable write; what cannot be read back is found when it is.
        0x2e | 0x8e | 0xae if cdb[1] & 0x06 <= 2 => {
            part_of(cdb, blocks, MOVED_MOST_BLOCKS).map(|part| Task::Write { part, durable: true })
        }
        0x2f | 0x8f | 0xaf => part_of(cdb, blocks, MOVED_MOST_BLOCKS).and_then(|part| match cdb[1] >> 1 & 3 {
            0 => Ok(Task::Done),
            1 => Ok(Task::Compare { part, is_repeated: false }),
            3 if part.bytes > 0 => Ok(Task::Compare { part, is_repeated: true }),
            3 => Ok(Task::Done),
            _ => Err(INVALID_FIELD),
        }),
        0x34 | 0x90 => part_of(cdb, blocks, u32::MAX).map(|_| Task::Done),
        0x35 | 0x91 => part_of(cdb, blocks, u32::MAX).map(|_| Task::Flush { waits: cdb[1] & 0x02 == 0 }),
        0x41 | 0x93 => same(cdb, blocks),
        0x89 => part_of(cdb, blocks, COMPARED_MOST_BLOCKS).map(|part| Task::CompareWrite { part }),
        0x8b => part_of(cdb, blocks, CHANGED_MOST_BLOCKS).map(|part| Task::Or { part }),
        0x2e | 0x8e | 0xae => Err(INVALID_FIELD),
        _ => return None,
    };
    Some(if is_protected && !matches!(cdb[0], 0x34 | 0x90 | 0x35 | 0x91) { Err(INVALID_FIELD) } else { task })
}

fn same(cdb: &[u8; 16], blocks: u64) -> Result<Task, Sense> {
    let (unmaps, is_anchored, has_data) = (cdb[1] & 0x08 != 0, cdb[1] & 0x10 != 0, cdb[0] == 0x41 || cdb[1] & 1 == 0);
    let mut part = part_of(cdb, blocks, SAME_MOST_BLOCKS)?;
    if part.bytes == 0 {
        // No blocks mean all to the end, if one command may write so many.
        part.bytes = blocks * BLOCK_BYTES - part.at_bytes;
    }
    // LBDATA and PBDATA are of old.
    if part.bytes > u64::from(SAME_MOST_BLOCKS) * BLOCK_BYTES || is_anchored || cdb[1] & 0x06 != 0 {
        return Err(INVALID_FIELD);
    }
    Ok(Task::Same { part, unmaps, has_data })
}

/// The parts that the list of an UNMAP names (SBC-3, 5.28).
pub(crate) fn unmapped(list: &[u8], blocks: u64) -> Result<Vec<Part>, Sense> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    if list.len() < 8 {
        return Err(LIST_LENGTH);
    }
    let described = usize::from(u16::from_be_bytes([list[2], list[3]])).min(list.len() - 8);
    let parts = list[8..8 + described].chunks_exact(16);
    if parts.len() > UNMAPPED_MOST_PARTS as usize {
        return Err(INVALID_PARAMETER);
    }
    let mut found = Vec::with_capacity(parts.len());
    let mut total = 0;
    for part in parts {
        let (first, count) = (be64(part, 0), be32(part, 8));
        if first.checked_add(u64::from(count)).is_none_or(|end| end > blocks) {
            return Err(OUT_OF_RANGE);
        }
        total += u64::from(count);
        if count > 0 {
            found.push(Part { at_bytes: first * BLOCK_BYTES, bytes: u64::from(count) * BLOCK_BYTES });
        }
    }
    if total > u64::from(UNMAPPED_MOST_BLOCKS) { Err(INVALID_PARAMETER) } else { Ok(found) }
}

/// Access of a command by its code (SPC-4, table 49; SBC-3, table 13).
fn access_of(code: u8) -> Access {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 | 0x2f | 0x8f | 0xaf | 0x34 | 0x90 => Access::Read,
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae | 0x41 | 0x93 | 0x42 | 0x89 | 0x8b | 0x15 | 0x55 | 0x35
        | 0x91 | 0x83 | 0x84 => Access::Write,
        _ => Access::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCKS: u64 = 2048;

    fn ten(code: u8, first: u32, count: u16) -> [u8; 16] {
        let mut cdb = [0; 16];
        cdb[0] = code;
        cdb[2..6].copy_from_slice(&first.to_be_bytes());
        cdb[7..9].copy_from_slice(&count.to_be_bytes());
        cdb
    }

    #[test]
    fn reads_and_writes_name_parts_of_the_disk() {
        let part = Part { at_bytes: 512, bytes: 1024 };
        assert_eq!(block_task(&ten(0x28, 1, 2), BLOCKS), Some(Ok(Task::Read(part))));
        let mut fua = ten(0x2a, 1, 2);
        fua[1] = 0x08;
        assert_eq!(block_task(&fua, BLOCKS), Some(Ok(Task::Write { part, durable: true })));
        assert_eq!(block_task(&ten(0x28, 2047, 2), BLOCKS), Some(Err(OUT_OF_RANGE)));
        assert_eq!(block_task(&ten(0x28, 2048, 0), BLOCKS).map(|task| task.is_ok()), Some(true));
        assert_eq!(block_task(&ten(0x28, 2049, 0), BLOCKS), Some(Err(OUT_OF_RANGE)));
    }

    #[test]
    fn a_read_of_six_bytes_with_no_count_means_256_blocks() {
        let mut cdb = [0; 16];
        cdb[0] = 0x08;
        let part = Part { at_bytes: 0, bytes: 256 * 512 };
        assert_eq!(block_task(&cdb, BLOCKS), Some(Ok(Task::Read(part))));
    }

    #[test]
    fn an_unmap_lists_its_parts() {
        let mut list = vec![0, 38, 0, 32, 0, 0, 0, 0];
        for (first, count) in [(3u64, 5u32), (100, 0)] {
            list.extend(first.to_be_bytes());
            list.extend(count.to_be_bytes());
            list.extend([0; 4]);
        }
        assert_eq!(unmapped(&list, BLOCKS), Ok(vec![Part { at_bytes: 1536, bytes: 2560 }]));
        assert_eq!(unmapped(&list, 4), Err(OUT_OF_RANGE));
        assert_eq!(unmapped(&list[..7], BLOCKS), Err(LIST_LENGTH));
    }

    proptest! {
        #[test]
        fn no_command_reaches_beyond_the_disk(cdb: [u8; 16], blocks in 1u64..1 << 40, code in 0usize..26) {
            let codes = [0x08, 0x28, 0x88, 0xa8, 0x0a, 0x2a, 0x8a, 0xaa, 0x2e, 0x8e, 0xae, 0x2f, 0x8f, 0xaf, 0x41, 0x93, 0x89];
            let mut cdb = cdb;
            cdb[0] = codes.get(code).copied().unwrap_or(cdb[0]);
            if let Some(Ok(task)) = block_task(&cdb, blocks) {
                let part = match task {
                    Task::Read(part) | Task::Write { part, .. } | Task::Compare { part, .. } => part,
                    Task::CompareWrite { part } | Task::Or { part } | Task::Same { part, .. } => part,
                    _ => return Ok(()),
                };
                prop_assert!(part.at_bytes + part.bytes <= blocks * BLOCK_BYTES);
                prop_assert!(part.bytes <= u64::from(SAME_MOST_BLOCKS) * BLOCK_BYTES);
            }
        }

        #[test]
        fn no_list_of_parts_reaches_beyond_the_disk(list: Vec<u8>, blocks in 1u64..1 << 54) {
            if let Ok(parts) = unmapped(&list, blocks) {
                prop_assert!(parts.iter().all(|part| part.at_bytes + part.bytes <= blocks * BLOCK_BYTES));
            }
        }
    }
}
