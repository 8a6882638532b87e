//! A served volume: its base, the requests of a log that a state has, and later writes.

use std::{collections::HashMap, fs::File, io, os::unix::fs::FileExt, path::Path, sync::Arc};

use crate::{Base, CrashError, Image, Kind, Log, Recorder, log::SECTOR_BYTES};

const BLOCK_BYTES: u64 = 4096;

/// Where writes of a served volume go.
#[derive(Debug)]
enum Course {
    /// Into the base: the volume is being set up.
    SetUp,
    /// Into memory and a log.
    Recorded(Recorder),
    /// Into memory, and they are forgotten.
    Shown,
}

/// A volume of a base that no state changes.
#[derive(Debug)]
pub struct View {
    volume_bytes: u64,
    base_file: File,
    base: Base,
    shown: Option<(Arc<Log>, Image)>,
    own: HashMap<u64, Box<[u8; BLOCK_BYTES as usize]>>,
    course: Course,
}

impl View {
    /// A volume in a file, which is made if it is not there; writes go into the file.
    ///
    /// # Errors
    /// The file cannot be opened or has another size.
    pub fn new(path: &Path, volume_bytes: u64) -> Result<Self, CrashError> {
        let failed = || CrashError::io(format!("{}: cannot be opened", path.display()));
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(failed())?;
        if file.metadata().map_err(failed())?.len() < volume_bytes {
            file.set_len(volume_bytes).map_err(failed())?;
        }
        Ok(Self {
            volume_bytes,
            base: Base::File(file.try_clone().map_err(failed())?),
            base_file: file,
            shown: None,
            own: HashMap::new(),
            course: Course::SetUp,
        })
    }

    /// Size of the volume.
    pub fn volume_bytes(&self) -> u64 {
        self.volume_bytes
    }

