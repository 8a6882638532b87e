//! The whole array as a passive state machine in virtual time.

use std::collections::VecDeque;

use assay_load::{Completion, Op, Request, Simulated, SplitMix};

use crate::{
    ArrayError, ArrayPlan, Code, FaultPlan, Lost, MemberPlan, StatePlan,
    disk::DiskKinds,
    events::{Event, PathEvent},
    links::Links,
    member::{Member, MemberCounters},
    readings::{DiskReading, MemberReading, PortReading},
    rebalance::Rebalance,
    slab::Slab,
    spread::Spread,
    task::Access,
    timeline::{Timed, Timeline},
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

/// A command to a member, sent over a path.
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
    pub(crate) time: Timeline,
    pub(crate) links: Links,
    pub(crate) spread: Spread,
    pub(crate) members: Vec<Member>,
    /// The member of each disk.
    pub(crate) disks: Vec<u16>,
    volume_bytes: Vec<u64>,
    pub(crate) hosts: u32,
    max_transfer_bytes: u64,
    ios: Slab<HostIo>,
    commands: Slab<Command>,
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
            let kinds = DiskKinds::new(&pool.member, pool.members);
            let member = &pool.member.unreduced();
            let geometry = write_anywhere::geometry(member, member.active_disks())?;
            if geometry.policy().parity_disks() > 0 {
                Code::of(&geometry)?;
            }
            let disk_bytes = member.disk.capacity_bytes();
            let disk_bytes = disk_bytes.saturating_sub(write_anywhere::reserve_bytes(member, &geometry));
            // A pool loses a disk of its first member alone.
            let healthy = MemberPlan { state: StatePlan::Healthy, ..member.clone() };
            for within in 0..pool.members {
                let number = members.len() as u32;
                let used_bytes = spread.used_bytes(number);
                write_anywhere::check_room(member, &geometry, used_bytes)?;
                if geometry.disk_bytes(used_bytes) > disk_bytes {
                    return Err(ArrayError::TooLarge(format!(
                        "volumes take {used_bytes} bytes of a member that holds {}",
                        geometry.usable_bytes(disk_bytes)
                    )));
                }
                let first = disks.len() as u16;
                disks.resize(disks.len() + member.serving_disks() as usize, number as u16);
                let member_plan = if within == 0 { member } else { &healthy };
                members.push(Member::new(member_plan, &geometry, &kinds, first, used_bytes, || random.next() as u32));
            }
        }
        let mut model = Self {
            time: Timeline::default(),
            links: Links::new(&plan.links, plan.controller(), plan.members(), plan.seed),
            spread,
            members,
            disks,
            volume_bytes: plan.volumes().map(|volume| volume.bytes).collect(),
            hosts: plan.links.hosts.count,
            max_transfer_bytes: plan.links.max_transfer_bytes,
            ios: Slab::new(),
            commands: Slab::new(),
            held: vec![VecDeque::new(); plan.links.hosts.count as usize],
            stranded: Vec::new(),
            fault: plan.links.fault,
            path_timeout_ns: plan.links.hosts.path_timeout_ns,
            rebalance: None,
        };
        if let Some(fault) = plan.links.fault {
            model.time.events.set(fault.at_ns, Event::Path(PathEvent::Lost));
        }
        for member in model.members.iter_mut().filter(|member| member.rebuild.is_some()) {
            member.rebuild_next(0, &mut model.time.events);
        }
        Ok(model)
    }

    /// Puts the data of an access into the caches, without time passing.
    pub fn warm(&mut self, op: Op, volume: u16, offset_bytes: u64, length_bytes: u32) {
        let address = self.spread.address(volume, offset_bytes);
        let bytes = u64::from(length_bytes).min(address.left_bytes);
        self.members[address.member as usize].warm(op == Op::Write, address.at_bytes, bytes);
    }

    /// Whether warming with such accesses changes nothing any more.
    pub fn is_warm(&self, reads: bool, writes: bool) -> bool {
        self.members.iter().all(|member| member.is_warm(reads, writes))
    }

    /// Takes over the caches of another array with the same [`ArrayPlan::warmth`].
    pub fn take_caches(&mut self, warm: &Self) {
        for (member, other) in self.members.iter_mut().zip(&warm.members) {
            member.cache = other.cache.clone();
        }
    }

    /// Sets whether a write-anywhere layout rewrites in one piece the data that a sequential read found scattered.
    pub fn set_read_realloc(&mut self, on: bool) {
        self.members.iter_mut().for_each(|member| member.caching.read_realloc = on);
    }

    /// Size of a volume, where there is one.
    pub fn volume_bytes(&self, volume: usize) -> Option<u64> {
        self.volume_bytes.get(volume).copied()
    }

    pub(crate) fn set_volume_bytes(&mut self, volume: usize, bytes: u64) {
        self.volume_bytes[volume] = bytes;
    }

    /// Readings of the members.
    pub fn readings(&self) -> Vec<MemberReading> {
        self.members.iter().enumerate().map(|(number, member)| self.reading(number as u32, member)).collect()
    }

    /// Traffic of each port of each host.
    pub fn host_ports(&self) -> Vec<Vec<PortReading>> {
        (0..self.hosts)
            .map(|host| self.links.of_host(host, self.time.now_ns).map(PortReading::from).collect())
            .collect()
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
            write_back: member.caching.write_back,
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
            cpu_busy_ns: cpu_busy_ns - member.processors.booked_ns(self.time.now_ns),
            cores: member.processors.cores(),
            dirty_bytes: member.cache.dirty_bytes(),
            held_bytes: member.cache.held_bytes(),
            disks: member.disks.iter().map(|disk| DiskReading::from(disk.counters(self.time.now_ns))).collect(),
            ports: self.links.of_member(number, self.time.now_ns).map(PortReading::from).collect(),
            gate: None,
            loaded_bytes: 0,
        }
    }

    fn begin_io(&mut self, tag: u32, result: i32) -> u32 {
        self.ios.insert(HostIo { tag, remaining: 0, result })
    }

    fn send(&mut self, at_ns: u64, command: Command) {
        self.ios[command.io].remaining += 1;
        let index = self.commands.insert(command);
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
        let Command { op, host, member, bytes, .. } = self.commands[index];
        let Some(path) = self.links.choose(host, member) else { return false };
        self.commands[index].path = path;
        if self.links.is_silent(host, member, path) {
            self.stranded.push(index);
            return true;
        }
        let payload_bytes = if op == Op::Write { bytes } else { 0 };
        let there_ns = self.links.send(at_ns, host, member, path, payload_bytes);
        self.time.events.set(there_ns, Event::Arrived(index));
        true
    }

    /// Sends commands that wait at a host, as far as paths take them.
    fn dispatch_held(&mut self, host: u32) {
        let mut position = 0;
        while let Some(&index) = self.held[host as usize].get(position) {
            if self.dispatch(self.time.now_ns, index) {
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
        let Command { host, member, path, .. } = self.commands[index];
        if !self.links.is_silent(host, member, path) {
            return false;
        }
        self.stranded.push(index);
        if self.links.is_noticed() {
            self.send_stranded();
        }
        true
    }

    /// Sends unanswered commands again.
    pub(crate) fn send_stranded(&mut self) {
        for index in std::mem::take(&mut self.stranded) {
            let Command { host, member, path, .. } = self.commands[index];
            self.links.leave(host, member, path);
            self.held[host as usize].push_back(index);
        }
        (0..self.hosts).for_each(|host| self.dispatch_held(host));
    }

    /// A loss goes on by one step. A step of a loss that was mended meanwhile, or of one before it, is none.
    pub(crate) fn path_changes(&mut self, step: PathEvent) {
        let Some(FaultPlan { lost, at_ns, failover_ns }) = self.fault else { return };
        let (timed_out_ns, taken_over_ns) = (at_ns + self.path_timeout_ns, at_ns + failover_ns);
        let now_ns = self.time.now_ns;
        match step {
            PathEvent::Lost if now_ns == at_ns => {
                self.links.lose();
                self.time.events.set(timed_out_ns, Event::Path(PathEvent::TimedOut));
                if lost == Lost::Controller {
                    self.time.events.set(taken_over_ns, Event::Path(PathEvent::TakenOver));
                }
            }
            PathEvent::TimedOut if now_ns == timed_out_ns => {
                self.links.notice();
                self.send_stranded();
            }
            PathEvent::TakenOver if now_ns == taken_over_ns && lost == Lost::Controller => {
                self.links.take_over();
                self.send_stranded();
            }
            _ => {}
        }
    }

    /// A command has come over its path: the controller begins with it.
    #[inline]
    fn arrive(&mut self, index: u32) {
        if self.strands(index) {
            return;
        }
        let Command { member, path, bytes, .. } = self.commands[index];
        let controller = self.links.controller(member, path);
        let ready_ns = self.members[member as usize].compute(controller, self.time.now_ns, bytes);
        self.time.events.set(ready_ns, Event::Admitted(index));
    }

    /// The controller is done with a command: its member serves it. Returns the member, which may have ended commands.
    #[inline]
    fn admit(&mut self, index: u32) -> Option<u32> {
        if self.strands(index) {
            return None;
        }
        let now_ns = self.time.now_ns;
        let Command { op, member, at_bytes, bytes, page_end_bytes, .. } = self.commands[index];
        let access = Access { command: index, at_bytes, bytes, page_end_bytes };
        let at = &mut self.members[member as usize];
        match op {
            Op::Read => at.read(now_ns, access, &mut self.time.events),
            Op::Write => at.write(now_ns, access, &mut self.time.events),
            Op::Flush => at.flush_disks(now_ns, index, &mut self.time.events),
        }
        Some(member)
    }

    /// The host has the answer to a command; the I/O is over with its last command.
    #[inline]
    fn answered(&mut self, index: u32, completions: &mut Vec<Completion>) {
        self.commands.free(index);
        let Command { io, host, member, path, .. } = self.commands[index];
        self.links.leave(host, member, path);
        if self.links.is_limited() {
            self.dispatch_held(host);
        }
        let state = &mut self.ios[io];
        state.remaining -= 1;
        if state.remaining == 0 {
            let at_ns = self.time.user_ns();
            completions.push(Completion { tag: state.tag, result: state.result, at_ns });
            self.ios.free(io);
        }
    }

    /// Answers the commands that a member has ended.
    #[inline]
    fn answer_done(&mut self, member: u32) {
        for position in 0..self.members[member as usize].done.len() {
            let index = self.members[member as usize].done[position];
            if index & MOVES > 0 {
                self.move_ends(index & !MOVES);
                continue;
            }
            if self.strands(index) {
                continue;
            }
            let Command { op, host, path, bytes, .. } = self.commands[index];
            let payload_bytes = if op == Op::Read { bytes } else { 0 };
            let answered_ns = self.links.answer(self.time.now_ns, host, member, path, payload_bytes);
            self.time.events.set(answered_ns, Event::Answered(index));
        }
        self.members[member as usize].done.clear();
        if !self.members[member as usize].read_out.is_empty() {
            self.carry_moves(member);
        }
    }
}

impl Timed for ArrayModel {
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.time
    }

    #[inline]
    fn happen(&mut self, event: Event, completions: &mut Vec<Completion>) {
        let now_ns = self.time.now_ns;
        let member = match event {
            Event::Path(step) => return self.path_changes(step),
            Event::Arrived(index) => return self.arrive(index),
            Event::Answered(index) => return self.answered(index, completions),
            Event::Admitted(index) => self.admit(index),
            Event::DiskEnds { disk, slot } => {
                let member = self.disks[usize::from(disk)];
                let at = &mut self.members[usize::from(member)];
                at.disk_ends(now_ns, u32::from(disk - at.first_disk), slot, &mut self.time.events);
                Some(u32::from(member))
            }
            Event::Moves { slot, admitted } => self.move_comes(slot, admitted),
            Event::Rebuilds { disk } => {
                let member = self.disks[usize::from(disk)];
                self.members[usize::from(member)].rebuild_next(now_ns, &mut self.time.events);
                Some(u32::from(member))
            }
        };
        if let Some(member) = member {
            self.answer_done(member);
        }
    }

    fn is_idle(&self) -> bool {
        self.ios.is_empty()
    }
}

impl Simulated for ArrayModel {
    fn submit(&mut self, at_ns: u64, request: &Request) {
        let at_ns = self.time.of_model_ns(at_ns);
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
        self.time.next_ns()
    }

    fn advance(&mut self, to_ns: u64, completions: &mut Vec<Completion>) -> u64 {
        self.pass_time(to_ns, completions)
    }
}
