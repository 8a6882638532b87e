//! Where the blocks of disks are kept, and the I/Os that a command becomes.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Bytes of one I/O that moves data; longer commands become several.
pub const MOVED_MOST_BYTES: u64 = 1 << 20;

/// A part of a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub at_bytes: u64,
    pub bytes: u64,
}

/// Changes blocks in their place; gives the place of the byte for which they stay as they are.
pub type Change = Box<dyn FnOnce(&mut [u8]) -> Result<(), u32> + Send>;

/// Kind of an I/O.
pub enum Op {
    Read,
    /// Whether the bytes are to be durable before the answer.
    Write {
        bytes: Vec<u8>,
        durable: bool,
    },
    /// Reads, changes and writes blocks, with nothing in between. Answers no bytes; if nothing was changed, the place
    /// that the change gave as four bytes, the most significant first.
    Modify(Change),
    Flush,
    /// The blocks read as zeroes from then on.
    Discard,
}

/// Takes the end of an I/O: the bytes read, or what went wrong as a number of the system's.
pub type Answer = Box<dyn FnOnce(Result<&[u8], i32>) + Send>;

/// A store of blocks. It says how long an I/O takes by answering when it is over.
pub trait Blocks: Send + Sync {
    /// Begins an I/O of a volume; the answer comes from any thread.
    fn begin(&self, volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: Answer);

    /// Takes a line about a client that was refused or broke the protocol. The same line comes once a minute at most.
    fn note(&self, _line: String) {}
}

/// Memory that commands under way hold: all sessions together, or one as a part of it.
#[derive(Debug)]
pub struct Budget {
    held: AtomicU64,
    most: u64,
    whole: Option<Arc<Budget>>,
}

impl Budget {
    /// A bound on memory.
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { held: AtomicU64::new(0), most, whole: None })
    }

    /// A part of a budget, with a bound of its own.
    pub fn part(whole: &Arc<Self>, most: u64) -> Arc<Self> {
        Arc::new(Self { held: AtomicU64::new(0), most, whole: Some(Arc::clone(whole)) })
    }

    /// Bytes that are held now.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes memory until what it gives is dropped; None if there is not so much.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Option<Taken> {
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        let mut taken = Taken { budget: Arc::clone(self), bytes, _whole: None };
        if before + bytes > self.most {
            return None;
        }
        if let Some(whole) = &self.whole {
            taken._whole = Some(Box::new(whole.take(bytes)?));
        }
        Some(taken)
    }
}

/// Memory that a command holds.
#[derive(Debug)]
pub struct Taken {
    budget: Arc<Budget>,
    bytes: u64,
    _whole: Option<Box<Taken>>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// How a command's I/Os ended: their bytes one after the other, or the first failure.
pub type Done = Result<Vec<u8>, i32>;

/// Takes the end of a command's I/Os.
pub type End = Box<dyn FnOnce(Done) + Send>;

/// I/Os of one command, answered together.
struct Together {
    left: AtomicUsize,
    state: Mutex<(Vec<u8>, Option<i32>)>,
    end: Mutex<Option<End>>,
}

impl Together {
    fn ended(&self, at: usize, result: Result<&[u8], i32>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(bytes) => {
                if let Some(place) = state.0.get_mut(at..at + bytes.len()) {
                    place.copy_from_slice(bytes);
                }
            }
            Err(number) => state.1 = state.1.or(Some(number)),
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let (bytes, failed) = std::mem::take(&mut *state);
            drop(state);
            if let Some(end) = self.end.lock().unwrap_or_else(PoisonError::into_inner).take() {
                end(failed.map_or(Ok(bytes), Err));
            }
        }
    }
}

