//! Facts that a disk tells: INQUIRY, READ CAPACITY, MODE SENSE, REPORT TARGET PORT GROUPS.

use crate::{
    config::Disk,
    scsi::{
        BLOCK_BYTES, COMPARED_MOST_BLOCKS, MOVED_MOST_BLOCKS, SAME_MOST_BLOCKS, UNMAPPED_MOST_BLOCKS,
        UNMAPPED_MOST_PARTS, copying,
    },
};

const VENDOR: &[u8; 8] = b"ASSAY   ";
const REVISION: &[u8; 4] = b"1   ";
/// The first version descriptors: SAM-5, SPC-4, SBC-3, iSCSI (SPC-4, 6.6.2).
const VERSIONS: [u16; 4] = [0x00a0, 0x0460, 0x04c0, 0x0960];
/// Blocks of a physical block as a power of two: one.
const PHYSICAL_EXPONENT: u8 = 0;
const OPTIMAL_BLOCKS: u32 = 512;

fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [b' '; N];
    for (byte, letter) in bytes.iter_mut().zip(text.bytes().filter(|letter| (0x20..0x7f).contains(letter))) {
        *byte = letter;
    }
    bytes
}

/// Standard INQUIRY data (SPC-4, 6.6.2).
pub(crate) fn standard(disk: &Disk) -> Vec<u8> {
    let mut bytes = vec![0; 96];
    // SPC-4; HISUP and format 2; target port groups that no initiator changes, third-party copies; many ports; queues commands.
    (bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]) = (6, 0x12, 91, 0x18, 0x10, 0x02);
    bytes[8..16].copy_from_slice(VENDOR);
    bytes[16..32].copy_from_slice(&padded::<16>(&disk.product));
    bytes[32..36].copy_from_slice(REVISION);
    for (at, version) in VERSIONS.iter().enumerate() {
        bytes[58 + 2 * at..60 + 2 * at].copy_from_slice(&version.to_be_bytes());
    }
    bytes
}

/// A page of vital product data, or None if there is no such page (SPC-4, 7.8; SBC-3, 6.6).
pub(crate) fn vital(disk: &Disk, page: u8) -> Option<Vec<u8>> {
    let body = match page {
        0x00 => vec![0x00, 0x80, 0x83, 0x8f, 0xb0, 0xb1, 0xb2],
        0x80 => disk.serial.as_bytes().to_vec(),
        0x83 => identification(disk),
        0x8f => copying::page(),
        0xb0 => limits(),
        0xb1 => {
            // No medium that rotates: what an array shows has no seeks that a host could order.
            let mut body = vec![0; 60];
            body[1] = 1;
            body
        }
        // Thresholds none; UNMAP and WRITE SAME unmap; unmapped blocks read as zeroes; thin.
        0xb2 => vec![0, 0xe4, 0x02, 0],
        _ => return None,
    };
    let mut bytes = vec![0, page];
    bytes.extend((body.len() as u16).to_be_bytes());
    bytes.extend(body);
    Some(bytes)
}

/// Names of the disk and of the way to it.
fn identification(disk: &Disk) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |code_set: u8, kind: u8, value: &[u8]| {
        bytes.extend([code_set, kind, 0, value.len() as u8]);
        bytes.extend(value);
    };
    // NAA 3, assigned locally: no maker's number is ours to use.
    let mut naa = crate::chap::digest(disk.serial.as_bytes())[..8].to_vec();
    naa[0] = 0x30 | naa[0] & 0x0f;
    put(0x01, 0x03, &naa);
    let mut named = VENDOR.to_vec();
    named.extend(disk.serial.as_bytes());
    put(0x02, 0x01, &named);
    // Of the port: relative number, group, name.
    put(0x51, 0x94, &[0, 0, 0, 1]);
    put(0x51, 0x95, &[0, 0, 0, 1]);
    let mut port = format!("{},t,0x0001", disk.target).into_bytes();
    port.truncate(248);
    port.push(0);
    port.resize(port.len().next_multiple_of(4), 0);
    put(0x53, 0x98, &port);
    bytes
}

/// Whether a disk has a name: code set, kind, and the name after its length, as page 83h has it.
pub(crate) fn is_named(disk: &Disk, name: &[u8]) -> bool {
    let all = identification(disk);
    let mut rest = &all[..];
    while let [code_set, kind, _, count, after @ ..] = rest {
        let (own, next) = after.split_at(usize::from(*count));
        // Of the disk, not of a port.
        let is_same = kind & 0x30 == 0 && name.len() >= 4 && (name[0] & 0x0f, name[1] & 0x3f) == (*code_set, *kind);
        if is_same && usize::from(name[3]) == own.len() && &name[4..] == own {
            return true;
        }
        rest = next;
    }
    false
}

