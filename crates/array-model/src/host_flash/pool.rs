//! The data nodes: memory that survives a power cut, containers on their way to the disks, and cleaning.

use std::collections::VecDeque;

use super::{
    plan::HostFlashPlan,
    stages::{Pipe, Servers},
};
use crate::{
    disk::{Begun, Disk, DiskCommand, DiskKind},
    events::{Event, Events},
    slab::Slab,
};

/// Job on a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    /// Data that hosts wrote; `held_bytes` of memory are free once it is on disk.
    Write {
        held_bytes: u64,
    },
    /// Live blocks that cleaning found go to a new container.
    Move,
    /// A container is read to be cleaned.
    Clean,
    /// A piece that is missing is computed from others, and then written.
    Restore,
    Replace,
}

/// Work that disk commands belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A read that a host waits for.
    Read {
        io: u32,
    },
    Container {
        node: u32,
        job: Job,
    },
}

#[derive(Debug, Clone, Copy)]
struct Task {
    work: Work,
    remaining: u32,
}

/// End of the work of a disk command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Nothing,
    /// All of a host's read is there.
    Read {
        io: u32,
    },
    /// A node has memory free again.
    Room {
        node: u32,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NodeCounters {
    pub(super) reads: u64,
    pub(super) written_bytes: u64,
    pub(super) stored_bytes: u64,
    pub(super) writes_waited: u64,
    pub(super) moved_bytes: u64,
    pub(super) cleaned_bytes: u64,
    pub(super) restored_bytes: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) cores: Servers,
    pub(super) intake: Pipe,
    pub(super) network_in: Pipe,
    pub(super) network_out: Pipe,
    pub(super) counters: NodeCounters,
    /// Writes for which there is no memory, oldest first.
    pub(super) waiting: VecDeque<u32>,
    /// In memory, not yet on disk, and those of them that are in no container yet.
    pub(super) held_bytes: u64,
    open_bytes: u64,
    jobs: VecDeque<Job>,
    under_way: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub(super) nodes: Vec<Node>,
    pub(super) disks: Vec<Disk>,
    disks_each: u32,
    tasks: Slab<Task>,
    containers: u64,
    nvram_bytes: u64,
    under_way_most: u32,
    container_bytes: u64,
    piece_bytes: u64,
    pieces: (u32, u32),
    /// Where containers may begin on a disk, in pieces.
    places: u64,
    seed: u64,
    /// Bytes that cleaning has still to read and to move, and whose turn it is.
    clean_bytes: u64,
    move_bytes: u64,
    turn: u32,
    /// Which disks are there, and how many times slower each is.
    pub(super) present: Vec<bool>,
    pub(super) slowed: Vec<u32>,
    /// Pieces still to be restored.
    restore_left: u64,
    restore_under_way: u64,
    restore_most: u64,
    pub(super) restored: u64,
}

impl Pool {
    pub(super) fn new(plan: &HostFlashPlan, mut phase: impl FnMut() -> u32) -> Self {
        let (node, log) = (&plan.node, &plan.log);
        let kind = DiskKind::new(&node.disk, node.read_preference_ns, node.count * node.disks);
        let made = Node {
            cores: Servers::new(node.cores),
            intake: Pipe::new(node.write_bytes_per_s),
            network_in: Pipe::new(node.network_bytes_per_s),
            network_out: Pipe::new(node.network_bytes_per_s),
            counters: NodeCounters::default(),
            waiting: VecDeque::new(),
            held_bytes: 0,
            open_bytes: 0,
            jobs: VecDeque::new(),
            under_way: 0,
        };
        Self {
            nodes: vec![made; node.count as usize],
            disks: (0..node.count * node.disks).map(|_| kind.disk(phase())).collect(),
            disks_each: node.disks,
            tasks: Slab::new(),
            containers: 0,
            nvram_bytes: node.nvram_bytes,
            under_way_most: node.containers_under_way,
            container_bytes: log.container_bytes,
            piece_bytes: log.piece_bytes(),
            pieces: (log.data_pieces, log.parity_pieces),
            places: (node.disk.capacity_bytes() / log.piece_bytes()).max(1),
            seed: plan.seed,
            clean_bytes: 0,
            move_bytes: 0,
            turn: 0,
            present: vec![true; (node.count * node.disks) as usize],
            slowed: vec![1; (node.count * node.disks) as usize],
            restore_left: 0,
            restore_under_way: 0,
            restore_most: 0,
            restored: 0,
        }
    }

