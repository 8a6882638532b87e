//! Volumes as files of a FUSE file system.
//!
//! A program that opens a volume with O_DIRECT bypasses the kernel's page cache and may write in parallel. The kernel
//! sends no flush after its O_DSYNC writes, so that this file system obeys the flag of each write itself. For all
//! other programs the kernel caches pages, writes them through at once, and sends the flushes.

pub(crate) mod mounted;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant, UNIX_EPOCH},
};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use crate::{
    floor,
    inbox::{AttributeCall, AttributeKind, Inbox, Message},
    io::{Answer, Io, IoKind, Shown},
    scheduling,
};

const TTL: Duration = Duration::from_secs(1);
const SECTOR_BYTES: u64 = 512;
/// Inodes of volumes begin here; the root is 1.
const FIRST_INODE: u64 = 16;
const PROBE_INODE: u64 = 2;
/// A file that no list shows, whose reads take no time of the array's (`floor.rs`).
const PROBE: &str = ".assay-floor";
const PROBE_BYTES: u64 = 1 << 20;
const ZEROES: [u8; PROBE_MOST_BYTES] = [0; PROBE_MOST_BYTES];
const PROBE_MOST_BYTES: usize = 8192;
const MOST_BYTES: u32 = 1 << 20;

struct Volumes {
    shown: Vec<Shown>,
    inbox: Arc<Inbox>,
    realtime: bool,
    hastened: AtomicBool,
    owner: (u32, u32),
    /// Permissions that were changed, by inode.
    modes: std::sync::Mutex<BTreeMap<u64, u32>>,
    /// How often each volume is open.
    opened: Arc<Vec<AtomicU32>>,
    /// Bytes of each volume.
    sizes: Arc<Vec<AtomicU64>>,
}

