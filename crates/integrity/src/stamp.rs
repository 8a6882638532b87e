//! Stamps of pages: their bytes, and the faults that can be told from them. The layout is in docs/integrity.md.

use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Unit into which a device may tear a page.
pub(crate) const UNIT_BYTES: usize = 512;

const HEAD_BYTES: usize = 16;
const HEADER_BYTES: usize = 64;
const VERSION: u8 = 1;
/// Places in the noise where a page's bytes may begin, 64 bytes apart: the noise stays in a core's own cache.
const NOISE_STARTS: usize = 2048;
const NOISE_STEP_BYTES: usize = 64;
const LARGEST_PAGE_BYTES: usize = 16384;

/// Filling of buffers before a read: bytes that still have it afterwards were not read.
pub(crate) const NOT_READ: u8 = 0xbd;

/// Which page of which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId {
    pub file: u16,
    pub page: u32,
}

/// Stamp that a write leaves on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    pub generation: u32,
    /// Microseconds since the run began.
    pub time_us: u64,
    pub lsn: u64,
    pub writer: u16,
}

/// Content of one unit of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Expected,
    /// This unit of this page as an earlier write left it; generation 0 is from before the run.
    Older {
        generation: u32,
    },
    /// Wrong bytes that were found there before: a write since then did not replace them.
    Known,
    /// A unit that belongs elsewhere; `None` when another run wrote it.
    Foreign(Option<Origin>),
    NotRead,
    /// The generation is that of the head, if the head can be read.
    Corrupt {
        generation: Option<u32>,
    },
}

/// Where a unit belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub id: PageId,
    pub generation: u32,
    pub unit: u8,
}

/// Writes and reads the stamps of one run.
pub(crate) struct Stamper {
    run_id: u64,
    noise: Vec<u8>,
}

impl Stamper {
    pub(crate) fn new(run_id: u64) -> Self {
        let mut noise = vec![0; NOISE_STARTS * NOISE_STEP_BYTES + LARGEST_PAGE_BYTES];
        SmallRng::seed_from_u64(run_id).fill_bytes(&mut noise);
        Self { run_id, noise }
    }

    /// Makes a page; returns its checksum.
    pub(crate) fn write(&self, page: &mut [u8], id: PageId, stamp: &Stamp) -> u32 {
        page.copy_from_slice(self.noise(id, stamp.generation, page.len()));
        let key = self.key(id, stamp.generation);
        for (unit, bytes) in page.chunks_exact_mut(UNIT_BYTES).enumerate() {
            bytes[..HEAD_BYTES].copy_from_slice(&head(key, id, stamp.generation, unit as u8).to_le_bytes());
        }
        page[16..24].copy_from_slice(&self.run_id.to_le_bytes());
        page[24..32].copy_from_slice(&stamp.time_us.to_le_bytes());
        page[32..40].copy_from_slice(&stamp.lsn.to_le_bytes());
        page[40..42].copy_from_slice(&stamp.writer.to_le_bytes());
        page[42..56].fill(0);
        let header = crc32c::crc32c(&page[..56]);
        page[56..60].copy_from_slice(&header.to_le_bytes());
        let checksum = checksum(page);
        page[60..64].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }

    /// Whether a page is the one that was written with this generation and checksum.
    pub(crate) fn is_right(&self, page: &[u8], id: PageId, generation: u32, expected_checksum: u32) -> bool {
        let key = self.key(id, generation);
        let heads = page
            .chunks_exact(UNIT_BYTES)
            .enumerate()
            .all(|(unit, bytes)| bytes[..HEAD_BYTES] == head(key, id, generation, unit as u8).to_le_bytes());
        heads && stored_checksum(page) == expected_checksum && checksum(page) == expected_checksum
    }

    /// Content of each unit of a wrong page. `expected` is the right page; `fresh` says that the page was never read
    /// right since the run began, so that older bytes may still show.
    pub(crate) fn examine(&self, page: &[u8], expected: &[u8], id: PageId, generation: u32, fresh: bool) -> Vec<Unit> {
        let mut units = self.survey(page, id, generation, fresh);
        let parts = page.chunks_exact(UNIT_BYTES).zip(expected.chunks_exact(UNIT_BYTES));
        for (unit, _) in units.iter_mut().zip(parts).filter(|(_, (bytes, wanted))| bytes == wanted) {
            *unit = Unit::Expected;
        }
        units
    }

