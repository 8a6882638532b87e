//! Sorting more than memory holds: runs of bounded size go to a file that has no name, and are merged from there.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// Bytes that are sorted in memory.
const RUN_BYTES: usize = 32 << 20;
/// Bytes of all runs together that are held while they are merged.
const MERGE_BYTES: usize = 32 << 20;
const HEADER_BYTES: usize = 20;

/// A file without a name in a folder: it goes with its last user, whatever ends that.
pub(super) fn unnamed_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(folder) {
        Ok(file) => Ok(file),
        Err(_) => {
            // Some file systems know no such files.
            let name = folder.join(format!(".assay-log-{}-{:x}", std::process::id(), rand_name()));
            let file = options.create_new(true).open(&name)?;
            std::fs::remove_file(&name)?;
            Ok(file)
        }
    }
}

/// Differs from call to call.
fn rand_name() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Takes pieces with a key each, and gives them sorted by key, equal keys in the order in which they came.
pub(super) struct Sorter {
    arena: Vec<u8>,
    /// Key, number, and place in the arena.
    pieces: Vec<(u64, u64, usize, usize)>,
    runs: Vec<(u64, u64)>,
    file: File,
    written: u64,
    number: u64,
    run_bytes: usize,
}

impl Sorter {
    pub(super) fn new(file: File) -> Self {
        Self {
            arena: Vec::new(),
            pieces: Vec::new(),
            runs: Vec::new(),
            file,
            written: 0,
            number: 0,
            run_bytes: RUN_BYTES,
        }
    }

    pub(super) fn push(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let from = self.arena.len();
        write(&mut self.arena);
        self.pieces.push((key, self.number, from, self.arena.len()));
        self.number += 1;
        if self.arena.len() + self.pieces.len() * 32 >= self.run_bytes { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.pieces.sort_unstable();
        let from = self.written;
        let mut out = io::BufWriter::with_capacity(1 << 20, &self.file);
        for (key, number, start, end) in self.pieces.drain(..) {
            let piece = &self.arena[start..end];
            out.write_all(&key.to_le_bytes())?;
            out.write_all(&number.to_le_bytes())?;
            out.write_all(&(piece.len() as u32).to_le_bytes())?;
            out.write_all(piece)?;
            self.written += (HEADER_BYTES + piece.len()) as u64;
        }
        out.flush()?;
        drop(out);
        self.arena.clear();
        self.runs.push((from, self.written));
        Ok(())
    }

    /// Hands over all pieces in their order.
    pub(super) fn merge(mut self, mut each: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
        self.spill()?;
        let held = (MERGE_BYTES / self.runs.len().max(1)).clamp(4 << 10, 1 << 20);
        let mut runs: Vec<_> = self.runs.iter().map(|(from, to)| Run::new(&self.file, *from, *to, held)).collect();
        let mut heap = BinaryHeap::new();
        for (place, run) in runs.iter_mut().enumerate() {
            if let Some((key, number)) = run.next()? {
                heap.push(Reverse((key, number, place)));
            }
        }
        while let Some(Reverse((key, _, place))) = heap.pop() {
            each(key, &runs[place].piece)?;
            if let Some((key, number)) = runs[place].next()? {
                heap.push(Reverse((key, number, place)));
            }
        }
        Ok(())
    }
}

/// A part of a file, read from its beginning on.
pub(super) struct Part<'a> {
    file: &'a File,
    at: u64,
    to: u64,
}

impl<'a> Part<'a> {
    pub(super) fn new(file: &'a File, at: u64, to: u64) -> Self {
        Self { file, at, to }
    }
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min((self.to - self.at) as usize);
        let count = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

struct Run<'a> {
    part: BufReader<Part<'a>>,
    piece: Vec<u8>,
}

impl<'a> Run<'a> {
    fn new(file: &'a File, from: u64, to: u64, held: usize) -> Self {
        Self { part: BufReader::with_capacity(held, Part::new(file, from, to)), piece: Vec::new() }
    }

    /// Reads the next piece; gives its key and number.
    fn next(&mut self) -> io::Result<Option<(u64, u64)>> {
        if self.part.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES];
        self.part.read_exact(&mut header)?;
        let number = |place: usize| u64::from_le_bytes(header[place..place + 8].try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(header[16..].try_into().expect("four bytes"));
        self.piece.resize(length as usize, 0);
        self.part.read_exact(&mut self.piece)?;
        Ok(Some((number(0), number(8))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_by_key_and_in_their_order() {
        let mut sorter = Sorter::new(unnamed_file(&std::env::temp_dir()).unwrap());
        sorter.run_bytes = 4096;
        let keys: Vec<u64> = (0..5000).map(|number| number * 7919 % 13).collect();
        for (number, key) in keys.iter().enumerate() {
            sorter.push(*key, |out| out.extend_from_slice(&(number as u64).to_le_bytes())).unwrap();
        }
        assert!(sorter.runs.len() > 10);
        let mut found = Vec::new();
        sorter
            .merge(|key, piece| {
                found.push((key, u64::from_le_bytes(piece.try_into().unwrap())));
                Ok(())
            })
            .unwrap();
        let mut expected: Vec<_> = keys.iter().zip(0..).map(|(key, number)| (*key, number)).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