/// Begins the I/Os of a command on parts; the end is told once all are over.
///
/// `op` makes the I/O on a range of the bytes of all parts together. Bytes that are read come back in order.
pub fn begin_all(
    blocks: &dyn Blocks,
    volume: u16,
    parts: &[Part],
    most_bytes: u64,
    read_bytes: usize,
    mut op: impl FnMut(std::ops::Range<usize>) -> Op,
    end: impl FnOnce(Done) + Send + 'static,
) {
    let pieces: Vec<(u64, u64)> = parts
        .iter()
        .flat_map(|part| {
            (0..part.bytes.div_ceil(most_bytes)).map(move |number| {
                let at_bytes = number * most_bytes;
                (part.at_bytes + at_bytes, most_bytes.min(part.bytes - at_bytes))
            })
        })
        .collect();
    match pieces.as_slice() {
        [] => end(Ok(Vec::new())),
        [(at_bytes, bytes)] => {
            let answer = Box::new(move |result: Result<&[u8], i32>| end(result.map(<[u8]>::to_vec)));
            blocks.begin(volume, op(0..*bytes as usize), *at_bytes, *bytes as u32, answer);
        }
        many => {
            let together = Arc::new(Together {
                left: AtomicUsize::new(many.len()),
                state: Mutex::new((vec![0; read_bytes], None)),
                end: Mutex::new(Some(Box::new(end))),
            });
            let mut from = 0;
            for (at_bytes, bytes) in many {
                let (together, begin) = (Arc::clone(&together), from);
                from += *bytes as usize;
                let answer = Box::new(move |result: Result<&[u8], i32>| together.ended(begin, result));
                blocks.begin(volume, op(begin..from), *at_bytes, *bytes as u32, answer);
            }
        }
    }
}

/// Begins the I/Os of a write, whose bytes are those of the part.
pub fn begin_write(
    blocks: &dyn Blocks,
    volume: u16,
    part: Part,
    data: Vec<u8>,
    durable: bool,
    end: impl FnOnce(Done) + Send + 'static,
) {
    if part.bytes <= MOVED_MOST_BYTES {
        // One I/O takes the bytes as they are.
        let mut bytes = Some(data);
        let op = |range: std::ops::Range<usize>| {
            let mut bytes = bytes.take().unwrap_or_default();
            bytes.truncate(range.end);
            Op::Write { bytes, durable }
        };
        begin_all(blocks, volume, &[part], MOVED_MOST_BYTES, 0, op, end);
    } else {
        let op = |range: std::ops::Range<usize>| Op::Write { bytes: data[range].to_vec(), durable };
        begin_all(blocks, volume, &[part], MOVED_MOST_BYTES, 0, op, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each I/O at once, and no flush.
    #[derive(Default)]
    struct Memory(Mutex<Vec<u8>>);

    impl Blocks for Memory {
        fn begin(&self, _volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: Answer) {
            let mut held = self.0.lock().unwrap();
            let place = at_bytes as usize..at_bytes as usize + bytes as usize;
            match op {
                Op::Write { bytes, .. } => held[place].copy_from_slice(&bytes),
                Op::Discard => held[place].fill(0),
                Op::Read => return answer(Ok(&held[place])),
                Op::Flush => return answer(Err(libc::EIO)),
                Op::Modify(_) => {}
            }
            answer(Ok(&[]));
        }
    }

    #[test]
    fn a_long_command_is_answered_once_with_all_of_its_bytes() {
        let memory = Memory(Mutex::new((0..255).cycle().take(4 << 20).collect()));
        let part = Part { at_bytes: 512, bytes: 3 << 20 };
        let (told, heard) = std::sync::mpsc::channel();
        begin_all(&memory, 0, &[part], MOVED_MOST_BYTES, 3 << 20, |_| Op::Read, move |done| told.send(done).unwrap());
        let bytes = heard.recv().unwrap().unwrap();
        assert_eq!(bytes, memory.0.lock().unwrap()[512..512 + (3 << 20)]);
        assert!(heard.recv().is_err());
    }

    #[test]
    fn memory_is_given_back_when_a_command_is_over_or_refused() {
        let budget = Budget::new(100);
        let taken = budget.take(60).unwrap();
        assert!(budget.take(50).is_none());
        drop(taken);
        assert!(budget.take(100).is_some());
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_session_holds_no_more_than_its_part_and_all_together_no_more_than_the_whole() {
        let whole = Budget::new(100);
        let (one, other) = (Budget::part(&whole, 60), Budget::part(&whole, 60));
        let taken = one.take(60).unwrap();
        assert!(one.take(1).is_none());
        assert!(other.take(41).is_none());
        assert_eq!((whole.held_bytes(), other.held_bytes()), (60, 0));
        let _rest = other.take(40).unwrap();
        drop(taken);
        assert!(one.take(60).is_some());
    }
}
