//! The bytes of a page: a sector with a header, whose checksum is over all of the page, then records or separators.
//!
//! Each sector that is not all zeros carries the mark by which Assay knows its own bytes again (`assay_load::content`).

use assay_load::{
    SplitMix,
    content::{MARK, MARK_AT, SECTOR_BYTES},
};

use crate::node::{Content, Node, Slot};

/// A record with its head.
pub(crate) const RECORD_SLOT_BYTES: u32 = 1024;

/// Header of a page: a sector.
pub(crate) const HEADER_BYTES: u32 = SECTOR_BYTES as u32;
/// Bytes after the mark of a sector.
const AFTER_MARK: usize = MARK_AT + MARK.len();
const MAGIC: u32 = 0x6d62_7831; // "mbx1"
/// Separators of a sector: one before the mark, the others behind it.
pub(crate) const CHILDREN_PER_SECTOR: usize = 31;
const CHILD_BYTES: usize = 16;

/// Name of a page, which the page itself must carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageName {
    pub run_id: u64,
    pub database: u32,
    pub page: u64,
}

/// Writes a page.
pub(crate) fn encode(node: &Node, name: PageName, bytes: &mut [u8]) {
    let (kind, count) = match &node.content {
        Content::Empty => (0_u16, 0),
        Content::Leaf(slots) => (1, slots.len()),
        Content::Inner(children) => (2, children.len()),
    };
    let (header, body) = bytes.split_at_mut(HEADER_BYTES as usize);
    header.fill(0);
    let mut used = 0;
    match &node.content {
        Content::Empty => {}
        Content::Leaf(slots) => {
            for (slot, place) in slots.iter().zip(body.chunks_exact_mut(RECORD_SLOT_BYTES as usize)) {
                fill(place, slot.key ^ u64::from(slot.version) << 40 ^ name.run_id);
                put(place, 0, slot.key);
                put(place, 8, u64::from(slot.version));
            }
            used = slots.len() * RECORD_SLOT_BYTES as usize;
        }
        Content::Inner(children) => {
            used = children.len().div_ceil(CHILDREN_PER_SECTOR) * SECTOR_BYTES;
            body[..used].fill(0);
            for (number, (key, child)) in children.iter().enumerate() {
                put(body, place_of_child(number), *key);
                put(body, place_of_child(number) + 8, *child);
            }
        }
    }
    body[used..].fill(0);
    mark(&mut bytes[..HEADER_BYTES as usize + used]);
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&name.database.to_le_bytes());
    bytes[12..14].copy_from_slice(&kind.to_le_bytes());
    bytes[14..16].copy_from_slice(&(count as u16).to_le_bytes());
    for (place, value) in [name.run_id, name.page, node.lsn, node.low, node.high, node.right].into_iter().enumerate() {
        put(bytes, AFTER_MARK + 8 * place, value);
    }
    let checksum = checksum(bytes);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads a page.
///
/// # Errors
/// Why it is not the page that was written there.
pub(crate) fn decode(bytes: &[u8], name: PageName) -> Result<Node, String> {
    let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (expected, found) = (number(4), checksum(bytes));
    if number(0) != MAGIC {
        return Err("is no page of a mailbox database".into());
    }
    if expected != found {
        return Err(format!("checksum is {found:08x}, its header says {expected:08x}"));
    }
    let field = |place: usize| get(bytes, AFTER_MARK + 8 * place);
    let of = (field(0), number(8), field(1));
    if of != (name.run_id, name.database, name.page) {
        return Err(format!("is page {} of database {} of run {:016x}", of.2, of.1, of.0));
    }
    let kind = u16::from_le_bytes([bytes[12], bytes[13]]);
    let count = usize::from(u16::from_le_bytes([bytes[14], bytes[15]]));
    let body = &bytes[HEADER_BYTES as usize..];
    let content = match kind {
        1 => Content::Leaf(
            body.chunks_exact(RECORD_SLOT_BYTES as usize)
                .take(count)
                .map(|record| Slot { key: get(record, 0), version: get(record, 8) as u32 })
                .collect(),
        ),
        2 => Content::Inner(
            (0..count).map(place_of_child).map(|place| (get(body, place), get(body, place + 8))).collect(),
        ),
        _ => Content::Empty,
    };
    let node = Node { lsn: field(2), low: field(3), high: field(4), right: field(5), content };
    if node.is_in_order() { Ok(node) } else { Err("its keys are not in order".into()) }
}

/// Where a separator lies behind the header.
fn place_of_child(number: usize) -> usize {
    let (sector, within) = (number / CHILDREN_PER_SECTOR, number % CHILDREN_PER_SECTOR);
    let place = if within == 0 { 0 } else { AFTER_MARK + (within - 1) * CHILD_BYTES };
    sector * SECTOR_BYTES + place
}

/// Puts the mark into every sector.
pub(crate) fn mark(bytes: &mut [u8]) {
    for sector in bytes.chunks_exact_mut(SECTOR_BYTES) {
        sector[MARK_AT..AFTER_MARK].copy_from_slice(&MARK);
    }
}

/// All of a page but the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..4]), &bytes[8..])
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn get(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}

/// Fills with bytes that follow from a seed and do not compress.
pub(crate) fn fill(bytes: &mut [u8], seed: u64) {
    let mut random = SplitMix::new(seed);
    let mut words = bytes.chunks_exact_mut(8);
    for word in &mut words {
        word.copy_from_slice(&random.next().to_le_bytes());
    }
    words.into_remainder().fill(0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shape::Shape;

    const NAME: PageName = PageName { run_id: 7, database: 3, page: 40 };

    #[test]
    fn a_page_comes_back_as_it_was_written() {
        let shape = Shape::new(64 << 20, 32768);
        let mut bytes = vec![0xff; 32768];
        for page in [0, 1, shape.first_leaf, shape.first_leaf + 1, shape.first_free] {
            let name = PageName { page, ..NAME };
            let node = shape.initial(page);
            encode(&node, name, &mut bytes);
            assert!(assay_load::content::is_marked(&bytes));
            assert_eq!(decode(&bytes, name), Ok(node));
        }
    }

    #[test]
    fn a_page_in_another_place_is_found() {
        let shape = Shape::new(64 << 20, 32768);
        let mut bytes = vec![0; 32768];
        encode(&shape.initial(40), NAME, &mut bytes);
        for other in [PageName { page: 41, ..NAME }, PageName { database: 2, ..NAME }, PageName { run_id: 8, ..NAME }] {
            assert_eq!(decode(&bytes, other), Err("is page 40 of database 3 of run 0000000000000007".into()));
        }
        bytes.fill(0);
        assert_eq!(decode(&bytes, NAME), Err("is no page of a mailbox database".into()));
    }

    proptest! {
        #[test]
        fn every_flipped_bit_is_found(at in 0_usize..8192, bit in 0_u8..8) {
            let shape = Shape::new(8 << 20, 8192);
            let mut bytes = vec![0; 8192];
            encode(&shape.initial(40), NAME, &mut bytes);
            bytes[at] ^= 1 << bit;
            prop_assert!(decode(&bytes, NAME).is_err());
        }
    }
}
