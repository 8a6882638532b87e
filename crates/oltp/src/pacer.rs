//! Waiting to the microsecond: the runtime's own timers go by the millisecond, which would be part of every latency of an open loop.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    time::Duration,
};

use tokio::io::{Interest, unix::AsyncFd};

pub(crate) struct Pacer(AsyncFd<OwnedFd>);

impl Pacer {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointer; what it returns is checked and then owned here alone.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if timer < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `timer` is a descriptor that was just opened and that nothing else owns.
        let timer = unsafe { OwnedFd::from_raw_fd(timer) };
        // SAFETY: the descriptor is owned by what is registered, which never replaces it.
        let timer = unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) };
        Ok(Self(timer?))
    }

    /// Waits so long; one task at a time.
    pub(crate) async fn wait(&self, time: Duration) -> io::Result<()> {
        // A timer set to nothing would be off.
        let nanoseconds = time.subsec_nanos().max(u32::from(time.as_secs() == 0));
        let value = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: nanoseconds.into() };
        let spec = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: the descriptor is a timer's and `spec` outlives the call.
        if unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const spec, std::ptr::null_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        loop {
            let mut ready = self.0.readable().await?;
            let mut expirations = [0_u8; 8];
            // SAFETY: eight writable bytes, which is what a timer gives.
            let count = unsafe { libc::read(self.0.as_raw_fd(), expirations.as_mut_ptr().cast(), 8) };
            if count == 8 {
                return Ok(());
            }
            ready.clear_ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn it_never_wakes_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let pacer = Pacer::new().unwrap();
            for time in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(3)] {
                let before = Instant::now();
                pacer.wait(time).await.unwrap();
                assert!(before.elapsed() >= time);
            }
        });
    }
}
