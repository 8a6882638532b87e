//! A command whose data have come: the I/Os that it becomes, and how they end it.

use assay_disk_server::{Answer, Blocks, Change, Done, End, MOVED_MOST_BYTES, Op, Part, begin_all, begin_write};

use crate::{
    active::Active,
    scsi::{
        BLOCK_BYTES, Task,
        copying::PIECE_BYTES,
        reservations::Nexus,
        sense::{COPY_FAILED, INVALID_FIELD, LIST_LENGTH, MISCOMPARED, Sense},
        status,
        unit::Unit,
        unmapped,
    },
    shared::Shared,
};

/// How a command ends.
pub(crate) struct Ended {
    pub(crate) status: u8,
    pub(crate) sense: Option<Sense>,
    /// Bytes for the initiator.
    pub(crate) data: Option<Vec<u8>>,
    /// Bytes that the command moves, whatever the initiator said.
    pub(crate) moved_bytes: u64,
}

fn good(moved_bytes: u64) -> Ended {
    Ended { status: status::GOOD, sense: None, data: None, moved_bytes }
}

fn failed(sense: Sense) -> Ended {
    Ended { status: status::CHECK_CONDITION, sense: Some(sense), data: None, moved_bytes: 0 }
}

/// Begins the I/Os of a command; gives its end if there are none.
pub(crate) fn begin(shared: &Shared, disk: usize, nexus: &Nexus, active: &mut Active, end: End) -> Option<Ended> {
    let unit = &shared.units[disk];
    let (blocks, volume) = (shared.blocks.as_ref(), unit.disk.volume);
    let data = std::mem::take(&mut active.data);
    match active.task.clone() {
        Task::Done => Some(good(0)),
        Task::Answer(bytes) => Some(Ended { data: Some(bytes), ..good(0) }),
        Task::Failed(sense) => Some(failed(sense)),
        Task::Conflict => Some(Ended { status: status::CONFLICT, ..good(0) }),
        // Pages may come as they are; none can be changed.
        Task::Select { list_bytes } if data.len() < list_bytes => Some(failed(LIST_LENGTH)),
        Task::Select { .. } => Some(failed(INVALID_FIELD)),
        Task::Reserve { .. } => Some(reserve(unit, nexus, active, &data)),
        Task::Read(part) => {
            let wanted = if active.is_read { u64::from(active.expected_bytes).min(part.bytes) } else { 0 };
            let part = Part { bytes: wanted.next_multiple_of(BLOCK_BYTES), ..part };
            begin_all(blocks, volume, &[part], MOVED_MOST_BYTES, part.bytes as usize, |_| Op::Read, end);
            None
        }
        Task::Compare { part, .. } => {
            active.data = data;
            begin_all(blocks, volume, &[part], MOVED_MOST_BYTES, part.bytes as usize, |_| Op::Read, end);
            None
        }
        Task::Write { part, durable } => {
            write(blocks, volume, part, data, durable, end);
            None
        }
        Task::CompareWrite { part } => {
            let is_whole = data.len() as u64 == 2 * part.bytes && active.expected_bytes as usize == data.len();
            if is_whole { compare_write(blocks, volume, part, data, end) } else { Some(failed(INVALID_FIELD)) }
        }
        Task::Copy { list_bytes } if data.len() < list_bytes => Some(failed(LIST_LENGTH)),
        Task::Copy { .. } => copy(shared, disk, nexus, active, &data, end),
        Task::Or { part } => or_write(blocks, volume, part, data, end),
        Task::Same { part, unmaps, has_data } => {
            let is_whole = data.len() as u64 == BLOCK_BYTES && u64::from(active.expected_bytes) == BLOCK_BYTES;
            if has_data && !is_whole {
                return Some(failed(LIST_LENGTH));
            }
            same(blocks, volume, part, &data, unmaps, end);
            None
        }
        Task::Unmap { list_bytes } if data.len() < list_bytes => Some(failed(LIST_LENGTH)),
        Task::Unmap { .. } => match unmapped(&data, unit.blocks()) {
            Err(sense) => Some(failed(sense)),
            Ok(parts) => {
                begin_all(blocks, volume, &parts, MOVED_MOST_BYTES, 0, |_| Op::Discard, end);
                None
            }
        },
        Task::Flush { waits } => {
            let answer: Answer =
                if waits { Box::new(move |result| end(result.map(<[u8]>::to_vec))) } else { Box::new(|_| {}) };
            blocks.begin(volume, Op::Flush, 0, 0, answer);
            (!waits).then(|| good(0))
        }
    }
}

/// Bytes that a command reads into memory at once.
pub(crate) fn read_bytes(task: &Task) -> u64 {
    match task {
        Task::Read(part) => part.bytes,
        Task::Copy { .. } => PIECE_BYTES,
        _ => 0,
    }
}