impl Volumes {
    fn attributes(&self, inode: u64) -> Option<FileAttr> {
        let (kind, perm, bytes) = match inode {
            1 => (FileType::Directory, 0o711, 0),
            PROBE_INODE => (FileType::RegularFile, 0o400, PROBE_BYTES),
            _ => {
                let index = inode.checked_sub(FIRST_INODE)? as usize;
                (FileType::RegularFile, 0o600, self.sizes.get(index)?.load(Ordering::Relaxed))
            }
        };
        let perm = self.modes.lock().unwrap().get(&inode).map_or(perm, |mode| *mode as u16);
        Some(FileAttr {
            ino: INodeNo(inode),
            size: bytes,
            blocks: bytes / SECTOR_BYTES,
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

    fn volume(&self, inode: INodeNo) -> Option<u16> {
        let index = inode.0.checked_sub(FIRST_INODE)?;
        ((index as usize) < self.shown.len()).then_some(index as u16)
    }

    fn bytes(&self, volume: u16) -> u64 {
        self.sizes[usize::from(volume)].load(Ordering::Relaxed)
    }

    fn put(&self, kind: IoKind, volume: u16, offset_bytes: u64, length_bytes: u32, answer: Box<dyn Answer>) {
        if !self.hastened.swap(true, Ordering::Relaxed) {
            scheduling::hasten(self.realtime);
        }
        self.inbox.put(Message::Io(Io { kind, volume, offset_bytes, length_bytes, came: Instant::now(), answer }));
    }

    fn attribute(
        &self,
        inode: INodeNo,
        what: AttributeKind,
        answer: impl FnOnce(Result<Vec<u8>, i32>) + Send + 'static,
    ) {
        match self.volume(inode) {
            Some(volume) => {
                let answer = Box::new(answer);
                self.inbox.put(Message::Attribute(AttributeCall { volume, what, answer }));
            }
            None => answer(Err(libc::ENOTSUP)),
        }
    }
}

/// The number of a failure for programs: an array that ends is a disk that fails.
fn errno(number: i32) -> Errno {
    if number == libc::ESHUTDOWN { Errno::EIO } else { Errno::from_i32(number) }
}

struct Read(ReplyData);

impl Answer for Read {
    fn answer(self: Box<Self>, result: Result<&[u8], i32>) {
        match result {
            Ok(bytes) => self.0.data(bytes),
            Err(number) => self.0.error(errno(number)),
        }
    }
}

struct Written(ReplyWrite, u32);

impl Answer for Written {
    fn answer(self: Box<Self>, result: Result<&[u8], i32>) {
        match result {
            Ok(_) => self.0.written(self.1),
            Err(number) => self.0.error(errno(number)),
        }
    }
}

struct Done(ReplyEmpty);

impl Answer for Done {
    fn answer(self: Box<Self>, result: Result<&[u8], i32>) {
        match result {
            Ok(_) => self.0.ok(),
            Err(number) => self.0.error(errno(number)),
        }
    }
}

/// Whether a disk would refuse it: O_DIRECT goes in whole sectors.
fn is_torn(flags: OpenFlags, offset: u64, bytes: u64) -> bool {
    flags.0 & libc::O_DIRECT != 0 && !(offset.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES))
}

impl Filesystem for Volumes {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _ = config.set_max_write(MOST_BYTES);
        let _ = config.set_max_background(1024);
        let _ = config.set_congestion_threshold(1024);
        for wanted in [InitFlags::FUSE_ASYNC_READ, InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_PARALLEL_DIROPS] {
            let _ = config.add_capabilities(wanted);
        }
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.to_str().unwrap_or_default();
        let index = self.shown.iter().position(|shown| shown.name == name);
        let inode = index.map(|index| index as u64 + FIRST_INODE).or_else(|| (name == PROBE).then_some(PROBE_INODE));
        match inode.filter(|_| parent.0 == 1).and_then(|inode| self.attributes(inode)) {
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
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
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
        let Some(attributes) = self.attributes(ino.0) else { return reply.error(Errno::ENOENT) };
        // A disk has the size it has.
        if size.is_some_and(|size| size != attributes.size) || uid.is_some() || gid.is_some() {
            return reply.error(Errno::EPERM);
        }
        if let Some(mode) = mode {
            self.modes.lock().unwrap().insert(ino.0, mode & 0o777);
        }
        match self.attributes(ino.0) {
            Some(attributes) => reply.attr(&TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn unlink(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        // What volumes there are, the array says.
        reply.error(Errno::EPERM);
    }

    fn mkdir(&self, _req: &Request, _parent: INodeNo, _name: &OsStr, _mode: u32, _umask: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn create(
        &self,
        _req: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: fuser::ReplyCreate,
    ) {
        reply.error(Errno::EPERM);
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if ino.0 == 1 {
            return reply.error(Errno::EISDIR);
        }
        if let Some(volume) = self.volume(ino) {
            self.opened[usize::from(volume)].fetch_add(1, Ordering::Relaxed);
        }
        let is_direct = flags.0 & libc::O_DIRECT != 0;
        let how = if is_direct {
            FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
        } else {
            FopenFlags::empty()
        };
        reply.opened(FileHandle(u64::from(is_direct)), how);
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if ino.0 == PROBE_INODE && offset == floor::AT_ONCE {
            return reply.data(&ZEROES[..PROBE_MOST_BYTES.min(size as usize)]);
        }
        if ino.0 == PROBE_INODE {
            return self.put(IoKind::Probe, 0, 0, size, Box::new(Read(reply)));
        }
        let Some(volume) = self.volume(ino) else { return reply.error(Errno::EIO) };
        let left = self.bytes(volume).saturating_sub(offset);
        let length = u64::from(size).min(left);
        if length == 0 {
            return reply.data(&[]);
        }
        if is_torn(flags, offset, u64::from(size)) {
            return reply.error(Errno::EINVAL);
        }
        self.put(IoKind::Read, volume, offset, length as u32, Box::new(Read(reply)));
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(volume) = self.volume(ino) else { return reply.error(Errno::EIO) };
        let left = self.bytes(volume).saturating_sub(offset);
        if left == 0 {
            return reply.error(Errno::ENOSPC);
        }
        if is_torn(flags, offset, data.len() as u64) {
            return reply.error(Errno::EINVAL);
        }
        // At its end a disk takes what still fits.
        let bytes = &data[..data.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let durable = fh.0 == 1 && flags.0 & libc::O_DSYNC != 0;
        let length = bytes.len() as u32;
        let kind = IoKind::Write { bytes: bytes.to_vec(), durable };
        self.put(kind, volume, offset, length, Box::new(Written(reply, length)));
    }

    fn flush(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _lock_owner: LockOwner, reply: ReplyEmpty) {
        // The kernel calls this at each close of a file. It asks for no flush of the array.
        reply.ok();
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if let Some(volume) = self.volume(ino) {
            self.opened[usize::from(volume)].fetch_sub(1, Ordering::Relaxed);
        }
        reply.ok();
    }

    fn fsync(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        match self.volume(ino) {
            Some(volume) => self.put(IoKind::Flush, volume, 0, 0, Box::new(Done(reply))),
            None => reply.ok(),
        }
    }

    fn fallocate(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(volume) = self.volume(ino) else { return reply.error(Errno::EIO) };
        let fits = offset.checked_add(length).is_some_and(|end| end <= self.bytes(volume));
        let is_discard = mode & libc::FALLOC_FL_PUNCH_HOLE != 0 && mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let is_zero = mode & libc::FALLOC_FL_ZERO_RANGE != 0;
        let Ok(bytes) = u32::try_from(length) else { return reply.error(Errno::EOPNOTSUPP) };
        if !fits || !(is_discard || is_zero) {
            // A disk has all its room from the start, and no more.
            return reply.error(Errno::EOPNOTSUPP);
        }
        self.put(IoKind::Discard, volume, offset, bytes, Box::new(Done(reply)));
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino.0 != 1 {
            return reply.error(Errno::ENOTDIR);
        }
        let dots = [".", ".."].map(|name| (1, FileType::Directory, name.to_owned()));
        let files = self
            .shown
            .iter()
            .enumerate()
            .map(|(index, shown)| (index as u64 + FIRST_INODE, FileType::RegularFile, shown.name.clone()));
        for (position, (inode, kind, name)) in dots.into_iter().chain(files).enumerate().skip(offset as usize) {
            if reply.add(INodeNo(inode), position as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let bytes: u64 = self.sizes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
        reply.statfs(bytes / 4096, 0, 0, self.shown.len() as u64, 0, 4096, 255, 4096);
    }

    fn setxattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let Some(name) = name.to_str().filter(|name| name.starts_with("user.")) else {
            return reply.error(Errno::EOPNOTSUPP);
        };
        self.attribute(ino, AttributeKind::Set(name.to_owned(), value.to_vec()), move |done| match done {
            Ok(_) => reply.ok(),
            Err(number) => reply.error(Errno::from_i32(number)),
        });
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.to_str().unwrap_or_default().to_owned();
        self.attribute(ino, AttributeKind::Get(name), move |found| answer_attribute(found, size, reply));
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        self.attribute(ino, AttributeKind::List, move |found| answer_attribute(found, size, reply));
    }

    fn removexattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.to_str().unwrap_or_default().to_owned();
        self.attribute(ino, AttributeKind::Remove(name), move |done| match done {
            Ok(_) => reply.ok(),
            Err(number) => reply.error(Errno::from_i32(number)),
        });
    }
}

fn answer_attribute(found: Result<Vec<u8>, i32>, size: u32, reply: ReplyXattr) {
    match found {
        Err(number) => reply.error(Errno::from_i32(number)),
        Ok(bytes) if size == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
    }
}