    /// Classifies each unit of a page whose right contents are not known. An intact unit of this page with a generation
    /// below `generation` is `Unit::Older` and names its own.
    pub(crate) fn survey(&self, page: &[u8], id: PageId, generation: u32, fresh: bool) -> Vec<Unit> {
        let other_run = self.other_run(page);
        page.chunks_exact(UNIT_BYTES)
            .enumerate()
            .map(|(unit, bytes)| {
                if bytes[UNIT_BYTES - HEAD_BYTES..].iter().all(|byte| *byte == NOT_READ) {
                    return Unit::NotRead;
                }
                if let Some(origin) = self.origin(bytes) {
                    let own = origin.id == id && usize::from(origin.unit) == unit;
                    return match self.is_intact(bytes, origin) {
                        true if own && origin.generation < generation => Unit::Older { generation: origin.generation },
                        // The first unit differs from the expected one in time or writer only: as good as corrupt.
                        true if own && origin.generation == generation => {
                            Unit::Corrupt { generation: Some(generation) }
                        }
                        true => Unit::Foreign(Some(origin)),
                        false => Unit::Corrupt { generation: own.then_some(origin.generation) },
                    };
                }
                let stranger = other_run
                    .as_ref()
                    .is_some_and(|other| other.origin(bytes).is_some_and(|origin| other.is_intact(bytes, origin)));
                match (stranger, fresh) {
                    (true, true) => Unit::Older { generation: 0 },
                    (true, false) => Unit::Foreign(None),
                    (false, true) if bytes.iter().all(|byte| *byte == 0) => Unit::Older { generation: 0 },
                    (false, _) => Unit::Corrupt { generation: None },
                }
            })
            .collect()
    }

    /// The header of a page whose first unit is intact: its stamp, whatever page it belongs to.
    fn header(&self, page: &[u8]) -> Option<(Origin, Stamp)> {
        let origin = self.origin(page)?;
        (origin.unit == 0 && self.is_intact(&page[..UNIT_BYTES], origin)).then(|| {
            let stamp = Stamp {
                generation: origin.generation,
                time_us: u64_at(page, 24),
                lsn: u64_at(page, 32),
                writer: u16::from_le_bytes([page[40], page[41]]),
            };
            (origin, stamp)
        })
    }

    /// The stamp of a page that is whole and in its place, whichever generation it is.
    pub(crate) fn whole(&self, page: &[u8], id: PageId) -> Option<Stamp> {
        let (origin, stamp) = self.header(page)?;
        (origin.id == id && self.is_right(page, id, stamp.generation, stored_checksum(page))).then_some(stamp)
    }

    /// Whether a page says that another run wrote it.
    pub(crate) fn is_another_runs(&self, page: &[u8]) -> bool {
        self.other_run(page).is_some_and(|other| other.header(page).is_some())
    }

    /// Another run's stamper, if the first unit of the page says that another run wrote it.
    fn other_run(&self, page: &[u8]) -> Option<Self> {
        let run_id = u64_at(page, 16);
        (run_id != self.run_id && crc32c::crc32c(&page[..56]) == u32_at(page, 56)).then(|| Self::new(run_id))
    }

    /// Where a unit's head says that it belongs, if the head is one of this run's.
    fn origin(&self, unit: &[u8]) -> Option<Origin> {
        let id = PageId { file: u16::from_le_bytes([unit[8], unit[9]]), page: u32_at(unit, 4) };
        let generation = u32_at(unit, 0);
        let own = head(self.key(id, generation), id, generation, unit[10]).to_le_bytes();
        (unit[..HEAD_BYTES] == own).then_some(Origin { id, generation, unit: unit[10] })
    }

    fn is_intact(&self, unit: &[u8], origin: Origin) -> bool {
        // The page it belongs to may be a larger one than that it is found in.
        let start = usize::from(origin.unit) * UNIT_BYTES;
        if start >= LARGEST_PAGE_BYTES {
            return false;
        }
        let noise = &self.noise(origin.id, origin.generation, LARGEST_PAGE_BYTES)[start..start + UNIT_BYTES];
        if origin.unit > 0 {
            return unit[HEAD_BYTES..] == noise[HEAD_BYTES..];
        }
        unit[HEADER_BYTES..] == noise[HEADER_BYTES..] && crc32c::crc32c(&unit[..56]) == u32_at(unit, 56)
    }

    fn key(&self, id: PageId, generation: u32) -> u64 {
        let page = u64::from(id.file) << 32 | u64::from(id.page);
        mix(mix(self.run_id ^ page) ^ u64::from(generation))
    }

    fn noise(&self, id: PageId, generation: u32, bytes: usize) -> &[u8] {
        let start = (self.key(id, generation) >> 7) as usize % NOISE_STARTS * NOISE_STEP_BYTES;
        &self.noise[start..start + bytes]
    }
}