fn copy(shared: &Shared, disk: usize, nexus: &Nexus, active: &mut Active, list: &[u8], end: End) -> Option<Ended> {
    match crate::copying::begin(shared, disk, nexus, list, end) {
        Ok(copying) => {
            active.copying = copying;
            None
        }
        Err(sense) => Some(failed(sense)),
    }
}

fn reserve(unit: &Unit, nexus: &Nexus, active: &Active, list: &[u8]) -> Ended {
    match unit.reserve(nexus, &active.cdb, list) {
        Task::Failed(sense) => failed(sense),
        Task::Conflict => Ended { status: status::CONFLICT, ..good(0) },
        _ => good(list.len() as u64),
    }
}

/// Sets the bits of blocks that are set in the data.
fn or_write(blocks: &dyn Blocks, volume: u16, part: Part, data: Vec<u8>, end: End) -> Option<Ended> {
    let part = Part { bytes: data.len() as u64 / BLOCK_BYTES * BLOCK_BYTES, ..part };
    let change = move |held: &mut [u8]| {
        held.iter_mut().zip(&data).for_each(|(one, other)| *one |= other);
        Ok(())
    };
    modify(blocks, volume, part, Box::new(change), end)
}

/// Writes the whole blocks that the initiator gave.
fn write(blocks: &dyn Blocks, volume: u16, part: Part, data: Vec<u8>, durable: bool, end: End) {
    let part = Part { bytes: data.len() as u64 / BLOCK_BYTES * BLOCK_BYTES, ..part };
    begin_write(blocks, volume, part, data, durable, end);
}

/// Writes one block all over a part; zeroes by a discard.
fn same(blocks: &dyn Blocks, volume: u16, part: Part, data: &[u8], unmaps: bool, end: End) {
    if unmaps || data.iter().all(|byte| *byte == 0) {
        begin_all(blocks, volume, &[part], MOVED_MOST_BYTES, 0, |_| Op::Discard, end);
    } else {
        let op = |range: std::ops::Range<usize>| Op::Write {
            bytes: data.repeat(range.len() / BLOCK_BYTES as usize),
            durable: false,
        };
        begin_all(blocks, volume, &[part], MOVED_MOST_BYTES, 0, op, end);
    }
}

/// Writes the second half of the data where the blocks are as the first.
fn compare_write(blocks: &dyn Blocks, volume: u16, part: Part, data: Vec<u8>, end: End) -> Option<Ended> {
    let change = move |held: &mut [u8]| {
        let (expected, bytes) = data.split_at(held.len());
        match held.iter().zip(expected).position(|(one, other)| one != other) {
            Some(at) => Err(at as u32),
            None => {
                held.copy_from_slice(bytes);
                Ok(())
            }
        }
    };
    modify(blocks, volume, part, Box::new(change), end)
}

fn modify(blocks: &dyn Blocks, volume: u16, part: Part, change: Change, end: End) -> Option<Ended> {
    if part.bytes == 0 {
        return Some(good(0));
    }
    let answer = Box::new(move |result: Result<&[u8], i32>| end(result.map(<[u8]>::to_vec)));
    blocks.begin(volume, Op::Modify(change), part.at_bytes, part.bytes as u32, answer);
    None
}

/// Ends a command whose I/Os have ended.
pub(crate) fn end(active: &Active, done: Done) -> Ended {
    let is_write = !matches!(active.task, Task::Read(_) | Task::Compare { .. });
    let bytes = match done {
        Err(_) if matches!(active.task, Task::Copy { .. }) => return failed(COPY_FAILED),
        Err(number) => return failed(Sense::of_store(number, is_write)),
        Ok(bytes) => bytes,
    };
    match &active.task {
        Task::Read(part) => {
            // An initiator that asked for less is told of the rest.
            let taken = if active.is_read { (active.expected_bytes as usize).min(bytes.len()) } else { 0 };
            if taken < part.bytes as usize {
                let mut bytes = bytes;
                bytes.resize(part.bytes as usize, 0);
                return Ended { data: Some(bytes), ..good(0) };
            }
            Ended { data: Some(bytes), ..good(0) }
        }
        Task::Compare { is_repeated, .. } => {
            let differs = if *is_repeated {
                bytes.iter().zip(active.data.iter().cycle()).position(|(one, other)| one != other)
            } else {
                bytes.iter().zip(&active.data).position(|(one, other)| one != other)
            };
            match differs {
                Some(at) => failed(Sense { information: Some(at as u32), ..MISCOMPARED }),
                None => good(active.task.out_bytes() as u64),
            }
        }
        Task::CompareWrite { .. } => match <[u8; 4]>::try_from(bytes) {
            Ok(at) => failed(Sense { information: Some(u32::from_be_bytes(at)), ..MISCOMPARED }),
            Err(_) => good(active.task.out_bytes() as u64),
        },
        task => good(task.out_bytes() as u64),
    }
}
