//! The mount of a served array: made on the folder that was meant, and taken away again, whatever lies at its path by then.

use std::{
    fs::File,
    os::{
        fd::{AsRawFd, RawFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use fuser::{BackgroundSession, Config, INodeNo, MountOption, Notifier, SessionACL};

use super::{FIRST_INODE, PROBE, Volumes};
use crate::{ServeError, inbox::Inbox, io::Shown, transport::Transport};

/// The kind of its mounts is `fuse.` and this.
const SUBTYPE: &str = "assay";

/// A mounted folder of volumes.
pub(crate) struct FuseTransport {
    session: BackgroundSession,
    notifier: Notifier,
    /// The root of the mount, by which it is reached and taken away whatever lies at its path.
    root: File,
    opened: Arc<Vec<AtomicU32>>,
    sizes: Arc<Vec<AtomicU64>>,
}

impl FuseTransport {
    /// Where the floor is measured, as long as the volumes are shown.
    pub(crate) fn probe(&self) -> PathBuf {
        held(&self.root).join(PROBE)
    }
}

/// Path of an open file.
fn held(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Holds a folder without looking into it.
fn hold(path: &Path, flags: i32) -> std::io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY | flags).open(path)
}

/// Shows volumes as files in an empty folder: the one that was opened, where a descriptor says so.
///
/// # Errors
/// There is no FUSE, no right to mount, or another folder took the place of the intended one.
pub(crate) fn mount(
    folder: &Path,
    descriptor: Option<RawFd>,
    shown: Vec<Shown>,
    inbox: Arc<Inbox>,
    realtime: bool,
) -> Result<FuseTransport, ServeError> {
    let opened: Arc<Vec<AtomicU32>> = Arc::new(shown.iter().map(|_| AtomicU32::new(0)).collect());
    let sizes: Arc<Vec<AtomicU64>> = Arc::new(shown.iter().map(|shown| AtomicU64::new(shown.bytes)).collect());
    // SAFETY: both take nothing and cannot fail.
    let owner = unsafe { (libc::geteuid(), libc::getegid()) };
    let files = Volumes {
        shown,
        inbox,
        realtime,
        hastened: AtomicBool::new(false),
        owner,
        modes: std::sync::Mutex::default(),
        opened: Arc::clone(&opened),
        sizes: Arc::clone(&sizes),
    };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("assay-array".into()),
        MountOption::Subtype(SUBTYPE.into()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::DefaultPermissions,
    ];
    // Where others may be let in, the mount goes away with its server, however that ends.
    if owner.0 == 0 {
        config.acl = SessionACL::All;
        config.mount_options.push(MountOption::AutoUnmount);
    }
    let failed = |error| ServeError::host(format!("{}: cannot be mounted", folder.display()), error);
    let beneath = match descriptor {
        Some(descriptor) => hold(Path::new(&format!("/proc/self/fd/{descriptor}")), 0),
        None => hold(folder, libc::O_NOFOLLOW),
    };
    let beneath = beneath.map_err(failed)?;
    let path = std::fs::read_link(held(&beneath)).map_err(failed)?;
    let session = fuser::Session::new(files, &path, &config).and_then(fuser::Session::spawn).map_err(failed)?;
    let root = hold(&path, libc::O_NOFOLLOW).map_err(failed)?;
    // The path was followed by another program, and may have led elsewhere by then.
    if !is_mounted_on(&beneath).map_err(failed)? || !is_fuse(&root) {
        let _ = session.umount_and_join();
        let message = format!("{}: another folder took its place while it was mounted", folder.display());
        return Err(ServeError::refused(message));
    }
    Ok(FuseTransport { notifier: session.notifier(), session, root, opened, sizes })
}

/// Whether a file system of Assay's is mounted on a folder that was opened before.
fn is_mounted_on(folder: &File) -> std::io::Result<bool> {
    let path = std::fs::read_link(held(folder))?;
    let mounts = std::fs::read("/proc/self/mountinfo")?;
    Ok(mounts.split(|byte| *byte == b'\n').any(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let is_there = fields.nth(4).is_some_and(|place| unescaped(place) == path.as_os_str().as_encoded_bytes());
        let kind = fields.skip_while(|field| *field != b"-").nth(1);
        is_there && kind.is_some_and(|kind| kind.strip_prefix(b"fuse.") == Some(SUBTYPE.as_bytes()))
    }))
}

/// A path as the kernel lists it: spaces and the like are octal numbers.
fn unescaped(listed: &[u8]) -> Vec<u8> {
    let (mut path, mut left) = (Vec::new(), listed);
    while let Some((first, rest)) = left.split_first() {
        let digits =
            rest.get(..3).filter(|digits| *first == b'\\' && digits.iter().all(|digit| (b'0'..b'8').contains(digit)));
        match digits {
            Some(digits) => {
                path.push(digits.iter().fold(0_u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                left = &rest[3..];
            }
            None => {
                path.push(*first);
                left = rest;
            }
        }
    }
    path
}

/// Whether a folder lies on a FUSE file system.
fn is_fuse(folder: &File) -> bool {
    // SAFETY: statfs is plain numbers, for which zeroes are values.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the memory is that of a statfs.
    let asked = unsafe { libc::fstatfs(folder.as_raw_fd(), &raw mut about) };
    asked == 0 && about.f_type == libc::FUSE_SUPER_MAGIC
}

impl Transport for FuseTransport {
    fn forget_cached(&self) {
        for volume in 0..self.opened.len() as u64 {
            // Nothing is cached where the kernel knows nothing of a file.
            let _ = self.notifier.inval_inode(INodeNo(FIRST_INODE + volume), 0, 0);
        }
    }

    fn grow(&self, volume: usize, bytes: u64) {
        self.sizes[volume].store(bytes, Ordering::Relaxed);
        // Of no byte: the kernel asks for the size anew.
        let _ = self.notifier.inval_inode(INodeNo(FIRST_INODE + volume as u64), -1, 0);
    }

    fn in_use(&self) -> Vec<usize> {
        let counts = self.opened.iter().enumerate();
        counts.filter(|(_, count)| count.load(Ordering::Relaxed) > 0).map(|(volume, _)| volume).collect()
    }

    fn stop(self: Box<Self>) -> Result<(), ServeError> {
        let Self { session, root, .. } = *self;
        // SAFETY: takes nothing and cannot fail.
        if unsafe { libc::geteuid() } == 0 {
            let path =
                std::ffi::CString::new(held(&root).as_os_str().as_encoded_bytes()).expect("a path has no zero byte");
            // Whoever still uses the volumes, be it in a mount namespace of its own, gets errors, and nobody hangs. Nothing is
            // lost with it: the kernel writes through.
            // SAFETY: the path lives until the call is over.
            unsafe { libc::umount2(path.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) };
        }
        drop(root);
        let stopped = session.umount_and_join();
        match stopped {
            // It is away already.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT | libc::ENOTCONN)) => Ok(()),
            other => other.map_err(|error| ServeError::host("the mount cannot be taken away", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_the_kernel_lists_them() {
        for (listed, path) in
            [("/tmp/a\\040b", "/tmp/a b"), ("/a\\134040", "/a\\040"), ("/\\303\\244", "/ä"), ("/x\\9", "/x\\9")]
        {
            assert_eq!(unescaped(listed.as_bytes()), path.as_bytes());
        }
    }
}
