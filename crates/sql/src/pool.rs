//! Connections of one database on one thread, which its users share.

use std::cell::RefCell;

use tokio::sync::Semaphore;

use crate::batch::{Batch, Results};

/// A connection, or its place while it is lost, with the memory that transactions on it reuse.
pub struct Slot<D> {
    pub driver: Option<D>,
    /// Time of the connection, in nanoseconds since the start; 0 before the start.
    pub made_ns: u64,
    pub batch: Batch,
    pub results: Results,
}

/// Connections that are not in use.
pub struct Pool<D> {
    idle: RefCell<Vec<Slot<D>>>,
    free: Semaphore,
}

/// A connection in use; it goes back when this is dropped.
pub struct Taken<'a, D> {
    pool: &'a Pool<D>,
    pub slot: Option<Slot<D>>,
}

impl<D> Drop for Taken<'_, D> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.pool.put(slot);
        }
    }
}

impl<D> Default for Pool<D> {
    fn default() -> Self {
        Self { idle: RefCell::default(), free: Semaphore::new(0) }
    }
}

impl<D> Slot<D> {
    pub fn new(driver: D) -> Self {
        Self { driver: Some(driver), made_ns: 0, batch: Batch::default(), results: Results::default() }
    }
}

impl<D> Pool<D> {
    pub fn put(&self, slot: Slot<D>) {
        self.idle.borrow_mut().push(slot);
        self.free.add_permits(1);
    }

    /// All connections that are free, at the end.
    pub fn take_idle(&self) -> Vec<Slot<D>> {
        std::mem::take(&mut *self.idle.borrow_mut())
    }

    /// The next connection that is free, to the caller that waited longest.
    pub async fn take(&self) -> Taken<'_, D> {
        self.free.acquire().await.expect("the semaphore is never closed").forget();
        let slot = self.idle.borrow_mut().pop();
        Taken { pool: self, slot }
    }
}
