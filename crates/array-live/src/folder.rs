//! A folder that is held by its descriptor. Every file of a store is opened, made, replaced, listed and removed through it.
//!
//! What lies in a store is foreign input: no link is followed, no pipe is waited for, and a file counts only if it is a regular
//! one with one name, belongs to the user who runs Assay, and no other user may write to it. The name of the folder stands in
//! messages; which folder is meant the descriptor says.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io::{self, Read},
    os::{
        fd::{AsRawFd, FromRawFd, RawFd},
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use crate::ServeError;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
const WRITABLE_BY_OTHERS: u32 = 0o022;

#[derive(Debug)]
pub(crate) struct Folder {
    held: File,
    shown: PathBuf,
}

impl Folder {
    /// Holds the folder at a path, and makes it where there is none.
    ///
    /// # Errors
    /// It is a link or no folder, belongs to another user, other users may write to it, or it cannot be made.
    pub(crate) fn at(path: &Path) -> Result<Self, ServeError> {
        // A slash at the end would follow a link.
        let shown: PathBuf = path.components().collect();
        let failed = |error| ServeError::at(&shown, error);
        let mut made = DirBuilder::new();
        made.mode(FOLDER_MODE);
        if let Some(parent) = shown.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(parent).map_err(failed)?;
        }
        let is_made = match made.create(&shown) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            made => made.is_ok(),
        };
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let held = match OpenOptions::new().read(true).custom_flags(flags).open(&shown) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) => {
                return Err(refused(&shown, "is a link or no folder; name a folder of your own"));
            }
            opened => opened.map_err(failed)?,
        };
        let folder = Self::of(held, shown)?;
        if is_made {
            // Whatever the umask.
            folder.close_to_others()?;
        }
        Ok(folder)
    }

    /// Holds a folder that was opened already, whatever its path leads to by now.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub(crate) fn of_descriptor(descriptor: RawFd, shown: &Path) -> Result<Self, ServeError> {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        if descriptor < 0 {
            return Err(refused(shown, format!("{descriptor} is no descriptor of a folder")));
        }
        // SAFETY: the text ends with a zero byte; a number that is no descriptor is refused by the kernel.
        let opened = unsafe { libc::openat(descriptor, c".".as_ptr(), flags) };
        if opened < 0 {
            return Err(ServeError::at(shown, io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was opened just now, and nothing else owns it.
        Self::of(unsafe { File::from_raw_fd(opened) }, shown.to_owned())
    }

    fn of(held: File, shown: PathBuf) -> Result<Self, ServeError> {
        let about = held.metadata().map_err(|error| ServeError::at(&shown, error))?;
        if about.uid() != own_user() {
            return Err(refused(&shown, "belongs to another user; name a folder of your own"));
        }
        if about.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(refused(&shown, "other users may write to it; take that right away with `chmod go-w`"));
        }
        Ok(Self { held, shown })
    }

    /// Closes the folder to other users of the system.
    ///
    /// # Errors
    /// Its mode cannot be changed.
    pub(crate) fn close_to_others(&self) -> Result<(), ServeError> {
        self.held
            .set_permissions(Permissions::from_mode(FOLDER_MODE))
            .map_err(|error| ServeError::at(&self.shown, error))
    }

    /// The folder's name, for messages.
    pub(crate) fn shown(&self) -> &Path {
        &self.shown
    }

    /// A path that leads to the held folder, whatever lies at its name.
    pub(crate) fn held_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.held.as_raw_fd()))
    }

    /// Holds the same folder once more.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(crate) fn again(&self) -> Result<Self, ServeError> {
        let held = self.held.try_clone().map_err(|error| ServeError::at(&self.shown, error))?;
        Ok(Self { held, shown: self.shown.clone() })
    }

    fn path(&self, name: &str) -> Result<PathBuf, ServeError> {
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(refused(&self.shown, format!("{name:?} is no name of a file in it")));
        }
        Ok(self.held_path().join(name))
    }

    /// Error of an operation on a file of the folder.
    pub(crate) fn failed(&self, name: &str, error: io::Error) -> ServeError {
        ServeError::at(&self.shown.join(name), error)
    }

    /// A file of the folder is refused.
    pub(crate) fn refused(&self, name: &str, why: impl AsRef<str>) -> ServeError {
        refused(&self.shown.join(name), why)
    }

    /// Opens a file for reading and writing, if it is there.
    ///
    /// # Errors
    /// It is not a plain file of this user's alone, or cannot be opened.
    pub(crate) fn open(&self, name: &str) -> Result<Option<File>, ServeError> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let path = self.path(name)?;
        let file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(match error.raw_os_error() {
                    Some(libc::ELOOP) => self.refused(name, "is a link, and no file of a store is one; remove it"),
                    Some(libc::EISDIR | libc::ENXIO | libc::ENODEV) => self.refused(name, NO_FILE),
                    _ => self.failed(name, error),
                });
            }
        };
        let about = file.metadata().map_err(|error| self.failed(name, error))?;
        self.check(name, &about)?;
        if about.mode() & 0o777 != FILE_MODE {
            file.set_permissions(Permissions::from_mode(FILE_MODE)).map_err(|error| self.failed(name, error))?;
        }
        Ok(Some(file))
    }

    fn check(&self, name: &str, about: &Metadata) -> Result<(), ServeError> {
        let why = if !about.is_file() {
            NO_FILE
        } else if about.uid() != own_user() {
            "belongs to another user; remove it"
        } else if about.nlink() != 1 {
            "has another name elsewhere, and a file of a store has one; remove it"
        } else if about.mode() & WRITABLE_BY_OTHERS != 0 {
            "other users may write to it; remove it, or take that right away with `chmod go-w`"
        } else {
            return Ok(());
        };
        Err(self.refused(name, why))
    }

    /// Makes a file that is not there yet, for this user alone whatever the umask.
    ///
    /// # Errors
    /// Something of that name is there, or the file cannot be made.
    pub(crate) fn create(&self, name: &str) -> Result<File, ServeError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(self.path(name)?).map_err(|error| self.failed(name, error))?;
        file.set_permissions(Permissions::from_mode(FILE_MODE)).map_err(|error| self.failed(name, error))?;
        Ok(file)
    }

    /// Opens a file, or makes it where there is none.
    ///
    /// # Errors
    /// As [`Self::open`] and [`Self::create`].
    pub(crate) fn open_or_create(&self, name: &str) -> Result<File, ServeError> {
        self.open(name)?.map_or_else(|| self.create(name), Ok)
    }

    /// The bytes of a file, if it is there.
    ///
    /// # Errors
    /// As [`Self::open`], or it has more bytes than `most`.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, ServeError> {
        let Some(file) = self.open(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(|error| self.failed(name, error))?;
        if bytes.len() as u64 > most {
            return Err(self.refused(name, format!("has more than {most} bytes, and no such file of a store has")));
        }
        Ok(Some(bytes))
    }

    /// Renames a file, in place of an earlier file of that name.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), ServeError> {
        fs::rename(self.path(from)?, self.path(to)?).map_err(|error| self.failed(to, error))
    }

    /// Removes a file, be it a link, or nothing where there is none.
    ///
    /// # Errors
    /// It is a folder, or the kernel refuses it.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ServeError> {
        match fs::remove_file(self.path(name)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(name, error)),
            _ => Ok(()),
        }
    }

    /// Refuses by name what lies in the folder and is no file of this user's with a name that is known. What is there may be a
    /// socket where `is_socket` says so of its name.
    ///
    /// # Errors
    /// There is such a thing, or the folder cannot be listed.
    pub(crate) fn refuse_others(
        &self,
        is_known: impl Fn(&str) -> bool,
        is_socket: impl Fn(&str) -> bool,
        what: &str,
    ) -> Result<(), ServeError> {
        let failed = |error| ServeError::at(&self.shown, error);
        for entry in fs::read_dir(self.held_path()).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if !is_known(&name) && !is_socket(&name) {
                return Err(refused(
                    &self.shown,
                    format!("is not empty and {what}: it holds {name:?}; name another folder"),
                ));
            }
            let about = match fs::symlink_metadata(self.path(&name)?) {
                // Gone since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                about => about.map_err(failed)?,
            };
            if about.is_symlink() {
                return Err(self.refused(&name, "is a link, and no file of a store is one; remove it"));
            }
            use std::os::unix::fs::FileTypeExt;
            if !(is_socket(&name) && about.file_type().is_socket() && about.uid() == own_user()) {
                self.check(&name, &about)?;
            }
        }
        Ok(())
    }

    /// Whether something of a name lies in the folder, whatever it is.
    ///
    /// # Errors
    /// It cannot be asked.
    pub(crate) fn has(&self, name: &str) -> Result<bool, ServeError> {
        match fs::symlink_metadata(self.path(name)?) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.failed(name, error)),
        }
    }
}

const NO_FILE: &str = "is no regular file, as a file of a store is; remove it";

fn refused(path: &Path, why: impl AsRef<str>) -> ServeError {
    ServeError::refused(format!("{}: {}", path.display(), why.as_ref()))
}

fn own_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}
