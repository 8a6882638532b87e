use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use assay_load::Pulse;

/// Fifty short wake-ups a second cost less than a thousandth of a core, and tell when a standstill began to 20 ms.
const EVERY: Duration = Duration::from_millis(20);

/// A thread that does nothing but beat, so that a silence of it is one of the whole process. It ends when this is dropped.
pub struct Heartbeat {
    thread: Thread,
    over: Arc<AtomicBool>,
}

impl Heartbeat {
    /// Beats `pulse` by `now_ns`, the clock that latencies are measured with; it gives none as long as the session has not begun.
    ///
    /// # Errors
    /// The system refuses another thread.
    pub fn start(pulse: Pulse, now_ns: impl Fn() -> Option<u64> + Send + 'static) -> io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let beat = move || {
            while !is_over.load(Ordering::Relaxed) {
                if let Some(now_ns) = now_ns() {
                    pulse.beat(now_ns);
                }
                thread::park_timeout(EVERY);
            }
        };
        let handle = thread::Builder::new().name("assay-heartbeat".into()).stack_size(64 * 1024).spawn(beat)?;
        Ok(Self { thread: handle.thread().clone(), over })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}
