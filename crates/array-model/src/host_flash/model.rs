//! Hosts, data nodes and their messages as a passive state machine in virtual time.

use assay_load::{Completion, Op, Request, Simulated, SplitMix};

use super::{
    held::Held,
    log::Log,
    plan::{BLOCK_BYTES, HostFlashPlan},
    pool::{Ended, Node, Pool, mixed},
    stages::{Flash, MESSAGE_BYTES, Pipe, Servers},
};
use crate::{
    ArrayError, DiskReading, HostReading, LogReading, MemberReading, PortReading,
    events::Event,
    slab::Slab,
    timeline::{Timed, Timeline},
};

const EINVAL: i32 = 22;
/// Lines are larger than blocks where the volumes would make more of them: two bits of memory are kept of each, twice.
const LINES_MAX: u64 = 1 << 26;

#[derive(Debug, Clone, Copy)]
pub(super) struct Io {
    pub(super) tag: u32,
    pub(super) op: Op,
    pub(super) result: i32,
    pub(super) host: u32,
    pub(super) node: u32,
    /// Lines, and bytes of the host.
    pub(super) first: u64,
    pub(super) lines: u64,
    pub(super) bytes: u64,
    /// Whether lines come to the host's caches when it ends.
    pub(super) fetched: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) cores: Servers,
    pub(super) reading: Pipe,
    pub(super) flash: Flash,
    pub(super) network_in: Pipe,
    pub(super) network_out: Pipe,
    pub(super) reads: u64,
    pub(super) memory_hits: u64,
    pub(super) flash_hits: u64,
    pub(super) remote_hits: u64,
}

/// A volume's place among the lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) bytes: u64,
    pub(super) host: u32,
    pub(super) first: u64,
    pub(super) lines: u64,
}

/// Time that each step of an I/O takes.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    pub(super) host_per_io_ns: u64,
    host_ps_per_byte: u64,
    pub(super) memory_ns: u64,
    node_per_io_ns: u64,
    nvram_ns: u64,
    pub(super) one_way_ns: u64,
}

impl Costs {
    fn new(plan: &HostFlashPlan) -> Self {
        Self {
            host_per_io_ns: plan.host.cpu_per_io_ns,
            host_ps_per_byte: (1e12 / plan.host.cpu_bytes_per_s) as u64,
            memory_ns: plan.host.memory_ns,
            node_per_io_ns: plan.node.cpu_per_io_ns,
            nvram_ns: plan.node.nvram_ns,
            one_way_ns: plan.network_ns / 2,
        }
    }
}

/// Form in which data nodes store blocks: their reduction, snapshots, and whether space is reclaimed.
#[derive(Debug, Clone)]
pub(super) struct Storage {
    reclaims: bool,
    snapshots: u32,
    entry_bytes: u64,
    /// In thousandths.
    reduction: u64,
    pub(super) compression: u64,
    /// Of 2^32: blocks with the content of the same place of the volume before.
    pub(super) duplicates: u64,
}

impl Storage {
    fn new(plan: &HostFlashPlan) -> Self {
        let thousandths = |ratio: f64| (ratio * 1000.0).round() as u64;
        Self {
            reclaims: plan.log.reclaims,
            snapshots: plan.log.snapshots,
            entry_bytes: plan.log.snapshot_entry_bytes,
            reduction: thousandths(plan.reduction()),
            compression: thousandths(plan.log.compression),
            duplicates: ((1.0 - 1.0 / plan.log.deduplication) * 4_294_967_296.0) as u64,
        }
    }
}

/// A modelled array with flash in its hosts. Nothing in it runs by itself: time passes in [`Simulated::advance`].
#[derive(Debug, Clone)]
pub struct HostFlashModel {
    pub(super) time: Timeline,
    pub(super) hosts: Vec<Host>,
    pub(super) pool: Pool,
    pub(super) memory: Held,
    pub(super) flash: Held,
    pub(super) log: Log,
    pub(super) volumes: Vec<Placed>,
    /// Volumes by their first line.
    pub(super) by_line: Vec<u16>,
    pub(super) line_shift: u32,
    pub(super) lines: u64,
    pub(super) ios: Slab<Io>,
    pub(super) warmed: u64,
    pub(super) costs: Costs,
    pub(super) storage: Storage,
    /// Stored bytes of writes since the log cleaned last, and how many writes they were.
    pub(super) appended: (u64, u64),
    pub(super) moved: u64,
    pub(super) appends: u64,
}

