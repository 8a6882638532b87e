//! Stages that serve in the order of arrival: processors, channels of flash, and pipes.

/// Bytes of every message beside its payload.
pub(super) const MESSAGE_BYTES: u64 = 128;

/// A pipe that carries `bytes_per_s`, one piece after the other.
#[derive(Debug, Clone)]
pub(super) struct Pipe {
    ps_per_byte: u64,
    free_ns: u64,
    bytes: u64,
    busy_ns: u64,
}

impl Pipe {
    pub(super) fn new(bytes_per_s: f64) -> Self {
        Self { ps_per_byte: (1e12 / bytes_per_s) as u64, free_ns: 0, bytes: 0, busy_ns: 0 }
    }

    /// Time at which `bytes` that come at `at_ns` are through.
    #[inline]
    pub(super) fn pass(&mut self, at_ns: u64, bytes: u64) -> u64 {
        let takes_ns = (bytes * self.ps_per_byte).div_ceil(1000);
        self.free_ns = self.free_ns.max(at_ns) + takes_ns;
        self.bytes += bytes;
        self.busy_ns += takes_ns;
        self.free_ns
    }

    /// Bytes, and time in use until `now_ns`.
    pub(super) fn used(&self, now_ns: u64) -> (u64, u64) {
        (self.bytes, self.busy_ns - self.free_ns.saturating_sub(now_ns).min(self.busy_ns))
    }
}

/// Servers: the first free server takes the next piece of work.
#[derive(Debug, Clone)]
pub(super) struct Servers {
    free_ns: Vec<u64>,
    busy_ns: u64,
}

impl Servers {
    pub(super) fn new(count: u32) -> Self {
        Self { free_ns: vec![0; count as usize], busy_ns: 0 }
    }

    #[inline]
    pub(super) fn serve(&mut self, at_ns: u64, takes_ns: u64) -> u64 {
        let mut first = 0;
        for (number, free_ns) in self.free_ns.iter().enumerate() {
            if *free_ns <= at_ns {
                first = number;
                break;
            }
            if *free_ns < self.free_ns[first] {
                first = number;
            }
        }
        let server = &mut self.free_ns[first];
        *server = (*server).max(at_ns) + takes_ns;
        self.busy_ns += takes_ns;
        *server
    }

    pub(super) fn count(&self) -> u32 {
        self.free_ns.len() as u32
    }

    /// Time in use until `now_ns`, of all together.
    pub(super) fn busy_ns(&self, now_ns: u64) -> u64 {
        let booked: u64 = self.free_ns.iter().map(|free_ns| free_ns.saturating_sub(now_ns)).sum();
        self.busy_ns.saturating_sub(booked)
    }
}

/// The flash of a host: pages on channels.
#[derive(Debug, Clone)]
pub(super) struct Flash {
    channels: Servers,
    page_bytes: u64,
    read_ns: u64,
    program_ns: u64,
}

impl Flash {
    pub(super) fn new(channels: u32, page_bytes: u64, read_ns: u64, program_ns: u64) -> Self {
        Self { channels: Servers::new(channels), page_bytes, read_ns, program_ns }
    }

    /// When all pages of a read are there.
    #[inline]
    pub(super) fn read(&mut self, at_ns: u64, bytes: u64) -> u64 {
        let read_ns = self.read_ns;
        self.each_page(at_ns, bytes, read_ns)
    }

    /// Programs pages; nothing waits for it.
    #[inline]
    pub(super) fn program(&mut self, at_ns: u64, bytes: u64) {
        let program_ns = self.program_ns;
        // Pages are filled by several writes before they are programmed.
        let takes_ns = program_ns * bytes / self.page_bytes;
        self.channels.serve(at_ns, takes_ns);
    }

    #[inline]
    fn each_page(&mut self, at_ns: u64, bytes: u64, takes_ns: u64) -> u64 {
        let pages = bytes.div_ceil(self.page_bytes);
        (0..pages).map(|_| self.channels.serve(at_ns, takes_ns)).max().unwrap_or(at_ns)
    }

    pub(super) fn busy_ns(&self, now_ns: u64) -> u64 {
        self.channels.busy_ns(now_ns)
    }

    pub(super) fn channels(&self) -> u32 {
        self.channels.count()
    }
}
