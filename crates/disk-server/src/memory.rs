//! A disk in memory, answered at once.

use std::sync::{Mutex, PoisonError};

use crate::{Answer, Blocks, Op};

/// A disk in memory, answered at once: for tests, and to measure a server alone.
#[derive(Debug)]
pub struct Memory(pub Mutex<Vec<u8>>);

impl Memory {
    /// A disk of zeroes.
    #[must_use]
    pub fn zeroes(bytes: u64) -> Self {
        Self(Mutex::new(vec![0; usize::try_from(bytes).expect("it fits into memory")]))
    }
}

impl Blocks for Memory {
    fn begin(&self, _volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: Answer) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = at_bytes as usize..at_bytes as usize + bytes as usize;
        match op {
            Op::Read => return answer(Ok(&held[place])),
            Op::Write { bytes, .. } => held[place].copy_from_slice(&bytes),
            Op::Modify(change) => {
                if let Err(at) = change(&mut held[place]) {
                    return answer(Ok(&at.to_be_bytes()));
                }
            }
            Op::Flush => {}
            Op::Discard => held[place].fill(0),
        }
        answer(Ok(&[]));
    }
}
