//! Effects of I/Os on the medium and on memory, right and wrong.

use std::ops::Range;

use rand::{Rng, RngExt, rngs::SmallRng};

use super::{FaultyQueue, Io, Medium, Observed, UNIT_BYTES, truth::Why};
use crate::Fault;

/// How often a place for misdirected bytes is sought.
const PLACE_TRIES: u32 = 8;
/// Most torn pages end early; the others lack units anywhere.
const TORN_PREFIX_SHARE: f64 = 0.7;

impl Io {
    /// The page of the I/O that its fault concerns.
    pub(super) fn victim(&mut self) -> Range<usize> {
        let start = self.rng.random_range(0..self.span.length / self.page) * self.page;
        start..start + self.page
    }
}

impl<M: Medium> FaultyQueue<M> {
    /// Reads; gives the bytes that the I/O reports.
    pub(super) fn read(&mut self, io: &mut Io) -> Result<usize, i32> {
        let length = io.span.length;
        let Some(fault) = io.fault.filter(|fault| *fault != Fault::LongIo) else {
            return self.transfer(io, 0..length).map(|()| length);
        };
        let page = io.victim();
        match fault {
            Fault::Corrupt => {
                self.load(io, 0..length)?;
                let spoilt = flip_bits(self.frames.part_mut(io.span, page.clone()), &mut io.rng);
                self.log(io, fault, &page, None, Observed::OwnPlace);
                self.truth.read(io.volume, io.units(&(0..page.start)));
                for (index, unit) in io.units(&page).enumerate() {
                    if spoilt & (1 << index) == 0 {
                        self.truth.read(io.volume, unit..unit + 1);
                    }
                }
                self.truth.read(io.volume, io.units(&(page.end..length)));
            }
            Fault::ShortRead => {
                let units = io.page / UNIT_BYTES;
                let kept = if units > 1 { io.rng.random_range(1..units) } else { 0 };
                let end = page.start + kept * UNIT_BYTES;
                self.transfer(io, 0..end)?;
                self.log(io, fault, &page, None, Observed::OwnPlace);
                if io.rng.random_bool(0.5) {
                    return Ok(end);
                }
                self.transfer(io, page.end..length)?;
            }
            Fault::MisdirectedRead => {
                self.transfer(io, 0..page.start)?;
                self.transfer(io, page.end..length)?;
                match self.other_bytes(io, &page)? {
                    Some((other_page, bytes)) => {
                        self.frames.part_mut(io.span, page.clone()).copy_from_slice(&bytes);
                        self.log(io, fault, &page, Some(other_page), Observed::OwnPlace);
                    }
                    None => self.transfer(io, page)?,
                }
            }
            _ => {
                self.log(io, fault, &page, None, Observed::OwnPlace);
                return Err(-libc::EIO);
            }
        }
        Ok(length)
    }

    /// Writes; gives the bytes that the I/O reports.
    pub(super) fn write(&mut self, io: &mut Io) -> Result<usize, i32> {
        let length = io.span.length;
        let Some(fault) = io.fault.filter(|fault| *fault != Fault::LongIo) else {
            return self.save(io, 0..length).map(|()| length);
        };
        let page = io.victim();
        if fault == Fault::IoError {
            self.log(io, fault, &page, None, Observed::OwnPlace);
            return Err(-libc::EIO);
        }
        self.save(io, 0..page.start)?;
        self.save(io, page.end..length)?;
        let done = match fault {
            Fault::Corrupt => self.write_corrupt(io, &page)?,
            Fault::MisdirectedWrite => self.write_elsewhere(io, &page)?,
            Fault::Torn => {
                let stored = torn_units(io.page / UNIT_BYTES, &mut io.rng);
                self.write_units(io, &page, fault, stored)?
            }
            _ => self.write_units(io, &page, fault, 0)?,
        };
        if !done {
            self.save(io, page)?;
        }
        Ok(length)
    }