    /// The disks of a node.
    pub(super) fn disks_of(&self, node: u32) -> &[Disk] {
        &self.disks[(node * self.disks_each) as usize..][..self.disks_each as usize]
    }

    /// Whether a node has memory for a write. Where no container is on its way to disk none will free any, so that it goes in.
    pub(super) fn has_room(&self, node: u32, bytes: u64) -> bool {
        let Node { held_bytes, .. } = self.nodes[node as usize];
        held_bytes + bytes <= self.nvram_bytes || self.sealed_bytes(node) == 0
    }

    /// In containers that are not on disk yet.
    pub(super) fn sealed_bytes(&self, node: u32) -> u64 {
        let Node { held_bytes, open_bytes, .. } = self.nodes[node as usize];
        held_bytes - open_bytes
    }

    /// Takes a host's write into the memory of a node.
    pub(super) fn take(&mut self, now_ns: u64, node: u32, bytes: u64, events: &mut Events) {
        let at = &mut self.nodes[node as usize];
        at.held_bytes += bytes;
        at.open_bytes += bytes;
        while at.open_bytes >= self.container_bytes {
            at.open_bytes -= self.container_bytes;
            at.jobs.push_back(Job::Write { held_bytes: self.container_bytes });
        }
        self.begin_jobs(now_ns, node, events);
    }

    /// Cleans containers on the nodes in turn: reads `read_bytes` and writes their `live_bytes`.
    pub(super) fn clean(&mut self, now_ns: u64, read_bytes: u64, live_bytes: u64, events: &mut Events) {
        self.clean_bytes += read_bytes;
        self.move_bytes += live_bytes;
        for job in [Job::Clean, Job::Move] {
            loop {
                let due_bytes = if job == Job::Clean { &mut self.clean_bytes } else { &mut self.move_bytes };
                if *due_bytes < self.container_bytes {
                    break;
                }
                *due_bytes -= self.container_bytes;
                self.turn = (self.turn + 1) % self.nodes.len() as u32;
                // In turn with what hosts wrote: before it, a full memory would let nothing in until all of this is done.
                self.nodes[self.turn as usize].jobs.push_back(job);
                self.begin_jobs(now_ns, self.turn, events);
            }
        }
    }

    /// Restores `pieces` pieces, and no others.
    pub(super) fn restore(&mut self, now_ns: u64, pieces: u64, depth: u32, events: &mut Events) {
        self.restore_left = pieces;
        self.restore_most = u64::from(depth) * self.nodes.len() as u64;
        self.begin_restoring(now_ns, events);
    }

    pub(super) fn restoring(&self) -> u64 {
        self.restore_left + self.restore_under_way
    }

    fn begin_restoring(&mut self, now_ns: u64, events: &mut Events) {
        while self.restore_left > 0 && self.restore_under_way < self.restore_most {
            self.restore_left -= 1;
            self.restore_under_way += 1;
            self.turn = (self.turn + 1) % self.nodes.len() as u32;
            self.nodes[self.turn as usize].jobs.push_back(Job::Restore);
            self.begin_jobs(now_ns, self.turn, events);
        }
    }

    /// Reads bytes of a block for a host.
    pub(super) fn read(&mut self, now_ns: u64, io: u32, draw: u64, bytes: u64, events: &mut Events) {
        let disk = draw % self.disks.len() as u64;
        let place = (draw >> 16) % self.places;
        let pieces = bytes.div_ceil(self.piece_bytes).max(1);
        let task = self.begin(Work::Read { io });
        let mut left_bytes = bytes.max(512);
        for piece in 0..pieces {
            let bytes = left_bytes.min(self.piece_bytes) as u32;
            left_bytes -= u64::from(bytes);
            let within = ((draw >> 32) % (self.piece_bytes - u64::from(bytes) + 1)) & !511;
            let at_bytes = place * self.piece_bytes + within;
            let command = DiskCommand { at_bytes, bytes, write: false, background: false, task, queued_ns: now_ns };
            let disk = ((disk + piece) % self.disks.len() as u64) as u32;
            if self.present[disk as usize] {
                self.push(now_ns, disk, command, events);
                continue;
            }
            // It is computed from as many other pieces as there are of data.
            for other in self.disks_from(u64::from(disk), self.pieces.0) {
                self.push(now_ns, other, command, events);
            }
        }
    }

