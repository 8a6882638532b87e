use std::{
    collections::VecDeque,
    io,
    os::fd::AsRawFd,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use assay_load::{Completion, DataQueue, Op, Queue, QueueError, Request};

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

/// State that the serving threads share: buffers and files stay until the last thread is back from its call, so a queue
/// may be dropped while the device does not answer.
struct Shared {
    volumes: Vec<VolumeFile>,
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
    waiting: VecDeque<(Request, Memory)>,
    closed: bool,
}

/// Where the bytes of an I/O are: one piece, or as many as its length has frames.
#[derive(Clone, Copy)]
enum Memory {
    Whole(*mut u8),
    Pieces(*const libc::iovec, i32),
}

// SAFETY: the address of memory that only the thread serving its request uses until it completed.
unsafe impl Send for Memory {}

impl ThreadQueue {
    /// A queue that serves up to `depth` requests to these volumes at once.
    ///
    /// # Errors
    /// [`QueueError`] when the threads cannot be started.
    pub fn new(
        volumes: Vec<VolumeFile>,
        pool: BufferPool,
        clock: SessionClock,
        depth: u32,
    ) -> Result<Self, QueueError> {
        let shared = Arc::new(Shared {
            volumes,
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

    fn memory(&self, request: &Request) -> Memory {
        if self.shared.volumes[usize::from(request.volume)].scatters(request, self.pool.frame_bytes()) {
            let pieces = self.pool.pieces(request.buffer, request.length_bytes);
            Memory::Pieces(pieces.as_ptr(), pieces.len() as i32)
        } else {
            Memory::Whole(self.pool.address(request.buffer, request.length_bytes))
        }
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
            let (request, memory) = {
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
            let result = self.perform(request, memory);
            let at_ns = self.clock.now_ns();
            let mut completions = self.completions.lock().unwrap_or_else(PoisonError::into_inner);
            completions.push(Completion { tag: request.tag, result, at_ns });
            self.completed.notify_one();
        }
    }

    fn perform(&self, request: Request, memory: Memory) -> i32 {
        let volume = &self.volumes[usize::from(request.volume)];
        let fd = volume.file.as_raw_fd();
        let length = request.length_bytes as usize;
        let offset = request.offset_bytes as libc::off_t;
        loop {
            // SAFETY: the memory holds `length` bytes and belongs to this request until it completes.
            let result = unsafe {
                match (request.op, memory) {
                    (Op::Read, Memory::Whole(start)) => libc::pread(fd, start.cast(), length, offset),
                    (Op::Read, Memory::Pieces(table, count)) => libc::preadv(fd, table, count, offset),
                    (Op::Write, Memory::Whole(start)) => libc::pwrite(fd, start.cast(), length, offset),
                    (Op::Write, Memory::Pieces(table, count)) => libc::pwritev(fd, table, count, offset),
                    (Op::Flush, _) if volume.full_sync => libc::fsync(fd) as isize,
                    (Op::Flush, _) => libc::fdatasync(fd) as isize,
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
            if self.pool.lends() {
                self.pool.lend(request);
            } else if request.op == Op::Write {
                self.pool.prepare_write(request.buffer, request.length_bytes);
            }
        }
        let mut waiting = self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for request in requests {
            let memory = self.memory(request);
            waiting.waiting.push_back((*request, memory));
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
        if self.pool.lends() {
            done.iter().for_each(|completion| self.pool.take_back(completion.tag));
        }
        completions.append(&mut done);
        Ok(())
    }

    fn cpu_ns(&self) -> Option<u64> {
        let clocks = self.shared.cpu_clocks.lock().unwrap_or_else(PoisonError::into_inner);
        Some(thread_cpu_ns() + clocks.iter().map(|clock| cpu_ns(*clock)).sum::<u64>())
    }
}

impl DataQueue for ThreadQueue {
    fn frame_bytes(&self) -> u32 {
        self.pool.frame_bytes()
    }

    fn frame(&mut self, frame: u32) -> &mut [u8] {
        self.pool.frame(frame)
    }

    fn frame_of_piece(&self, volume: u16, first: u32, piece: u32, pieces: u32) -> u32 {
        self.shared.volumes[usize::from(volume)].frame_of_piece(first, piece, pieces)
    }

    fn forget_cached(&mut self, volume: u16) {
        self.shared.volumes[usize::from(volume)].forget_cached();
    }

    fn resize(&mut self, volume: u16, size_bytes: u64) -> Result<(), i32> {
        self.shared.volumes[usize::from(volume)].resize(size_bytes)
    }
}

impl Drop for ThreadQueue {
    fn drop(&mut self) {
        // Requests that no thread has taken yet are forgotten; one that is being served ends by itself.
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.wanted.notify_all();
    }
}
