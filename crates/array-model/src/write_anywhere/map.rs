//! Place of each block; only blocks near moved blocks take memory.

/// Pages of numbered things that exist only once they are asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    keys: Vec<u64>,
    /// Position in `keys` plus one; 0: no key.
    slots: Vec<u32>,
}

impl Numbers {
    /// Position of a key, in the order in which keys were added.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        match self.slots[self.slot(key)] {
            0 => None,
            position => Some(position as usize - 1),
        }
    }

    /// Keys in the order in which they were added.
    pub(super) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Adds a key that is not there; its position is the number of keys before.
    pub(super) fn add(&mut self, key: u64) -> usize {
        if (self.keys.len() + 1) * 2 > self.slots.len() {
            self.slots = vec![0; (self.slots.len() * 2).max(1 << 10)];
            for position in 0..self.keys.len() {
                let slot = self.slot(self.keys[position]);
                self.slots[slot] = position as u32 + 1;
            }
        }
        let slot = self.slot(key);
        debug_assert_eq!(self.slots[slot], 0, "a key is added once");
        self.keys.push(key);
        self.slots[slot] = self.keys.len() as u32;
        self.keys.len() - 1
    }

    /// The slot that has a key, or the empty one where it belongs.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            let position = self.slots[slot];
            if position == 0 || self.keys[position as usize - 1] == key {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }
}

const PAGE_BLOCKS: u64 = 16;
/// Places are kept in five bytes.
pub(super) const PLACES_MAX: u64 = 1 << 40;

#[derive(Debug, Clone)]
struct Page {
    low: [u32; PAGE_BLOCKS as usize],
    high: [u8; PAGE_BLOCKS as usize],
}

impl Page {
    /// Places of blocks that never moved.
    fn at_first(number: u64) -> Self {
        let place = |position: usize| number * PAGE_BLOCKS + position as u64;
        Self {
            low: std::array::from_fn(|position| place(position) as u32),
            high: std::array::from_fn(|position| (place(position) >> 32) as u8),
        }
    }

    #[inline]
    fn get(&self, position: usize) -> u64 {
        u64::from(self.high[position]) << 32 | u64::from(self.low[position])
    }
}

/// Places of blocks: each at its own number until it moves.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    numbers: Numbers,
    pages: Vec<Page>,
}

impl Map {
    #[inline]
    pub(super) fn get(&self, block: u64) -> u64 {
        let position = (block % PAGE_BLOCKS) as usize;
        self.numbers.find(block / PAGE_BLOCKS).map_or(block, |page| self.pages[page].get(position))
    }

    /// Moves a block; returns where it was.
    #[inline]
    pub(super) fn set(&mut self, block: u64, place: u64) -> u64 {
        debug_assert!(place < PLACES_MAX);
        let number = block / PAGE_BLOCKS;
        let page = self.numbers.find(number).unwrap_or_else(|| {
            self.pages.push(Page::at_first(number));
            self.numbers.add(number)
        });
        let (page, position) = (&mut self.pages[page], (block % PAGE_BLOCKS) as usize);
        let before = page.get(position);
        (page.low[position], page.high[position]) = (place as u32, (place >> 32) as u8);
        before
    }

    /// The places of blocks in order, neighbours in one piece: first block, its place, and how many.
    #[inline]
    pub(super) fn each_piece(&self, mut block: u64, end: u64, mut each: impl FnMut(u64, u64, u64)) {
        while block < end {
            let number = block / PAGE_BLOCKS;
            let page_end = end.min((number + 1) * PAGE_BLOCKS);
            let Some(page) = self.numbers.find(number) else {
                each(block, block, page_end - block);
                block = page_end;
                continue;
            };
            let page = &self.pages[page];
            while block < page_end {
                let place = page.get((block % PAGE_BLOCKS) as usize);
                let mut count = 1;
                while block + count < page_end && page.get(((block + count) % PAGE_BLOCKS) as usize) == place + count {
                    count += 1;
                }
                each(block, place, count);
                block += count;
            }
        }
    }
}
