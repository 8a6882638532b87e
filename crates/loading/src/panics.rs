//! Panics of threads and tasks end the work: otherwise figures would be those of fewer tasks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use crate::error::DatabaseError;

/// Guard that calls a function when its holder panics.
pub struct OnPanic<F: Fn(DatabaseError)>(pub F);

impl<F: Fn(DatabaseError)> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)(DatabaseError::Other("a fault of Assay: a task panicked, standard error says where".into()));
        }
    }
}

/// Counts a thread as ended, however it ends.
pub struct Alive(pub Arc<AtomicU32>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