impl HostFlashModel {
    /// An idle array with empty caches at time 0, all its volumes written once.
    ///
    /// # Errors
    /// A parameter is impossible, or volumes and snapshots leave nothing to reclaim.
    pub fn new(plan: &HostFlashPlan) -> Result<Self, ArrayError> {
        plan.validate()?;
        let mut random = SplitMix::new(plan.seed);
        let pool = Pool::new(plan, || random.next() as u32);
        let mut line_shift = BLOCK_BYTES.trailing_zeros();
        while plan.volume_bytes() >> line_shift > LINES_MAX {
            line_shift += 1;
        }
        let hosts = plan.host.count;
        let mut volumes = vec![Placed { bytes: 0, host: 0, first: 0, lines: 0 }; plan.volumes.len()];
        let (mut lines, mut words, mut by_line) = (0, Vec::new(), Vec::new());
        for host in 0..hosts {
            let first_word = (lines / 64) as usize;
            for number in (host as usize..volumes.len()).step_by(hosts as usize) {
                let bytes = plan.volumes[number].bytes;
                let own = bytes.div_ceil(1 << line_shift);
                volumes[number] = Placed { bytes, host, first: lines, lines: own };
                lines += own.next_multiple_of(64);
                by_line.push(number as u16);
            }
            words.push(first_word..(lines / 64) as usize);
        }
        let FlashHosts { memory_lines, flash_lines, host } = FlashHosts::new(plan, line_shift);
        Ok(Self {
            time: Timeline::default(),
            hosts: vec![host; hosts as usize],
            pool,
            memory: Held::new(&words, memory_lines),
            flash: Held::new(&words, flash_lines),
            log: Log::new(plan.live_share(), plan.log.snapshots, plan.log.snapshot_change),
            volumes,
            by_line,
            line_shift,
            lines: lines.max(1),
            ios: Slab::new(),
            warmed: 0,
            costs: Costs::new(plan),
            storage: Storage::new(plan),
            appended: (0, 0),
            moved: 0,
            appends: 0,
        })
    }

    /// Adds a snapshot of all volumes to the chain; returns its name there.
    pub fn snapshot(&mut self) -> u32 {
        self.log.snapshot()
    }

    /// Reverts the volumes to a snapshot, and drops changed lines from all caches. Returns whether the chain has the
    /// snapshot.
    pub fn revert(&mut self, snapshot: u32) -> bool {
        let Some(units) = self.log.revert(snapshot) else { return false };
        for unit in units {
            let (first, end) = (self.first_line(u64::from(unit)), self.first_line(u64::from(unit) + 1));
            for line in first..end {
                let host = self.host_of(line);
                self.memory.drop_line(host, line);
                self.flash.drop_line(host, line);
            }
        }
        true
    }

    pub fn volume_bytes(&self, volume: usize) -> Option<u64> {
        self.volumes.get(volume).map(|placed| placed.bytes)
    }

    /// Readings of the data nodes.
    pub fn readings(&self) -> Vec<MemberReading> {
        (0..self.pool.nodes.len() as u32).map(|node| self.node_reading(node)).collect()
    }

    fn node_reading(&self, number: u32) -> MemberReading {
        let Node { cores, network_in, network_out, counters, .. } = &self.pool.nodes[number as usize];
        let port = port_reading(network_in, network_out, self.time.now_ns);
        MemberReading {
            written_bytes: counters.written_bytes,
            write_back: true,
            destaged_bytes: counters.stored_bytes,
            writes_waited: counters.writes_waited,
            cleaned_bytes: counters.cleaned_bytes,
            moved_bytes: counters.moved_bytes,
            rebuilt_bytes: counters.restored_bytes,
            cpu_busy_ns: cores.busy_ns(self.time.now_ns),
            cores: cores.count(),
            dirty_bytes: self.pool.sealed_bytes(number),
            held_bytes: self.pool.nodes[number as usize].held_bytes,
            disks: self
                .pool
                .disks_of(number)
                .iter()
                .map(|disk| DiskReading::from(disk.counters(self.time.now_ns)))
                .collect(),
            ports: vec![port],
            ..MemberReading::default()
        }
    }

    /// Readings of the hosts.
    pub fn host_readings(&self) -> Vec<HostReading> {
        let reading = |host: &Host| HostReading {
            ports: vec![port_reading(&host.network_in, &host.network_out, self.time.now_ns)],
            reads: host.reads,
            memory_hits: host.memory_hits,
            flash_hits: host.flash_hits,
            remote_hits: host.remote_hits,
            cpu_busy_ns: host.cores.busy_ns(self.time.now_ns),
            cores: host.cores.count(),
            flash_busy_ns: host.flash.busy_ns(self.time.now_ns),
            flash_channels: host.flash.channels(),
        };
        self.hosts.iter().map(reading).collect()
    }

