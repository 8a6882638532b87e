//! The whole array as a passive state machine in virtual time.

use std::collections::VecDeque;

use assay_load::{Completion, Op, Request, Simulated, SplitMix};

use crate::{
    ArrayError, ArrayPlan, Code, FaultPlan, Lost, MemberPlan, StatePlan,
    disk::{DiskCounters, DiskKind},
    events::{Event, Events, PathEvent},
    links::{Links, PortCounters},
    member::{Member, MemberCounters},
    rebalance::Rebalance,
    spread::Spread,
    task::Access,
    write_anywhere,
};

const EINVAL: i32 = 22;

/// An I/O of the caller, in as many commands as initiator and pages make of it.
#[derive(Debug, Clone, Copy)]
struct HostIo {
    tag: u32,
    remaining: u32,
    result: i32,
}

/// What goes over a path to a member.
#[derive(Debug, Clone, Copy)]
struct Command {
    io: u32,
    op: Op,
    host: u32,
    member: u32,
    path: u32,
    at_bytes: u64,
    bytes: u64,
    page_end_bytes: u64,
}

/// A modelled group of arrays. Nothing in it runs by itself: time passes in [`Simulated::advance`].
#[derive(Debug, Clone)]
pub struct ArrayModel {
    /// Time reached since the model was made.
    pub(crate) now_ns: u64,
    /// The time that its user calls 0.
    epoch_ns: u64,
    pub(crate) events: Events,
    pub(crate) links: Links,
    pub(crate) spread: Spread,
    pub(crate) members: Vec<Member>,
    /// The member of each disk.
    pub(crate) disks: Vec<u16>,
    volume_bytes: Vec<u64>,
    pub(crate) hosts: u32,
    max_transfer_bytes: u64,
    ios: Vec<HostIo>,
    free_ios: Vec<u32>,
    commands: Vec<Command>,
    free_commands: Vec<u32>,
    /// By host: commands that no path takes now, oldest first.
    held: Vec<VecDeque<u32>>,
    /// Commands on a path from which nothing comes back.
    stranded: Vec<u32>,
    pub(crate) fault: Option<FaultPlan>,
    path_timeout_ns: u64,
    /// Pieces that move onto a member that has joined.
    pub(crate) rebalance: Option<Rebalance>,
}

/// Accesses of members with this bit are no commands of hosts but pieces that move: the rest is the slot.
pub(crate) const MOVES: u32 = 1 << 31;

/// What one member has done since it was made, and how it stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberReading {
    pub reads: u64,
    pub read_hits: u64,
    /// Whether writes are acknowledged from the cache.
    pub write_back: bool,
    pub written_bytes: u64,
    pub destaged_bytes: u64,
    pub writes_waited: u64,
    pub rebuilt_bytes: u64,
    /// Found scattered by reading ahead, and given to destaging to be written in one piece.
    pub reallocated_bytes: u64,
    /// Read to reclaim what holds little that is live, and written again because it is.
    pub cleaned_bytes: u64,
    pub moved_bytes: u64,
    /// Live share of a member that reclaims space or keeps snapshots.
    pub live_share: Option<f64>,
    /// Of write-anywhere layouts: pieces on disks that reading ahead took together, and their bytes.
    pub ahead_pieces: u64,
    pub ahead_bytes: u64,
    pub cpu_busy_ns: u64,
    pub cores: u32,
    pub dirty_bytes: u64,
    pub held_bytes: u64,
    pub disks: Vec<DiskReading>,
    pub ports: Vec<PortReading>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskReading {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub busy_ns: u64,
    /// Commands present, integrated over time.
    pub queue_ns: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortReading {
    pub in_bytes: u64,
    pub out_bytes: u64,
    pub in_busy_ns: u64,
    pub out_busy_ns: u64,
    /// Of the port that loses packets; 0 of others.
    pub packets: u64,
    pub packets_again: u64,
}

/// What a host has done since the model was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostReading {
    pub ports: Vec<PortReading>,
    /// Of hosts with caches of their own: reads, and where they found the last of what they asked for; the rest came from
    /// data nodes.
    pub reads: u64,
    pub memory_hits: u64,
    pub flash_hits: u64,
    pub remote_hits: u64,
    pub cpu_busy_ns: u64,
    pub cores: u32,
    pub flash_busy_ns: u64,
    pub flash_channels: u32,
}

