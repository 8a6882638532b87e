//! Free places, and the frontier that takes them.
//!
//! Places are numbered in the order in which a file on an empty array takes them: a run on the first data disk of a
//! set, a run on the next, and so on; then the next row of runs. Blocks at one offset of a row's runs make a stripe.

use super::map::Numbers;

/// Free places by rows of runs.
#[derive(Debug, Clone)]
pub(crate) struct Space {
    columns: u32,
    run_blocks: u32,
    /// Words of bits for a run.
    words: usize,
    rows: u64,
    /// First row of the free rows at the end; earlier rows not in `numbers` are full.
    first_free_row: u64,
    free: u64,
    /// Places of each free row that others than volumes hold.
    filled: u32,
    numbers: Numbers,
    free_in_row: Vec<u32>,
    /// Places that are used, column after column, of the rows in `numbers`.
    used: Vec<u64>,
    /// A bit for each row with a free place.
    open: Vec<u64>,
    /// Rows up to the last one in which something ever lay.
    begun_rows: u64,
    /// The frontier.
    row: u64,
    offset: u32,
}

impl Space {
    /// Rows of `columns` runs of `run_blocks`, of which the first `used` places hold something.
    pub(crate) fn new(columns: u32, run_blocks: u32, rows: u64, used: u64) -> Self {
        let row_blocks = u64::from(columns) * u64::from(run_blocks);
        let (full_rows, rest) = (used / row_blocks, used % row_blocks);
        let mut open = vec![u64::MAX; rows.div_ceil(64) as usize];
        open[..(full_rows / 64) as usize].fill(0);
        if let Some(word) = open.get_mut((full_rows / 64) as usize) {
            *word &= u64::MAX << (full_rows % 64);
        }
        if !rows.is_multiple_of(64) {
            *open.last_mut().expect("there are rows") &= (1 << (rows % 64)) - 1;
        }
        let mut space = Self {
            columns,
            run_blocks,
            words: run_blocks.div_ceil(64) as usize,
            rows,
            first_free_row: full_rows,
            free: rows * row_blocks - used,
            filled: 0,
            numbers: Numbers::default(),
            free_in_row: Vec::new(),
            used: Vec::new(),
            open,
            begun_rows: used.div_ceil(row_blocks),
            // A row that volumes fill in part can only be written in part.
            row: used.div_ceil(row_blocks) % rows,
            offset: 0,
        };
        if rest > 0 {
            let page = space.page(full_rows);
            for within in 0..rest as u32 {
                let (word, bit) = space.bit(page, within);
                space.used[word] |= bit;
            }
            space.free_in_row[page] -= rest as u32;
        }
        space
    }

    pub(crate) fn row_blocks(&self) -> u32 {
        self.columns * self.run_blocks
    }

    /// Words of bits for a run.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    #[inline]
    pub(crate) fn row_of(&self, place: u64) -> u64 {
        place / u64::from(self.row_blocks())
    }

    #[inline]
    pub(crate) fn is_row_start(&self, place: u64) -> bool {
        place.is_multiple_of(u64::from(self.row_blocks()))
    }

    fn free_in(&self, row: u64) -> u32 {
        match self.numbers.find(row) {
            Some(page) => self.free_in_row[page],
            None if row < self.first_free_row => 0,
            None => self.row_blocks() - self.filled,
        }
    }

    /// Fills free places for others than volumes, until `share` of all places is used. The places are spread over all
    /// rows, as after years of overwriting. Returns whether there were free places enough.
    pub(crate) fn fill(&mut self, share: f64) -> bool {
        let all = self.rows * u64::from(self.row_blocks());
        let wanted = (all as f64 * share) as u64;
        let (used, row_blocks) = (all - self.free, self.row_blocks());
        if wanted <= used {
            return false;
        }
        // In every row alike, beside those that are filled already. The first guess takes free places for spread evenly.
        let left = f64::from(row_blocks - self.filled);
        let more = ((wanted - used) as f64 / self.free as f64 * left).round() as u32;
        let off = |filled: u32| (all - self.free_if(filled)).abs_diff(wanted);
        let mut filled = (self.filled + more).min(row_blocks - 1);
        while filled > self.filled && off(filled - 1) < off(filled) {
            filled -= 1;
        }
        while filled < row_blocks - 1 && off(filled + 1) < off(filled) {
            filled += 1;
        }
        self.filled = filled;
        for page in 0..self.free_in_row.len() {
            let row = self.numbers.keys()[page];
            self.fill_page(page, row);
            if self.free_in_row[page] == 0 {
                self.open[(row / 64) as usize] &= !(1 << (row % 64));
            }
        }
        self.free = self.free_if(filled);
        true
    }

