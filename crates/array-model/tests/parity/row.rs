//! A row of chunks with its parity, written and lost.

use assay_array_model::{Code, RaidPolicy};

/// Bytes from a seed, none of them special (splitmix64).
pub(crate) fn random_bytes(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    });
    words.flat_map(u64::to_le_bytes).take(bytes).collect()
}

/// What kind of row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) policy: RaidPolicy,
    /// Of DP; 0: the code's own choice.
    pub(crate) prime: u32,
    pub(crate) columns: u32,
    pub(crate) chunk_bytes: u64,
}

impl Shape {
    pub(crate) fn code(&self) -> Code {
        match self.prime {
            0 => Code::new(self.policy, self.columns, self.chunk_bytes).unwrap(),
            prime => Code::diagonal(prime, self.columns, self.chunk_bytes).unwrap(),
        }
    }
}

/// The same bytes of some columns, written at once.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) columns: Vec<u32>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) seed: u64,
}

pub(crate) struct Row {
    pub(crate) code: Code,
    pub(crate) data: Vec<Vec<u8>>,
    pub(crate) parity: Vec<Vec<u8>>,
}

pub(crate) fn shared(chunks: &[Vec<u8>]) -> Vec<&[u8]> {
    chunks.iter().map(Vec::as_slice).collect()
}

pub(crate) fn exclusive(chunks: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    chunks.iter_mut().map(Vec::as_mut_slice).collect()
}

impl Row {
    pub(crate) fn new(shape: &Shape, seed: u64) -> Self {
        let code = shape.code();
        let chunk_bytes = shape.chunk_bytes as usize;
        let data: Vec<_> = (0..u64::from(shape.columns)).map(|c| random_bytes(seed * 1000 + c, chunk_bytes)).collect();
        let mut row = Self { parity: vec![vec![0xA5; chunk_bytes]; code.parity_chunks()], code, data };
        row.parity = row.encoded();
        row
    }

    /// Parity from scratch.
    pub(crate) fn encoded(&self) -> Vec<Vec<u8>> {
        let mut parity: Vec<_> = self.parity.iter().map(|chunk| vec![0x5A; chunk.len()]).collect();
        self.code.encode(&shared(&self.data), &mut exclusive(&mut parity)).unwrap();
        parity
    }

    /// Writes, and brings parity up to date in both ways, which must agree.
    pub(crate) fn write(&mut self, write: &Write) {
        let range = write.offset as usize..(write.offset + write.bytes) as usize;
        let before = self.parity.clone();
        for (index, column) in write.columns.iter().enumerate() {
            let new = random_bytes(write.seed + index as u64, range.len());
            let old = self.data[*column as usize][range.clone()].to_vec();
            let mut parity = exclusive(&mut self.parity);
            self.code.update(&mut parity, *column, write.offset, &old, &new).unwrap();
            self.data[*column as usize][range.clone()].copy_from_slice(&new);
        }
        let mut again = before;
        let data = shared(&self.data);
        self.code.reconstruct(&data, &mut exclusive(&mut again), write.offset, write.bytes).unwrap();
        assert!(again == self.parity, "update and reconstruct differ");
        assert!(self.encoded() == self.parity, "parity after a write is not that of the data");
    }

    /// Loses these chunks and compares what is rebuilt.
    pub(crate) fn lose(&self, lost: &[u32]) {
        let whole: Vec<_> = self.data.iter().chain(&self.parity).cloned().collect();
        let mut chunks = whole.clone();
        for chunk in lost {
            chunks[*chunk as usize].fill(0xEE);
        }
        self.code.rebuild(&mut exclusive(&mut chunks), lost).unwrap();
        assert!(chunks == whole, "chunks {lost:?} did not come back");
    }

    /// Every chunk alone, and every pair if the code bears two.
    pub(crate) fn lose_all_in_turn(&self) {
        let chunks = (self.data.len() + self.parity.len()) as u32;
        self.lose(&[]);
        for first in 0..chunks {
            self.lose(&[first]);
            if self.parity.len() == 2 {
                (first + 1..chunks).for_each(|second| self.lose(&[first, second]));
            }
        }
    }
}
