//! What another user may have laid into the folder of a store before its owner serves it.
//!
//! Each of these once had a server of root write over a file of root's, wait for ever, or serve what was not its own.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

use crate::proving::Folder;

/// Nobody, whoever runs the tests.
const OTHER_USER: u32 = 65534;

fn is_root() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A file of the owner's elsewhere, which nobody may write to.
pub(crate) struct Victim {
    folder: Folder,
    before: &'static [u8],
}

impl Victim {
    pub(crate) fn new() -> Self {
        let victim = Self { folder: Folder::new(), before: b"what must stay as it is" };
        fs::create_dir(&victim.folder.0).unwrap();
        fs::write(victim.path(), victim.before).unwrap();
        victim
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.0.join("crontab")
    }

    pub(crate) fn check(&self) {
        assert_eq!(fs::read(self.path()).unwrap(), self.before);
    }
}

/// How a name in a store's folder is taken, and what is said of it.
type Planted = (&'static str, fn(&Path, &Victim), &'static str);

const PLANTED: [Planted; 6] = [
    ("link", |path, victim| symlink(victim.path(), path).unwrap(), "is a link"),
    ("link to nothing", |path, victim| symlink(victim.path().with_extension("new"), path).unwrap(), "is a link"),
    ("hard link", |path, victim| fs::hard_link(victim.path(), path).unwrap(), "has another name elsewhere"),
    ("pipe", |path, _| pipe(path), "is no regular file"),
    ("folder", |path, _| fs::create_dir(path).unwrap(), "is no regular file"),
    (
        "file that others may write to",
        |path, _| {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o622)).unwrap();
        },
        "other users may write to it",
    ),
];

fn pipe(path: &Path) {
    let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: the name lives until the call is over.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

/// Takes the names of a folder in all those ways, one after the other: each is refused by name, and nothing is written.
pub(crate) fn refuses_planted(folder: &Path, names: &[&str], open: impl Fn() -> Result<(), String>) {
    for name in names {
        for (what, plant, why) in PLANTED {
            let (victim, path) = (Victim::new(), folder.join(name));
            let aside = folder.with_extension("aside");
            let was_there = fs::rename(&path, &aside).is_ok();
            plant(&path, &victim);
            let refused = open().expect_err(&format!("{name} as a {what} is opened"));
            assert!(refused.contains(why) && refused.contains(name), "{name} as a {what}: {refused}");
            assert!(!refused.contains('\n'), "{refused}");
            victim.check();
            assert!(!victim.path().with_extension("new").exists(), "{name} as a {what}");
            fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
            if was_there {
                fs::rename(&aside, &path).unwrap();
            }
        }
        if is_root() && folder.join(name).exists() {
            chown(folder.join(name), Some(OTHER_USER), None).unwrap();
            let refused = open().expect_err("another user's file is opened");
            assert!(refused.contains("belongs to another user") && refused.contains(name), "{refused}");
            chown(folder.join(name), Some(0), None).unwrap();
        }
    }
    open().unwrap();
}

/// Folders that are links, another user's, or open to others, and such that hold something else.
pub(crate) fn refuses_folders(open: impl Fn(&Path) -> Result<(), String>) {
    let beside = Folder::new();
    fs::create_dir(&beside.0).unwrap();
    let at = |name: &str| beside.0.join(name);
    fs::create_dir(at("there")).unwrap();
    symlink(at("there"), at("link")).unwrap();
    for path in [at("link"), at("link/")] {
        assert!(open(&path).unwrap_err().contains("is a link or no folder"));
    }
    fs::create_dir(at("open")).unwrap();
    fs::set_permissions(at("open"), Permissions::from_mode(0o777)).unwrap();
    assert!(open(&at("open")).unwrap_err().contains("other users may write to it"));
    if is_root() {
        fs::create_dir(at("foreign")).unwrap();
        chown(at("foreign"), Some(OTHER_USER), None).unwrap();
        assert!(open(&at("foreign")).unwrap_err().contains("belongs to another user"));
    }
    fs::create_dir(at("used")).unwrap();
    fs::write(at("used").join("lock"), "").unwrap();
    fs::write(at("used").join("thesis.doc"), "").unwrap();
    let refused = open(&at("used")).unwrap_err();
    assert!(refused.contains("is not empty") && refused.contains("thesis.doc"), "{refused}");
    assert_eq!(fs::read_dir(at("there")).unwrap().count(), 0);
}