/// How a log-structured pool stands.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LogReading {
    /// Writes so far, and how many more blocks cleaning moved, in writes of that size.
    pub appends: u64,
    pub moves: u64,
    /// Live share of the room in which reclamation works, and how much of what is live snapshots alone hold.
    pub live_share: f64,
    pub held_share: f64,
    pub snapshots: u32,
}

impl From<DiskCounters> for DiskReading {
    fn from(counters: DiskCounters) -> Self {
        let DiskCounters { reads, writes, read_bytes, write_bytes, busy_ns, queue_ns } = counters;
        Self { reads, writes, read_bytes, write_bytes, busy_ns, queue_ns }
    }
}

impl From<PortCounters> for PortReading {
    fn from(counters: PortCounters) -> Self {
        let PortCounters { in_bytes, out_bytes, in_busy_ns, out_busy_ns, packets, packets_again } = counters;
        Self { in_bytes, out_bytes, in_busy_ns, out_busy_ns, packets, packets_again }
    }
}

impl ArrayModel {
    /// An idle array with an empty cache at time 0.
    ///
    /// # Errors
    /// A parameter is impossible, or the volumes are larger than the disks.
    pub fn new(plan: &ArrayPlan) -> Result<Self, ArrayError> {
        plan.validate()?;
        let mut random = SplitMix::new(plan.seed);
        let spread = Spread::new(plan, &mut random);
        let (mut members, mut disks) = (Vec::new(), Vec::new());
        for pool in &plan.pools {
            let geometry = write_anywhere::geometry(&pool.member, pool.member.active_disks())?;
            if geometry.policy().parity_disks() > 0 {
                Code::of(&geometry)?;
            }
            let disk_bytes = pool.member.disk.capacity_bytes();
            let disk_bytes = disk_bytes.saturating_sub(write_anywhere::reserve_bytes(&pool.member, &geometry));
            let kind = DiskKind::new(&pool.member.disk, pool.member.cache.read_preference_ns);
            // A pool loses a disk of its first member alone.
            let healthy = MemberPlan { state: StatePlan::Healthy, ..pool.member.clone() };
            for within in 0..pool.members {
                let number = members.len() as u32;
                let used_bytes = spread.used_bytes(number);
                write_anywhere::check_room(&pool.member, &geometry, used_bytes)?;
                if geometry.disk_bytes(used_bytes) > disk_bytes {
                    return Err(ArrayError::TooLarge(format!(
                        "volumes take {used_bytes} bytes of a member that holds {}",
                        geometry.usable_bytes(disk_bytes)
                    )));
                }
                let first = disks.len() as u16;
                disks.resize(disks.len() + pool.member.active_disks() as usize, number as u16);
                let member_plan = if within == 0 { &pool.member } else { &healthy };
                members.push(Member::new(member_plan, &geometry, &kind, first, used_bytes, || random.next() as u32));
            }
        }
        let mut model = Self {
            now_ns: 0,
            epoch_ns: 0,
            events: Events::default(),
            links: Links::new(&plan.links, plan.controller(), plan.members(), plan.seed),
            spread,
            members,
            disks,
            volume_bytes: plan.volumes().map(|volume| volume.bytes).collect(),
            hosts: plan.links.hosts.count,
            max_transfer_bytes: plan.links.max_transfer_bytes,
            ios: Vec::new(),
            free_ios: Vec::new(),
            commands: Vec::new(),
            free_commands: Vec::new(),
            held: vec![VecDeque::new(); plan.links.hosts.count as usize],
            stranded: Vec::new(),
            fault: plan.links.fault,
            path_timeout_ns: plan.links.hosts.path_timeout_ns,
            rebalance: None,
        };
        if let Some(fault) = plan.links.fault {
            model.events.set(fault.at_ns, Event::Path(PathEvent::Lost));
        }
        for member in model.members.iter_mut().filter(|member| member.rebuild.is_some()) {
            member.rebuild_next(0, &mut model.events);
        }
        Ok(model)
    }

