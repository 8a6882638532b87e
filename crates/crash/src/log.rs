//! Every write, flush and discard of a volume, in order, and what clients were told in between.

use std::{fs::File, io, os::unix::fs::FileExt};

/// A disk writes a sector whole or not at all.
pub const SECTOR_BYTES: u64 = 512;

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes were written; with `fua` they are durable when the write completes.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// All writes that completed before are to be durable when it completes.
    Flush,
    /// The bytes of a range are given up; it reads as zeroes.
    Discard,
    /// A client was told something.
    Mark,
}

/// One request of the log. Moments are numbers of events, counted from 1: the log orders all submissions and completions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its kind.
    pub kind: Kind,
    /// First byte on the volume; a multiple of a sector.
    pub offset_bytes: u64,
    /// Length; a multiple of a sector, except for the text of a mark.
    pub length_bytes: u64,
    /// Event at which it was submitted.
    pub submitted: u64,
    /// Event at which it completed; none if the log ends before.
    pub completed: Option<u64>,
    /// When it was submitted, since the log began.
    pub at_ns: u64,
    /// Where the log holds its bytes.
    pub data_at: u64,
}

impl Entry {
    /// Its first sector, and the one after its last.
    pub fn sectors(&self) -> std::ops::Range<u64> {
        self.offset_bytes / SECTOR_BYTES..(self.offset_bytes + self.length_bytes) / SECTOR_BYTES
    }
}

#[derive(Debug)]
enum Data {
    Memory(Vec<u8>),
    File(File),
}

/// The log of one volume.
#[derive(Debug)]
pub struct Log {
    volume_bytes: u64,
    entries: Vec<Entry>,
    events: u64,
    data: Data,
}

impl Log {
    /// An empty log in memory of a volume of this size.
    pub fn new(volume_bytes: u64) -> Self {
        Self { volume_bytes, entries: Vec::new(), events: 0, data: Data::Memory(Vec::new()) }
    }

    pub(crate) fn of_file(volume_bytes: u64, file: File) -> Self {
        Self { volume_bytes, entries: Vec::new(), events: 0, data: Data::File(file) }
    }

    /// Size of the volume.
    pub fn volume_bytes(&self) -> u64 {
        self.volume_bytes
    }

    /// All requests, in the order of their submission.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Number of the last event.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Submits a write and returns its number; it is under way until [`Log::complete`].
    ///
    /// # Panics
    /// It does not consist of whole sectors within the volume.
    pub fn submit_write(&mut self, offset_bytes: u64, bytes: &[u8], fua: bool) -> usize {
        let at = self.keep(bytes);
        self.submit(Kind::Write { fua }, offset_bytes, bytes.len() as u64, at, 0)
    }

    /// Submits a flush and returns its number.
    pub fn submit_flush(&mut self) -> usize {
        self.submit(Kind::Flush, 0, 0, 0, 0)
    }

    /// Completes a request.
    pub fn complete(&mut self, number: usize) {
        self.events += 1;
        debug_assert!(self.entries[number].completed.is_none());
        self.entries[number].completed = Some(self.events);
    }

    /// A write that completes at once.
    pub fn write(&mut self, offset_bytes: u64, bytes: &[u8], fua: bool) {
        let number = self.submit_write(offset_bytes, bytes, fua);
        self.complete(number);
    }

    /// A flush that completes at once.
    pub fn flush(&mut self) {
        let number = self.submit_flush();
        self.complete(number);
    }

    /// A discard that completes at once.
    pub fn discard(&mut self, offset_bytes: u64, length_bytes: u64) {
        let number = self.submit(Kind::Discard, offset_bytes, length_bytes, 0, 0);
        self.complete(number);
    }

    /// Marks that a client was told something.
    pub fn mark(&mut self, text: &str) {
        let at = self.keep(text.as_bytes());
        let number = self.submit(Kind::Mark, 0, text.len() as u64, at, 0);
        self.complete(number);
    }

    pub(crate) fn submit(
        &mut self,
        kind: Kind,
        offset_bytes: u64,
        length_bytes: u64,
        data_at: u64,
        at_ns: u64,
    ) -> usize {
        if kind != Kind::Mark {
            assert!(offset_bytes.is_multiple_of(SECTOR_BYTES) && length_bytes.is_multiple_of(SECTOR_BYTES));
            assert!(offset_bytes.checked_add(length_bytes).is_some_and(|end| end <= self.volume_bytes));
        }
        self.events += 1;
        let submitted = self.events;
        self.entries.push(Entry { kind, offset_bytes, length_bytes, submitted, completed: None, at_ns, data_at });
        self.entries.len() - 1
    }

    fn keep(&mut self, bytes: &[u8]) -> u64 {
        let Data::Memory(kept) = &mut self.data else { panic!("a log in a file is written by its recorder") };
        kept.extend_from_slice(bytes);
        (kept.len() - bytes.len()) as u64
    }

    /// Reads bytes of a write from `from_bytes` of it on.
    ///
    /// # Errors
    /// The log's file cannot be read.
    pub fn read(&self, entry: &Entry, from_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        let at = entry.data_at + from_bytes;
        match &self.data {
            Data::Memory(kept) => {
                let at = usize::try_from(at).expect("memory is addressed");
                into.copy_from_slice(&kept[at..at + into.len()]);
                Ok(())
            }
            Data::File(file) => file.read_exact_at(into, at),
        }
    }

    /// Texts of the marks up to an event, in order.
    ///
    /// # Errors
    /// The log's file cannot be read.
    pub fn marks(&self, until_event: u64) -> io::Result<Vec<String>> {
        let marks = self
            .entries
            .iter()
            .filter(|entry| entry.kind == Kind::Mark && entry.completed.is_some_and(|at| at <= until_event));
        let mut texts = Vec::new();
        for mark in marks {
            let mut text = vec![0; mark.length_bytes as usize];
            self.read(mark, 0, &mut text)?;
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
        Ok(texts)
    }
}