    /// Free places if others held `filled` places of each row.
    fn free_if(&self, filled: u32) -> u64 {
        let pages = self.numbers.keys().iter().enumerate().map(|(page, row)| {
            let taken = filled_places(*row, self.row_blocks(), filled).filter(|place| {
                let (word, bit) = self.bit(page, *place);
                self.used[word] & bit == 0
            });
            u64::from(self.free_in_row[page]) - taken.count() as u64
        });
        let open_rows = self.rows - self.first_free_row.min(self.rows);
        let numbered = self.numbers.keys().iter().filter(|row| **row >= self.first_free_row).count() as u64;
        pages.sum::<u64>() + (open_rows - numbered) * u64::from(self.row_blocks() - filled)
    }

    /// Share of all places that is used.
    pub(crate) fn used_share(&self) -> f64 {
        1.0 - self.free as f64 / (self.rows * u64::from(self.row_blocks())) as f64
    }

    /// Marks the places of a row that others hold.
    fn fill_page(&mut self, page: usize, row: u64) {
        for place in filled_places(row, self.row_blocks(), self.filled) {
            let (word, bit) = self.bit(page, place);
            self.free_in_row[page] -= u32::from(self.used[word] & bit == 0);
            self.used[word] |= bit;
        }
    }

    /// The bits of a row.
    fn page(&mut self, row: u64) -> usize {
        if let Some(page) = self.numbers.find(row) {
            return page;
        }
        let is_full = row < self.first_free_row;
        self.free_in_row.push(if is_full { 0 } else { self.row_blocks() });
        // Bits beyond a short run are never free.
        let word = if is_full || self.run_blocks >= 64 {
            if is_full { u64::MAX } else { 0 }
        } else {
            u64::MAX << self.run_blocks
        };
        self.used.resize(self.used.len() + self.words * self.columns as usize, word);
        let page = self.numbers.add(row);
        if !is_full && self.filled > 0 {
            self.fill_page(page, row);
        }
        page
    }

    fn bit(&self, page: usize, within: u32) -> (usize, u64) {
        let (column, offset) = (within / self.run_blocks, within % self.run_blocks);
        let run = page * self.columns as usize + column as usize;
        (run * self.words + (offset / 64) as usize, 1 << (offset % 64))
    }

    /// Frees a place.
    #[inline]
    pub(crate) fn release(&mut self, place: u64) {
        let row = self.row_of(place);
        let page = self.page(row);
        let (word, bit) = self.bit(page, (place - row * u64::from(self.row_blocks())) as u32);
        debug_assert!(self.used[word] & bit != 0, "only a used place is freed");
        self.used[word] &= !bit;
        self.free_in_row[page] += 1;
        self.open[(row / 64) as usize] |= 1 << (row % 64);
        self.free += 1;
    }

    /// Takes a free place; says whether it was one.
    pub(crate) fn occupy(&mut self, place: u64) -> bool {
        let row = self.row_of(place);
        if row >= self.rows {
            return false;
        }
        let page = self.page(row);
        let (word, bit) = self.bit(page, (place - row * u64::from(self.row_blocks())) as u32);
        if self.used[word] & bit != 0 {
            return false;
        }
        self.used[word] |= bit;
        self.count_taken(row, page, 1);
        true
    }