    /// Lets the caches hold what an access leaves there, without time passing.
    pub fn warm(&mut self, op: Op, volume: u16, offset_bytes: u64, length_bytes: u32) {
        let address = self.spread.address(volume, offset_bytes);
        let bytes = u64::from(length_bytes).min(address.left_bytes);
        self.members[address.member as usize].warm(op == Op::Write, address.at_bytes, bytes);
    }

    /// Whether warming with such accesses changes nothing any more.
    pub fn is_warm(&self, reads: bool, writes: bool) -> bool {
        self.members.iter().all(|member| member.is_warm(reads, writes))
    }

    /// Takes over what the caches of another array hold whose [`ArrayPlan::warmth`] is the same.
    pub fn take_caches(&mut self, warm: &Self) {
        for (member, other) in self.members.iter_mut().zip(&warm.members) {
            member.cache = other.cache.clone();
        }
    }

    /// Whether a write-anywhere layout writes again in one piece what a sequential read found scattered.
    pub fn set_read_realloc(&mut self, on: bool) {
        self.members.iter_mut().for_each(|member| member.read_realloc = on);
    }

    /// Size of a volume, where there is one.
    pub fn volume_bytes(&self, volume: usize) -> Option<u64> {
        self.volume_bytes.get(volume).copied()
    }

    /// Makes now the time 0 of the next run, once no I/O of the run before is outstanding.
    pub(crate) fn begin_session(&mut self) {
        let mut completions = Vec::new();
        while self.free_ios.len() < self.ios.len() {
            let next_ns = self.next_event_ns().expect("what is outstanding ends");
            self.advance(next_ns, &mut completions);
        }
        self.epoch_ns = self.now_ns;
    }

    /// What each member has done until now.
    pub fn readings(&self) -> Vec<MemberReading> {
        self.members.iter().enumerate().map(|(number, member)| self.reading(number as u32, member)).collect()
    }

    /// What each port of each host has carried until now.
    pub fn host_ports(&self) -> Vec<Vec<PortReading>> {
        (0..self.hosts).map(|host| self.links.of_host(host, self.now_ns).map(PortReading::from).collect()).collect()
    }

    fn reading(&self, number: u32, member: &Member) -> MemberReading {
        let MemberCounters {
            reads,
            read_hits,
            written_bytes,
            destaged_bytes,
            writes_waited,
            cpu_busy_ns,
            rebuilt_bytes,
            reallocated_bytes,
            cleaned_bytes,
            moved_bytes,
            ahead_pieces,
            ahead_bytes,
        } = member.counters;
        MemberReading {
            reads,
            read_hits,
            write_back: member.write_back(),
            written_bytes,
            destaged_bytes,
            writes_waited,
            rebuilt_bytes,
            reallocated_bytes,
            cleaned_bytes,
            moved_bytes,
            live_share: member.reclaim.as_ref().map(|reclaim| reclaim.live_share()),
            ahead_pieces,
            ahead_bytes,
            cpu_busy_ns: cpu_busy_ns - member.cpu_booked_ns(self.now_ns),
            cores: member.cores(),
            dirty_bytes: member.cache.dirty_bytes(),
            held_bytes: member.cache.held_bytes(),
            disks: member.disks.iter().map(|disk| DiskReading::from(disk.counters(self.now_ns))).collect(),
            ports: self.links.of_member(number, self.now_ns).map(PortReading::from).collect(),
        }
    }

    fn begin_io(&mut self, tag: u32, result: i32) -> u32 {
        let io = HostIo { tag, remaining: 0, result };
        match self.free_ios.pop() {
            Some(index) => {
                self.ios[index as usize] = io;
                index
            }
            None => {
                self.ios.push(io);
                self.ios.len() as u32 - 1
            }
        }
    }

