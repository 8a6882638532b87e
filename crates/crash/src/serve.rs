//! A view as the one file of a FUSE file system, which the kernel does not cache: a state may take the place of another.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, UNIX_EPOCH},
};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::{CrashError, View, log::SECTOR_BYTES};

const NAME: &str = "volume";
const FILE_INODE: u64 = 2;
const TTL: Duration = Duration::from_secs(3600);
const MOST_BYTES: u32 = 1 << 20;

struct Volume {
    view: Arc<Mutex<View>>,
    volume_bytes: u64,
    owner: (u32, u32),
}

/// A volume that is served as a file until it is dropped.
pub struct ServedVolume {
    view: Arc<Mutex<View>>,
    path: PathBuf,
    session: Option<BackgroundSession>,
}

impl ServedVolume {
    /// Serves a view as the file `volume` in an empty folder.
    ///
    /// # Errors
    /// There is no FUSE, or no right to mount.
    pub fn new(folder: &Path, view: View) -> Result<Self, CrashError> {
        // SAFETY: both take nothing and cannot fail.
        let owner = unsafe { (libc::geteuid(), libc::getegid()) };
        let volume_bytes = view.volume_bytes();
        let view = Arc::new(Mutex::new(view));
        let files = Volume { view: Arc::clone(&view), volume_bytes, owner };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("assay-crash".into()),
            MountOption::Subtype("assay".into()),
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
            MountOption::DefaultPermissions,
        ];
        let failed = || CrashError::io(format!("{}: no FUSE file system can be mounted", folder.display()));
        let session = fuser::Session::new(files, folder, &config).and_then(fuser::Session::spawn).map_err(failed())?;
        Ok(Self { view, path: folder.join(NAME), session: Some(session) })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The view.
    ///
    /// # Panics
    /// A thread that served it has panicked.
    pub fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap()
    }

    /// Takes the mount away.
    ///
    /// # Errors
    /// The file is in use.
    pub fn close(&mut self) -> io::Result<()> {
        self.session.take().map_or(Ok(()), BackgroundSession::umount_and_join)
    }
}

impl Volume {
    fn attributes(&self, inode: u64) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            1 => (FileType::Directory, 0o700, 0),
            FILE_INODE => (FileType::RegularFile, 0o600, self.volume_bytes),
            _ => return None,
        };
        Some(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size / SECTOR_BYTES,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap()
    }
}

/// The system's number of an error of the view.
fn errno(error: &io::Error) -> Errno {
    Errno::from_i32(error.raw_os_error().unwrap_or(libc::EIO))
}

fn answered(reply: ReplyEmpty, done: io::Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

impl Filesystem for Volume {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_write(MOST_BYTES);
        for wanted in [InitFlags::FUSE_ASYNC_READ, InitFlags::FUSE_ASYNC_DIO] {
            let _ = config.add_capabilities(wanted);
        }
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE_INODE).filter(|_| parent.0 == 1 && name == NAME) {
            Some(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino.0) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // A disk has the size it has; times are of no use to it.
        match self.attributes(ino.0).filter(|known| size.is_none_or(|size| size == known.size)) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::EPERM),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if ino.0 == FILE_INODE {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
        } else {
            reply.error(Errno::EISDIR);
        }
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let length = u64::from(size).min(self.volume_bytes.saturating_sub(offset));
        let mut bytes = vec![0; length as usize];
        match self.view().read(offset, &mut bytes) {
            Ok(()) => reply.data(&bytes),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let left = self.volume_bytes.saturating_sub(offset);
        if left == 0 && !data.is_empty() {
            return reply.error(Errno::ENOSPC);
        }
        let bytes = &data[..data.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        // The kernel sends no flush after a write to a file that is open with O_DSYNC and is not cached.
        let fua = flags.0 & libc::O_DSYNC != 0;
        match self.view().write(offset, bytes, fua) {
            Ok(()) => reply.written(bytes.len() as u32),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _lock_owner: LockOwner, reply: ReplyEmpty) {
        // The kernel calls this at each close of a file. It asks for no flush of the volume.
        reply.ok();
    }

    fn fsync(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        answered(reply, self.view().flush());
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let fits = offset.checked_add(length).is_some_and(|end| end <= self.volume_bytes);
        let is_discard = mode & libc::FALLOC_FL_PUNCH_HOLE != 0 && mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let is_zero = mode & libc::FALLOC_FL_ZERO_RANGE != 0;
        if !fits || !(is_discard || is_zero) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        answered(reply, self.view().discard(offset, length));
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino.0 != 1 {
            return reply.error(Errno::ENOTDIR);
        }
        let names =
            [(1, FileType::Directory, "."), (1, FileType::Directory, ".."), (FILE_INODE, FileType::RegularFile, NAME)];
        for (position, (inode, kind, name)) in names.into_iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(inode), position as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