    /// Sends all further writes into a log; the base stays unchanged.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn record(&mut self, log: &Path) -> Result<(), CrashError> {
        self.course = Course::Recorded(Recorder::new(log, self.volume_bytes)?);
        Ok(())
    }

    /// Marks in the log that a client was told something.
    ///
    /// # Errors
    /// The log cannot be written, or there is none.
    pub fn mark(&mut self, text: &str) -> io::Result<()> {
        let Course::Recorded(recorder) = &mut self.course else {
            return Err(io::Error::other("no log is being recorded"));
        };
        let number = recorder.submit(Kind::Mark, 0, text.len() as u64, text.as_bytes())?;
        recorder.complete(number)
    }

    /// Ends the log and returns its length in bytes; writes are forgotten from here on.
    ///
    /// # Errors
    /// The log cannot be written, or there is none.
    pub fn finish(&mut self) -> io::Result<u64> {
        match std::mem::replace(&mut self.course, Course::Shown) {
            Course::Recorded(recorder) => recorder.finish(),
            Course::SetUp | Course::Shown => Err(io::Error::other("no log is being recorded")),
        }
    }

    /// Shows the volume with the contents of an image; later writes are forgotten.
    pub fn show(&mut self, log: &Arc<Log>, image: Image) {
        self.course = Course::Shown;
        self.own = HashMap::new();
        self.shown = Some((Arc::clone(log), image));
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// The base or the log cannot be read.
    pub fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        self.read_below(offset_bytes, into)?;
        if self.own.is_empty() {
            return Ok(());
        }
        let end = offset_bytes + into.len() as u64;
        for block in offset_bytes / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            if let Some(bytes) = self.own.get(&block) {
                let (from, until) = ((block * BLOCK_BYTES).max(offset_bytes), ((block + 1) * BLOCK_BYTES).min(end));
                let within = (from % BLOCK_BYTES) as usize;
                let length = (until - from) as usize;
                into[(from - offset_bytes) as usize..(until - offset_bytes) as usize]
                    .copy_from_slice(&bytes[within..within + length]);
            }
        }
        Ok(())
    }

    fn read_below(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        match &self.shown {
            Some((log, image)) => image.read(log, &self.base, offset_bytes, into),
            None => self.base.read(offset_bytes, into),
        }
    }

    /// Writes bytes; where they begin or end within a sector, the sector is read first, as a disk's driver would do.
    ///
    /// # Errors
    /// The base or the log cannot be read or written.
    pub fn write(&mut self, offset_bytes: u64, bytes: &[u8], fua: bool) -> io::Result<()> {
        let end = offset_bytes + bytes.len() as u64;
        let (first, after) = (offset_bytes / SECTOR_BYTES, end.div_ceil(SECTOR_BYTES));
        let (from, length) = (first * SECTOR_BYTES, (after - first) * SECTOR_BYTES);
        if length == bytes.len() as u64 {
            return self.write_sectors(from, bytes, fua);
        }
        let mut whole = vec![0; length as usize];
        self.read(from, &mut whole)?;
        let within = (offset_bytes - from) as usize;
        whole[within..within + bytes.len()].copy_from_slice(bytes);
        self.write_sectors(from, &whole, fua)
    }

    fn write_sectors(&mut self, offset_bytes: u64, bytes: &[u8], fua: bool) -> io::Result<()> {
        let mut request = None;
        match &mut self.course {
            Course::SetUp => return self.base_file.write_all_at(bytes, offset_bytes),
            Course::Recorded(recorder) => {
                request = Some(recorder.submit(Kind::Write { fua }, offset_bytes, bytes.len() as u64, bytes)?);
            }
            Course::Shown => {}
        }
        self.keep(offset_bytes, bytes)?;
        self.completed(request)
    }

    /// Flushes.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Course::Recorded(recorder) = &mut self.course {
            let request = recorder.submit(Kind::Flush, 0, 0, &[])?;
            recorder.complete(request)?;
        }
        Ok(())
    }

    /// Discards the whole sectors of a range.
    ///
    /// # Errors
    /// The base or the log cannot be written.
    pub fn discard(&mut self, offset_bytes: u64, length_bytes: u64) -> io::Result<()> {
        let from = offset_bytes.div_ceil(SECTOR_BYTES) * SECTOR_BYTES;
        let until = (offset_bytes + length_bytes) / SECTOR_BYTES * SECTOR_BYTES;
        if from >= until {
            return Ok(());
        }
        let mut request = None;
        if let Course::Recorded(recorder) = &mut self.course {
            request = Some(recorder.submit(Kind::Discard, from, until - from, &[])?);
        }
        let is_set_up = matches!(self.course, Course::SetUp);
        let zeroes = vec![0; (BLOCK_BYTES * 256) as usize];
        let mut at = from;
        while at < until {
            let part = &zeroes[..zeroes.len().min((until - at) as usize)];
            if is_set_up {
                self.base_file.write_all_at(part, at)?;
            } else {
                self.keep(at, part)?;
            }
            at += part.len() as u64;
        }
        self.completed(request)
    }

    fn completed(&mut self, request: Option<u64>) -> io::Result<()> {
        match (&mut self.course, request) {
            (Course::Recorded(recorder), Some(request)) => recorder.complete(request),
            _ => Ok(()),
        }
    }

    fn keep(&mut self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset_bytes + bytes.len() as u64;
        for block in offset_bytes / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) {
            let (from, until) = ((block * BLOCK_BYTES).max(offset_bytes), ((block + 1) * BLOCK_BYTES).min(end));
            let new = &bytes[(from - offset_bytes) as usize..(until - offset_bytes) as usize];
            if !self.own.contains_key(&block) {
                let mut below = Box::new([0; BLOCK_BYTES as usize]);
                if new.len() < below.len() {
                    let there = (self.volume_bytes - block * BLOCK_BYTES).min(BLOCK_BYTES) as usize;
                    self.read_below(block * BLOCK_BYTES, &mut below[..there])?;
                }
                self.own.insert(block, below);
            }
            let within = (from % BLOCK_BYTES) as usize;
            let kept = self.own.get_mut(&block).expect("it was put there");
            kept[within..within + new.len()].copy_from_slice(new);
        }
        Ok(())
    }
}