    fn send(&mut self, at_ns: u64, command: Command) {
        self.ios[command.io as usize].remaining += 1;
        let index = match self.free_commands.pop() {
            Some(index) => {
                self.commands[index as usize] = command;
                index
            }
            None => {
                self.commands.push(command);
                self.commands.len() as u32 - 1
            }
        };
        let host = command.host as usize;
        // Only where paths are lost may a member have room while what waits for another does not.
        let waits = !self.held[host].is_empty() && self.fault.is_none();
        if waits || !self.dispatch(at_ns, index) {
            self.held[host].push_back(index);
        }
    }

    /// Sends a command over a path that takes it, if there is one.
    #[inline]
    fn dispatch(&mut self, at_ns: u64, index: u32) -> bool {
        let Command { op, host, member, bytes, .. } = self.commands[index as usize];
        let Some(path) = self.links.choose(host, member) else { return false };
        self.commands[index as usize].path = path;
        if self.links.is_silent(host, member, path) {
            self.stranded.push(index);
            return true;
        }
        let payload_bytes = if op == Op::Write { bytes } else { 0 };
        let there_ns = self.links.send(at_ns, host, member, path, payload_bytes);
        self.events.set(there_ns, Event::Arrived(index));
        true
    }

    /// Sends what waits at a host, as far as paths take it.
    fn dispatch_held(&mut self, host: u32) {
        let mut position = 0;
        while let Some(&index) = self.held[host as usize].get(position) {
            if self.dispatch(self.now_ns, index) {
                self.held[host as usize].remove(position);
            } else if self.fault.is_none() {
                return;
            } else {
                position += 1;
            }
        }
    }

    /// Whether a command is on a path that is lost; then its host sends it again, once it knows.
    #[inline]
    fn strands(&mut self, index: u32) -> bool {
        let Command { host, member, path, .. } = self.commands[index as usize];
        if !self.links.is_silent(host, member, path) {
            return false;
        }
        self.stranded.push(index);
        if self.links.is_noticed() {
            self.send_stranded();
        }
        true
    }

    /// Sends again what got no answer.
    pub(crate) fn send_stranded(&mut self) {
        for index in std::mem::take(&mut self.stranded) {
            let Command { host, member, path, .. } = self.commands[index as usize];
            self.links.leave(host, member, path);
            self.held[host as usize].push_back(index);
        }
        (0..self.hosts).for_each(|host| self.dispatch_held(host));
    }

    pub(crate) fn path_changes(&mut self, step: PathEvent) {
        match step {
            PathEvent::Lost => {
                self.links.lose();
                self.events.set(self.now_ns + self.path_timeout_ns, Event::Path(PathEvent::TimedOut));
                if let Some(FaultPlan { lost: Lost::Controller, failover_ns, .. }) = self.fault {
                    self.events.set(self.now_ns + failover_ns, Event::Path(PathEvent::TakenOver));
                }
            }
            PathEvent::TimedOut => {
                self.links.notice();
                self.send_stranded();
            }
            PathEvent::TakenOver => {
                self.links.take_over();
                self.send_stranded();
            }
        }
    }

