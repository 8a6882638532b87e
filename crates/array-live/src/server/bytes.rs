//! Work of an I/O on the bytes, once the model says that it is over.

use super::Server;
use crate::{
    StoreFault,
    io::{Answer, Change, IoKind},
};

/// Bytes of a discard that are looked at together.
const PIECE_BYTES: usize = 1 << 20;

impl Server {
    /// Reads or writes the bytes of an I/O, and answers it. Says whether it failed.
    pub(super) fn carry_out(
        &mut self,
        kind: IoKind,
        volume: u16,
        offset: u64,
        length: u32,
        answer: Box<dyn Answer>,
    ) -> bool {
        let done = match kind {
            IoKind::Read => return self.read(volume, offset, length, answer),
            IoKind::Write { bytes, durable } => {
                let written = self.array.write(volume, offset, &bytes);
                if durable { written.and_then(|()| self.array.store_mut().flush()) } else { written }
            }
            IoKind::Discard => self.discard(volume, offset, length),
            IoKind::Modify(change) => match self.modify(volume, offset, length, change) {
                Ok(Some(at)) => {
                    answer.answer(Ok(&at.to_be_bytes()));
                    return false;
                }
                done => done.map(|_| ()),
            },
            IoKind::Flush => self.array.store_mut().flush(),
            IoKind::Probe => Ok(()),
        };
        let failed = done.is_err();
        answer.answer(done.as_ref().map(|()| &[][..]).map_err(|fault| fault.errno()));
        if let Err(fault) = done {
            self.note_fault(volume, &fault);
        }
        failed
    }

    /// Changes bytes in their place; gives where they differ from what the change needs, and then changes none.
    fn modify(&mut self, volume: u16, offset: u64, length: u32, change: Change) -> Result<Option<u32>, StoreFault> {
        let mut bytes = vec![0; length as usize];
        self.array.read(volume, offset, &mut bytes)?;
        match change(&mut bytes) {
            Ok(()) => self.array.write(volume, offset, &bytes).map(|()| None),
            Err(at) => Ok(Some(at)),
        }
    }

    fn read(&mut self, volume: u16, offset: u64, length: u32, answer: Box<dyn Answer>) -> bool {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(bytes.len().max(length as usize), 0);
        let fault = self.array.read(volume, offset, &mut bytes[..length as usize]).err();
        match &fault {
            None => answer.answer(Ok(&bytes[..length as usize])),
            Some(fault) => answer.answer(Err(fault.errno())),
        }
        self.bytes = bytes;
        if let Some(fault) = &fault {
            self.note_fault(volume, fault);
        }
        fault.is_some()
    }

    /// Makes a range zero. Zeroes stay unwritten: a store is sparse, and a new file system discards all of its device.
    fn discard(&mut self, volume: u16, offset: u64, length: u32) -> Result<(), StoreFault> {
        let mut bytes = vec![0; PIECE_BYTES.min(length as usize)];
        let zeroes = vec![0; bytes.len()];
        let end = offset + u64::from(length);
        let mut at = offset;
        while at < end {
            let count = bytes.len().min((end - at) as usize);
            self.array.read(volume, at, &mut bytes[..count])?;
            if bytes[..count].iter().any(|byte| *byte != 0) {
                self.array.write(volume, at, &zeroes[..count])?;
            }
            at += count as u64;
        }
        Ok(())
    }
}