    /// How the log stands.
    pub fn log_reading(&self) -> LogReading {
        LogReading {
            appends: self.appends,
            moves: self.moved,
            live_share: self.log.live_share(),
            held_share: self.log.held() as f64 / self.log.live() as f64,
            snapshots: self.log.snapshots() as u32,
        }
    }

    pub(super) fn begin_io(&mut self, io: Io) -> u32 {
        self.ios.insert(io)
    }

    fn write(&mut self, at_ns: u64, io: Io) {
        let stored = self.stored(io.bytes);
        let host = &mut self.hosts[io.host as usize];
        let takes_ns = self.costs.host_per_io_ns + io.bytes * self.costs.host_ps_per_byte / 1000;
        let served_ns = host.cores.serve(at_ns, takes_ns);
        let sent_ns = host.network_out.pass(served_ns, stored + MESSAGE_BYTES) + self.costs.one_way_ns;
        let number = self.begin_io(io);
        self.time.events.set(sent_ns, Event::Arrived(number));
    }

    pub(super) fn stored(&self, bytes: u64) -> u64 {
        (bytes * 1000 / self.storage.reduction).max(1)
    }

    /// An I/O has come to its node.
    fn arrive(&mut self, number: u32) {
        let Io { op, node, bytes, .. } = self.ios[number];
        let stored = if op == Op::Write { self.stored(bytes) } else { 0 };
        let node = &mut self.pool.nodes[node as usize];
        let there_ns = node.network_in.pass(self.time.now_ns, stored + MESSAGE_BYTES);
        let mut ready_ns = node.cores.serve(there_ns, self.costs.node_per_io_ns);
        if op == Op::Write {
            ready_ns = node.intake.pass(ready_ns, bytes);
        }
        self.time.events.set(ready_ns, Event::Admitted(number));
    }

    /// A node begins to serve an I/O.
    fn serve(&mut self, number: u32) {
        let Io { op, node, first, bytes, .. } = self.ios[number];
        if op == Op::Read {
            self.pool.nodes[node as usize].counters.reads += 1;
            let compressed = (bytes * 1000 / self.storage.compression).max(1);
            self.pool.read(self.time.now_ns, number, mixed(first), compressed, &mut self.time.events);
        } else if self.pool.nodes[node as usize].waiting.is_empty() && self.pool.has_room(node, self.stored(bytes)) {
            self.accept(number);
        } else {
            let node = &mut self.pool.nodes[node as usize];
            node.counters.writes_waited += 1;
            node.waiting.push_back(number);
        }
    }

    /// A write is in the memory of its node, and acknowledged.
    fn accept(&mut self, number: u32) {
        let Io { host, node, first, bytes, .. } = self.ios[number];
        let stored = self.stored(bytes);
        let blocks = bytes.div_ceil(BLOCK_BYTES);
        let entries = if self.storage.snapshots > 0 { blocks * self.storage.entry_bytes } else { 0 };
        self.pool.nodes[node as usize].counters.written_bytes += bytes;
        self.pool.take(self.time.now_ns, node, stored + entries, &mut self.time.events);
        let cleaned = self.log.write(self.unit(first));
        self.appends += 1;
        self.appended = (self.appended.0 + stored + entries, self.appended.1 + 1);
        if cleaned.slots > 0 && self.storage.reclaims {
            let (appended_bytes, appended) = std::mem::take(&mut self.appended);
            self.moved += cleaned.moved;
            let (read, live) = (cleaned.slots * appended_bytes / appended, cleaned.moved * appended_bytes / appended);
            self.pool.clean(self.time.now_ns, read, live, &mut self.time.events);
        }
        let sent_ns =
            self.pool.nodes[node as usize].network_out.pass(self.time.now_ns + self.costs.nvram_ns, MESSAGE_BYTES);
        let there_ns = self.hosts[host as usize].network_in.pass(sent_ns + self.costs.one_way_ns, MESSAGE_BYTES);
        self.time.events.set(there_ns, Event::Answered(number));
    }

    /// Sends bytes that a node has read to the host that waits for them.
    fn send_back(&mut self, number: u32) {
        let Io { host, node, bytes, .. } = self.ios[number];
        let payload = bytes * 1000 / self.storage.compression + MESSAGE_BYTES;
        let sent_ns =
            self.pool.nodes[node as usize].network_out.pass(self.time.now_ns, payload) + self.costs.one_way_ns;
        let host = &mut self.hosts[host as usize];
        let there_ns = host.network_in.pass(sent_ns, payload);
        let end_ns = host.reading.pass(there_ns, bytes);
        self.time.events.set(end_ns, Event::Answered(number));
    }