    pub(super) fn disk_ends(&mut self, now_ns: u64, disk: u16, slot: u16, events: &mut Events) -> Ended {
        let (ended, next) = self.disks[usize::from(disk)].end(now_ns, slot);
        if let Some(begun) = next {
            self.set_end(now_ns, u32::from(disk), begun, events);
        }
        let task = &mut self.tasks[ended.task];
        task.remaining -= 1;
        if task.remaining > 0 {
            return Ended::Nothing;
        }
        let work = task.work;
        self.tasks.free(ended.task);
        let Work::Container { node, job } = work else {
            let Work::Read { io } = work else { unreachable!("there are two kinds of work") };
            return Ended::Read { io };
        };
        if job == Job::Restore {
            self.begin_job(now_ns, node, Job::Replace, events);
            return Ended::Nothing;
        }
        let at = &mut self.nodes[node as usize];
        at.under_way -= 1;
        let room = match job {
            Job::Write { held_bytes } => {
                at.held_bytes -= held_bytes;
                at.counters.stored_bytes += held_bytes;
                Ended::Room { node }
            }
            Job::Move => {
                at.counters.moved_bytes += self.container_bytes;
                Ended::Nothing
            }
            Job::Clean => {
                at.counters.cleaned_bytes += self.container_bytes;
                Ended::Nothing
            }
            Job::Restore | Job::Replace => {
                at.counters.restored_bytes += self.piece_bytes;
                self.restored += 1;
                self.restore_under_way -= 1;
                self.begin_restoring(now_ns, events);
                Ended::Nothing
            }
        };
        self.begin_jobs(now_ns, node, events);
        room
    }

    fn begin_jobs(&mut self, now_ns: u64, node: u32, events: &mut Events) {
        while self.nodes[node as usize].under_way < self.under_way_most {
            let Some(job) = self.nodes[node as usize].jobs.pop_front() else { return };
            self.nodes[node as usize].under_way += 1;
            self.begin_job(now_ns, node, job, events);
        }
    }

    fn begin_job(&mut self, now_ns: u64, node: u32, job: Job, events: &mut Events) {
        let task = self.begin(Work::Container { node, job });
        let (data, parity) = self.pieces;
        let (write, pieces) = match job {
            Job::Write { .. } | Job::Move => (true, data + parity),
            // Cleaning reads data alone; parity is computed anew for what is written.
            Job::Clean | Job::Restore => (false, data),
            Job::Replace => (true, 1),
        };
        self.containers += 1;
        let draw = mixed(self.seed ^ self.containers);
        for (piece, disk) in (0..).zip(self.disks_from(draw, pieces)) {
            let at_bytes = (mixed(draw ^ piece) % self.places) * self.piece_bytes;
            let bytes = self.piece_bytes as u32;
            let command = DiskCommand { at_bytes, bytes, write, background: true, task, queued_ns: now_ns };
            self.push(now_ns, disk, command, events);
        }
    }

    /// The first `count` present disks, starting at `first` and wrapping around. If none is present, returns absent
    /// ones; I/Os to them never complete.
    fn disks_from(&self, first: u64, count: u32) -> Vec<u32> {
        let all = self.disks.len() as u64;
        let disks = (0..all).map(|next| ((first.wrapping_add(next)) % all) as u32);
        let there: Vec<u32> = disks.clone().filter(|disk| self.present[*disk as usize]).take(count as usize).collect();
        if there.is_empty() { disks.take(count as usize).collect() } else { there }
    }

    fn begin(&mut self, work: Work) -> u32 {
        self.tasks.insert(Task { work, remaining: 0 })
    }

    fn push(&mut self, now_ns: u64, disk: u32, command: DiskCommand, events: &mut Events) {
        self.tasks[command.task].remaining += 1;
        if let Some(begun) = self.disks[disk as usize].push(now_ns, command) {
            self.set_end(now_ns, disk, begun, events);
        }
    }

    fn set_end(&self, now_ns: u64, disk: u32, begun: Begun, events: &mut Events) {
        let end_ns = now_ns + (begun.end_ns - now_ns) * u64::from(self.slowed[disk as usize]);
        events.set(end_ns, Event::DiskEnds { disk: disk as u16, slot: begun.slot });
    }
}

/// A number that looks drawn at random (the last steps of SplitMix64).
#[inline]
pub(super) fn mixed(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
