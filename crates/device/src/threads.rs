use std::{
    collections::VecDeque,
    io,
    os::fd::AsRawFd,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use assay_load::{Completion, Op, Queue, QueueError, Request};

use crate::{
    BufferPool, SessionClock, VolumeFile,
    buffers::Mapping,
    clock::{cpu_ns, thread_cpu_ns},
};

/// The portable backend: one blocking call at a time on each of several threads. It takes over where io_uring is
/// forbidden; it costs a thread switch per I/O, which the results of a fast device will show.
pub struct ThreadQueue {
    shared: Arc<Shared>,
    pool: BufferPool,
    clock: SessionClock,
}

/// What the serving threads hold a share of: buffers and file stay until the last of them is back from its call, so a
/// queue may be dropped while the device does not answer.
struct Shared {
    volume: VolumeFile,
    _buffers: Arc<Mapping>,
    clock: SessionClock,
    requests: Mutex<Requests>,
    wanted: Condvar,
    completions: Mutex<Vec<Completion>>,
    completed: Condvar,
    /// CPU clocks of the serving threads.
    cpu_clocks: Mutex<Vec<libc::clockid_t>>,
}

#[derive(Default)]
struct Requests {
    waiting: VecDeque<(Request, Address)>,
    closed: bool,
}

#[derive(Clone, Copy)]
struct Address(*mut u8);

// SAFETY: the address of a buffer that only the thread serving its request uses until it completed.
unsafe impl Send for Address {}

impl ThreadQueue {
    /// A queue that serves up to `depth` requests at once.
    ///
    /// # Errors
    /// [`QueueError`] when the threads cannot be started.
    pub fn new(volume: VolumeFile, pool: BufferPool, clock: SessionClock, depth: u32) -> Result<Self, QueueError> {
        let shared = Arc::new(Shared {
            volume,
            _buffers: pool.mapping(),
            clock: clock.clone(),
            requests: Mutex::default(),
            wanted: Condvar::new(),
            completions: Mutex::new(Vec::with_capacity(depth as usize)),
            completed: Condvar::new(),
            cpu_clocks: Mutex::default(),
        });
        // Dropping the queue ends the threads that were started when a later one cannot be.
        let queue = Self { shared: Arc::clone(&shared), pool, clock };
        for _ in 0..depth {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("assay-io".into())
                .stack_size(64 * 1024)
                .spawn(move || shared.serve())
                .map_err(|error| QueueError { operation: "starting an I/O thread", message: error.to_string() })?;
        }
        Ok(queue)
    }
}

impl Shared {
    fn serve(&self) {
        let mut cpu_clock = 0;
        // SAFETY: the thread is this one, and `cpu_clock` is valid to write to.
        if unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut cpu_clock) } == 0 {
            self.cpu_clocks.lock().unwrap_or_else(PoisonError::into_inner).push(cpu_clock);
        }
        loop {
            let (request, address) = {
                let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    if requests.closed {
                        return;
                    }
                    if let Some(next) = requests.waiting.pop_front() {
                        break next;
                    }
                    requests = self.wanted.wait(requests).unwrap_or_else(PoisonError::into_inner);
                }
            };
            let result = self.perform(request, address);
            let at_ns = self.clock.now_ns();
            let mut completions = self.completions.lock().unwrap_or_else(PoisonError::into_inner);
            completions.push(Completion { tag: request.tag, result, at_ns });
            self.completed.notify_one();
        }
    }

    fn perform(&self, request: Request, address: Address) -> i32 {
        let fd = self.volume.file.as_raw_fd();
        let length = request.length_bytes as usize;
        let offset = request.offset_bytes as libc::off_t;
        loop {
            // SAFETY: the buffer holds `length` bytes and belongs to this request until it completes.
            let result = unsafe {
                match request.op {
                    Op::Read => libc::pread(fd, address.0.cast(), length, offset),
                    Op::Write => libc::pwrite(fd, address.0.cast(), length, offset),
                    Op::Flush if self.volume.full_sync => libc::fsync(fd) as isize,
                    Op::Flush => libc::fdatasync(fd) as isize,
                }
            };
            if result >= 0 {
                return result as i32;
            }
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            if errno != libc::EINTR {
                return -errno;
            }
        }
    }
}

impl Queue for ThreadQueue {
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    fn submit(&mut self, requests: &[Request]) -> Result<(), QueueError> {
        for request in requests {
            if request.op == Op::Write {
                self.pool.prepare_write(request.buffer, request.length_bytes);
            }
        }
        let mut waiting = self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for request in requests {
            let address = self.pool.address(request.buffer, request.length_bytes);
            waiting.waiting.push_back((*request, Address(address)));
        }
        drop(waiting);
        requests.iter().for_each(|_| self.shared.wanted.notify_one());
        Ok(())
    }

    fn wait(&mut self, min: usize, until_ns: u64, completions: &mut Vec<Completion>) -> Result<(), QueueError> {
        let mut done = self.shared.completions.lock().unwrap_or_else(PoisonError::into_inner);
        while done.len() < min {
            let now_ns = self.clock.now_ns();
            if now_ns >= until_ns {
                break;
            }
            let timeout = Duration::from_nanos(until_ns - now_ns);
            done = self.shared.completed.wait_timeout(done, timeout).unwrap_or_else(PoisonError::into_inner).0;
        }
        completions.append(&mut done);
        Ok(())
    }

    fn cpu_ns(&self) -> Option<u64> {
        let clocks = self.shared.cpu_clocks.lock().unwrap_or_else(PoisonError::into_inner);
        Some(thread_cpu_ns() + clocks.iter().map(|clock| cpu_ns(*clock)).sum::<u64>())
    }
}

impl Drop for ThreadQueue {
    fn drop(&mut self) {
        // Requests that no thread has taken yet are forgotten; one that is being served ends by itself.
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.wanted.notify_all();
    }
}
