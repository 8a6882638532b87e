//! A panic in a thread or a task must end the run: if it were not caught, its figures would be those of fewer users.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use crate::error::OltpError;

/// Says so when what holds it panics.
pub(crate) struct OnPanic<F: Fn(OltpError)>(pub(crate) F);

impl<F: Fn(OltpError)> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)(OltpError::Database("a fault of Assay: a task panicked, standard error says where".into()));
        }
    }
}

/// Counts a thread as ended, however it ends.
pub(crate) struct Alive(pub(crate) Arc<AtomicU32>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