    /// Counts places of a row that were taken.
    fn count_taken(&mut self, row: u64, page: usize, count: u32) {
        self.free -= u64::from(count);
        self.free_in_row[page] -= count;
        if self.free_in_row[page] == 0 {
            self.open[(row / 64) as usize] &= !(1 << (row % 64));
        }
        self.begun_rows = self.begun_rows.max(row + 1);
    }

    pub(crate) fn begun_rows(&self) -> u64 {
        self.begun_rows
    }

    pub(crate) fn places(&self) -> u64 {
        self.rows * u64::from(self.row_blocks())
    }

    /// Begins the frontier at the next suitable row after `row`.
    pub(crate) fn begin_after(&mut self, row: u64) {
        self.row = row;
        self.next_row();
    }

    /// Free places of the frontier's row from its offset on; goes to another row if there are none.
    pub(crate) fn left(&mut self) -> u32 {
        let left = self.left_in_row();
        if left > 0 {
            return left;
        }
        self.next_row();
        self.left_in_row()
    }

    fn left_in_row(&mut self) -> u32 {
        let page = self.page(self.row);
        let mut left = 0;
        for column in 0..self.columns as usize {
            for word in 0..self.words {
                left += self.free_word(page, column, word, self.run_blocks).count_ones();
            }
        }
        left
    }

    /// Free places of a word of a run, from the frontier's offset to before `end`.
    #[inline]
    fn free_word(&self, page: usize, column: usize, word: usize, end: u32) -> u64 {
        let first = word as u32 * 64;
        let from = self.offset.saturating_sub(first);
        let to = end.saturating_sub(first).min(64);
        if from >= to {
            return 0;
        }
        let mask = (u64::MAX << from) & (u64::MAX >> (64 - to));
        !self.used[(page * self.columns as usize + column) * self.words + word] & mask
    }

    /// The frontier goes on, around the disks, to the next row that is at least as free as the mean: rows that can be
    /// written in whole stripes go first, and some row always is.
    fn next_row(&mut self) {
        let least = (self.free / self.rows).max(1) as u32;
        let mut row = self.row;
        for _ in 0..self.rows {
            row = self.next_open(row);
            if self.free_in(row) >= least {
                break;
            }
        }
        (self.row, self.offset) = (row, 0);
    }

    /// The next row after one, around the disks, with a free place.
    fn next_open(&self, row: u64) -> u64 {
        let start = if row + 1 == self.rows { 0 } else { row + 1 };
        let (first, words) = ((start / 64) as usize, self.open.len());
        for step in 0..=words {
            let word = (first + step) % words;
            let mask = if step == 0 { u64::MAX << (start % 64) } else { u64::MAX };
            let bits = self.open[word] & mask;
            if bits != 0 {
                return word as u64 * 64 + u64::from(bits.trailing_zeros());
            }
        }
        unreachable!("the member keeps free places")
    }

    fn free_at(&self, page: usize, offset: u32) -> u32 {
        let (word, bit) = ((offset / 64) as usize, 1 << (offset % 64));
        let first = page * self.columns as usize;
        (first..first + self.columns as usize).filter(|run| self.used[run * self.words + word] & bit == 0).count()
            as u32
    }

    /// How many of `at_hand` blocks to place next: what fills stripes, or all if they fill none.
    pub(crate) fn room(&mut self, at_hand: u32) -> u32 {
        let left = self.left();
        if at_hand >= left {
            return left;
        }
        let page = self.page(self.row);
        let mut room = 0;
        for offset in self.offset..self.run_blocks {
            let more = self.free_at(page, offset);
            if room + more > at_hand {
                break;
            }
            room += more;
        }
        if room == 0 { at_hand } else { room }
    }

