//! What may happen to the files of a store while no server has it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use proptest::prelude::*;

/// What happens to one file.
#[derive(Debug, Clone)]
pub(crate) enum Damage {
    Deleted,
    /// To so large a share of its length.
    Truncated(f64),
    /// With another file of the store.
    Swapped(prop::sample::Index),
    /// By what it was at an earlier end of a server.
    Older,
    FirstBlock(u8),
    /// Of another store of the same array.
    Foreign,
    /// One byte, where the store keeps sums of what lies there.
    Byte(prop::sample::Index, u8),
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        2 => Just(Damage::Deleted),
        2 => (0.0..1.0).prop_map(Damage::Truncated),
        2 => any::<prop::sample::Index>().prop_map(Damage::Swapped),
        3 => Just(Damage::Older),
        2 => any::<u8>().prop_map(Damage::FirstBlock),
        1 => Just(Damage::Foreign),
        2 => (any::<prop::sample::Index>(), 1_u8..).prop_map(|(at, with)| Damage::Byte(at, with)),
    ]
}

/// The files of a store, by name, but for its lock.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path));
    named.filter(|(name, _)| name != "lock").collect()
}

/// Copies a store as it is.
pub(crate) fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for (name, path) in files(from) {
        sparsely(&path, &to.join(name));
    }
}

/// Copies a file without the zeroes of large files that are mostly empty.
fn sparsely(from: &Path, to: &Path) {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let file = fs::File::open(from).unwrap();
    let about = file.metadata().unwrap();
    if about.len() < 1 << 20 || about.blocks() * 512 >= about.len() {
        fs::copy(from, to).unwrap();
        return;
    }
    let _ = fs::remove_file(to);
    let other = fs::File::create(to).unwrap();
    other.set_len(about.len()).unwrap();
    let (mut at, mut bytes) = (0, vec![0; 1 << 16]);
    let seek = |at: u64, how| {
        // SAFETY: lseek takes no memory.
        u64::try_from(unsafe { libc::lseek(std::os::fd::AsRawFd::as_raw_fd(&file), at as i64, how) }).ok()
    };
    while let Some(first) = seek(at, libc::SEEK_DATA) {
        at = seek(first, libc::SEEK_HOLE).unwrap();
        let mut place = first;
        while place < at {
            let count = ((at - place) as usize).min(bytes.len());
            file.read_exact_at(&mut bytes[..count], place).unwrap();
            other.write_all_at(&bytes[..count], place).unwrap();
            place += count as u64;
        }
    }
}

impl Damage {
    /// Does it to a file. Says whether the file is another one now.
    pub(crate) fn happens(&self, folder: &Path, older: &Path, foreign: &Path, name: &str) -> bool {
        use std::os::unix::fs::FileExt;
        let path = folder.join(name);
        let about = fs::metadata(&path).unwrap();
        let opened = || fs::File::options().read(true).write(true).open(&path).unwrap();
        match self {
            Self::Deleted => fs::remove_file(path).unwrap(),
            Self::Truncated(share) => {
                let to = ((about.len() as f64 * share) as u64).min(about.len().saturating_sub(1));
                opened().set_len(to).unwrap();
            }
            Self::Swapped(index) => {
                let all = files(folder);
                let names: Vec<&String> = all.keys().filter(|other| *other != name).collect();
                let other = folder.join(index.get(&names));
                let aside = folder.join("aside");
                fs::rename(&path, &aside).unwrap();
                fs::rename(&other, &path).unwrap();
                fs::rename(&aside, &other).unwrap();
            }
            Self::Older | Self::Foreign => {
                let from = if matches!(self, Self::Older) { older } else { foreign }.join(name);
                if !from.exists() {
                    return false;
                }
                sparsely(&from, &path);
            }
            Self::FirstBlock(fill) => {
                let bytes: Vec<u8> =
                    (0..4096_u64.min(about.len())).map(|at| (at as u8).wrapping_mul(31) ^ fill).collect();
                opened().write_all_at(&bytes, 0).unwrap();
            }
            Self::Byte(at, with) => {
                if about.len() == 0 {
                    return false;
                }
                let (file, at) = (opened(), at.index(about.len().min(1 << 20) as usize) as u64);
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                file.write_all_at(&[byte[0] ^ with], at).unwrap();
            }
        }
        true
    }
}
