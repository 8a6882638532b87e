//! Disks in memory, answered at once: for tests and for conformance.

use std::sync::Mutex;

use assay_iscsi::{Answer, Blocks, Op};

/// Disks in memory.
pub(crate) struct Memory(pub(crate) Mutex<Vec<u8>>);

impl Blocks for Memory {
    fn begin(&self, _volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: Answer) {
        let mut held = self.0.lock().unwrap();
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