    /// Moves part of an I/O from the medium to memory.
    fn load(&mut self, io: &Io, part: Range<usize>) -> Result<(), i32> {
        for piece in self.frames.pieces(io.span, part) {
            let offset_bytes = io.offset_bytes + piece.start as u64;
            self.store.read(io.volume, offset_bytes, self.frames.part_mut(io.span, piece))?;
        }
        Ok(())
    }

    /// Reads part of an I/O as it should be.
    fn transfer(&mut self, io: &Io, part: Range<usize>) -> Result<(), i32> {
        self.load(io, part.clone())?;
        self.truth.read(io.volume, io.units(&part));
        Ok(())
    }

    /// Writes part of an I/O as it should be.
    fn save(&mut self, io: &Io, part: Range<usize>) -> Result<(), i32> {
        for piece in self.frames.pieces(io.span, part.clone()) {
            let offset_bytes = io.offset_bytes + piece.start as u64;
            self.store.write(io.volume, offset_bytes, self.frames.part(io.span, piece))?;
        }
        self.truth.right(io.volume, io.units(&part));
        self.mark_written(io, &part);
        Ok(())
    }

    fn mark_written(&mut self, io: &Io, part: &Range<usize>) {
        let page = |position: usize| (io.offset_bytes as usize + position) / io.page;
        self.written[io.volume][page(part.start)..page(part.end)].fill(true);
    }

    /// Bytes of the medium at the place of a page.
    fn stored(&mut self, io: &Io, offset_bytes: u64) -> Result<Vec<u8>, i32> {
        let mut bytes = vec![0; io.page];
        self.store.read(io.volume, offset_bytes, &mut bytes)?;
        Ok(bytes)
    }

    /// Stores the units of a page whose bits are set in `stored`; all others keep what they had. False, with nothing
    /// done, when that makes no difference.
    fn write_units(&mut self, io: &Io, page: &Range<usize>, fault: Fault, stored: u64) -> Result<bool, i32> {
        let offset_bytes = io.offset_bytes + page.start as u64;
        let mut image = self.stored(io, offset_bytes)?;
        let kept = differing(&image, self.frames.part(io.span, page.clone())) & !stored;
        if kept == 0 {
            return Ok(false);
        }
        if stored != 0 {
            let bytes = self.frames.part(io.span, page.clone());
            for unit in (0..io.page / UNIT_BYTES).filter(|unit| stored & (1 << unit) != 0) {
                let unit = unit * UNIT_BYTES..(unit + 1) * UNIT_BYTES;
                image[unit.clone()].copy_from_slice(&bytes[unit]);
            }
            self.store.write(io.volume, offset_bytes, &image)?;
        }
        let injection = self.log(io, fault, page, None, Observed::No);
        self.keep_units(io, page, kept, injection);
        Ok(true)
    }

    /// Notes the wrong units of a written page.
    fn keep_units(&mut self, io: &Io, page: &Range<usize>, kept: u64, injection: usize) {
        for (index, unit) in io.units(page).enumerate() {
            if kept & (1 << index) != 0 {
                self.truth.not_stored(io.volume, unit, injection);
            } else {
                self.truth.right(io.volume, unit..unit + 1);
            }
        }
        self.mark_written(io, page);
    }

    /// False, with nothing done, when there is no other place or it makes no difference there.
    fn write_elsewhere(&mut self, io: &mut Io, page: &Range<usize>) -> Result<bool, i32> {
        let Some(other_page) = self.other_page(io, |_, _| true) else { return Ok(false) };
        let other_offset_bytes = other_page * io.page as u64;
        let own = self.stored(io, io.offset_bytes + page.start as u64)?;
        let other = self.stored(io, other_offset_bytes)?;
        let bytes = self.frames.part(io.span, page.clone());
        let (kept, foreign) = (differing(&own, bytes), differing(&other, bytes));
        if foreign == 0 {
            return Ok(false);
        }
        self.store.write(io.volume, other_offset_bytes, bytes)?;
        let injection = self.log(io, Fault::MisdirectedWrite, page, Some(other_page), Observed::No);
        self.keep_units(io, page, kept, injection);
        let first_unit = other_offset_bytes / UNIT_BYTES as u64;
        for unit in units_of(foreign) {
            self.truth.spoilt(io.volume, first_unit + unit, injection, Why::Foreign);
        }
        Ok(true)
    }