fn limits() -> Vec<u8> {
    let mut body = vec![0; 60];
    body[1] = COMPARED_MOST_BLOCKS as u8;
    body[2..4].copy_from_slice(&(1u16 << PHYSICAL_EXPONENT).to_be_bytes());
    body[4..8].copy_from_slice(&MOVED_MOST_BLOCKS.to_be_bytes());
    body[8..12].copy_from_slice(&OPTIMAL_BLOCKS.to_be_bytes());
    body[16..20].copy_from_slice(&UNMAPPED_MOST_BLOCKS.to_be_bytes());
    body[20..24].copy_from_slice(&UNMAPPED_MOST_PARTS.to_be_bytes());
    body[24..28].copy_from_slice(&(1u32 << PHYSICAL_EXPONENT).to_be_bytes());
    body[32..40].copy_from_slice(&u64::from(SAME_MOST_BLOCKS).to_be_bytes());
    body
}

/// READ CAPACITY (10): the last block, or all ones if it has a larger number.
pub(crate) fn capacity_10(blocks: u64) -> Vec<u8> {
    let last = u32::try_from(blocks - 1).unwrap_or(u32::MAX);
    let mut bytes = last.to_be_bytes().to_vec();
    bytes.extend((BLOCK_BYTES as u32).to_be_bytes());
    bytes
}

/// READ CAPACITY (16).
pub(crate) fn capacity_16(blocks: u64) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[..8].copy_from_slice(&(blocks - 1).to_be_bytes());
    bytes[8..12].copy_from_slice(&(BLOCK_BYTES as u32).to_be_bytes());
    bytes[13] = PHYSICAL_EXPONENT;
    // Blocks can be unmapped, and read as zeroes then.
    bytes[14] = 0xc0;
    bytes
}

/// Whether MODE SENSE asks which values may change.
fn is_changeable(control: u8) -> bool {
    control == 1
}

/// Mode pages; None if there is no such page (SPC-4, 7.5; SBC-3, 6.5).
fn pages(page: u8, subpage: u8, control: u8) -> Option<Vec<u8>> {
    let caching: [u8; 20] = {
        let mut bytes = [0; 20];
        // The write cache is on: initiators flush it.
        (bytes[0], bytes[1], bytes[2]) = (0x08, 18, 0x04);
        bytes
    };
    let control_page: [u8; 12] = {
        let mut bytes = [0; 12];
        // Commands are done in any order.
        (bytes[0], bytes[1], bytes[3]) = (0x0a, 10, 0x10);
        bytes
    };
    let exceptions: [u8; 12] = {
        let mut bytes = [0; 12];
        (bytes[0], bytes[1]) = (0x1c, 10);
        bytes
    };
    let all: [&[u8]; 3] = [&caching, &control_page, &exceptions];
    if !matches!(subpage, 0 | 0xff) {
        return None;
    }
    let mut found: Vec<u8> = Vec::new();
    for one in all {
        if page == 0x3f || page == one[0] {
            found.extend(&one[..2]);
            found.extend(one[2..].iter().map(|byte| if is_changeable(control) { 0 } else { *byte }));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// MODE SENSE (6) or (10), or None if there is no such page.
pub(crate) fn mode_sense(cdb: &[u8; 16], blocks: u64) -> Option<Vec<u8>> {
    let is_long = cdb[0] == 0x5a;
    let has_descriptor = cdb[1] & 0x08 == 0;
    let found = pages(cdb[2] & 0x3f, cdb[3], cdb[2] >> 6)?;
    let mut descriptor = Vec::new();
    if has_descriptor {
        descriptor.extend(u32::try_from(blocks).unwrap_or(u32::MAX).to_be_bytes());
        descriptor.extend((BLOCK_BYTES as u32).to_be_bytes());
    }
    // DPO and FUA are known.
    let device = 0x10;
    let rest = descriptor.len() + found.len();
    let mut bytes = if is_long {
        let length = ((rest + 6) as u16).to_be_bytes();
        vec![length[0], length[1], 0, device, 0, 0, 0, descriptor.len() as u8]
    } else {
        vec![(rest + 3) as u8, 0, device, descriptor.len() as u8]
    };
    bytes.extend(descriptor);
    bytes.extend(found);
    Some(bytes)
}

/// REPORT TARGET PORT GROUPS: one group whose ports are all equally good (SPC-4, 6.37).
pub(crate) fn port_groups(is_extended: bool) -> Vec<u8> {
    let mut group = vec![0x00, 0x09, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
    if is_extended {
        group.splice(0..0, [0x10, 0, 0, 0]);
    }
    let mut bytes = (group.len() as u32).to_be_bytes().to_vec();
    bytes.extend(group);
    bytes
}
