//! Which blocks a level of cache holds, for every host at once.
//!
//! A bit for each line of the volumes says whether it is held, another whether it was used since the hand passed. Lines of
//! one host follow each other, so that its hand goes around its own (the clock of Corbato, 1968, over addresses).

use std::ops::Range;

/// Lines that one host may hold, and where they are.
#[derive(Debug, Clone)]
struct Share {
    words: Range<usize>,
    hand: usize,
    held: u64,
    most: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Held {
    held: Vec<u64>,
    used: Vec<u64>,
    hosts: Vec<Share>,
}

impl Held {
    /// Empty caches of `most` lines each; `hosts` are the words of 64 lines of each host.
    pub(crate) fn new(hosts: &[Range<usize>], most: u64) -> Self {
        let words = hosts.last().map_or(0, |range| range.end);
        let share = |words: &Range<usize>| Share { words: words.clone(), hand: words.start, held: 0, most };
        Self { held: vec![0; words], used: vec![0; words], hosts: hosts.iter().map(share).collect() }
    }

    #[inline]
    pub(crate) fn contains(&self, line: u64) -> bool {
        self.held[(line / 64) as usize] >> (line % 64) & 1 == 1
    }

    /// A line was used.
    #[inline]
    pub(crate) fn touch(&mut self, line: u64) {
        self.used[(line / 64) as usize] |= 1 << (line % 64);
    }

    /// Holds a line of a host, in the place of another where there is no room.
    #[inline]
    pub(crate) fn add(&mut self, host: u32, line: u64) {
        let share = &mut self.hosts[host as usize];
        if share.most == 0 {
            return;
        }
        let (word, bit) = ((line / 64) as usize, 1_u64 << (line % 64));
        self.used[word] |= bit;
        if self.held[word] & bit != 0 {
            return;
        }
        if share.held == share.most {
            loop {
                let at = share.hand;
                let unused = self.held[at] & !self.used[at];
                if unused != 0 {
                    self.held[at] ^= unused & unused.wrapping_neg();
                    break;
                }
                self.used[at] = 0;
                share.hand = if at + 1 == share.words.end { share.words.start } else { at + 1 };
            }
        } else {
            share.held += 1;
        }
        // The hand may have passed over it.
        self.used[word] |= bit;
        self.held[word] |= bit;
    }

    /// Drops a line of a host.
    pub(crate) fn drop_line(&mut self, host: u32, line: u64) {
        if self.contains(line) {
            self.held[(line / 64) as usize] ^= 1 << (line % 64);
            self.hosts[host as usize].held -= 1;
        }
    }

    #[cfg(test)]
    fn lines(&self, host: u32) -> u64 {
        self.hosts[host as usize].held
    }

    /// Fills a host's free room with lines of these ranges, evenly spread over them.
    pub(crate) fn fill(&mut self, host: u32, ranges: &[Range<u64>]) {
        let absent = |(word, mask): (usize, u64)| u64::from((mask & !self.held[word]).count_ones());
        let missing: u64 = ranges.iter().flat_map(words).map(absent).sum();
        let share = &mut self.hosts[host as usize];
        let room = (share.most - share.held).min(missing);
        share.held += room;
        if room == missing {
            ranges.iter().flat_map(words).for_each(|(word, mask)| self.held[word] |= mask);
            return;
        }
        // Neighbours stay together, as I/Os bring them in together: by words, and what room is left line by line.
        let (mut seen, mut taken) = (0, 0);
        for (word, mask) in ranges.iter().flat_map(words) {
            let absent = mask & !self.held[word];
            let count = u64::from(absent.count_ones());
            seen += count;
            if taken + count <= room && taken * missing < room * seen {
                taken += count;
                self.held[word] |= absent;
            }
        }
        for (word, mask) in ranges.iter().flat_map(words) {
            while taken < room && mask & !self.held[word] != 0 {
                let absent = mask & !self.held[word];
                self.held[word] |= absent & absent.wrapping_neg();
                taken += 1;
            }
        }
    }
}

/// The words of a range of lines, each with the bits that are in it.
fn words(range: &Range<u64>) -> impl Iterator<Item = (usize, u64)> + use<> {
    let Range { start, end } = *range;
    let first = start / 64;
    (first..end.div_ceil(64).max(first)).map(move |word| {
        let from = start.saturating_sub(word * 64);
        let to = (end - word * 64).min(64);
        (word as usize, (u64::MAX << from) & (u64::MAX >> (64 - to)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_host_holds_more_than_it_may_and_what_was_just_added_is_held(
            lines in prop::collection::vec((0_u32..3, 0_u64..256), 1..400), most in 1_u64..80,
        ) {
            let mut held = Held::new(&[0..4, 4..8, 8..12], most);
            for (host, line) in lines {
                let line = u64::from(host) * 256 + line;
                held.add(host, line);
                prop_assert!(held.contains(line));
                for (host, words) in [(0, 0..4), (1, 4..8), (2, 8..12)] {
                    let bits: u64 = held.held[words].iter().map(|word| u64::from(word.count_ones())).sum();
                    prop_assert_eq!(bits, held.lines(host));
                    prop_assert!(bits <= most);
                }
            }
        }

        #[test]
        fn filling_takes_the_room_there_is(from in 0_u64..100, count in 1_u64..150, most in 1_u64..256) {
            let mut held = Held::new(std::slice::from_ref(&(0..4)), most);
            held.add(0, 255);
            held.fill(0, std::slice::from_ref(&(from..from + count)));
            prop_assert_eq!(held.lines(0), most.min(count + u64::from(from + count < 256)));
            let bits: u64 = held.held.iter().map(|word| u64::from(word.count_ones())).sum();
            prop_assert_eq!(bits, held.lines(0));
        }
    }

    #[test]
    fn what_is_used_often_outlives_what_is_used_once() {
        let mut held = Held::new(std::slice::from_ref(&(0..16)), 100);
        for round in 0..2000_u64 {
            let hot = round % 50;
            held.add(0, hot);
            held.add(0, 100 + round % 900);
        }
        let hot = (0..50).filter(|line| held.contains(*line)).count();
        assert!(hot >= 48, "{hot} of 50");
    }
}
