//! Connections of one database on one thread, which its users share.

use std::cell::RefCell;

use tokio::sync::Semaphore;

use crate::{
    batch::{Batch, Results},
    databases::AnyDriver,
};

/// A connection, or its place while it is lost, with the memory that transactions on it reuse.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) driver: Option<AnyDriver>,
    /// When it was connected, in nanoseconds since the start; 0 for what was connected before.
    pub(crate) made_ns: u64,
    pub(crate) batch: Batch,
    pub(crate) results: Results,
}

/// Connections that are not in use.
pub(crate) struct Pool {
    idle: RefCell<Vec<Slot>>,
    free: Semaphore,
}

/// A connection in use; it goes back when this is dropped.
pub(crate) struct Taken<'a> {
    pool: &'a Pool,
    pub(crate) slot: Option<Slot>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.pool.put(slot);
        }
    }
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { idle: RefCell::default(), free: Semaphore::new(0) }
    }

    pub(crate) fn put(&self, slot: Slot) {
        self.idle.borrow_mut().push(slot);
        self.free.add_permits(1);
    }

    /// All connections that nobody uses, at the end.
    pub(crate) fn take_idle(&self) -> Vec<Slot> {
        std::mem::take(&mut *self.idle.borrow_mut())
    }

    /// The next connection that is free, to whoever waited longest.
    pub(crate) async fn take(&self) -> Taken<'_> {
        self.free.acquire().await.expect("the semaphore is never closed").forget();
        let slot = self.idle.borrow_mut().pop();
        Taken { pool: self, slot }
    }
}