    /// Takes `count` free places, run after run, as low in the row as whole stripes need. Gives them in order as first
    /// place and length, and as bits of the row; returns the row.
    pub(crate) fn take(&mut self, count: u32, pieces: &mut Vec<(u64, u32)>, written: &mut Vec<u64>) -> u64 {
        debug_assert!(count <= self.left_in_row());
        let row = self.row;
        let page = self.page(row);
        let (end, exact) = self.end(page, count);
        let first = row * u64::from(self.row_blocks());
        let mut left = count;
        pieces.clear();
        written.clear();
        for column in 0..self.columns as usize {
            for word in 0..self.words {
                let mut free = self.free_word(page, column, word, end);
                while free.count_ones() > left {
                    free ^= 1 << (63 - free.leading_zeros());
                }
                left -= free.count_ones();
                self.used[(page * self.columns as usize + column) * self.words + word] |= free;
                written.push(free);
                let base = first + column as u64 * u64::from(self.run_blocks) + word as u64 * 64;
                bit_runs(&[free], |offset, length| match pieces.last_mut() {
                    Some((place, before)) if *place + u64::from(*before) == base + u64::from(offset) => {
                        *before += length;
                    }
                    _ => pieces.push((base + u64::from(offset), length)),
                });
            }
        }
        debug_assert_eq!(left, 0);
        self.count_taken(row, page, count);
        if exact {
            self.offset = end;
        }
        row
    }

    /// Offset before which there are `count` free places, and whether there are no more. Less than a stripe goes on one
    /// disk.
    fn end(&self, page: usize, count: u32) -> (u32, bool) {
        let mut room = 0;
        for offset in self.offset..self.run_blocks {
            let before = room;
            room += self.free_at(page, offset);
            if room >= count {
                let less_than_stripe = before == 0 && room > count;
                return (if less_than_stripe { self.run_blocks } else { offset + 1 }, room == count);
            }
        }
        (self.run_blocks, true)
    }
}

/// `count` places of a row, spread evenly from a place that differs from row to row. A larger count contains the places
/// of a smaller one.
fn filled_places(row: u64, row_blocks: u32, count: u32) -> impl Iterator<Item = u32> {
    let blocks = u64::from(row_blocks);
    let first = (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % blocks;
    // A step near the golden section that comes to every place.
    let common = |mut one: u64, mut other: u64| {
        while other > 0 {
            (one, other) = (other, one % other);
        }
        one
    };
    let near = (blocks as f64 * 0.618) as u64;
    let step = (near.max(1)..).find(|step| common(*step, blocks) == 1).expect("a prime is among them");
    (0..u64::from(count)).map(move |number| ((first + number * step) % blocks) as u32)
}

/// Runs of bits in words: the first and how many.
#[inline]
pub(crate) fn bit_runs(words: &[u64], mut each: impl FnMut(u32, u32)) {
    let (mut first, mut count) = (0, 0);
    for (number, word) in words.iter().enumerate() {
        let (mut bits, base) = (*word, number as u32 * 64);
        while bits != 0 {
            let from = bits.trailing_zeros();
            let length = (bits >> from).trailing_ones();
            bits &= if from + length == 64 { 0 } else { u64::MAX << (from + length) };
            if count > 0 && first + count == base + from {
                count += length;
            } else {
                if count > 0 {
                    each(first, count);
                }
                (first, count) = (base + from, length);
            }
        }
    }
    if count > 0 {
        each(first, count);
    }
}

#[cfg(test)]
impl Space {
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// The counts and the bit of each row say what its places do.
    pub(crate) fn check_rows(&self) {
        for row in 0..self.rows {
            let first = row * u64::from(self.row_blocks());
            let places = first..first + u64::from(self.row_blocks());
            let free = places.filter(|place| !self.is_used(*place)).count() as u32;
            assert_eq!(free, self.free_in(row), "row {row}");
            assert_eq!(self.open[(row / 64) as usize] >> (row % 64) & 1 == 1, free > 0, "row {row}");
        }
    }

    pub(crate) fn is_used(&self, place: u64) -> bool {
        let row = self.row_of(place);
        match self.numbers.find(row) {
            Some(page) => {
                let (word, bit) = self.bit(page, (place % u64::from(self.row_blocks())) as u32);
                self.used[word] & bit != 0
            }
            None => {
                let within = (place % u64::from(self.row_blocks())) as u32;
                row < self.first_free_row
                    || filled_places(row, self.row_blocks(), self.filled).any(|filled| filled == within)
            }
        }
    }
}
