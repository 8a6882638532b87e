use std::{collections::HashMap, fs::File, io, os::unix::fs::FileExt, os::unix::fs::MetadataExt};

use super::volume::FaultyFile;

/// Where a faulty device stores. Offsets and sizes are those within a volume; errors are negative `errno`s.
pub trait Medium {
    /// # Errors
    /// A negative `errno`.
    fn read(&mut self, volume: usize, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), i32>;

    /// # Errors
    /// A negative `errno`.
    fn write(&mut self, volume: usize, offset_bytes: u64, bytes: &[u8]) -> Result<(), i32>;

    /// Makes earlier writes durable.
    ///
    /// # Errors
    /// A negative `errno`.
    fn flush(&mut self, volume: usize) -> Result<(), i32>;

    /// Gives a volume another size; new bytes read as zeros.
    ///
    /// # Errors
    /// A negative `errno`: `-EINVAL` when the volume cannot have another size.
    fn resize(&mut self, volume: usize, size_bytes: u64) -> Result<(), i32>;
}

/// Volumes in memory, zeros at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    volumes: Vec<Vec<u8>>,
}

impl Memory {
    pub fn new(files: &[FaultyFile]) -> Self {
        Self { volumes: files.iter().map(|file| vec![0; file.size_bytes as usize]).collect() }
    }

    /// Bytes of a volume, from its base on.
    pub fn volume(&self, volume: usize) -> &[u8] {
        &self.volumes[volume]
    }
}

impl Medium for Memory {
    fn read(&mut self, volume: usize, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), i32> {
        let offset = offset_bytes as usize;
        bytes.copy_from_slice(&self.volumes[volume][offset..offset + bytes.len()]);
        Ok(())
    }

    fn write(&mut self, volume: usize, offset_bytes: u64, bytes: &[u8]) -> Result<(), i32> {
        let offset = offset_bytes as usize;
        self.volumes[volume][offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self, _volume: usize) -> Result<(), i32> {
        Ok(())
    }

    fn resize(&mut self, volume: usize, size_bytes: u64) -> Result<(), i32> {
        self.volumes[volume].resize(size_bytes as usize, 0);
        Ok(())
    }
}

/// Volumes in files or block devices, several of which may be parts of one. Opened without `O_DIRECT`: the memory of a
/// faulty device is not aligned.
#[derive(Debug)]
pub struct FileMedium {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    file: File,
    base_bytes: u64,
    size_bytes: u64,
    /// A regular file that no other volume is in.
    own: bool,
}

impl FileMedium {
    /// `opened` are the files of `files`, in their order.
    ///
    /// # Errors
    /// A file does not say what it is.
    ///
    /// # Panics
    /// There is not one opened file for each.
    pub fn new(files: &[FaultyFile], opened: Vec<File>) -> io::Result<Self> {
        assert_eq!(files.len(), opened.len(), "one opened file for each volume");
        let mut users = HashMap::new();
        let facts = opened.iter().map(File::metadata).collect::<io::Result<Vec<_>>>()?;
        for fact in &facts {
            *users.entry((fact.dev(), fact.ino())).or_insert(0) += 1;
        }
        let parts = files.iter().zip(opened).zip(facts).map(|((described, file), fact)| Part {
            file,
            base_bytes: described.base_bytes,
            size_bytes: described.size_bytes,
            own: fact.is_file() && users[&(fact.dev(), fact.ino())] == 1,
        });
        Ok(Self { parts: parts.collect() })
    }
}

/// Negative `errno` of an error; the end of a file where there should be bytes is `-EIO`.
fn errno(error: &io::Error) -> i32 {
    -error.raw_os_error().unwrap_or(libc::EIO)
}

impl Medium for FileMedium {
    fn read(&mut self, volume: usize, offset_bytes: u64, bytes: &mut [u8]) -> Result<(), i32> {
        let part = &self.parts[volume];
        part.file.read_exact_at(bytes, part.base_bytes + offset_bytes).map_err(|error| errno(&error))
    }

    fn write(&mut self, volume: usize, offset_bytes: u64, bytes: &[u8]) -> Result<(), i32> {
        let part = &self.parts[volume];
        part.file.write_all_at(bytes, part.base_bytes + offset_bytes).map_err(|error| errno(&error))
    }

    fn flush(&mut self, volume: usize) -> Result<(), i32> {
        self.parts[volume].file.sync_data().map_err(|error| errno(&error))
    }

    fn resize(&mut self, volume: usize, size_bytes: u64) -> Result<(), i32> {
        let part = &mut self.parts[volume];
        if !part.own {
            return Err(-libc::EINVAL);
        }
        // What lies beyond the old end goes first, lest it show as new bytes.
        let kept_bytes = part.size_bytes.min(size_bytes);
        for size in [kept_bytes, size_bytes] {
            part.file.set_len(part.base_bytes + size).map_err(|error| errno(&error))?;
        }
        part.size_bytes = size_bytes;
        Ok(())
    }
}