    fn write_corrupt(&mut self, io: &mut Io, page: &Range<usize>) -> Result<bool, i32> {
        let mut image = self.frames.part(io.span, page.clone()).to_vec();
        let spoilt = flip_bits(&mut image, &mut io.rng);
        self.store.write(io.volume, io.offset_bytes + page.start as u64, &image)?;
        let injection = self.log(io, Fault::Corrupt, page, None, Observed::No);
        self.keep_units(io, page, 0, injection);
        let first_unit = io.units(page).start;
        for unit in units_of(spoilt) {
            self.truth.spoilt(io.volume, first_unit + unit, injection, Why::Corrupt);
        }
        Ok(true)
    }

    /// Another page that holds its last write, and other bytes than this page. A page that was never written or is
    /// wrong itself would not show where its bytes come from.
    fn other_bytes(&mut self, io: &mut Io, page: &Range<usize>) -> Result<Option<(u64, Vec<u8>)>, i32> {
        let units = (io.page / UNIT_BYTES) as u64;
        let Some(other_page) = self.other_page(io, |queue, (volume, page)| {
            queue.written[volume][page as usize] && queue.truth.all_right(volume, page * units..(page + 1) * units)
        }) else {
            return Ok(None);
        };
        let bytes = self.stored(io, other_page * io.page as u64)?;
        let own = self.stored(io, io.offset_bytes + page.start as u64)?;
        Ok((bytes != own).then_some((other_page, bytes)))
    }

    /// A page of the same volume that no outstanding request touches, this one included.
    fn other_page(&self, io: &mut Io, accepted: impl Fn(&Self, (usize, u64)) -> bool) -> Option<u64> {
        let pages = self.files[io.volume].pages();
        for _ in 0..PLACE_TRIES {
            let page = io.rng.random_range(0..pages);
            let place = page * io.page as u64..(page + 1) * io.page as u64;
            let mut ios = self.outstanding.iter().flatten().chain([&*io]);
            if !ios.any(|other| other.touches(io.volume, &place)) && accepted(self, (io.volume, page)) {
                return Some(page);
            }
        }
        None
    }
}

/// Units in which two pages differ, a bit each.
fn differing(a: &[u8], b: &[u8]) -> u64 {
    let units = a.chunks(UNIT_BYTES).zip(b.chunks(UNIT_BYTES)).enumerate();
    units.fold(0, |mask, (index, (a, b))| mask | (u64::from(a != b) << index))
}

fn units_of(mask: u64) -> impl Iterator<Item = u64> {
    (0..64).filter(move |unit| mask & (1 << unit) != 0)
}

/// Flips one to eight bits; gives the units they are in, a bit each.
fn flip_bits(bytes: &mut [u8], rng: &mut SmallRng) -> u64 {
    let mut flipped = Vec::with_capacity(8);
    let count = rng.random_range(1..=8);
    while flipped.len() < count {
        let bit = rng.random_range(0..bytes.len() * 8);
        if !flipped.contains(&bit) {
            flipped.push(bit);
        }
    }
    flipped.into_iter().fold(0, |units, bit| {
        bytes[bit / 8] ^= 1 << (bit % 8);
        units | 1 << (bit / 8 / UNIT_BYTES)
    })
}

/// The units of a torn page that reach the medium, a bit each: at least one and not all.
fn torn_units(units: usize, rng: &mut SmallRng) -> u64 {
    let all = u64::MAX >> (64 - units);
    if rng.random_bool(TORN_PREFIX_SHARE) {
        return all >> rng.random_range(1..units);
    }
    loop {
        let stored = rng.next_u64() & all;
        if stored != 0 && stored != all {
            return stored;
        }
    }
}