    #[inline]
    fn happen(&mut self, event: Event, completions: &mut Vec<Completion>) {
        let now_ns = self.now_ns;
        let member = match event {
            Event::Path(step) => {
                self.path_changes(step);
                return;
            }
            Event::Arrived(index) => {
                if self.strands(index) {
                    return;
                }
                let Command { member, path, bytes, .. } = self.commands[index as usize];
                let controller = self.links.controller(member, path);
                let ready_ns = self.members[member as usize].compute(controller, now_ns, bytes);
                self.events.set(ready_ns, Event::Admitted(index));
                return;
            }
            Event::Admitted(index) => {
                if self.strands(index) {
                    return;
                }
                let Command { op, member, at_bytes, bytes, page_end_bytes, .. } = self.commands[index as usize];
                let access = Access { command: index, at_bytes, bytes, page_end_bytes };
                let at = &mut self.members[member as usize];
                match op {
                    Op::Read => at.read(now_ns, access, &mut self.events),
                    Op::Write => at.write(now_ns, access, &mut self.events),
                    // What was acknowledged is in memory with a battery, or where there is none on disk.
                    Op::Flush => at.done.push(index),
                }
                member
            }
            Event::DiskEnds { disk, slot } => {
                let member = self.disks[usize::from(disk)];
                let at = &mut self.members[usize::from(member)];
                at.disk_ends(now_ns, u32::from(disk - at.first_disk), slot, &mut self.events);
                u32::from(member)
            }
            Event::Moves { slot, admitted } => match self.move_comes(slot, admitted) {
                Some(member) => member,
                None => return,
            },
            Event::Answered(index) => {
                self.free_commands.push(index);
                let Command { io, host, member, path, .. } = self.commands[index as usize];
                self.links.leave(host, member, path);
                if self.links.is_limited() {
                    self.dispatch_held(host);
                }
                let state = &mut self.ios[io as usize];
                state.remaining -= 1;
                if state.remaining == 0 {
                    let at_ns = now_ns - self.epoch_ns;
                    completions.push(Completion { tag: state.tag, result: state.result, at_ns });
                    self.free_ios.push(io);
                }
                return;
            }
        };
        for position in 0..self.members[member as usize].done.len() {
            let index = self.members[member as usize].done[position];
            if index & MOVES > 0 {
                self.move_ends(index & !MOVES);
                continue;
            }
            if self.strands(index) {
                continue;
            }
            let Command { op, host, path, bytes, .. } = self.commands[index as usize];
            let payload_bytes = if op == Op::Read { bytes } else { 0 };
            let answered_ns = self.links.answer(now_ns, host, member, path, payload_bytes);
            self.events.set(answered_ns, Event::Answered(index));
        }
        self.members[member as usize].done.clear();
        if !self.members[member as usize].read_out.is_empty() {
            self.carry_moves(member);
        }
    }
}

impl Simulated for ArrayModel {
    fn submit(&mut self, at_ns: u64, request: &Request) {
        let at_ns = self.epoch_ns + at_ns;
        debug_assert!(at_ns >= self.now_ns, "time does not go back");
        let length = u64::from(request.length_bytes);
        let result = request.length_bytes as i32;
        let host = u32::from(request.volume) % self.hosts;
        let within = self.volume_bytes.get(usize::from(request.volume));
        let fits =
            within.is_some_and(|bytes| request.offset_bytes.checked_add(length).is_some_and(|end| end <= *bytes));
        if request.op == Op::Flush || !fits || length == 0 {
            let result = if fits { result } else { -EINVAL };
            let io = self.begin_io(request.tag, result);
            // Every member that holds a part of the volume says that its part is safe.
            let members = if fits && request.op == Op::Flush { self.spread.members_of(request.volume) } else { 0..1 };
            for member in members {
                let (op, path) = (Op::Flush, 0);
                self.send(at_ns, Command { io, op, host, member, path, at_bytes: 0, bytes: 0, page_end_bytes: 0 });
            }
            return;
        }
        let io = self.begin_io(request.tag, result);
        let mut done = 0;
        while done < length {
            let address = self.spread.address(request.volume, request.offset_bytes + done);
            let mut bytes = (length - done).min(address.left_bytes);
            if self.max_transfer_bytes > 0 {
                bytes = bytes.min(self.max_transfer_bytes);
            }
            let (op, member, at_bytes) = (request.op, address.member, address.at_bytes);
            let page_end_bytes = at_bytes + address.left_bytes;
            self.send(at_ns, Command { io, op, host, member, path: 0, at_bytes, bytes, page_end_bytes });
            done += bytes;
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.events.next_ns().map(|at_ns| at_ns - self.epoch_ns)
    }

    fn advance(&mut self, to_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        let before = completions.len();
        let to_ns = self.epoch_ns + to_ns;
        while let Some((at_ns, event)) = self.events.take(to_ns) {
            self.now_ns = at_ns;
            self.happen(event, completions);
            if completions.len() > before {
                return self.now_ns - self.epoch_ns;
            }
        }
        self.now_ns = self.now_ns.max(to_ns);
        self.now_ns - self.epoch_ns
    }
}