    fn answer(&mut self, number: u32, completions: &mut Vec<Completion>) {
        let Io { tag, op, result, host, first, lines, bytes, fetched, .. } = self.ios[number];
        if fetched {
            let stored = if op == Op::Write { self.stored(bytes) } else { bytes * 1000 / self.storage.compression };
            self.hosts[host as usize].flash.program(self.time.now_ns, stored);
            for line in first..first + lines {
                self.flash.add(host, line);
                self.memory.add(host, line);
            }
        }
        completions.push(Completion { tag, result, at_ns: self.time.user_ns() });
        self.ios.free(number);
    }

    fn admit_waiting(&mut self, node: u32) {
        while let Some(number) = self.pool.nodes[node as usize].waiting.front().copied() {
            if !self.pool.has_room(node, self.stored(self.ios[number].bytes)) {
                return;
            }
            self.pool.nodes[node as usize].waiting.pop_front();
            self.accept(number);
        }
    }
}

/// A host as it begins, and how many lines its caches hold.
struct FlashHosts {
    memory_lines: u64,
    flash_lines: u64,
    host: Host,
}

impl FlashHosts {
    fn new(plan: &HostFlashPlan, line_shift: u32) -> Self {
        let host = &plan.host;
        // Memory keeps blocks as they are used, flash as they are stored.
        let stored = |bytes: u64| (bytes as f64 * plan.reduction()) as u64;
        Self {
            memory_lines: host.memory_bytes >> line_shift,
            flash_lines: (stored(host.flash_bytes) >> line_shift).max(1),
            host: Host {
                cores: Servers::new(host.cores),
                reading: Pipe::new(host.read_bytes_per_s),
                flash: Flash::new(
                    host.flash_channels,
                    host.flash_page_bytes,
                    host.flash_read_ns,
                    host.flash_program_ns,
                ),
                network_in: Pipe::new(host.network_bytes_per_s),
                network_out: Pipe::new(host.network_bytes_per_s),
                reads: 0,
                memory_hits: 0,
                flash_hits: 0,
                remote_hits: 0,
            },
        }
    }
}

fn port_reading(network_in: &Pipe, network_out: &Pipe, now_ns: u64) -> PortReading {
    let ((in_bytes, in_busy_ns), (out_bytes, out_busy_ns)) = (network_in.used(now_ns), network_out.used(now_ns));
    PortReading { in_bytes, out_bytes, in_busy_ns, out_busy_ns, packets: 0, packets_again: 0 }
}

impl Timed for HostFlashModel {
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.time
    }

    fn happen(&mut self, event: Event, completions: &mut Vec<Completion>) {
        match event {
            Event::Arrived(number) => self.arrive(number),
            Event::Admitted(number) => self.serve(number),
            Event::Answered(number) => self.answer(number, completions),
            Event::DiskEnds { disk, slot } => {
                match self.pool.disk_ends(self.time.now_ns, disk, slot, &mut self.time.events) {
                    Ended::Nothing => {}
                    Ended::Read { io } => self.send_back(io),
                    Ended::Room { node } => self.admit_waiting(node),
                }
            }
            Event::Path(_) => unreachable!("no path of this array is lost"),
            Event::Moves { .. } | Event::Rebuilds { .. } => unreachable!("no member joins or rebuilds in this array"),
        }
    }

    fn is_idle(&self) -> bool {
        self.ios.is_empty()
    }
}

impl Simulated for HostFlashModel {
    fn submit(&mut self, at_ns: u64, request: &Request) {
        let at_ns = self.time.of_model_ns(at_ns);
        let bytes = u64::from(request.length_bytes);
        let within = self.volumes.get(usize::from(request.volume)).copied();
        let fits =
            within.is_some_and(|placed| request.offset_bytes.checked_add(bytes).is_some_and(|end| end <= placed.bytes));
        let host = within.map_or(0, |placed| placed.host);
        let result = if fits { request.length_bytes as i32 } else { -EINVAL };
        let (tag, op) = (request.tag, request.op);
        let mut io = Io { tag, op, result, host, node: 0, first: 0, lines: 0, bytes, fetched: op == Op::Write };
        if op == Op::Flush || !fits || bytes == 0 {
            // What was acknowledged survives: there is nothing to flush.
            io.fetched = false;
            let served_ns = self.hosts[host as usize].cores.serve(at_ns, self.costs.host_per_io_ns);
            let number = self.begin_io(io);
            self.time.events.set(served_ns, Event::Answered(number));
            return;
        }
        (io.first, io.lines) = self.lines_of(request.volume, request.offset_bytes, bytes);
        io.node = ((mixed(io.first) >> 8) % self.pool.nodes.len() as u64) as u32;
        if op == Op::Read {
            self.read(at_ns, request.volume, io);
        } else {
            self.write(at_ns, io);
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.time.next_ns()
    }

    fn advance(&mut self, to_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        self.pass_time(to_ns, completions)
    }
}
