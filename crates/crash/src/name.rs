//! Names of states: `SEED:POINT:MASK`.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use crate::{CrashError, Piece, random::Random};

/// Which pieces of the outstanding writes a state has. Pieces are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Mask {
    /// `none`: nothing that was outstanding.
    None,
    /// `all`: everything.
    All,
    /// `-3,7-9`: everything but these.
    Missing(Vec<RangeInclusive<u32>>),
    /// `+3,7-9`: these alone.
    Present(Vec<RangeInclusive<u32>>),
    /// `<12`: as many of the first.
    First(u32),
    /// `r12`: a random choice, by seed, point and this number.
    Random(u32),
}

/// A state after a crash: it can be shown again by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The seed of its plan.
    pub seed: u64,
    /// The crash point, counted from 0.
    pub point: usize,
    /// Which outstanding pieces it has.
    pub mask: Mask,
}

impl Mask {
    /// Everything but these pieces, which are in order.
    pub fn missing(pieces: &[usize]) -> Self {
        Self::Missing(ranges(pieces))
    }
}

fn ranges(pieces: &[usize]) -> Vec<RangeInclusive<u32>> {
    let mut found: Vec<RangeInclusive<u32>> = Vec::new();
    for &piece in pieces {
        let piece = piece as u32;
        match found.last_mut() {
            Some(last) if last.end() + 1 == piece => *last = *last.start()..=piece,
            _ => found.push(piece..=piece),
        }
    }
    found
}

impl Name {
    /// Of each piece whether the state has it; none if it names pieces that are not there.
    pub fn chosen(&self, pieces: &[Piece]) -> Option<Vec<bool>> {
        let count = pieces.len();
        let listed = |ranges: &[RangeInclusive<u32>], found: bool| {
            let mut chosen = vec![!found; count];
            for range in ranges {
                chosen.get_mut(*range.start() as usize..=*range.end() as usize)?.fill(found);
            }
            Some(chosen)
        };
        match &self.mask {
            Mask::None => Some(vec![false; count]),
            Mask::All => Some(vec![true; count]),
            Mask::Missing(ranges) => listed(ranges, false),
            Mask::Present(ranges) => listed(ranges, true),
            Mask::First(first) => {
                (*first as usize <= count).then(|| (0..count).map(|piece| piece < *first as usize).collect())
            }
            Mask::Random(number) => Some(self.random(*number, pieces)),
        }
    }

    fn random(&self, number: u32, pieces: &[Piece]) -> Vec<bool> {
        let mut random = Random::new(self.seed, &[self.point as u64, u64::from(number)]);
        let count = pieces.len();
        match random.below(5) {
            0 => (0..count).map(|_| random.below(2) == 0).collect(),
            1 => (0..count).map(|_| random.below(8) != 0).collect(),
            2 => (0..count).map(|_| random.below(8) == 0).collect(),
            3 => {
                // Whole requests, each there or not.
                let mut last = None;
                let mut kept = false;
                let of = |piece: &Piece| {
                    if last != Some(piece.request) {
                        (last, kept) = (Some(piece.request), random.below(2) == 0);
                    }
                    kept
                };
                pieces.iter().map(of).collect()
            }
            _ if count == 0 => Vec::new(),
            _ => {
                // One request is torn; all others are there, or the later ones are not.
                let torn = pieces[random.below(count as u64) as usize].request;
                let later = random.below(2) == 0;
                let of = |piece: &Piece| match piece.request.cmp(&torn) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => random.below(2) == 0,
                    std::cmp::Ordering::Greater => later,
                };
                pieces.iter().map(of).collect()
            }
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.seed, self.point, self.mask)
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::All => formatter.write_str("all"),
            Self::Missing(ranges) => write_ranges(formatter, '-', ranges),
            Self::Present(ranges) => write_ranges(formatter, '+', ranges),
            Self::First(count) => write!(formatter, "<{count}"),
            Self::Random(number) => write!(formatter, "r{number}"),
        }
    }
}

fn write_ranges(formatter: &mut fmt::Formatter<'_>, sign: char, ranges: &[RangeInclusive<u32>]) -> fmt::Result {
    write!(formatter, "{sign}")?;
    for (index, range) in ranges.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        if range.start() == range.end() {
            write!(formatter, "{comma}{}", range.start())?;
        } else {
            write!(formatter, "{comma}{}-{}", range.start(), range.end())?;
        }
    }
    Ok(())
}

impl FromStr for Name {
    type Err = CrashError;

    fn from_str(text: &str) -> Result<Self, CrashError> {
        parsed(text).ok_or_else(|| CrashError::NotAccepted {
            what: "name of a state",
            value: text.chars().take(200).collect(),
            accepted: "SEED:POINT:MASK, with a mask as none, all, -3,7-9, +3, <12 or r12",
        })
    }
}

fn parsed(text: &str) -> Option<Name> {
    let mut parts = text.splitn(3, ':');
    let (seed, point, mask) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
    let mask = match mask.chars().next()? {
        _ if mask == "none" => Mask::None,
        _ if mask == "all" => Mask::All,
        '-' => Mask::Missing(parsed_ranges(&mask[1..])?),
        '+' => Mask::Present(parsed_ranges(&mask[1..])?),
        '<' => Mask::First(mask[1..].parse().ok()?),
        'r' => Mask::Random(mask[1..].parse().ok()?),
        _ => return None,
    };
    Some(Name { seed, point, mask })
}

fn parsed_ranges(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(first..=last)
    };
    text.split(',').map(range).collect()
}
