//! State that all connections share: the exports, and the store of their blocks.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize},
};

use assay_disk_server::{Blocks, Budget, Notes};

/// A volume under the name by which clients ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    pub name: String,
    /// Number of the volume at the [`Blocks`].
    pub volume: u16,
    pub bytes: u64,
}

/// An export as connections see it.
#[derive(Debug)]
pub(crate) struct Exported {
    pub(crate) name: String,
    pub(crate) volume: u16,
    pub(crate) bytes: AtomicU64,
    pub(crate) users: AtomicUsize,
}

/// State that all connections share.
pub(crate) struct Shared {
    pub(crate) exports: Vec<Exported>,
    pub(crate) blocks: Arc<dyn Blocks>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) notes: Notes,
}

impl Shared {
    pub(crate) fn new(exports: Vec<Export>, blocks: Arc<dyn Blocks>, budget: Arc<Budget>) -> Self {
        let exported = |Export { name, volume, bytes }| Exported {
            name,
            volume,
            bytes: AtomicU64::new(bytes),
            users: AtomicUsize::new(0),
        };
        let exports = exports.into_iter().map(exported).collect();
        Self { exports, budget, notes: Notes::new("NBD", Arc::clone(&blocks)), blocks }
    }

    /// Number of the export of this name; the empty name stands for the only one.
    pub(crate) fn named(&self, name: &[u8]) -> Option<usize> {
        match self.exports.as_slice() {
            [_] if name.is_empty() => Some(0),
            exports => exports.iter().position(|export| export.name.as_bytes() == name),
        }
    }
}