/// Whether a page or log block begins with the header that some run of Assay gave it; see docs/integrity.md.
pub fn is_stamped(page: &[u8]) -> bool {
    page.len() >= HEADER_BYTES
        && page[42..56].iter().all(|byte| *byte == 0)
        && page[..HEAD_BYTES].iter().any(|byte| *byte != 0)
        && crc32c::crc32c(&page[..56]) == u32_at(page, 56)
}

fn head(key: u64, id: PageId, generation: u32, unit: u8) -> u128 {
    let check = mix(key ^ u64::from(unit)) as u32;
    u128::from(check) << 96
        | u128::from(VERSION) << 88
        | u128::from(unit) << 80
        | u128::from(id.file) << 64
        | u128::from(id.page) << 32
        | u128::from(generation)
}

/// CRC-32C of a page without the four bytes that hold it.
fn checksum(page: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&page[..60]), &page[HEADER_BYTES..])
}

fn stored_checksum(page: &[u8]) -> u32 {
    u32_at(page, 60)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit of the input changes every bit of the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: PageId = PageId { file: 1, page: 77 };

    fn made(stamper: &Stamper, id: PageId, generation: u32, bytes: usize) -> (Vec<u8>, u32) {
        let mut page = vec![0; bytes];
        let stamp = Stamp { generation, time_us: 5, lsn: 9, writer: 3 };
        let checksum = stamper.write(&mut page, id, &stamp);
        (page, checksum)
    }

    proptest! {
        #[test]
        fn a_page_is_right_and_any_flipped_bit_makes_it_wrong(
            run in any::<u64>(), file in any::<u16>(), number in any::<u32>(), generation in 1..u32::MAX, log in any::<bool>(),
            bit in 0..8192_usize * 8,
        ) {
            let stamper = Stamper::new(run);
            let id = PageId { file, page: number };
            let (mut page, checksum) = made(&stamper, id, generation, if log { 512 } else { 8192 });
            prop_assert!(stamper.is_right(&page, id, generation, checksum));
            let bit = bit % (page.len() * 8);
            page[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!stamper.is_right(&page, id, generation, checksum));
            let (wanted, _) = made(&stamper, id, generation, page.len());
            let units = stamper.examine(&page, &wanted, id, generation, false);
            for (index, unit) in units.iter().enumerate() {
                let hit = index == bit / 8 / UNIT_BYTES;
                prop_assert_eq!(hit, matches!(unit, Unit::Corrupt { .. }), "unit {} is {:?}", index, unit);
            }
        }
    }

    #[test]
    fn units_tell_where_they_come_from() {
        let stamper = Stamper::new(7);
        let (wanted, _) = made(&stamper, ID, 5, 8192);
        let (older, _) = made(&stamper, ID, 4, 8192);
        let (other, _) = made(&stamper, PageId { file: 1, page: 78 }, 2, 8192);
        let (strange, _) = made(&Stamper::new(8), ID, 5, 8192);
        let mut page = wanted.clone();
        page[512..1024].copy_from_slice(&older[512..1024]);
        page[1024..1536].copy_from_slice(&other[1024..1536]);
        page[1536..2048].fill(NOT_READ);
        page[2048..2560].fill(0);
        page[2560..3072].copy_from_slice(&wanted[3072..3584]);
        let units = stamper.examine(&page, &wanted, ID, 5, false);
        assert_eq!(units[0], Unit::Expected);
        assert_eq!(units[1], Unit::Older { generation: 4 });
        let origin = Origin { id: PageId { file: 1, page: 78 }, generation: 2, unit: 2 };
        assert_eq!(units[2], Unit::Foreign(Some(origin)));
        assert_eq!(units[3], Unit::NotRead);
        assert_eq!(units[4], Unit::Corrupt { generation: None });
        assert_eq!(units[5], Unit::Foreign(Some(Origin { id: ID, generation: 5, unit: 6 })));
        assert_eq!(stamper.examine(&page, &wanted, ID, 5, true)[4], Unit::Older { generation: 0 });
        let units = stamper.examine(&strange, &wanted, ID, 5, false);
        assert!(units.iter().all(|unit| *unit == Unit::Foreign(None)), "{units:?}");
        let units = stamper.examine(&strange, &wanted, ID, 5, true);
        assert!(units.iter().all(|unit| *unit == Unit::Older { generation: 0 }), "{units:?}");
    }

    #[test]
    fn the_header_of_a_page_can_be_read_back() {
        let stamper = Stamper::new(7);
        let (page, _) = made(&stamper, ID, 5, 8192);
        let (origin, stamp) = stamper.header(&page).unwrap();
        assert_eq!((origin.id, stamp), (ID, Stamp { generation: 5, time_us: 5, lsn: 9, writer: 3 }));
    }
}
