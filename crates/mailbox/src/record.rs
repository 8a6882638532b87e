//! Records of the log: which page each changes, and how.

use crate::{
    node::{Change, Slot},
    page::RECORD_SLOT_BYTES,
    page::{fill, get, put},
};

/// Head of a record: bytes in all, kind, page, LSN and four numbers.
const HEAD_BYTES: usize = 56;
/// A record's text in the log.
const IMAGE_BYTES: usize = 1000;

/// A change with its place in the log and the page it is made to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub lsn: u64,
    pub page: u64,
    pub change: Change,
    /// Whether the record takes the place of one with text of its own, which the log keeps to undo it.
    pub replaces: bool,
}

impl Record {
    /// Bytes that it takes in the log.
    pub(crate) fn bytes(&self) -> usize {
        HEAD_BYTES
            + match &self.change {
                Change::Put { .. } => IMAGE_BYTES * if self.replaces { 2 } else { 1 },
                Change::Remove { .. } => IMAGE_BYTES,
                Change::Cut { .. } | Change::Link { .. } => 0,
                Change::Become { slots, .. } => slots.len() * RECORD_SLOT_BYTES as usize,
            }
    }

    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.resize(start + self.bytes(), 0);
        let record = &mut bytes[start..];
        let (kind, numbers) = match &self.change {
            Change::Put { key, version } => (1, [*key, u64::from(*version), u64::from(self.replaces), 0]),
            Change::Remove { key } => (2, [*key, 0, 0, 0]),
            Change::Cut { high, right } => (3, [*high, *right, 0, 0]),
            Change::Become { low, high, right, slots } => (4, [*low, *high, *right, slots.len() as u64]),
            Change::Link { key, child } => (5, [*key, *child, 0, 0]),
        };
        let length = record.len() as u64;
        put(record, 0, length << 8 | kind);
        put(record, 8, self.page);
        put(record, 16, self.lsn);
        numbers.into_iter().enumerate().for_each(|(place, number)| put(record, 24 + 8 * place, number));
        let images = &mut record[HEAD_BYTES..];
        match &self.change {
            Change::Become { slots, .. } => {
                for (slot, image) in slots.iter().zip(images.chunks_exact_mut(RECORD_SLOT_BYTES as usize)) {
                    fill(&mut image[16..], slot.key);
                    put(image, 0, slot.key);
                    put(image, 8, u64::from(slot.version));
                }
            }
            _ => fill(images, self.lsn),
        }
    }

    /// Takes the record that bytes begin with; none where they do not hold all of it yet.
    ///
    /// # Errors
    /// They begin with no record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, String> {
        if bytes.len() < HEAD_BYTES {
            return Ok(None);
        }
        let (length, kind) = ((get(bytes, 0) >> 8) as usize, get(bytes, 0) & 0xff);
        let number = |place: usize| get(bytes, 24 + 8 * place);
        if bytes.len() < length {
            return Ok(None);
        }
        let (change, replaces) = match kind {
            1 => (Change::Put { key: number(0), version: number(1) as u32 }, number(2) != 0),
            2 => (Change::Remove { key: number(0) }, false),
            3 => (Change::Cut { high: number(0), right: number(1) }, false),
            4 => {
                let images = bytes[HEAD_BYTES..length].chunks_exact(RECORD_SLOT_BYTES as usize);
                let slots = images.map(|image| Slot { key: get(image, 0), version: get(image, 8) as u32 }).collect();
                (Change::Become { low: number(0), high: number(1), right: number(2), slots }, false)
            }
            5 => (Change::Link { key: number(0), child: number(1) }, false),
            _ => return Err(format!("holds a record of unknown kind {kind}")),
        };
        let record = Self { lsn: get(bytes, 16), page: get(bytes, 8), change, replaces };
        if record.bytes() == length {
            Ok(Some((record, length)))
        } else {
            Err("holds a record of a wrong length".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_one_after_the_other() {
        let slots = vec![Slot { key: 5, version: 2 }, Slot { key: 9, version: 0 }];
        let changes = [
            Change::Put { key: 3, version: 8 },
            Change::Remove { key: 4 },
            Change::Cut { high: 70, right: 12 },
            Change::Become { low: 5, high: 10, right: 0, slots },
            Change::Link { key: 70, child: 12 },
        ];
        let mut bytes = Vec::new();
        let mut records = Vec::new();
        for (place, change) in changes.into_iter().enumerate() {
            let record = Record { lsn: 10 + place as u64, page: 77, change, replaces: place == 0 };
            record.encode(&mut bytes);
            records.push(record);
        }
        let mut rest = &bytes[..];
        for record in records {
            assert_eq!(Record::decode(&rest[..record.bytes() - 1]), Ok(None), "a part of it is none");
            let (found, length) = Record::decode(rest).unwrap().unwrap();
            assert_eq!(found, record);
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }
}
